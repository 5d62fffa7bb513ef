//! Steps with one number for each column: instance norm and the activations behind it; and transposed convolutions.

use super::exec::{Exec, Mat, Shared};
use super::exec_products::bias_pointer;
use super::kernels::columns::{CHUNK_ROWS, ColumnStats, NormColumns, Then};
use super::kernels::rows::Depthwise;
use super::pack::{Phases, Vector};
use crate::graph::{ConvShape, Node, Op, TransposedShape, Value};

impl Exec<'_> {
    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn instance_norm(&self, node: &Node, then: Then, out: Value) {
        let Op::InstanceNorm { eps } = node.op else { return };
        let [x, gain, bias] = [0, 1, 2].map(|i| self.mat(node.inputs[i]));
        let (y, cols) = (self.mat(out), x.cols);
        if x.rows == 0 {
            return;
        }
        let chunks = x.rows.div_ceil(CHUNK_ROWS);
        let stats = Shared(self.scratch.cast::<f32>());
        // Every chunk's mean and squared distances, then one merge in a fixed order: threads make no difference.
        self.each_row(chunks, 2 * CHUNK_ROWS * cols, |chunk| {
            let first = chunk * CHUNK_ROWS;
            let own = stats.add(2 * chunk * cols);
            let rows = CHUNK_ROWS.min(x.rows - first);
            // SAFETY: the chunk's rows are inside; its statistics have their own place in the scratch.
            unsafe {
                let squares = own.add(cols);
                self.kernel(ColumnStats {
                    x: x.row(first),
                    stride: x.stride,
                    rows,
                    n: cols,
                    mean: own,
                    squares,
                });
            }
        });
        let (mean, scale) = (stats.add(2 * chunks * cols), stats.add((2 * chunks + 1) * cols));
        let (mean, scale) = (Shared(mean), Shared(scale));
        self.each_row(cols, 16 * chunks, |j| {
            // SAFETY: the scratch was planned for all chunks and two rows more; gain has one row.
            unsafe {
                let (mut m, mut squares, mut count) = (0.0, 0.0, 0.0);
                for chunk in 0..chunks {
                    let rows = CHUNK_ROWS.min(x.rows - chunk * CHUNK_ROWS) as f64;
                    let own = stats.add(2 * chunk * cols + j);
                    let apart = f64::from(*own) - m;
                    // Chan, Golub and LeVeque 1979: merging means and squared distances.
                    squares += f64::from(*own.add(cols)) + apart * apart * count * rows / (count + rows);
                    count += rows;
                    m += apart * rows / count;
                }
                *mean.add(j) = m as f32;
                let inv = 1.0 / (squares / count + f64::from(eps)).sqrt();
                *scale.add(j) = (inv * f64::from(*gain.row(0).add(j))) as f32;
            }
        });
        self.each_row(x.rows, 8 * cols, |i| {
            let (mean, scale) = (mean.add(0).cast_const(), scale.add(0).cast_const());
            let (x, y, bias) = (x.row(i), y.row(i), bias.row(0));
            // SAFETY: rows are inside; the statistics are not written any more.
            unsafe { self.kernel(NormColumns { x, y, n: cols, mean, scale, bias, then }) };
        });
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn activate(&self, node: &Node, then: Then) {
        let (x, y) = (self.mat(node.inputs[0]), self.out(node));
        self.each_row(x.rows, 8 * x.cols, |i| {
            let (x, y, n, null) = (x.row(i), y.row(i), x.cols, std::ptr::null());
            // SAFETY: rows are inside.
            unsafe { self.kernel(NormColumns { x, y, n, mean: null, scale: null, bias: null, then }) };
        });
    }

    /// A transposed convolution as a plain one whose output rows are `stride` rows of the result, one behind the other.
    ///
    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn conv_transposed(
        &self,
        node: &Node,
        phases: &Phases,
        bias: Option<&Vector>,
        shape: &TransposedShape,
    ) {
        let (x, out) = (self.mat(node.inputs[0]), self.out(node));
        let (w, pad) = (phases.matrix.tiles(), phases.window - 1);
        let plain = ConvShape { pad_left: pad, pad_right: pad, ..ConvShape::new(phases.window) };
        let wide = shape.stride * out.cols;
        let supers = x.rows + pad;
        // Super-rows that lie in the output as a whole are written where they belong.
        let first = shape.trim_left.div_ceil(shape.stride).min(supers);
        let end = ((out.rows + shape.trim_left) / shape.stride).clamp(first, supers);
        // SAFETY: as `step`; the scratch was planned for the edges.
        unsafe {
            let at = (first * shape.stride).saturating_sub(shape.trim_left);
            let inside = Mat { p: out.row(at), rows: end - first, cols: wide, stride: wide };
            self.conv_rows(x, inside, first, w, bias, &plain);
            let edge_input = (4 * phases.window * x.cols).next_multiple_of(16) + 16;
            let partial = self.scratch.cast::<f32>().wrapping_add(edge_input);
            for (from, to) in [(0, first), (end, supers)] {
                if from == to {
                    continue;
                }
                let part = Mat { p: partial, rows: to - from, cols: wide, stride: wide };
                self.conv_rows(x, part, from, w, bias, &plain);
                let low = (from * shape.stride).max(shape.trim_left);
                let high = (to * shape.stride).min(out.rows + shape.trim_left);
                for row in low..high {
                    let source = partial.add((row - from * shape.stride) * out.cols);
                    std::ptr::copy_nonoverlapping(source, out.row(row - shape.trim_left), out.cols);
                }
            }
        }
    }

    /// # Safety
    /// As [`Exec::step`].
    pub(super) unsafe fn depthwise_transposed(
        &self,
        node: &Node,
        weights: &Vector,
        bias: Option<&Vector>,
        shape: &TransposedShape,
    ) {
        let (x, out) = (self.mat(node.inputs[0]), self.out(node));
        let window = shape.taps.div_ceil(shape.stride);
        let w = Shared(weights.0.as_ptr().cast_mut());
        let bias = Shared(bias_pointer(bias).cast_mut());
        self.each_row(out.rows, 2 * window * x.cols, |row| {
            let (newest, phase) =
                ((row + shape.trim_left) / shape.stride, (row + shape.trim_left) % shape.stride);
            // Input rows newest - window + 1 ..= newest, of which those inside count.
            let from = (window - 1).saturating_sub(newest).min(window);
            let to = (x.rows + window - 1).saturating_sub(newest).min(window).max(from);
            let oldest = newest as isize - (window as isize - 1);
            // SAFETY: only rows inside are read; each row of the output has one task.
            unsafe {
                self.kernel(Depthwise {
                    x: x.row(0).wrapping_offset(oldest * x.stride as isize),
                    x_row: x.stride,
                    from,
                    to,
                    w: w.add(phase * window * x.cols),
                    bias: bias.add(0),
                    y: out.row(row),
                    n: x.cols,
                });
            }
        });
    }
}
