//! Uploads: block weights as they stand in the file, everything else in the form that its kernel reads. 8-bit matrices
//! stay so with their scales and zero points in linear layers and tables; convolutions and recurrences, whose kernels read
//! f32, widen them here. All goes over in pieces: beside the file's own pages the host holds some MiB.

use std::sync::Arc;

use super::device::{Device, Kernel};
#[cfg(test)]
use super::kernel::family_source;
use super::kernel::{Reads, TILE, TILE_LARGE, source};
use super::repack::{Fields, fields};
use crate::backends::weights::plain_pieces;
use crate::backends::{CompileError, CompileErrorKind, WeightSet};
use crate::formats::{TensorType, TensorView};
use crate::graph::WeightSpec;

/// A matrix in the file's type (whole numbers of 32 and 64 bits as f32), cut into parts that a binding holds: an
/// output matrix of 150 000 tokens is larger than the 128 MiB of the smallest devices.
pub(super) struct Packed {
    pub(super) parts: Vec<Part>,
    pub(super) ty: TensorType,
    /// For 8-bit integers a scale and a zero point of each row.
    pub(super) factors: Option<wgpu::Buffer>,
}

/// Some rows of a matrix.
pub(super) struct Part {
    pub(super) buffer: wgpu::Buffer,
    /// The first of them.
    pub(super) first: usize,
    pub(super) rows: usize,
    /// First words of a block type's scales and fifth bits.
    pub(super) planes: [usize; 2],
}

/// A weight as plain f32 rows.
struct Plain(wgpu::Buffer);

/// A weight as plain f32 columns.
struct Columns(wgpu::Buffer);

/// Uploads a matrix for products and look-ups.
///
/// # Errors
/// A weight that is missing or does not fit.
pub(super) fn packed(
    device: &Device,
    weights: &WeightSet,
    graph: &str,
    spec: &WeightSpec,
) -> Result<Arc<Packed>, CompileError> {
    weights.get_or_pack(graph, spec, |view| {
        let integer = matches!(view.ty, TensorType::I8 | TensorType::U8);
        // A scale belongs to a row of the matrix, or to all of it.
        let by_row = view.affine.is_none_or(|a| a.scales.len() + a.zeros.len() == 2)
            || view.shape.first() == Some(&spec.rows);
        let wide = matches!(view.ty, TensorType::F32 | TensorType::I32 | TensorType::I64);
        if wide || (integer && !by_row) {
            let parts = Parts::new(device, spec, size_of::<f32>() * spec.cols)?;
            plain_pieces(spec, view, |first, numbers| {
                parts.write(size_of::<f32>() * first, bytemuck::cast_slice(numbers))
            })?;
            let parts = parts.parts;
            return Ok(Packed { parts, ty: TensorType::F32, factors: None });
        }
        let bytes = checked(spec, view)?;
        let parts = if let Some(fields) = fields(view.ty) {
            block_parts(device, spec, view.ty, &fields, bytes)?
        } else {
            let parts = Parts::new(device, spec, bytes.len() / spec.rows.max(1))?;
            parts.write(0, bytes)?;
            parts.parts
        };
        let one = |row| view.affine.map_or((1.0, 0.0), |affine| affine.of(row));
        let factors: Vec<f32> =
            (0..if integer { spec.rows } else { 0 }).flat_map(|row| <[f32; 2]>::from(one(row))).collect();
        let factors = integer.then(|| table(device, bytemuck::cast_slice(&factors))).transpose()?;
        Ok(Packed { parts, ty: view.ty, factors })
    })
}

/// The parts of a matrix while they are filled.
struct Parts<'a> {
    device: &'a Device,
    parts: Vec<Part>,
    /// Bytes of a row.
    row: usize,
}

impl<'a> Parts<'a> {
    /// Parts for all rows of `row` bytes each.
    fn new(device: &'a Device, spec: &WeightSpec, row: usize) -> Result<Self, CompileErrorKind> {
        let row = row.max(1);
        let most = usize::try_from(device.part_bytes).unwrap_or(usize::MAX).saturating_sub(TAIL) / row;
        let part = |first| {
            let rows = most.max(1).min(spec.rows - first);
            Ok::<_, CompileErrorKind>(Part {
                buffer: made(device, spec, rows.saturating_mul(row))?,
                first,
                rows,
                planes: [0; 2],
            })
        };
        let parts = (0..spec.rows).step_by(most.max(1)).map(part);
        let parts = parts.collect::<Result<_, CompileErrorKind>>()?;
        Ok(Self { device, parts, row })
    }

