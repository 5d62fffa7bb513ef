use super::*;
use crate::formats::testing::{GgufWriter, samples};

#[test]
fn reads_versions_2_and_3() {
    for version in [2, 3] {
        let mut w = GgufWriter::new(version);
        w.u32("n", 7).tensor_f32("t", TensorType::F32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let gguf = Gguf::from_bytes(w.finish()).unwrap();
        assert_eq!((gguf.version(), gguf.u32("n").unwrap()), (version, 7));
        let tensor = gguf.tensor("t").unwrap();
        assert_eq!(tensor.shape, [2, 3]);
        assert_eq!(tensor.to_f32_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
    for version in [0, 1, 4] {
        let error = Gguf::from_bytes(GgufWriter::new(version).finish()).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::UnsupportedVersion { .. }), "{error}");
    }
    let error = Gguf::from_bytes(GgufWriter::new(3u32.swap_bytes()).finish()).unwrap_err();
    assert!(error.to_string().contains("big-endian"), "{error}");
}

#[test]
fn reads_every_metadata_type() {
    let gguf = Gguf::from_bytes(samples::gguf()).unwrap();
    assert_eq!(gguf.str("general.architecture").unwrap(), "llama");
    assert_eq!(gguf.get::<i32>("test.i32").unwrap(), -5);
    assert_eq!(gguf.get::<u64>("test.u64").unwrap(), 1 << 40);
    assert_eq!(gguf.f32("llama.rope.freq_base").unwrap(), 1e5);
    assert_eq!(gguf.f32("test.f64").unwrap(), 0.25);
    assert!(gguf.bool("test.bool").unwrap());
    assert_eq!(gguf.u32("test.u8").unwrap(), 7);
    assert_eq!(gguf.get::<i64>("test.i8").unwrap(), -1);
    assert_eq!(gguf.u32("test.u16").unwrap(), 0x0201);
    assert_eq!(gguf.get::<i32>("test.i16").unwrap(), -0x7fff);
    assert_eq!(gguf.get::<i64>("test.i64").unwrap(), -9);
    assert_eq!(gguf.strings("tokenizer.ggml.tokens").unwrap(), ["<s>", "Ġhello", "世"]);
    assert_eq!(gguf.byte_strings("tokenizer.ggml.tokens").unwrap()[2], "世".as_bytes());
    assert_eq!(gguf.i32s("tokenizer.ggml.token_type").unwrap(), [3, 1, 1]);
    assert_eq!(gguf.get::<Vec<u32>>("tokenizer.ggml.token_type").unwrap(), [3, 1, 1]);
    assert_eq!(gguf.f32s("tokenizer.ggml.scores").unwrap(), [0.0, -1.0, -2.0]);
    assert_eq!(gguf.get::<Vec<bool>>("test.bools").unwrap(), [true, false, true]);
    let Some(Value::Array(nested)) = gguf.metadata("test.nested") else { panic!("no array") };
    assert_eq!((nested.element(), nested.len()), (ValueType::Array, 2));
}

#[test]
fn reads_every_tensor_type_at_its_alignment() {
    let file = samples::gguf();
    let gguf = Gguf::from_bytes(file.clone()).unwrap();
    for ty in TensorType::ALL.into_iter().filter(|&ty| ty != TensorType::U8) {
        let tensor = gguf.tensor(&format!("blk.0.{ty}.weight")).unwrap();
        assert_eq!((tensor.ty, &tensor.shape[..]), (ty, &[2, ty.block_len()][..]));
        let start = tensor.data.as_ptr() as usize - gguf.file.as_ptr() as usize;
        assert!(start.is_multiple_of(64), "{ty} at {start}");
        assert_eq!(tensor.data, &file[start..start + tensor.data.len()]);
        let values = tensor.to_f32_vec().unwrap();
        assert!(values.iter().all(|x| x.abs() <= 1.2), "{ty}");
    }
}

#[test]
fn asking_wrongly_says_what_is_there() {
    let gguf = Gguf::from_bytes(samples::gguf()).unwrap();
    let error = gguf.u32("llama.blok_count").unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("llama.block_count"), "{error}");
    assert_eq!(gguf.optional::<u32>("llama.blok_count").unwrap(), None);
    let wrong: [(FormatError, &str); 6] = [
        (
            gguf.u32("general.architecture").unwrap_err(),
            "`general.architecture` (at byte 52) is of type string",
        ),
        (gguf.u32("test.u64").unwrap_err(), "1099511627776, expected a u32"),
        (gguf.u32("test.i32").unwrap_err(), "-5, expected a u32"),
        (gguf.str("tokenizer.ggml.tokens").unwrap_err(), "an array of 3 string, expected a string"),
        (gguf.i32s("tokenizer.ggml.scores").unwrap_err(), "an array of 3 f32, expected an array of i32"),
        (gguf.optional::<f32>("test.bool").map(drop).unwrap_err(), "of type bool, expected an f32"),
    ];
    for (error, part) in wrong {
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.offset.is_some(), "{error}");
    }
    let error = gguf.tensor("blk.0.Q4_0.wait").unwrap_err();
    assert!(error.to_string().contains("blk.0.Q4_0.weight"), "{error}");
}

#[test]
fn an_empty_array_serves_any_type() {
    let mut w = GgufWriter::new(3);
    w.raw_array("empty", 4, 0, &[]);
    let gguf = Gguf::from_bytes(w.finish()).unwrap();
    assert!(gguf.strings("empty").unwrap().is_empty());
}

#[test]
fn text_that_is_not_utf8_is_given_as_bytes_only() {
    let mut w = GgufWriter::new(3);
    w.raw_array("tokens", 8, 1, &[&2u64.to_le_bytes()[..], &[0xff, 0xfe]].concat());
    let gguf = Gguf::from_bytes(w.finish()).unwrap();
    assert_eq!(gguf.byte_strings("tokens").unwrap(), [[0xff, 0xfe]]);
    assert!(matches!(gguf.strings("tokens").unwrap_err().kind, FormatErrorKind::NotUtf8));
}

#[test]
fn a_file_names_itself_in_errors() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), samples::gguf()).unwrap();
    let gguf = Gguf::open(file.path()).unwrap();
    let before = gguf.tensor("blk.0.Q6_K.weight").unwrap().data.to_vec();
    gguf.release("blk.0.Q6_K.weight");
    assert_eq!(gguf.tensor("blk.0.Q6_K.weight").unwrap().data, before);
    let name = file.path().to_str().unwrap();
    for error in [gguf.tensor("x").unwrap_err(), gguf.u32("x").unwrap_err()] {
        assert!(error.to_string().starts_with(name), "{error}");
    }
    std::fs::write(file.path(), b"GGML").unwrap();
    let error = Gguf::open(file.path()).unwrap_err();
    assert!(error.to_string().starts_with(name) && error.to_string().contains("not a GGUF file"), "{error}");
}
