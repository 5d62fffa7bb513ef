//! GGUF: one file for each lie.

use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{GgufWriter, samples};

use super::{all_refused, gguf};

#[test]
fn each_lie_is_refused() {
    const MANY: u64 = 1 << 60;
    let tensor = |dims: &[u64], code, offset| {
        let mut w = GgufWriter::new(3);
        w.tensor_f32("ok", TensorType::F32, &[8], &[0.0; 8]).raw_tensor("t", dims, code, offset);
        w.finish()
    };
    let value = |code, bytes: &[u8]| GgufWriter::new(3).raw_value("k", code, bytes).finish();
    let array = |code, len, bytes: &[u8]| GgufWriter::new(3).raw_array("k", code, len, bytes).finish();
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = samples::gguf();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let nested = |depth: usize| {
        let level = [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat();
        array(9, 1, &[&level.repeat(depth)[..], &0u32.to_le_bytes(), &1u64.to_le_bytes(), &[1]].concat())
    };
    let twice = |one: &dyn Fn(&mut GgufWriter) -> &mut GgufWriter| {
        let mut w = GgufWriter::new(3);
        one(&mut w);
        one(&mut w);
        w.finish()
    };
    all_refused(
        gguf,
        [
            ("empty file", vec![], "not a GGUF file"),
            ("other magic", patched(0, b"GGML"), "not a GGUF file"),
            ("tensor count", patched(8, &MANY.to_le_bytes()), "tensor count (at byte 8)"),
            ("tensor count beyond the file", patched(8, &60_000u64.to_le_bytes()), "cut short"),
            ("metadata count", patched(16, &MANY.to_le_bytes()), "metadata count (at byte 16)"),
            ("metadata count beyond the file", patched(16, &60_000u64.to_le_bytes()), "cut short"),
            ("key length", patched(24, &MANY.to_le_bytes()), "metadata key 0 (at byte 24)"),
            ("key length beyond the file", patched(24, &60_000u64.to_le_bytes()), "cut short"),
            ("empty key", GgufWriter::new(3).u32("", 1).finish(), "metadata key 0 (at byte 24) is empty"),
            ("key of other bytes", patched(32, &[0xff]), "not UTF-8"),
            ("key twice", twice(&|w| w.u32("k", 1)), "metadata `k` (at byte 41) is there twice"),
            ("value type", value(13, &[0; 8]), "is 13, which is no metadata type"),
            ("boolean", value(7, &[2]), "is 2, not 0 or 1"),
            ("text length", value(8, &MANY.to_le_bytes()), "cut short"),
            ("wrong array type", array(99, 1, &[0; 8]), "element type of metadata `k` (at byte 37) is 99"),
            ("array length", array(0, MANY, &[]), "cut short"),
            ("array size overflow", array(10, 1 << 61, &[0; 8]), "cut short"),
            ("array of booleans", array(7, 2, &[1, 7]), "is 7, not 0 or 1"),
            ("array of texts", array(8, 1, &u64::MAX.to_le_bytes()), "cut short"),
            ("array depth", nested(1000), "nested deeper"),
            ("array depth, just above", nested(3), "nested deeper"),
            ("alignment 0", GgufWriter::new(3).u32("general.alignment", 0).finish(), "not a power of two"),
            ("alignment 24", GgufWriter::new(3).u32("general.alignment", 24).finish(), "not a power of two"),
            ("alignment 2^31", GgufWriter::new(3).u32("general.alignment", 1 << 31).finish(), "not a power"),
            (
                "alignment text",
                GgufWriter::new(3).string("general.alignment", "32").finish(),
                "of type string",
            ),
            ("split", GgufWriter::new(3).raw_value("split.count", 2, &[2, 0]).finish(), "one of 2 parts"),
            (
                "empty tensor name",
                GgufWriter::new(3).raw_tensor("", &[1], 0, 0).finish(),
                "name of tensor 0 (at",
            ),
            ("tensor twice", twice(&|w| w.tensor_f32("t", TensorType::F32, &[8], &[0.0; 8])), "twice"),
            (
                "dimension 0",
                tensor(&[0], 0, 0),
                "tensor `t` dimensions (at byte 71) has an impossible shape [0]",
            ),
            ("dimension 0 outside", tensor(&[8, 0], 0, 0), "impossible shape [0, 8]"),
            ("dimension 2^42+1", tensor(&[(1 << 42) + 1], 0, 0), "tensor `t` offset (at byte 83)"),
            ("dimension 2^42+1 of blocks", tensor(&[(1 << 42) + 1], 2, 0), "whole number of blocks of 32"),
            ("dimensions that overflow", tensor(&[1 << 40, 1 << 40], 0, 0), "impossible shape"),
            ("bytes that overflow", tensor(&[1 << 62], 0, 0), "impossible shape"),
            ("elements that overflow", tensor(&[1 << 62, 2], 2, 0), "impossible shape"),
            ("nine dimensions", tensor(&[1; 9], 0, 0), "9 is above the limit of 8"),
            (
                "a million dimensions",
                tensor(&vec![1; 1_000_000], 0, 0),
                "tensor `t` rank (at byte 67) 1000000",
            ),
            ("partial block", tensor(&[31], 8, 0), "not a whole number of blocks"),
            ("type without use", tensor(&[256], 10, 0), "type Q2_K"),
            ("type that is none", tensor(&[256], 77, 0), "type number 77"),
            ("removed type", tensor(&[256], 4, 0), "type number 4"),
            (
                "offset past the end",
                tensor(&[8], 0, 32),
                "tensor `t` offset (at byte 83) needs 64 bytes but 32",
            ),
            ("offset that overflows", tensor(&[8], 0, u64::MAX - 31), "cut short"),
            ("offset between alignments", tensor(&[1], 0, 8), "multiple of the file's alignment of 32"),
            ("overlap", tensor(&[2], 0, 0), "shares bytes with"),
            (
                "tensor without data section",
                GgufWriter::new(3).raw_tensor("t", &[1], 0, 0).finish(),
                "cut short",
            ),
        ],
    );
}
