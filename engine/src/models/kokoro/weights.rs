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
//! 8-bit weights stay 8-bit, with the scale and the zero point that the quantised graph has for them; what they stand for,
//! `(q - zero_point) * scale`, meets activations that are not quantised. Rejected: names by the order of nodes alone, which break with every exporter.

use std::collections::{HashMap, HashSet};

use crate::backends::MemoryTensors;
use crate::formats::onnx::{Node, Onnx};
use crate::formats::{Affine, TensorSource, TensorType};
use crate::models::ModelError;

/// The tensors of a Kokoro file, f32 or 8-bit, in PyTorch's layouts and under PyTorch's names.
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
    data: Numbers,
}

enum Numbers {
    Floats(Vec<f32>),
    /// Bytes of a type, and what they stand for.
    Bytes {
        ty: TensorType,
        q: Vec<u8>,
        scales: Vec<f32>,
        zeros: Vec<f32>,
    },
}

impl Plain {
    /// The last two dimensions swapped, for each of the ones before.
    fn transposed(self) -> Self {
        let Some((front, &[rows, cols])) = self.shape.split_last_chunk::<2>() else { return self };
        let shape = [front, &[cols, rows][..]].concat();
        let data = match self.data {
            Numbers::Floats(data) => Numbers::Floats(swapped(&data, rows, cols)),
            Numbers::Bytes { ty, q, scales, zeros } => {
                Numbers::Bytes { ty, q: swapped(&q, rows, cols), scales, zeros }
            }
        };
        Self { shape, data }
    }

    /// Direction `at` of recurrent weights `[directions, gates, columns]`, its gates in PyTorch's order; none when the
    /// scales fit neither directions nor gates.
    fn direction(&self, at: usize) -> Option<Self> {
        let [directions, gates, cols] = self.shape[..] else { return None };
        let shape = vec![gates, cols];
        let part = |count: usize| at * count..(at + 1) * count;
        // One for each direction, or one for each of its gates' rows.
        let of = |list: &[f32]| match list.len() {
            n if n == directions => Some(vec![list[at]]),
            n if n == directions * gates => Some(in_torch_order(&list[part(gates)])),
            _ => None,
        };
        let data = match &self.data {
            Numbers::Floats(data) => Numbers::Floats(in_torch_order(&data[part(gates * cols)])),
            Numbers::Bytes { ty, q, scales, zeros } => {
                let (scales, zeros) =
                    (of(scales)?, if zeros.len() == 1 { zeros.clone() } else { of(zeros)? });
                Numbers::Bytes { ty: *ty, q: in_torch_order(&q[part(gates * cols)]), scales, zeros }
            }
        };
        Some(Self { shape, data })
    }
}

/// Matrices `[rows, cols]` one behind the other, each transposed.
fn swapped<T: Copy>(data: &[T], rows: usize, cols: usize) -> Vec<T> {
    let mut out = Vec::with_capacity(data.len());
    for part in data.chunks_exact((rows * cols).max(1)) {
        for c in 0..cols {
            out.extend(part.iter().skip(c).step_by(cols));
        }
    }
    out
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
                let plain = self.plain(full)?;
                self.insert(name.to_owned(), plain)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, name: String, plain: Plain) -> Result<(), ModelError> {
        let Plain { shape, data } = plain;
        match data {
            Numbers::Floats(data) => self.out.insert_f32(&name, &shape, &data)?,
            Numbers::Bytes { ty, q, scales, zeros } => {
                let affine = Affine { scales: &scales, zeros: &zeros };
                self.out.insert_affine(&name, ty, &shape, q, affine)?;
            }
        }
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
            "ConvInteger" => self.integers(node, weight)?,
            "MatMulInteger" => self.integers(node, weight)?.transposed(),
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
        Ok(Plain { shape: view.shape.clone(), data: Numbers::Floats(view.to_f32_vec()?) })
    }

    /// A tensor's numbers as f32.
    fn floats(&self, name: &str) -> Result<Vec<f32>, ModelError> {
        Ok(self.file.tensor(name)?.to_f32_vec()?)
    }

    /// 8-bit weights with what they stand for; how many scales fit is for who uses them to say.
    fn quantized(
        &self,
        node: &Node,
        weight: &str,
        scale: &str,
        zero: Option<&str>,
    ) -> Result<Plain, ModelError> {
        let view = self.file.tensor(weight)?;
        if !matches!(view.ty, TensorType::I8 | TensorType::U8) {
            return Err(damaged(node, format!("has a weight of {} for an integer product", view.ty)));
        }
        let (ty, shape, q) = (view.ty, view.shape.clone(), view.data.to_vec());
        let zeros = zero.map_or(Ok(vec![0.0]), |zero| self.floats(zero))?;
        Ok(Plain { shape, data: Numbers::Bytes { ty, q, scales: self.floats(scale)?, zeros } })
    }

    /// A matrix of an integer product.
    fn integers(&self, node: &'a Node, weight: &str) -> Result<Plain, ModelError> {
        let scale = self.scale_behind(node).ok_or_else(|| damaged(node, "has no scale behind it"))?;
        self.quantized(node, weight, scale, self.constant(node, 3))
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
                self.quantized(dequantize, name, scale, self.constant(dequantize, 2)).map(Some)
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
                self.quantized(node, need(at)?, need(scale)?, Some(need(zero)?))?.transposed()
            } else {
                self.plain(need(at)?)?
            });
        }
        let bias = self.floats(need(3)?)?;
        let [directions, gates, hidden] = parts[1].shape[..] else {
            return Err(damaged(node, format!("has recurrent weights {:?}", parts[1].shape)));
        };
        let fits = gates == 4 * hidden
            && (1..=2).contains(&directions)
            && parts[0].shape.starts_with(&[directions, gates])
            && bias.len() == directions * 2 * gates;
        if !fits {
            return Err(damaged(node, format!("has weights {:?} and {:?}", parts[0].shape, parts[1].shape)));
        }
        for (direction, suffix) in ["", "_reverse"].into_iter().take(directions).enumerate() {
            let biases = bias[direction * 2 * gates..][..2 * gates].split_at(gates);
            for (kind, bias) in [("ih", biases.0), ("hh", biases.1)] {
                let data = Numbers::Floats(in_torch_order(bias));
                self.insert(format!("{module}.bias_{kind}_l0{suffix}"), Plain { shape: vec![gates], data })?;
            }
            for (kind, part) in ["ih", "hh"].iter().zip(&parts) {
                let own = part
                    .direction(direction)
                    .ok_or_else(|| damaged(node, "has scales for neither directions nor gates"))?;
                self.insert(format!("{module}.weight_{kind}_l0{suffix}"), own)?;
            }
        }
        Ok(())
    }
}

/// Four equal parts from ONNX's order of gates (i, o, f, c) to PyTorch's (i, f, g, o).
fn in_torch_order<T: Copy>(gates: &[T]) -> Vec<T> {
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
