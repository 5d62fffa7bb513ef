//! From f32 to the bytes of every [`TensorType`], the simple way.

use half::{bf16, f16};

use crate::formats::TensorType;

/// Stores `values` as `ty`: the inverse of [`dequantize`](crate::formats::blocks::dequantize) within about
/// one step of the type. Integer types take the nearest integer, saturating.
///
/// # Panics
/// When `values` is not a whole number of blocks: that is a mistake in the test.
///
/// ```
/// use repartee_engine::formats::{TensorType, blocks, testing};
///
/// let values: Vec<f32> = (0..256).map(|i| (i as f32 * 0.1).sin()).collect();
/// let stored = testing::quantize(TensorType::Q6K, &values);
/// let mut back = vec![0.0; 256];
/// blocks::dequantize(TensorType::Q6K, &stored, &mut back).unwrap();
/// assert!(values.iter().zip(&back).all(|(a, b)| (a - b).abs() < 0.04));
/// ```
pub fn quantize(ty: TensorType, values: &[f32]) -> Vec<u8> {
    assert!(values.len().is_multiple_of(ty.block_len()), "{} values are not whole {ty} blocks", values.len());
    let mut out = Vec::with_capacity(values.len() / ty.block_len() * ty.block_bytes());
    for block in values.chunks_exact(ty.block_len()) {
        let x = block[0];
        match ty {
            TensorType::F32 => out.extend(x.to_le_bytes()),
            TensorType::F16 => out.extend(f16::from_f32(x).to_le_bytes()),
            TensorType::BF16 => out.extend(bf16::from_f32(x).to_le_bytes()),
            TensorType::I8 => out.extend((x.round() as i8).to_le_bytes()),
            TensorType::U8 => out.push(x.round() as u8),
            TensorType::I32 => out.extend((x.round() as i32).to_le_bytes()),
            TensorType::I64 => out.extend((x.round() as i64).to_le_bytes()),
            TensorType::Q4_0 => around(block, 4, &mut out),
            TensorType::Q4_1 => above(block, 4, &mut out),
            TensorType::Q5_0 => around(block, 5, &mut out),
            TensorType::Q5_1 => above(block, 5, &mut out),
            TensorType::Q8_0 => q8_0(block, &mut out),
            TensorType::Q4K => k_scale_min(block, 4, &mut out),
            TensorType::Q5K => k_scale_min(block, 5, &mut out),
            TensorType::Q6K => q6_k(block, &mut out),
        }
    }
    out
}

/// `x` as f16, kept finite.
fn half(x: f32) -> f16 {
    f16::from_f32(x.clamp(f16::MIN.to_f32(), f16::MAX.to_f32()))
}

/// The nearest of 0..=max to `x / step`; 0 for a zero step.
fn level(x: f32, step: f32, max: u8) -> u8 {
    if step == 0.0 { 0 } else { (x / step).round().clamp(0.0, f32::from(max)) as u8 }
}

/// The value of largest magnitude, with its sign.
fn extreme(values: &[f32]) -> f32 {
    values.iter().copied().fold(0.0, |a: f32, x| if x.abs() > a.abs() { x } else { a })
}

/// Fifth bits (for 5-bit types) and nibbles of 32 levels.
fn push_levels(levels: &[u8], bits: u32, out: &mut Vec<u8>) {
    if bits == 5 {
        let fifth = levels.iter().enumerate().fold(0u32, |all, (i, q)| all | u32::from(q >> 4) << i);
        out.extend(fifth.to_le_bytes());
    }
    out.extend((0..16).map(|i| levels[i] & 15 | (levels[i + 16] & 15) << 4));
}

/// Q4_0, Q5_0: the extreme value gets the lowest level, which reaches one further than the highest.
fn around(block: &[f32], bits: u32, out: &mut Vec<u8>) {
    let middle = f32::from(1u8 << (bits - 1));
    let d = half(extreme(block) / -middle);
    let step = d.to_f32();
    let max = (1u8 << bits) - 1;
    let levels: Vec<u8> = block
        .iter()
        .map(|x| {
            if step == 0.0 {
                middle as u8
            } else {
                (x / step + middle).round().clamp(0.0, f32::from(max)) as u8
            }
        })
        .collect();
    out.extend(d.to_le_bytes());
    push_levels(&levels, bits, out);
}

/// Q4_1, Q5_1: levels from the lowest value to the highest.
fn above(block: &[f32], bits: u32, out: &mut Vec<u8>) {
    let (low, high) = block.iter().fold((f32::MAX, f32::MIN), |(low, high), &x| (low.min(x), high.max(x)));
    let max = (1u8 << bits) - 1;
    let (m, d) = (half(low), half((high - low) / f32::from(max)));
    let levels: Vec<u8> = block.iter().map(|x| level(x - m.to_f32(), d.to_f32(), max)).collect();
    out.extend(d.to_le_bytes());
    out.extend(m.to_le_bytes());
    push_levels(&levels, bits, out);
}

fn q8_0(block: &[f32], out: &mut Vec<u8>) {
    let d = half(extreme(block).abs() / 127.0);
    out.extend(d.to_le_bytes());
    let step = if d.to_f32() == 0.0 { 1.0 } else { d.to_f32() };
    out.extend(block.iter().map(|x| (x / step).round().clamp(-127.0, 127.0) as i8 as u8));
}

