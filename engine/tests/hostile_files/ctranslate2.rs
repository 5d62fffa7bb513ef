//! CTranslate2: one file for each lie.

use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{Ct2Writer, samples};

use super::{all_refused, ctranslate2};

#[test]
fn each_lie_is_refused() {
    let raw = |dims: &[u32], tag, size, bytes: &[u8]| {
        Ct2Writer::new(6, "S", 1).raw("v", dims, tag, size, bytes).finish()
    };
    let patched = |at: usize, bytes: &[u8]| {
        let mut file = samples::ctranslate2();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        file
    };
    let alias = |alias: &str, of: &str| {
        Ct2Writer::new(6, "S", 1)
            .tensor_f32("v", TensorType::F32, &[1], &[0.0])
            .alias(alias, of)
            .alias("a", "v")
            .finish()
    };
    let twice = Ct2Writer::new(6, "S", 1)
        .tensor_f32("v", TensorType::F32, &[1], &[0.0])
        .tensor_f32("v", TensorType::F32, &[1], &[0.0])
        .finish();
    all_refused(
        ctranslate2,
        [
            ("empty file", vec![], "binary version (at byte 0) needs 4 bytes"),
            ("version 0", patched(0, &0u32.to_le_bytes()), "version 0 is not supported"),
            ("version 7", patched(0, &7u32.to_le_bytes()), "version 7 is not supported"),
            ("other file", b"GGUF and more".to_vec(), "binary version"),
            ("specification length", patched(4, &u16::MAX.to_le_bytes()), "specification (at byte 6) needs"),
            ("specification without NUL", patched(17, b"x"), "only NUL"),
            (
                "variable count",
                patched(22, &u32::MAX.to_le_bytes()),
                "variable count (at byte 22) 4294967295",
            ),
            ("variable count beyond the file", patched(22, &60_000u32.to_le_bytes()), "cut short"),
            (
                "empty name",
                Ct2Writer::new(6, "S", 1).raw("", &[1], 0, 4, &[0; 4]).finish(),
                "name of variable 0 (at byte 16) is empty",
            ),
            (
                "name of no bytes",
                patched(26, &0u16.to_le_bytes()),
                "name of variable 0 (at byte 26) is empty",
            ),
            ("name with NUL", patched(30, &[0]), "only NUL"),
            ("name of other bytes", patched(30, &[0xff]), "not UTF-8"),
            ("variable twice", twice, "tensor `v` (at byte 34) is there twice"),
            ("nine dimensions", raw(&[1; 9], 0, 4, &[0; 4]), "9 is above the limit of 8"),
            ("255 dimensions", raw(&[1; 255], 0, 4, &[0; 4]), "variable `v` rank (at byte 20) 255 is above"),
            (
                "dimension 0",
                raw(&[0], 0, 0, &[]),
                "variable `v` dimensions (at byte 21) has an impossible shape [0]",
            ),
            ("dimensions of 2^42", raw(&[1 << 21, 1 << 21], 0, 4, &[0; 4]), "call for 17592186044416"),
            ("dimensions that overflow", raw(&[u32::MAX; 8], 0, 4, &[0; 4]), "impossible shape"),
            ("type that is none", raw(&[1], 6, 4, &[0; 4]), "type number 6"),
            (
                "item size that is none",
                Ct2Writer::new(3, "S", 1).raw("v", &[1], 8, 1, &[0; 8]).finish(),
                "type number 8",
            ),
            ("size", raw(&[1], 0, 5, &[0; 5]), "variable `v` size (at byte 26) has 5 bytes"),
            (
                "items",
                Ct2Writer::new(3, "S", 1).raw("v", &[1], 4, u32::MAX, &[0; 4]).finish(),
                "has 17179869180 bytes",
            ),
            (
                "data past the end",
                raw(&[1 << 20], 0, 1 << 22, &[0; 64]),
                "variable `v` data (at byte 30) needs",
            ),
            ("alias of nothing", alias("b", "w"), "alias `b` (at byte 38) stands for `w`"),
            ("alias of itself", alias("b", "b"), "stands for `b`"),
            ("alias twice", alias("a", "v"), "alias `a` (at byte 46) is there twice"),
            ("alias that is a variable", alias("v", "v"), "alias `v` (at byte 38) is there twice"),
            ("empty alias", alias("", "long enough"), "name of alias 0 (at byte 38) is empty"),
            (
                "bytes behind the end",
                [samples::ctranslate2(), vec![0]].concat(),
                "has 1 bytes behind its end",
            ),
        ],
    );
}
