//! A writer of CTranslate2 `model.bin` files.

use super::{check, quantize};
use crate::formats::TensorType;

/// Writes a CTranslate2 `model.bin` in memory.
#[derive(Debug, Clone)]
pub struct Ct2Writer {
    version: u32,
    spec: String,
    revision: u32,
    count: u32,
    variables: Vec<u8>,
    aliases: Vec<(String, String)>,
}

impl Ct2Writer {
    /// An empty model of binary version `version` (6 is current) and revision `revision` of `spec`.
    pub fn new(version: u32, spec: &str, revision: u32) -> Self {
        Self {
            version,
            spec: spec.to_owned(),
            revision,
            count: 0,
            variables: Vec::new(),
            aliases: Vec::new(),
        }
    }

    /// A variable; `shape` is outermost first, `bytes` are its rows.
    pub fn tensor(&mut self, name: &str, ty: TensorType, shape: &[usize], bytes: &[u8]) -> &mut Self {
        check(name, ty, shape, bytes);
        let code = match ty {
            TensorType::F32 => 0,
            TensorType::I8 => 1,
            TensorType::I32 => 3,
            TensorType::F16 => 4,
            TensorType::BF16 => 5,
            other => panic!("CTranslate2 has no {other}"),
        };
        let dims: Vec<u32> = shape.iter().map(|&dim| dim as u32).collect();
        let tag = if self.version >= 4 { code } else { ty.block_bytes() as u8 };
        let size = if self.version >= 4 { bytes.len() } else { bytes.len() / ty.block_bytes() };
        self.raw(name, &dims, tag, size as u32, bytes)
    }

    /// A variable from f32 values.
    pub fn tensor_f32(&mut self, name: &str, ty: TensorType, shape: &[usize], values: &[f32]) -> &mut Self {
        self.tensor(name, ty, shape, &quantize(ty, values))
    }

    /// A scalar i16, the way specifications store numbers such as `num_heads`.
    pub fn scalar_i16(&mut self, name: &str, value: i16) -> &mut Self {
        let (tag, size) = if self.version >= 4 { (2, 2) } else { (2, 1) };
        self.raw(name, &[], tag, size, &value.to_le_bytes())
    }

    /// Any variable: `tag` is the type code (the item size before version 4), `size` the bytes (the items
    /// before version 4) that the file claims.
    pub fn raw(&mut self, name: &str, dims: &[u32], tag: u8, size: u32, bytes: &[u8]) -> &mut Self {
        push_string(&mut self.variables, name);
        self.variables.push(dims.len() as u8);
        self.variables.extend(dims.iter().flat_map(|dim| dim.to_le_bytes()));
        self.variables.push(tag);
        self.variables.extend(size.to_le_bytes());
        self.variables.extend(bytes);
        self.count += 1;
        self
    }

    /// A second name for `variable`.
    pub fn alias(&mut self, alias: &str, variable: &str) -> &mut Self {
        self.aliases.push((alias.to_owned(), variable.to_owned()));
        self
    }

    /// The file.
    pub fn finish(&self) -> Vec<u8> {
        let mut file = self.version.to_le_bytes().to_vec();
        if self.version >= 2 {
            push_string(&mut file, &self.spec);
            file.extend(self.revision.to_le_bytes());
        }
        file.extend(self.count.to_le_bytes());
        file.extend(&self.variables);
        if self.version >= 3 {
            file.extend((self.aliases.len() as u32).to_le_bytes());
            for (alias, variable) in &self.aliases {
                push_string(&mut file, alias);
                push_string(&mut file, variable);
            }
        }
        file
    }
}

/// A u16 length that counts the closing NUL, the text, the NUL.
fn push_string(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16 + 1).to_le_bytes());
    out.extend(text.as_bytes());
    out.push(0);
}
