//! Kokoro's tensors under the names of the published checkpoint, whichever ONNX file they come from.
//!
//! An ONNX export keeps the names of biases and norms but calls most matrices after nodes (`onnx::MatMul_6559`,
//! `/decoder/.../Mul_2_output_0`), and transposes some. What stays is the *place* of the node that uses a matrix: node
//! `/decoder/decoder/decode.0/conv1/Conv` belongs to module `decoder.decode.0.conv1`. So the nodes are walked, and each
//! of a kind that has weights gives its module's tensors, brought into PyTorch's layout:
//!
//! | node | weight in the file | here |
//! |---|---|---|
//! | `Conv`, `ConvInteger` | `[out, in, taps]` | the same |
//! | `ConvTranspose` | `[in, out / groups, taps]` | the same |
//! | `MatMul`, `MatMulInteger` | `[in, out]` | `[out, in]` |
//! | `Gemm` | by `transB` | `[out, in]` |
//! | `LSTM` | `[directions, 4 hidden, in]`, gates i, o, f, g | a tensor a direction, gates i, f, g, o |
//! | `DynamicQuantizeLSTM` | `[directions, in, 4 hidden]` | likewise |
//! | `Gather` | a table | the same |
//!
//! 8-bit weights become `(q - zero_point) * scale` in f32: exactly what the quantised graph stands for, with
//! activations that are not quantised. Rejected: names by the order of nodes alone, which break with every exporter.

use std::collections::{HashMap, HashSet};

use crate::backends::MemoryTensors;
use crate::formats::onnx::{Node, Onnx};
use crate::formats::{TensorSource, TensorType};
use crate::models::ModelError;

/// The tensors of a Kokoro file, f32, in PyTorch's layouts and under PyTorch's names.
///
/// # Errors
/// A file that is no Kokoro export, or whose weights are damaged.
pub fn tensors(file: &Onnx) -> Result<MemoryTensors, ModelError> {
    let mut reader = Reader::new(file);
    reader.vectors()?;
    for node in &file.graph().nodes {
        reader.node(node)?;
    }
    Ok(reader.out)
}

/// A tensor's shape and numbers.
struct Plain {
    shape: Vec<usize>,
    data: Vec<f32>,
}

impl Plain {
    /// The last two dimensions swapped, for each of the ones before.
    fn transposed(self) -> Self {
        let Some((front, &[rows, cols])) = self.shape.split_last_chunk::<2>() else { return self };
        let mut data = Vec::with_capacity(self.data.len());
        for part in self.data.chunks_exact((rows * cols).max(1)) {
            for c in 0..cols {
                data.extend(part.iter().skip(c).step_by(cols));
            }
        }
        Self { shape: [front, &[cols, rows][..]].concat(), data }
    }
}

struct Reader<'a> {
    file: &'a Onnx,
    known: HashSet<&'a str>,
    producers: HashMap<&'a str, &'a Node>,
    users: HashMap<&'a str, Vec<&'a Node>>,
    done: HashSet<String>,
    out: MemoryTensors,
}

fn damaged(node: &Node, problem: impl Into<String>) -> ModelError {
    ModelError::config(format!("node {}", node.name), &node.op_type, problem)
}

impl<'a> Reader<'a> {
    fn new(file: &'a Onnx) -> Self {
        let (mut producers, mut users) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for node in &file.graph().nodes {
            producers.extend(node.outputs.iter().map(|o| (o.as_str(), node)));
            node.inputs.iter().for_each(|i| users.entry(i.as_str()).or_default().push(node));
        }
        let known = file.graph().initializers().collect();
        let (done, out) = (HashSet::new(), MemoryTensors::new());
        Self { file, known, producers, users, done, out }
    }

