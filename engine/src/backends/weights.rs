//! Weights packed once: a file's tensors in the form that a backend's kernels read, shared by its programs.

use std::any::{Any, TypeId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CompileError, CompileErrorKind};
use crate::formats::{Affine, FormatError, FormatErrorKind, TensorSource, TensorType, TensorView};
use crate::graph::work::weights_read;
use crate::graph::{Graph, Node, WeightLayout, WeightSpec};

type Packed = Arc<dyn Any + Send + Sync>;

/// A weight file and what has been packed of it.
pub struct WeightSet {
    source: Arc<dyn TensorSource>,
    packed: Mutex<HashMap<(WeightSpec, TypeId), Packed>>,
}

impl WeightSet {
    /// Wraps a file; nothing is read yet.
    pub fn new(source: Arc<dyn TensorSource>) -> Self {
        Self { source, packed: Mutex::default() }
    }

    /// The file.
    pub fn source(&self) -> &Arc<dyn TensorSource> {
        &self.source
    }

    /// The packed form of a weight, made by `pack` on first use; the file's pages are given back after that.
    ///
    /// # Errors
    /// A missing tensor, a shape other than the graph's, or what `pack` says.
    pub fn get_or_pack<T: Any + Send + Sync>(
        &self,
        graph: &str,
        spec: &WeightSpec,
        pack: impl FnOnce(&TensorView<'_>) -> Result<T, CompileErrorKind>,
    ) -> Result<Arc<T>, CompileError> {
        let key = (spec.clone(), TypeId::of::<T>());
        let mut packed = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = packed.get(&key).cloned().and_then(|any| any.downcast::<T>().ok()) {
            return Ok(known);
        }
        let failed = |kind| CompileError::in_graph(graph, kind);
        let view = self.view(spec).map_err(failed)?;
        let made = Arc::new(pack(&view).map_err(failed)?);
        self.source.release(&spec.name);
        packed.insert(key, made.clone());
        Ok(made)
    }

    /// Bytes of the weights that a node reads whole, as they are in the file.
    pub fn bytes_read(&self, graph: &Graph, node: &Node) -> u64 {
        let specs = weights_read(&node.op).into_iter().map(|w| &graph.weights[w.index()]);
        specs.filter_map(|spec| Some(self.source.tensor(&spec.name).ok()?.data.len() as u64)).sum()
    }

    /// The tensor as the file has it, its shape checked against the graph's.
    ///
    /// # Errors
    /// A missing tensor or another shape.
    pub fn view(&self, spec: &WeightSpec) -> Result<TensorView<'_>, CompileErrorKind> {
        let view = self.source.tensor(&spec.name)?;
        if fits(spec, &view.shape) {
            return Ok(view);
        }
        let expected = match spec.layout {
            WeightLayout::Vector => format!("{} numbers", spec.cols),
            WeightLayout::Matrix => format!("[{}, {}]", spec.rows, spec.cols),
            WeightLayout::Conv { taps } => format!("[{}, {}, {taps}]", spec.rows, spec.cols / taps),
            WeightLayout::ConvTransposed { taps, .. } => {
                format!("[{}, {}, {taps}]", spec.cols / taps, spec.rows)
            }
        };
        Err(CompileErrorKind::WeightShape { name: spec.name.clone(), found: view.shape, expected })
    }
}

/// Whether a file shape is what the weight needs; dimensions of one do not count for matrices.
fn fits(spec: &WeightSpec, shape: &[usize]) -> bool {
    let elements = shape.iter().try_fold(1_usize, |n, &d| n.checked_mul(d));
    if elements != spec.rows.checked_mul(spec.cols) {
        return false;
    }
    match spec.layout {
        WeightLayout::Vector => true,
        WeightLayout::Matrix => {
            let dims = shape.iter().copied().filter(|&d| d != 1);
            dims.eq([spec.rows, spec.cols].into_iter().filter(|&d| d != 1))
        }
        WeightLayout::Conv { taps } => taps > 0 && shape == [spec.rows, spec.cols / taps, taps],
        WeightLayout::ConvTransposed { taps, .. } => taps > 0 && shape == [spec.cols / taps, spec.rows, taps],
    }
}

