//! The catalogue of model files: where they come from, fetching, checking and the cache.
