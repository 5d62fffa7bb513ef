//! Drawing tokens.

use super::kernel::{Call, Word, Work, plain, words};
use super::program::Compiler;
use crate::backends::CompileErrorKind;
use crate::graph::{Node, Value};

impl Compiler<'_> {
    pub(super) fn sample(&self, node: &Node, y: Value) -> Result<Call, CompileErrorKind> {
        let bias = node.inputs.get(1).map(|&b| self.place(b).offset);
        let own =
            [Word::flag(bias.is_some()), Word::size(self.scratch()), Word::size(bias.unwrap_or_default())];
        let kernel = plain(self.device, "sample", "sample")?;
        let words = words(self.place(node.inputs[0]), self.place(y), &own);
        Ok(Call::new(kernel, words, Work::Groups(self.graph.slots.into(), 1)))
    }
}