    /// Writes bytes of the whole matrix, from `at` on, which is a multiple of 4 within its part; all of them where they end
    /// within a part and not at a multiple of 4.
    fn write(&self, at: usize, bytes: &[u8]) -> Result<(), CompileErrorKind> {
        for part in &self.parts {
            let start = part.first * self.row;
            let from = at.max(start);
            let to = (at + bytes.len()).min(start + part.rows * self.row);
            if from < to {
                let own = &bytes[from - at..to - at];
                upload(self.device, &part.buffer, (from - start) as u64, own)?;
            }
        }
        Ok(())
    }
}

/// Uploads rows of blocks, in parts that the device binds.
fn block_parts(
    device: &Device,
    spec: &WeightSpec,
    ty: TensorType,
    fields: &Fields,
    bytes: &[u8],
) -> Result<Vec<Part>, CompileErrorKind> {
    let row = (bytes.len() / spec.rows.max(1)).max(1);
    let most = usize::try_from(device.part_bytes).unwrap_or(usize::MAX).saturating_sub(TAIL) / row;
    let rows = most.max(1).saturating_mul(row);
    let size = ty.block_bytes();
    let part = |(i, bytes): (usize, &[u8])| {
        let out = || CompileErrorKind::OutOfMemory { bytes: usize::MAX, device: device.adapter.clone() };
        let planes = fields.planes(bytes.len() / size).ok_or_else(out)?;
        let buffer = made(device, spec, planes.bytes)?;
        let starts = [0, planes.scales, planes.fifths];
        let mut done = 0;
        // A few blocks at a time: all of them would be in memory twice.
        for piece in bytes.chunks(PIECE_BLOCKS * size) {
            for (start, (plane, width)) in starts.into_iter().zip(fields.split(size, piece)) {
                device.upload(&buffer, (4 * start + done * width) as u64, &plane)?;
            }
            done += piece.len() / size;
        }
        let (first, rows) = (i * rows / row, bytes.len() / row);
        Ok(Part { buffer, first, rows, planes: [planes.scales, planes.fifths] })
    };
    bytes.chunks(rows).enumerate().map(part).collect()
}

/// Blocks that are rearranged at a time: an even number, so that each plane's piece has whole words.
const PIECE_BLOCKS: usize = 1 << 14;

/// Numbers of a matrix that are turned at a time.
const COLUMNS: usize = 1 << 20;

/// Bytes behind a weight, as an unaligned word is read from two.
const TAIL: usize = 4;

/// The bytes, if they are as many as type and shape call for and rows are whole blocks.
fn checked<'a>(spec: &WeightSpec, view: &TensorView<'a>) -> Result<&'a [u8], CompileErrorKind> {
    let expected = view.ty.row_bytes(spec.cols).and_then(|row| row.checked_mul(spec.rows));
    if expected == Some(view.data.len()) {
        return Ok(view.data);
    }
    Err(CompileErrorKind::WeightShape {
        name: spec.name.clone(),
        found: view.shape.clone(),
        expected: format!("[{}, {}] in whole blocks of {}", spec.rows, spec.cols, view.ty),
    })
}

/// Uploads a weight as f32 rows in the graph's order: vectors, convolutions, recurrences, tables of positions.
///
/// # Errors
/// A weight that is missing or does not fit.
pub(super) fn plain(
    device: &Device,
    weights: &WeightSet,
    graph: &str,
    spec: &WeightSpec,
) -> Result<wgpu::Buffer, CompileError> {
    let made = weights.get_or_pack(graph, spec, |view| {
        let buffer = made(device, spec, size_of::<f32>() * spec.rows * spec.cols)?;
        plain_pieces(spec, view, |first, numbers| {
            device.upload(&buffer, (size_of::<f32>() * first) as u64, bytemuck::cast_slice(numbers))
        })?;
        Ok(Plain(buffer))
    })?;
    Ok(made.0.clone())
}

