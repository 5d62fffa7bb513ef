//! What the bytes of each [`TensorType`] mean, in plain f32.
//!
//! This is the definition that packed and vectorised kernels are held to: short, slow, and equal bit for bit
//! to the `gguf` Python package (`tests/references/blocks.py`). The block layouts are ggml's
//! (`ggml-common.h`, `ggml-quants.c`); `d` and `m` are f16, all fields little-endian:
//!
//! | type | bytes in order | element i |
//! |---|---|---|
//! | Q4_0 | d, 16 x nibbles | d (q - 8) |
//! | Q4_1 | d, m, 16 x nibbles | d q + m |
//! | Q5_0 | d, u32 of fifth bits, 16 x nibbles | d (q - 16) |
//! | Q5_1 | d, m, u32 of fifth bits, 16 x nibbles | d q + m |
//! | Q8_0 | d, 32 x i8 | d q |
//! | Q4_K | d, dmin, 12 packed scales, 128 x nibbles | (d s) q - (dmin t), per 32 elements |
//! | Q5_K | d, dmin, 12 packed scales, 32 x fifth bits, 128 x nibbles | (d s) q - (dmin t), per 32 elements |
//! | Q6_K | 128 x nibbles, 64 x upper two bits, 16 x i8 scales, d | (d s) (q - 32), per 16 elements |
//!
//! Blocks of 32 hold elements 0..16 in the low nibbles and 16..32 in the high ones. K blocks hold, per 32
//! bytes, 32 elements in the low nibbles and the next 32 in the high ones (Q6_K: per 64 bytes, 64 and 64).

use half::{bf16, f16};

use super::{FormatError, FormatErrorKind, TensorType};

/// Converts `data`, whole blocks of `ty`, to f32; `out` has one place per element.
///
/// Integers become the f32 nearest to them; scales that are infinite or NaN give infinite or NaN elements.
///
/// # Errors
/// [`FormatErrorKind::SizeMismatch`] or [`FormatErrorKind::PartialBlock`] when `out` is not what `data` fills.
///
/// ```
/// use repartee_engine::formats::{TensorType, blocks};
///
/// let mut block = vec![0x00, 0x3c]; // a scale of 1.0
/// block.extend([0xf0; 16]); // low nibbles 0, high nibbles 15
/// let mut out = [0.0; 32];
/// blocks::dequantize(TensorType::Q4_0, &block, &mut out).unwrap();
/// assert_eq!((out[0], out[31]), (-8.0, 7.0));
/// ```
pub fn dequantize(ty: TensorType, data: &[u8], out: &mut [f32]) -> Result<(), FormatError> {
    let Some(expected) = ty.row_bytes(out.len()) else {
        let kind = FormatErrorKind::PartialBlock { cols: out.len() as u64, block_len: ty.block_len() };
        return Err(FormatError::about(kind, format_args!("output of {ty} blocks")));
    };
    if data.len() != expected {
        let kind = FormatErrorKind::SizeMismatch {
            expected: expected as u64,
            found: data.len() as u64,
            unit: "bytes",
        };
        return Err(FormatError::about(kind, format_args!("{ty} data")));
    }
    match ty {
        TensorType::F32 => each(data, out, f32::from_le_bytes),
        TensorType::F16 => each(data, out, |b| f16::from_le_bytes(b).to_f32()),
        TensorType::BF16 => each(data, out, |b| bf16::from_le_bytes(b).to_f32()),
        TensorType::I8 => each(data, out, |b| f32::from(i8::from_le_bytes(b))),
        TensorType::U8 => each(data, out, |[b]| f32::from(b)),
        TensorType::I32 => each(data, out, |b| i32::from_le_bytes(b) as f32),
        TensorType::I64 => each(data, out, |b| i64::from_le_bytes(b) as f32),
        TensorType::Q4_0 => blocks(data, out, q4_0),
        TensorType::Q4_1 => blocks(data, out, q4_1),
        TensorType::Q5_0 => blocks(data, out, q5_0),
        TensorType::Q5_1 => blocks(data, out, q5_1),
        TensorType::Q8_0 => blocks(data, out, q8_0),
        TensorType::Q4K => blocks(data, out, q4_k),
        TensorType::Q5K => blocks(data, out, q5_k),
        TensorType::Q6K => blocks(data, out, q6_k),
    }
    Ok(())
}