/// Where the file has the number that stands in `row` and `col` of the graph's matrix.
pub(crate) fn file_index(spec: &WeightSpec, row: usize, col: usize) -> usize {
    match spec.layout {
        WeightLayout::Matrix | WeightLayout::Vector => row * spec.cols + col,
        WeightLayout::Conv { taps } => {
            let channels = spec.cols / taps;
            (row * channels + col % channels) * taps + col / channels
        }
        WeightLayout::ConvTransposed { taps, .. } => {
            let channels = spec.cols / taps;
            (col % channels * spec.rows + row) * taps + col / channels
        }
    }
}

/// A weight as f32 rows in the graph's order (`[rows, cols]`, convolutions tap by tap).
///
/// # Errors
/// Bytes that do not belong to the type.
pub fn plain_rows(spec: &WeightSpec, view: &TensorView<'_>) -> Result<Vec<f32>, CompileErrorKind> {
    let data = view.to_f32_vec()?;
    if matches!(spec.layout, WeightLayout::Matrix | WeightLayout::Vector) {
        return Ok(data);
    }
    let row = |r: usize| (0..spec.cols).map(move |c| file_index(spec, r, c));
    Ok((0..spec.rows).flat_map(row).map(|at| data[at]).collect())
}

/// Numbers that [`plain_pieces`] gives at a time: 4 MiB of them.
#[cfg(feature = "wgpu")]
const PIECE: usize = 1 << 20;

/// The numbers of [`plain_rows`] some at a time, in their order: `give` is told the place of the first. Takes memory for
/// [`PIECE`] of them, or for one row of a convolution, beside the file.
///
/// # Errors
/// Bytes that do not belong to the type, and what `give` says.
#[cfg(feature = "wgpu")]
pub(crate) fn plain_pieces(
    spec: &WeightSpec,
    view: &TensorView<'_>,
    mut give: impl FnMut(usize, &[f32]) -> Result<(), CompileErrorKind>,
) -> Result<(), CompileErrorKind> {
    let (rows, cols) = (spec.rows, spec.cols);
    let mut read = Vec::new();
    if matches!(spec.layout, WeightLayout::Matrix | WeightLayout::Vector) {
        for at in (0..rows * cols).step_by(PIECE) {
            read_range(view, at..(at + PIECE).min(rows * cols), &mut read)?;
            give(at, &read)?;
        }
        return Ok(());
    }
    let most = (PIECE / cols.max(1)).max(1);
    let mut turned = Vec::new();
    for first in (0..rows).step_by(most) {
        let count = most.min(rows - first);
        turned.clear();
        turned.resize(count * cols, 0.0);
        match spec.layout {
            WeightLayout::ConvTransposed { taps, .. } => {
                // A channel's rows stand side by side in the file.
                let channels = cols / taps;
                for channel in 0..channels {
                    let start = (channel * rows + first) * taps;
                    read_range(view, start..start + count * taps, &mut read)?;
                    for (i, &x) in read.iter().enumerate() {
                        turned[i / taps * cols + i % taps * channels + channel] = x;
                    }
                }
            }
            _ => {
                read_range(view, first * cols..(first + count) * cols, &mut read)?;
                for (i, x) in turned.iter_mut().enumerate() {
                    *x = read[file_index(spec, i / cols, i % cols)];
                }
            }
        }
        give(first * cols, &turned)?;
    }
    Ok(())
}