/// The same column after column, so that neighbours read neighbours where each thread has a row.
///
/// # Errors
/// A weight that is missing or does not fit.
pub(super) fn columns(
    device: &Device,
    weights: &WeightSet,
    graph: &str,
    spec: &WeightSpec,
) -> Result<wgpu::Buffer, CompileError> {
    let made = weights.get_or_pack(graph, spec, |view| {
        let (rows, cols) = (spec.rows.max(1), spec.cols);
        let buffer = made(device, spec, size_of::<f32>() * rows * cols)?;
        // All is read for each piece of columns: most matrices are one.
        let most = (COLUMNS / rows).max(1);
        let mut turned = Vec::new();
        for first in (0..cols).step_by(most) {
            let columns = first..(first + most).min(cols);
            turned.clear();
            turned.resize(columns.len() * rows, 0.0);
            plain_pieces(spec, view, |at, numbers| {
                for (i, &x) in numbers.iter().enumerate() {
                    let (row, col) = ((at + i) / cols, (at + i) % cols);
                    if columns.contains(&col) {
                        turned[(col - first) * rows + row] = x;
                    }
                }
                Ok(())
            })?;
            device.upload(
                &buffer,
                (size_of::<f32>() * first * rows) as u64,
                bytemuck::cast_slice(&turned),
            )?;
        }
        Ok(Columns(buffer))
    })?;
    Ok(made.0.clone())
}

/// Memory for a weight of so many bytes.
fn made(device: &Device, spec: &WeightSpec, bytes: usize) -> Result<wgpu::Buffer, CompileErrorKind> {
    device.buffer(bytes.saturating_add(TAIL)).map_err(|kind| match kind {
        CompileErrorKind::OutOfMemory { bytes, device: name } if bytes as u64 > device.most_bytes() => {
            let most = device.most_bytes();
            let message = format!("`{}` has {bytes} bytes and a binding holds {most}", spec.name);
            CompileErrorKind::Device { device: name, message }
        }
        other => other,
    })
}

/// Writes bytes of any number.
fn upload(device: &Device, buffer: &wgpu::Buffer, at: u64, bytes: &[u8]) -> Result<(), CompileErrorKind> {
    let whole = bytes.len() / 4 * 4;
    device.upload(buffer, at, &bytes[..whole])?;
    if whole < bytes.len() {
        let mut last = [0; 4];
        last[..bytes.len() - whole].copy_from_slice(&bytes[whole..]);
        device.upload(buffer, at + whole as u64, &last)?;
    }
    Ok(())
}

/// A small table that the host computed.
///
/// # Errors
/// Memory that can't be had.
pub(super) fn table(device: &Device, words: &[u32]) -> Result<wgpu::Buffer, CompileErrorKind> {
    let buffer = device.buffer(words.len() * 4)?;
    device.queue.write_buffer(&buffer, 0, bytemuck::cast_slice(words));
    Ok(buffer)
}

/// A kernel over weights of a type.
///
/// # Errors
/// What the compiler says.
pub(super) fn kernel(
    device: &Device,
    ty: TensorType,
    lanes: Lanes,
    entry: &'static str,
) -> Result<Kernel, CompileErrorKind> {
    let Lanes { threads, each } = lanes;
    device.kernel(&format!("linear.{ty}.{threads}.{each}"), entry, || linear_source(ty, lanes))
}

/// How a workgroup divides products of few rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    /// Threads that work together.
    pub(super) threads: usize,
    /// Outputs that they make.
    pub(super) each: usize,
}

/// Threads of a workgroup that makes few rows.
pub(super) const FEW_THREADS: usize = 64;

impl Lanes {
    /// For kernels that are not for few rows.
    pub(super) const ANY: Self = Self { threads: 16, each: 1 };

    /// Outputs of a workgroup.
    pub(super) fn outputs(self) -> usize {
        FEW_THREADS / self.threads * self.each
    }
}

fn linear_source(ty: TensorType, lanes: Lanes) -> String {
    let own: &[&str] = if ty.block_len() == 1 {
        &[TILE_LARGE, include_str!("linear_plain.wgsl")]
    } else {
        &[include_str!("linear_blocks.wgsl")]
    };
    let Lanes { threads, each } = lanes;
    let outs = lanes.outputs();
    let lanes =
        format!("const LANES: u32 = {threads}u;\nconst EACH: u32 = {each}u;\nconst OUTS: u32 = {outs}u;\n");
    let shared = [&lanes, include_str!("lanes.wgsl"), TILE];
    let weights = if ty.block_len() == 1 { Reads::One } else { Reads::FirstFour };
    source(weights, Reads::One, &[&shared, own, &[&meaning(ty)]].concat())
}