/// Q4_K, Q5_K: eight groups of 32, each with a 6-bit scale and a 6-bit minimum at or below zero.
fn k_scale_min(block: &[f32], bits: u32, out: &mut Vec<u8>) {
    let max = (1u8 << bits) - 1;
    let groups: Vec<(f32, f32)> = block
        .chunks_exact(32)
        .map(|group| {
            let low = group.iter().copied().fold(0.0, f32::min);
            let high = group.iter().copied().fold(0.0, f32::max);
            ((high - low) / f32::from(max), -low)
        })
        .collect();
    let d = half(groups.iter().fold(0.0, |a: f32, g| a.max(g.0)) / 63.0);
    let dmin = half(groups.iter().fold(0.0, |a: f32, g| a.max(g.1)) / 63.0);

    let mut packed = [0u8; 12];
    let mut levels = Vec::with_capacity(256);
    for (j, (group, &(scale, minimum))) in block.chunks_exact(32).zip(&groups).enumerate() {
        let s = six_bits(scale, d.to_f32());
        let t = six_bits(minimum, dmin.to_f32());
        if j < 4 {
            packed[j] |= s;
            packed[j + 4] |= t;
        } else {
            packed[j + 4] = s & 15 | t << 4;
            packed[j - 4] |= s >> 4 << 6;
            packed[j] |= t >> 4 << 6;
        }
        let (step, low) = (d.to_f32() * f32::from(s), dmin.to_f32() * f32::from(t));
        levels.extend(group.iter().map(|x| level(x + low, step, max)));
    }

    out.extend(d.to_le_bytes());
    out.extend(dmin.to_le_bytes());
    out.extend(packed);
    if bits == 5 {
        out.extend((0..32).map(|i| (0..8).fold(0u8, |all, j| all | (levels[j * 32 + i] >> 4) << j)));
    }
    for pair in levels.chunks_exact(64) {
        out.extend((0..32).map(|i| pair[i] & 15 | (pair[i + 32] & 15) << 4));
    }
}

/// `x / step` rounded up, so that a group's extremes stay inside its levels.
fn six_bits(x: f32, step: f32) -> u8 {
    if step == 0.0 { 0 } else { (x / step).ceil().clamp(0.0, 63.0) as u8 }
}

fn q6_k(block: &[f32], out: &mut Vec<u8>) {
    let steps: Vec<f32> = block.chunks_exact(16).map(|group| extreme(group).abs() / 31.0).collect();
    let d = half(extreme(&steps) / 127.0);
    let scales: Vec<u8> = steps
        .iter()
        .map(|step| if d.to_f32() == 0.0 { 0 } else { (step / d.to_f32()).ceil().clamp(0.0, 127.0) as u8 })
        .collect();
    let levels: Vec<u8> = block
        .iter()
        .enumerate()
        .map(|(i, x)| {
            let step = d.to_f32() * f32::from(scales[i / 16]);
            if step == 0.0 { 32 } else { ((x / step).round().clamp(-32.0, 31.0) + 32.0) as u8 }
        })
        .collect();
    for half in levels.chunks_exact(128) {
        out.extend((0..64).map(|j| half[j] & 15 | (half[j + 64] & 15) << 4));
    }
    for half in levels.chunks_exact(128) {
        out.extend((0..32).map(|j| (0..4).fold(0, |all, k| all | (half[j + 32 * k] >> 4) << (2 * k))));
    }
    out.extend(scales);
    out.extend(d.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::blocks::dequantize;

    /// A step of the type at amplitude 1 with one-sided groups allowed: what rounding may cost, twice over
    /// for the block's scale that is itself rounded.
    fn tolerance(ty: TensorType) -> f32 {
        match ty {
            TensorType::F32 => 0.0,
            TensorType::F16 => 1e-3,
            TensorType::BF16 => 1e-2,
            TensorType::I8 | TensorType::U8 | TensorType::I32 | TensorType::I64 => 0.5,
            TensorType::Q4_0 | TensorType::Q4_1 | TensorType::Q4K => 0.15,
            TensorType::Q5_0 | TensorType::Q5_1 | TensorType::Q5K => 0.075,
            TensorType::Q6K => 0.04,
            TensorType::Q8_0 => 0.008,
        }
    }

    fn worst(ty: TensorType, values: &[f32]) -> f32 {
        let stored = quantize(ty, values);
        assert_eq!(Some(stored.len()), ty.row_bytes(values.len()));
        let mut back = vec![f32::NAN; values.len()];
        dequantize(ty, &stored, &mut back).unwrap();
        values.iter().zip(&back).fold(0.0, |a: f32, (x, y)| {
            assert!(y.is_finite(), "{ty}");
            a.max((x - y).abs())
        })
    }

    #[test]
    fn round_trips_within_a_step() {
        let wave: Vec<f32> = (0..1024).map(|i| (i as f32 * 0.37).sin() * (i as f32 * 0.011).cos()).collect();
        for ty in TensorType::ALL {
            let values: Vec<f32> =
                if ty == TensorType::U8 { wave.iter().map(|x| x.abs()).collect() } else { wave.clone() };
            let worst = worst(ty, &values);
            assert!(worst <= tolerance(ty), "{ty}: {worst}");
        }
    }

    #[test]
    fn zeros_and_constants_survive() {
        for ty in TensorType::ALL {
            assert_eq!(worst(ty, &[0.0; 256]), 0.0, "{ty}");
            assert!(worst(ty, &[1.0; 256]) <= tolerance(ty), "{ty}");
        }
    }
}
