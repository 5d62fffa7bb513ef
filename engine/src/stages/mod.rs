//! What the pipeline calls, whichever model is behind.
//!
//! | module | from | to |
//! |---|---|---|
//! | [`listen`] | samples | where utterances start, pause and end |
//! | [`transcribe`] | an utterance | text |
//! | [`reply`] | a conversation | the answer, piece by piece |
//! | [`narrate`] | a reply, piece by piece | its sound, clause by clause |
//! | [`speak`] | phonemes of a clause | its sound |

pub mod listen;
pub mod narrate;
pub mod reply;
pub mod speak;
pub mod transcribe;