/// Numbers of a tensor as f32, in the file's order.
#[cfg(feature = "wgpu")]
fn read_range(view: &TensorView<'_>, range: Range<usize>, out: &mut Vec<f32>) -> Result<(), FormatError> {
    let (len, bytes) = (view.ty.block_len(), view.ty.block_bytes());
    let blocks = range.start / len..range.end.div_ceil(len);
    let Some(data) = view.data.get(blocks.start * bytes..blocks.end * bytes) else {
        let (expected, found) = ((blocks.end * bytes) as u64, view.data.len() as u64);
        let kind = FormatErrorKind::SizeMismatch { expected, found, unit: "bytes" };
        return Err(FormatError::about(kind, format_args!("tensor `{}`", view.name)));
    };
    out.resize(blocks.len() * len, 0.0);
    crate::formats::blocks::dequantize(view.ty, data, out)?;
    out.truncate(range.end - blocks.start * len);
    out.drain(..range.start - blocks.start * len);
    if let Some(affine) = &view.affine {
        let row = (view.elements() / view.shape.first().copied().unwrap_or(1).max(1)).max(1);
        let (mut at, mut rest) = (range.start, out.as_mut_slice());
        while !rest.is_empty() {
            let (same, behind) = rest.split_at_mut((row - at % row).min(rest.len()));
            affine.apply(at / row, same);
            at += same.len();
            rest = behind;
        }
    }
    Ok(())
}

/// Tensors held in memory: derived weights and tests.
#[derive(Default, Clone)]
pub struct MemoryTensors {
    tensors: BTreeMap<String, Arc<Stored>>,
}

struct Stored {
    ty: TensorType,
    shape: Vec<usize>,
    data: Vec<u8>,
    /// Scales and zero points.
    affine: Option<(Vec<f32>, Vec<f32>)>,
}

impl MemoryTensors {
    /// No tensors.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor from its bytes.
    ///
    /// # Errors
    /// [`FormatErrorKind::SizeMismatch`] when the bytes are not what type and shape call for.
    pub fn insert(
        &mut self,
        name: &str,
        ty: TensorType,
        shape: &[usize],
        data: Vec<u8>,
    ) -> Result<(), FormatError> {
        self.store(name, Stored { ty, shape: shape.to_vec(), data, affine: None })
    }

    /// Adds an 8-bit tensor ([`TensorType::I8`] or [`TensorType::U8`]) whose elements stand for `(q - zero) * scale`,
    /// with one of each or as many as the first dimension is long.
    ///
    /// # Errors
    /// As [`Self::insert`], also for scales and zero points that do not fit, and [`FormatErrorKind::Invalid`] for other
    /// types.
    pub fn insert_affine(
        &mut self,
        name: &str,
        ty: TensorType,
        shape: &[usize],
        data: Vec<u8>,
        affine: Affine<'_>,
    ) -> Result<(), FormatError> {
        let wrong = |kind| Err(FormatError::about(kind, format_args!("tensor `{name}`")));
        if !matches!(ty, TensorType::I8 | TensorType::U8) {
            return wrong(FormatErrorKind::Invalid(format!("has scales and zero points, but is {ty}")));
        }
        let rows = shape.first().copied().unwrap_or(1);
        for list in [affine.scales, affine.zeros] {
            if list.len() != 1 && list.len() != rows {
                let (expected, found) = (rows as u64, list.len() as u64);
                return wrong(FormatErrorKind::SizeMismatch {
                    expected,
                    found,
                    unit: "scales or zero points",
                });
            }
        }
        let affine = Some((affine.scales.to_vec(), affine.zeros.to_vec()));
        self.store(name, Stored { ty, shape: shape.to_vec(), data, affine })
    }

    fn store(&mut self, name: &str, stored: Stored) -> Result<(), FormatError> {
        let Stored { ty, shape, data, .. } = &stored;
        let cols = shape.last().copied().unwrap_or(1);
        let rows: usize = shape[..shape.len().saturating_sub(1)].iter().product();
        let expected = ty.row_bytes(cols).and_then(|b| b.checked_mul(rows)).unwrap_or(usize::MAX);
        if expected != data.len() {
            let kind = FormatErrorKind::SizeMismatch {
                expected: expected as u64,
                found: data.len() as u64,
                unit: "bytes",
            };
            return Err(FormatError::about(kind, format_args!("tensor `{name}`")));
        }
        self.tensors.insert(name.into(), Arc::new(stored));
        Ok(())
    }

    /// The tensors whose name `first` accepts, and the others: programs that need only one half keep only that alive.
    pub fn partition(self, first: impl Fn(&str) -> bool) -> [Self; 2] {
        let (a, b) = self.tensors.into_iter().partition(|(name, _)| first(name));
        [a, b].map(|tensors| Self { tensors })
    }