    /// What keeps its name: biases, gains, alphas.
    fn vectors(&mut self) -> Result<(), ModelError> {
        for full in self.file.graph().initializers() {
            // The first word only says which half of the export a module is in.
            let Some(name) = full.strip_prefix("encoder.").or_else(|| full.strip_prefix("decoder.")) else {
                continue;
            };
            let view = self.file.tensor(full)?;
            let vector = view.shape.iter().filter(|&&d| d != 1).count() <= 1;
            let float = matches!(view.ty, TensorType::F32 | TensorType::F16 | TensorType::BF16);
            if vector && float && !name.ends_with("_scale") {
                let (shape, data) = (view.shape.clone(), view.to_f32_vec()?);
                self.insert(name.to_owned(), Plain { shape, data })?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, name: String, plain: Plain) -> Result<(), ModelError> {
        self.out.insert_f32(&name, &plain.shape, &plain.data)?;
        self.done.insert(name);
        Ok(())
    }

    fn input(node: &'a Node, at: usize) -> Option<&'a str> {
        node.inputs.get(at).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// Input `at` of a node, when the file has it as a tensor.
    fn constant(&self, node: &'a Node, at: usize) -> Option<&'a str> {
        Self::input(node, at).filter(|name| self.known.contains(name))
    }

    fn node(&mut self, node: &'a Node) -> Result<(), ModelError> {
        let lstm = matches!(node.op_type.as_str(), "LSTM" | "DynamicQuantizeLSTM");
        let data = usize::from(node.op_type != "Gather");
        let Some(module) = module(&node.name) else { return Ok(()) };
        let name = format!("{module}.{}", if lstm { "weight_hh_l0" } else { "weight" });
        if self.done.contains(&name) {
            return Ok(()); // a layer that is used several times
        }
        let Some(weight) = self.constant(node, data) else { return Ok(()) };
        let plain = match node.op_type.as_str() {
            "Conv" | "ConvTranspose" => self.plain(weight)?,
            "MatMul" => self.plain(weight)?.transposed(),
            "Gemm" if node.int("transB")?.unwrap_or(0) != 0 => self.plain(weight)?,
            "Gemm" => self.plain(weight)?.transposed(),
            "ConvInteger" => self.integers(node, weight, 0)?,
            "MatMulInteger" => self.integers(node, weight, 1)?.transposed(),
            "LSTM" | "DynamicQuantizeLSTM" => return self.lstm(node, &module),
            "Gather" => match self.table(node, weight)? {
                Some(table) => table,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.insert(name, plain)
    }

    fn plain(&self, name: &str) -> Result<Plain, ModelError> {
        let view = self.file.tensor(name)?;
        Ok(Plain { shape: view.shape.clone(), data: view.to_f32_vec()? })
    }

    /// `(q - zero_point) * scale`, with one of each or as many as dimension `axis` is long.
    fn dequantized(
        &self,
        node: &Node,
        weight: &str,
        scale: &str,
        zero: Option<&str>,
        axis: usize,
    ) -> Result<Plain, ModelError> {
        let Plain { shape, mut data } = self.plain(weight)?;
        let scales = self.plain(scale)?.data;
        let zeros = zero.map_or(Ok(vec![0.0]), |z| self.plain(z).map(|p| p.data))?;
        let channels = shape.get(axis).copied().unwrap_or(1);
        if [&scales, &zeros].iter().any(|v| v.len() != 1 && v.len() != channels) {
            let counts = format!("{} scales and {} zero points for {shape:?}", scales.len(), zeros.len());
            return Err(damaged(node, counts));
        }
        let inner: usize = shape.iter().skip(axis + 1).product();
        let of = |v: &[f32], channel: usize| if v.len() == 1 { v[0] } else { v[channel] };
        for (i, part) in data.chunks_mut(inner.max(1)).enumerate() {
            let (scale, zero) = (of(&scales, i % channels), of(&zeros, i % channels));
            part.iter_mut().for_each(|q| *q = (*q - zero) * scale);
        }
        Ok(Plain { shape, data })
    }

    /// A matrix of an integer product; `axis` is that of the outputs.
    fn integers(&self, node: &'a Node, weight: &str, axis: usize) -> Result<Plain, ModelError> {
        let scale = self.scale_behind(node).ok_or_else(|| damaged(node, "has no scale behind it"))?;
        self.dequantized(node, weight, scale, self.constant(node, 3), axis)
    }

    /// The weight's scale behind an integer product: `product (+ bias) -> Cast -> Mul by (input's scale * weight's)`.
    fn scale_behind(&self, node: &'a Node) -> Option<&'a str> {
        let mut at = node;
        for _ in 0..3 {
            let value = at.outputs.first()?.as_str();
            let [user] = self.users.get(value)?[..] else { return None };
            if user.op_type == "Mul" {
                let scales = user.inputs.iter().find(|i| *i != value)?;
                let product = self.producers.get(scales.as_str()).filter(|n| n.op_type == "Mul")?;
                return product.inputs.iter().map(String::as_str).find(|i| self.known.contains(i));
            }
            if !matches!(user.op_type.as_str(), "Add" | "Cast") {
                return None;
            }
            at = user;
        }
        None
    }

    /// A table of embeddings; other gathers pick from shapes.
    fn table(&self, node: &'a Node, name: &str) -> Result<Option<Plain>, ModelError> {
        let view = self.file.tensor(name)?;
        if view.shape.len() != 2 {
            return Ok(None);
        }
        match view.ty {
            TensorType::F32 | TensorType::F16 | TensorType::BF16 => self.plain(name).map(Some),
            TensorType::I8 | TensorType::U8 => {
                let behind = node.outputs.first().and_then(|o| self.users.get(o.as_str()));
                let dequantize = behind
                    .and_then(|users| users.iter().find(|n| n.op_type == "DequantizeLinear"))
                    .ok_or_else(|| damaged(node, "has no DequantizeLinear behind it"))?;
                let scale = self.constant(dequantize, 1);
                let scale = scale.ok_or_else(|| damaged(dequantize, "has no constant scale"))?;
                self.dequantized(dequantize, name, scale, self.constant(dequantize, 2), 0).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Both directions of an LSTM, one layer.
    fn lstm(&mut self, node: &'a Node, module: &str) -> Result<(), ModelError> {
        let need = |at| self.constant(node, at).ok_or_else(|| damaged(node, format!("lacks input {at}")));
        let quantized = node.op_type == "DynamicQuantizeLSTM";
        let mut parts = Vec::new();
        for (at, scale, zero) in [(1, 8, 9), (2, 10, 11)] {
            parts.push(if quantized {
                // One scale a direction, or one a gate: PyTorch's exporter makes the former.
                self.dequantized(node, need(at)?, need(scale)?, Some(need(zero)?), 0)?.transposed()
            } else {
                self.plain(need(at)?)?
            });
        }
        let bias = self.plain(need(3)?)?;
        let [directions, gates, hidden] = parts[1].shape[..] else {
            return Err(damaged(node, format!("has recurrent weights {:?}", parts[1].shape)));
        };
        let fits = gates == 4 * hidden
            && (1..=2).contains(&directions)
            && parts[0].shape.starts_with(&[directions, gates])
            && bias.data.len() == directions * 2 * gates;
        if !fits {
            return Err(damaged(node, format!("has weights {:?} and {:?}", parts[0].shape, parts[1].shape)));
        }
        for (direction, suffix) in ["", "_reverse"].into_iter().take(directions).enumerate() {
            let biases = bias.data[direction * 2 * gates..][..2 * gates].split_at(gates);
            for (kind, bias) in [("ih", biases.0), ("hh", biases.1)] {
                let data = in_torch_order(bias);
                self.insert(format!("{module}.bias_{kind}_l0{suffix}"), Plain { shape: vec![gates], data })?;
            }
            for (kind, part) in ["ih", "hh"].iter().zip(&parts) {
                let cols = part.shape[2];
                let data = in_torch_order(&part.data[direction * gates * cols..][..gates * cols]);
                let shape = vec![gates, cols];
                self.insert(format!("{module}.weight_{kind}_l0{suffix}"), Plain { shape, data })?;
            }
        }
        Ok(())
    }
}

/// Four equal parts from ONNX's order of gates (i, o, f, c) to PyTorch's (i, f, g, o).
fn in_torch_order(gates: &[f32]) -> Vec<f32> {
    let quarter = gates.len() / 4;
    [0, 2, 3, 1].iter().flat_map(|g| &gates[g * quarter..(g + 1) * quarter]).copied().collect()
}

/// The module that a node belongs to: `/encoder/F0.0/conv1/Conv` is in `predictor.F0.0.conv1`.
fn module(node: &str) -> Option<String> {
    let path: Vec<&str> = node.strip_prefix('/')?.split('/').collect();
    let (_, path) = path.split_last()?;
    let (half, path) = path.split_first()?;
    if !matches!(*half, "encoder" | "decoder") || path.is_empty() {
        return None;
    }
    let mut words: Vec<&str> = Vec::new();
    for word in path {
        // A member of a list repeats the list: `cnn.0/cnn.0.0`.
        if words.last().is_some_and(|last| word.strip_prefix(last).is_some_and(|rest| rest.starts_with('.')))
        {
            words.pop();
        }
        // The layers of ALBERT are one layer; its later uses are counted: `query_11`.
        let used =
            word.rsplit_once('_').filter(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
        words.push(match used {
            Some((word, _)) if path[0] == "bert" => word,
            _ => word,
        });
    }
    // These are called from outside the predictor, so their path lacks it.
    let first = words[0].split('.').next()?;
    if *half == "encoder" && matches!(first, "F0" | "N" | "F0_proj" | "N_proj" | "shared") {
        words.insert(0, "predictor");
    }
    Some(words.join("."))
}

#[cfg(test)]
#[path = "weights_tests.rs"]
mod tests;
