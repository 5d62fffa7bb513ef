use super::*;
use crate::formats::TensorType;
use crate::formats::testing::{SafeTensorsWriter, samples};

#[test]
fn reads_every_type() {
    let file = SafeTensors::from_bytes(samples::safetensors()).unwrap();
    assert_eq!(file.metadata("format"), Some("pt"));
    assert_eq!(file.names().len(), 8);
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.block_len() == 1) {
        let tensor = file.tensor(&format!("layer.{ty}.weight")).unwrap();
        assert_eq!((tensor.ty, &tensor.shape[..]), (ty, &[2, 3][..]));
        assert_eq!(tensor.to_f32_vec().unwrap()[0], 0.0);
    }
    assert_eq!(file.tensor("layer.scale").unwrap().to_f32_vec().unwrap(), [0.5]);
}

#[test]
fn booleans_are_bytes_and_other_types_are_refused_when_asked_for() {
    let header = r#"{"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]},
                     "big":{"dtype":"F64","shape":[1],"data_offsets":[2,10]}}"#;
    let file =
        SafeTensors::from_bytes(SafeTensorsWriter::raw(header, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap();
    assert_eq!(file.tensor("mask").unwrap().data, [1, 0]);
    let error = file.tensor("big").unwrap_err();
    assert!(error.to_string().contains("F64"), "{error}");
}

fn write_shards(dir: &Path, map: &str) -> std::path::PathBuf {
    let mut one = SafeTensorsWriter::new();
    one.tensor_f32("a", TensorType::F32, &[1], &[1.0]).tensor_f32("stale", TensorType::F32, &[1], &[9.0]);
    let mut two = SafeTensorsWriter::new();
    two.tensor_f32("b", TensorType::BF16, &[2], &[2.0, 3.0]).tensor_f32("a", TensorType::F32, &[1], &[8.0]);
    fs::write(dir.join("model-00001-of-00002.safetensors"), one.finish()).unwrap();
    fs::write(dir.join("model-00002-of-00002.safetensors"), two.finish()).unwrap();
    let path = dir.join("model.safetensors.index.json");
    fs::write(&path, format!(r#"{{"metadata":{{"total_size":8}},"weight_map":{{{map}}}}}"#)).unwrap();
    path
}

#[test]
fn shards_are_one_source_and_the_index_decides() {
    let dir = tempfile::tempdir().unwrap();
    let map = r#""b":"model-00002-of-00002.safetensors","a":"model-00001-of-00002.safetensors""#;
    let file = SafeTensors::open(write_shards(dir.path(), map)).unwrap();
    let mut names = file.names();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(file.tensor("a").unwrap().to_f32_vec().unwrap(), [1.0]);
    file.release("a");
    file.release("absent");
    assert_eq!(file.tensor("b").unwrap().to_f32_vec().unwrap(), [2.0, 3.0]);
    assert!(file.tensor("stale").unwrap_err().is_not_found());
}

#[test]
fn an_index_cannot_lead_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    for (map, part) in [
        (r#""a":"../model-00001-of-00002.safetensors""#, "not a file beside the index"),
        (r#""a":"/etc/passwd""#, "not a file beside the index"),
        (r#""a":"C:\\x""#, "not a file beside the index"),
        (r#""a":"..""#, "not a file beside the index"),
        (r#""a":"./model-00001-of-00002.safetensors""#, "not a file beside the index"),
        (r#""a":"""#, "not a file beside the index"),
        (r#""a":"absent.safetensors""#, "absent.safetensors"),
        (r#""c":"model-00001-of-00002.safetensors""#, "`c`"),
        (r#""a":"model-00001-of-00002.safetensors","a":"x""#, "twice"),
    ] {
        let error = SafeTensors::open(write_shards(dir.path(), map)).unwrap_err();
        assert!(error.to_string().contains(part), "{map}: {error}");
        assert!(error.file.is_some(), "{map}: {error}");
    }
}

#[test]
fn json_errors_have_the_files_offset() {
    let error = SafeTensors::from_bytes(SafeTensorsWriter::raw("{\"a\":\n  7}", &[])).unwrap_err();
    // Eight bytes of length, six of the first line, then the number.
    assert!(matches!(error.offset, Some(14..=18)), "{error}");
}
