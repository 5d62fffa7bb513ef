//! Readers of published weight files; every file is treated as hostile.