    /// Adds an f32 tensor.
    ///
    /// # Errors
    /// As [`Self::insert`].
    pub fn insert_f32(&mut self, name: &str, shape: &[usize], data: &[f32]) -> Result<(), FormatError> {
        self.insert(name, TensorType::F32, shape, bytemuck::cast_slice(data).to_vec())
    }
}

impl TensorSource for MemoryTensors {
    fn names(&self) -> Vec<String> {
        self.tensors.keys().cloned().collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        let Some((key, stored)) = self.tensors.get_key_value(name) else {
            let kind = FormatErrorKind::NotFound { near: Vec::new() };
            return Err(FormatError::about(kind, format_args!("tensor `{name}`")));
        };
        let affine = stored.affine.as_ref().map(|(scales, zeros)| Affine { scales, zeros });
        Ok(TensorView { name: key, ty: stored.ty, shape: stored.shape.clone(), data: &stored.data, affine })
    }

    fn only(&self, name: &str) -> Option<Arc<dyn TensorSource>> {
        let (key, stored) = self.tensors.get_key_value(name)?;
        Some(Arc::new(Self { tensors: BTreeMap::from([(key.clone(), stored.clone())]) }))
    }
}

#[cfg(all(test, feature = "wgpu"))]
mod tests {
    use super::*;
    use crate::formats::testing::quantize;

    fn pieces(spec: &WeightSpec, view: &TensorView<'_>) -> Vec<f32> {
        let mut all = Vec::new();
        plain_pieces(spec, view, |first, numbers| {
            assert_eq!(first, all.len());
            assert!(numbers.len() <= PIECE.max(spec.cols));
            all.extend_from_slice(numbers);
            Ok(())
        })
        .unwrap();
        all
    }

    #[test]
    fn pieces_are_the_plain_rows() {
        let layouts = [
            // Several pieces each; the last row of the convolutions is cut off from the rest.
            (WeightLayout::Matrix, 1200, 1024, TensorType::F16, vec![1200, 1024]),
            (WeightLayout::Matrix, 1111, 1024, TensorType::Q4K, vec![1111, 1024]),
            (WeightLayout::Vector, 1, PIECE + 5, TensorType::F32, vec![PIECE + 5]),
            (WeightLayout::Conv { taps: 3 }, 701, 1500, TensorType::F32, vec![701, 500, 3]),
            (WeightLayout::Conv { taps: 4 }, 6, 256, TensorType::Q8_0, vec![6, 8, 32]),
            (
                WeightLayout::ConvTransposed { taps: 4, stride: 2 },
                700,
                1600,
                TensorType::F32,
                vec![400, 700, 4],
            ),
        ];
        for (layout, rows, cols, ty, shape) in layouts {
            let spec = WeightSpec { name: "w".into(), rows, cols, layout };
            let values: Vec<f32> = (0..rows * cols).map(|i| (i as f32 * 0.37).sin()).collect();
            let data = quantize(ty, &values);
            let view = TensorView { name: "w", ty, shape, data: &data, affine: None };
            assert!(pieces(&spec, &view) == plain_rows(&spec, &view).unwrap(), "{layout:?} {ty}");
        }
    }

    #[test]
    fn scales_belong_to_rows_wherever_pieces_end() {
        let (rows, cols) = (7, 300_001);
        let data: Vec<u8> = (0..rows * cols).map(|i| (i % 251) as u8).collect();
        let scales: Vec<f32> = (0..rows).map(|i| 0.5 + i as f32).collect();
        let zeros: Vec<f32> = (0..rows).map(|i| i as f32).collect();
        let affine = Some(Affine { scales: &scales, zeros: &zeros });
        let spec = WeightSpec { name: "w".into(), rows, cols, layout: WeightLayout::Matrix };
        let view = TensorView { name: "w", ty: TensorType::U8, shape: vec![rows, cols], data: &data, affine };
        assert!(pieces(&spec, &view) == plain_rows(&spec, &view).unwrap());
        let short = TensorView { data: &data[..data.len() - 1], ..view };
        assert!(plain_pieces(&spec, &short, |_, _| Ok(())).is_err());
    }
}
