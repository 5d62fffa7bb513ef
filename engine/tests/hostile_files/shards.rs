//! The index of a safetensors model in parts: one file for each lie.

use std::fs;

use repartee_engine::formats::safetensors::SafeTensors;
use repartee_engine::formats::testing::{SafeTensorsWriter, touch};
use repartee_engine::formats::{FormatError, TensorSource, TensorType};

use super::{Open, all_refused, peak};

const WHOLE: &str =
    r#"{"metadata":{"total_size":8},"weight_map":{"a":"one.safetensors","b":"two.safetensors"}}"#;

/// Opens the index `bytes` beside two whole parts, with the tensors `a` and `b`.
fn index(bytes: Vec<u8>) -> Result<Box<dyn TensorSource>, FormatError> {
    let folder = tempfile::tempdir().unwrap();
    for (file, name) in [("one.safetensors", "a"), ("two.safetensors", "b")] {
        let mut writer = SafeTensorsWriter::new();
        writer.tensor_f32(name, TensorType::F32, &[1], &[1.0]);
        fs::write(folder.path().join(file), writer.finish()).unwrap();
    }
    let path = folder.path().join("model.safetensors.index.json");
    fs::write(&path, &bytes).unwrap();
    // What the lie itself weighs is not the reader's.
    drop(bytes);
    Ok(Box::new(SafeTensors::open(path)?))
}

#[test]
fn each_lie_is_refused() {
    let map = |map: &str| format!(r#"{{"weight_map":{{{map}}}}}"#).into_bytes();
    let many: Vec<String> = (0..70_000).map(|i| format!(r#""{i}":"one.safetensors""#)).collect();
    let shards: Vec<String> = (0..2000).map(|i| format!(r#""{i}":"{i}.safetensors""#)).collect();
    let long = "n".repeat(70_000);
    all_refused(
        index,
        [
            ("empty file", vec![], "JSON header (at byte 0)"),
            ("no JSON", b"GGUF".to_vec(), "JSON header (at byte 0)"),
            ("list", b"[]".to_vec(), "JSON header"),
            ("no map", br#"{"metadata":{}}"#.to_vec(), "missing field `weight_map`"),
            ("map of numbers", map(r#""a":1"#), "expected a string"),
            ("nesting", format!(r#"{{"x":{}"#, "[".repeat(100_000)).into_bytes(), "JSON header"),
            ("too long", vec![b' '; (16 << 20) + 1], "length of the index (at byte 0) 16777217"),
            ("tensor twice", map(r#""a":"one.safetensors","a":"one.safetensors""#), "`a` is there twice"),
            ("empty name", map(r#""":"one.safetensors""#), "tensor name (at byte 15) is empty"),
            ("long name", map(&format!(r#""{long}":"one.safetensors""#)), "tensor name (at byte 15) 70000"),
            ("too many tensors", map(&many.join(",")), "invalid length"),
            ("too many shards", map(&shards.join(",")), "number of shards (at byte 0) 2000"),
            ("shard elsewhere", map(r#""a":"../one.safetensors""#), "tensor `a` (at byte 15) is in `../one"),
            ("shard of 70 kB", map(&format!(r#""a":"/{long}""#)), "tensor `a` (at byte 15) is in `/nnn"),
            (
                "tensor that its shard lacks",
                map(r#""a":"one.safetensors","b":"one.safetensors""#),
                "tensor `b` (at byte 37) is not in `one.safetensors`",
            ),
        ],
    );
}

#[test]
fn cut_at_every_byte() {
    let open: Open = index;
    assert_eq!(touch(&*open(WHOLE.into()).unwrap()), 2);
    for len in 0..WHOLE.len() {
        let (result, bytes) = peak(|| open(WHOLE.as_bytes()[..len].to_vec()));
        let Err(error) = result else { panic!("opened when cut to {len} bytes") };
        assert!(error.offset.is_some_and(|at| at <= len as u64), "cut to {len}: {error}");
        assert!(!error.field.is_empty() && bytes < 1 << 20, "cut to {len}: {bytes} bytes, {error}");
    }
}
