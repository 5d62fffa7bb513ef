//! What the pipeline calls, whichever model is behind.