/// The 6-bit scale and minimum of group `group` (0..8) in the 12 packed bytes of a Q4_K or Q5_K block.
///
/// Groups 0..4 have theirs in the low six bits of bytes `group` and `group + 4`; the upper groups have four
/// bits in byte `group + 4` (scale low, minimum high) and the other two on top of the lower groups' bytes.
pub fn k_scale_min(packed: &[u8; 12], group: usize) -> (u8, u8) {
    if group < 4 {
        (packed[group] & 63, packed[group + 4] & 63)
    } else {
        let low = packed[group + 4];
        (low & 15 | packed[group - 4] >> 6 << 4, low >> 4 | packed[group] >> 6 << 4)
    }
}

fn each<const N: usize>(data: &[u8], out: &mut [f32], value: impl Fn([u8; N]) -> f32) {
    for (bytes, out) in data.as_chunks::<N>().0.iter().zip(out) {
        *out = value(*bytes);
    }
}

fn blocks<const BYTES: usize, const LEN: usize>(
    data: &[u8],
    out: &mut [f32],
    block: fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    for (bytes, out) in data.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        block(bytes, out);
    }
}

/// The f16 at byte `at`.
fn scale(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Element `i` of 32: its nibble in `nibbles`.
fn nibble(nibbles: &[u8], i: usize) -> u8 {
    if i < 16 { nibbles[i] & 15 } else { nibbles[i - 16] >> 4 }
}

/// Element `i` of 32: its nibble with its fifth bit from the four bytes `high`.
fn five_bits(high: &[u8], nibbles: &[u8], i: usize) -> u8 {
    nibble(nibbles, i) | (high[i / 8] >> (i % 8) & 1) << 4
}

fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    for i in 0..32 {
        out[i] = d * (f32::from(nibble(&block[2..], i)) - 8.0);
    }
}

fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    for i in 0..32 {
        out[i] = d * f32::from(nibble(&block[4..], i)) + m;
    }
}

fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    for i in 0..32 {
        out[i] = d * (f32::from(five_bits(&block[2..6], &block[6..], i)) - 16.0);
    }
}

fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (scale(block, 0), scale(block, 2));
    for i in 0..32 {
        out[i] = d * f32::from(five_bits(&block[4..8], &block[8..], i)) + m;
    }
}

fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = scale(block, 0);
    for i in 0..32 {
        out[i] = d * f32::from(block[2 + i] as i8);
    }
}

fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    k_groups(block, out, |group, i| k_nibble(&block[16..], group, i));
}

fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    k_groups(block, out, |group, i| k_nibble(&block[48..], group, i) | (block[16 + i] >> group & 1) << 4);
}

/// Element `i` of group `group`: two groups share 32 bytes.
fn k_nibble(nibbles: &[u8], group: usize, i: usize) -> u8 {
    nibbles[group / 2 * 32 + i] >> (group % 2 * 4) & 15
}

fn k_groups(block: &[u8], out: &mut [f32; 256], q: impl Fn(usize, usize) -> u8) {
    let (d, dmin) = (scale(block, 0), scale(block, 2));
    let mut packed = [0; 12];
    packed.copy_from_slice(&block[4..16]);
    for group in 0..8 {
        let (s, t) = k_scale_min(&packed, group);
        let (ds, dt) = (d * f32::from(s), dmin * f32::from(t));
        for i in 0..32 {
            out[group * 32 + i] = ds * f32::from(q(group, i)) - dt;
        }
    }
}

fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let (low, rest) = block.split_at(128);
    let (high, scales) = rest.split_at(64);
    let d = scale(block, 208);
    for i in 0..256 {
        // Each half of 128 elements has 64 bytes of nibbles, 32 bytes of upper bits and 8 scales.
        let (half, j) = (i / 128, i % 128);
        let nibble = low[half * 64 + j % 64] >> (j / 64 * 4) & 15;
        let upper = high[half * 32 + j % 32] >> (j / 32 * 2) & 3;
        let ds = d * f32::from(scales[i / 16] as i8);
        out[i] = ds * (f32::from(nibble | upper << 4) - 32.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_sizes_that_do_not_match() {
        for ty in TensorType::ALL {
            let mut out = vec![0.0; ty.block_len() * 2];
            let data = vec![0; ty.block_bytes() * 2];
            dequantize(ty, &data, &mut out).unwrap();
            assert!(dequantize(ty, &data[1..], &mut out).is_err(), "{ty}: short data");
            assert!(dequantize(ty, &data[ty.block_bytes()..], &mut out).is_err(), "{ty}: one block less");
            assert!(dequantize(ty, &data, &mut out[1..]).is_err(), "{ty}: short output");
            dequantize(ty, &[], &mut []).unwrap();
        }
    }

    #[test]
    fn integers_and_floats_are_what_they_say() {
        let mut out = [0.0; 2];
        let mut check = |ty, data: &[u8], expected: [f32; 2]| {
            dequantize(ty, data, &mut out).unwrap();
            assert_eq!(out, expected, "{ty}");
        };
        check(TensorType::I8, &[0x80, 0x7f], [-128.0, 127.0]);
        check(TensorType::U8, &[0x80, 0xff], [128.0, 255.0]);
        check(TensorType::I32, &[(-5i32).to_le_bytes(), 7i32.to_le_bytes()].concat(), [-5.0, 7.0]);
        check(
            TensorType::I64,
            &[(-5i64).to_le_bytes(), (1i64 << 40).to_le_bytes()].concat(),
            [-5.0, (1u64 << 40) as f32],
        );
        check(TensorType::F16, &[0x00, 0x3c, 0x00, 0xc0], [1.0, -2.0]);
        check(TensorType::BF16, &[0x80, 0x3f, 0x00, 0xc0], [1.0, -2.0]);
        check(TensorType::F32, &[1.5f32.to_le_bytes(), (-0.25f32).to_le_bytes()].concat(), [1.5, -0.25]);
    }

    #[derive(serde::Deserialize)]
    struct Reference {
        stamp: Stamp,
        types: std::collections::BTreeMap<String, Blocks>,
    }

    #[derive(serde::Deserialize)]
    struct Stamp {
        renew: String,
        scripts: std::collections::BTreeMap<String, String>,
    }

    #[derive(serde::Deserialize)]
    struct Blocks {
        block_len: usize,
        block_bytes: usize,
        blocks: String,
        values: String,
    }

    fn hex(text: &str) -> Vec<u8> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// Random blocks, among them subnormal, infinite and NaN scales, in the `gguf` package.
    #[test]
    fn equals_the_gguf_package_bit_for_bit() {
        use sha2::Digest;

        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/references");
        let text = std::fs::read_to_string(folder.join("blocks.json")).unwrap();
        let reference: Reference = serde_json::from_str(&text).unwrap();
        let script = std::fs::read(folder.join("blocks.py")).unwrap();
        let hash: String = sha2::Sha256::digest(&script).iter().map(|byte| format!("{byte:02x}")).collect();
        let stamp = &reference.stamp;
        assert_eq!(stamp.scripts["blocks.py"], hash, "blocks.json is stale; run `{}`", stamp.renew);

        let mut seen = 0;
        for ty in TensorType::ALL {
            let Some(expected) = reference.types.get(&ty.to_string()) else { continue };
            seen += 1;
            assert_eq!(
                (expected.block_len, expected.block_bytes),
                (ty.block_len(), ty.block_bytes()),
                "{ty}"
            );
            let (data, values) = (hex(&expected.blocks), hex(&expected.values));
            let mut out = vec![0.0; values.len() / 4];
            dequantize(ty, &data, &mut out).unwrap();
            for (i, (got, bytes)) in out.iter().zip(values.as_chunks::<4>().0).enumerate() {
                let want = f32::from_le_bytes(*bytes);
                let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
                assert!(same, "{ty} element {i}: {got} where the package has {want}");
            }
        }
        assert_eq!(seen, 10);
        assert_eq!(reference.types.len(), 10);
    }
}