/// What the words of a type mean, as WGSL; the layouts are those of [`crate::formats::blocks`].
fn meaning(ty: TensorType) -> String {
    let element = |body: &str| format!("fn element(at: u32, row: u32) -> f32 {{ return {body}; }}\n");
    let affine =
        |q: &str| element(&format!("({q} - bitcast<f32>(w2[2u * row + 1u])) * bitcast<f32>(w2[2u * row])"));
    let block = |zero: u32, quants: &str, scale_min: &str, spans: &str, unit: &str| {
        let vectors = fields(ty).map_or(0, |fields| fields.main_vectors());
        format!(
            "const VECTORS: u32 = {vectors}u;\nconst GROUPS: u32 = {}u;\nconst ZERO: i32 = {zero};\n\
             fn quants(block: u32, g: u32, i: u32) -> u32 {{ {quants} }}\n\
             fn scale_min(block: u32, g: u32, i: u32) -> vec2<f32> {{ return {scale_min}; }}\n\
             fn unit_spans(u: u32) -> vec2<u32> {{ return {spans}; }}\n\
             fn unit(block: u32, u: u32) -> Unit {{ {unit} }}\n",
            ty.block_len() / 32,
        )
    };
    let only_scale = "vec2<f32>(scale_of(block), 0.0)";
    let scale_and_min = "scale_min_of(block)";
    // Elements 0..16 stand in the low nibbles, 16..32 in the high ones.
    let nibbles = "(w0[block][i & 3u] >> (i & 4u)) & 0x0f0f0f0fu";
    let fifth = "fifth_bits((plane_word(p(17u) + block) >> (i * 4u)) & 15u)";
    let four = |zero, scale: &str| {
        let unit = format!(
            "let q = w0[block]; let s = {scale}; let low = vec4<u32>(0x0f0f0f0fu);\n\
             return Unit(q & low, (q >> vec4<u32>(4u)) & low, s, s);"
        );
        block(zero, &format!("return {nibbles};"), scale, "vec2<u32>(0u, 16u)", &unit)
    };
    let five = |zero, scale: &str| {
        let unit = format!(
            "let q = w0[block]; let f = plane_word(p(17u) + block); let s = {scale}; let low = vec4<u32>(0x0f0f0f0fu);\n\
             return Unit((q & low) | fifths_16(f & 0xffffu), ((q >> vec4<u32>(4u)) & low) | fifths_16(f >> 16u), s, s);"
        );
        block(zero, &format!("return ({nibbles}) | {fifth};"), scale, "vec2<u32>(0u, 16u)", &unit)
    };
    // Per 32 bytes, 32 elements in the low nibbles and the next 32 in the high ones.
    let k_spans = "vec2<u32>(u / 2u * 64u + (u & 1u) * 16u) + vec2<u32>(0u, 32u)";
    let k_nibbles = |first: u32| {
        format!(
            "(w0[block * VECTORS + {first}u + g / 2u * 2u + i / 4u][i & 3u] >> ((g & 1u) * 4u)) & 0x0f0f0f0fu"
        )
    };
    let k_scales = "k_scale_min(block, u / 2u * 2u), k_scale_min(block, u / 2u * 2u + 1u)";
    match ty {
        TensorType::F32 | TensorType::I32 | TensorType::I64 => element("bitcast<f32>(w0[at])"),
        TensorType::F16 => element("half_value((w0[at / 2u] >> ((at & 1u) * 16u)) & 0xffffu)"),
        TensorType::BF16 => element("bitcast<f32>(((w0[at / 2u] >> ((at & 1u) * 16u)) & 0xffffu) << 16u)"),
        TensorType::I8 => affine("f32(extractBits(bitcast<i32>(w0[at / 4u]), (at & 3u) * 8u, 8u))"),
        TensorType::U8 => affine("f32((w0[at / 4u] >> ((at & 3u) * 8u)) & 0xffu)"),
        TensorType::Q4_0 => four(8, only_scale),
        TensorType::Q4_1 => four(0, scale_and_min),
        TensorType::Q5_0 => five(16, only_scale),
        TensorType::Q5_1 => five(0, scale_and_min),
        TensorType::Q8_0 => block(
            0,
            "return w0[block * 2u + i / 4u][i & 3u];",
            only_scale,
            "vec2<u32>(0u, 16u)",
            "let s = vec2<f32>(scale_of(block), 0.0); return Unit(w0[block * 2u], w0[block * 2u + 1u], s, s);",
        ),
        TensorType::Q4K => block(
            0,
            &format!("return {};", k_nibbles(1)),
            "k_scale_min(block, g)",
            k_spans,
            &format!(
                "let q = w0[block * VECTORS + 1u + u]; let low = vec4<u32>(0x0f0f0f0fu);\n\
                 return Unit(q & low, (q >> vec4<u32>(4u)) & low, {k_scales});"
            ),
        ),
        // Bit g of the 32 bytes behind the scales is the fifth one of group g.
        TensorType::Q5K => block(
            0,
            &format!(
                "return ({}) | (((w0[block * VECTORS + 1u + i / 4u][i & 3u] >> g) & 0x01010101u) << 4u);",
                k_nibbles(3)
            ),
            "k_scale_min(block, g)",
            k_spans,
            &format!(
                "let q = w0[block * VECTORS + 3u + u]; let f = w0[block * VECTORS + 1u + (u & 1u)] >> vec4<u32>(u / 2u * 2u);\n\
                 let low = vec4<u32>(0x0f0f0f0fu); let bit = vec4<u32>(0x01010101u); let by = vec4<u32>(4u);\n\
                 return Unit((q & low) | ((f & bit) << by), ((q >> by) & low) | (((f >> vec4<u32>(1u)) & bit) << by), \
                 {k_scales});"
            ),
        ),
        // Each half of 128 elements has 64 bytes of nibbles, 32 bytes of upper bits and 8 scales.
        TensorType::Q6K => block(
            32,
            "let half = g / 4u; let j = g & 3u;\n\
             let low = (w0[block * VECTORS + half * 4u + (j & 1u) * 2u + i / 4u][i & 3u] >> (j / 2u * 4u)) & 0x0f0f0f0fu;\n\
             let high = (w0[block * VECTORS + 8u + half * 2u + i / 4u][i & 3u] >> (j * 2u)) & 0x03030303u;\n\
             return low | (high << 4u);",
            "vec2<f32>(scale_of(block) * q6_scale(w0[block * VECTORS + 12u], g * 2u + i / 4u), 0.0)",
            "vec2<u32>(u / 4u * 128u + (u & 3u) * 16u) + vec2<u32>(0u, 64u)",
            "let half = u / 4u; let v = u & 3u; let at = block * VECTORS;\n\
             let q = w0[at + u]; let h = w0[at + 8u + half * 2u + (v & 1u)] >> vec4<u32>(v / 2u * 2u);\n\
             let low = vec4<u32>(0x0f0f0f0fu); let two = vec4<u32>(0x03030303u); let by = vec4<u32>(4u);\n\
             let d = scale_of(block); let scales = w0[at + 12u];\n\
             return Unit((q & low) | ((h & two) << by), ((q >> by) & low) | (((h >> by) & two) << by), \
             vec2<f32>(d * q6_scale(scales, half * 8u + v), 0.0), vec2<f32>(d * q6_scale(scales, half * 8u + 4u + v), 0.0));",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What WGSL's compiler says, without a device.
    fn validate(name: &str, source: &str) -> Result<(), String> {
        use wgpu::naga::valid::{Capabilities, ValidationFlags, Validator};
        let module = wgpu::naga::front::wgsl::parse_str(source)
            .map_err(|e| format!("{name}: {}", e.emit_to_string(source)))?;
        // Every adapter that wgpu calls compliant unpacks halves.
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::SHADER_FLOAT16_IN_FLOAT32);
        validator.validate(&module).map(|_| ()).map_err(|e| format!("{name}: {}", e.emit_to_string(source)))
    }

    #[test]
    fn kernels_are_valid() {
        let wide = ["instance_norm", "instance_norm.1024", "lstm", "lstm.1024"];
        let families = ["rows", "products", "cache", "attention", "sample"].into_iter().chain(wide);
        let families: Vec<_> = families.map(|f| (f.to_owned(), family_source(f))).collect();
        let types = TensorType::ALL.map(|ty| (ty.to_string(), linear_source(ty, Lanes::ANY)));
        let measure = ("measure".to_owned(), include_str!("measure.wgsl").to_owned());
        let failures: Vec<String> = families
            .iter()
            .chain(&types)
            .chain([&measure])
            .filter_map(|(name, source)| validate(name, source).err())
            .collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}
