//! What the user said and nobody has answered: pieces that are recognised one by one, and the one that still grows.

use std::sync::Arc;

use super::Samples;
use super::message::TurnNumber;

/// A piece of the user's turn that is recognised on its own (or was typed).
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) turn: TurnNumber,
    pub(super) text: Option<Arc<str>>,
}

/// What the user said and nobody has answered audibly.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Utterance {
    /// Pieces that will not change.
    pub(super) closed: Vec<Piece>,
    /// Start of the piece that may still grow.
    pub(super) from: Option<Samples>,
    /// The growing piece as far as it was recognised; gone when speech goes on.
    pub(super) attempt: Option<Piece>,
    /// The user has finished.
    pub(super) ended: bool,
    /// It broke into a reply.
    pub(super) interrupts: bool,
}

impl Utterance {
    pub(super) fn new(from: Option<Samples>) -> Self {
        Self { closed: Vec::new(), from, attempt: None, ended: false, interrupts: false }
    }

    /// The newest piece's number, which is that of the attempt.
    pub(super) fn turn(&self) -> Option<TurnNumber> {
        self.pieces().next_back().map(|piece| piece.turn)
    }

    pub(super) fn pieces(&self) -> impl DoubleEndedIterator<Item = &Piece> {
        self.closed.iter().chain(&self.attempt)
    }

    /// All words, once every piece is recognised.
    pub(super) fn text(&self) -> Option<Arc<str>> {
        if self.from.is_some() && self.attempt.is_none() {
            return None;
        }
        let texts: Option<Vec<&str>> =
            self.pieces().map(|piece| piece.text.as_deref().map(str::trim)).collect();
        let texts: Vec<&str> = texts?.into_iter().filter(|text| !text.is_empty()).collect();
        Some(texts.join(" ").into())
    }
}
