use super::*;
use crate::formats::testing::{Ct2Writer, samples};

#[test]
fn reads_header_variables_and_aliases() {
    let model = Ct2::from_bytes(samples::ctranslate2()).unwrap();
    assert_eq!((model.binary_version(), model.spec(), model.revision()), (6, "WhisperSpec", 3));
    assert_eq!(model.names().len(), 8);
    assert_eq!(model.integer("encoder/num_heads").unwrap(), 8);
    assert_eq!(model.integer("encoder/pre_norm").unwrap(), 1);
    let conv = model.tensor("encoder/conv1/weight").unwrap();
    assert_eq!((conv.ty, &conv.shape[..]), (TensorType::F16, &[2, 3, 1][..]));
    let scalar = model.tensor("encoder/scale").unwrap();
    assert_eq!((&scalar.shape[..], scalar.to_f32_vec().unwrap()), (&[][..], vec![0.125]));
    assert_eq!(model.tensor("encoder/ids").unwrap().to_f32_vec().unwrap(), [-1.0, 50_257.0]);
}

#[test]
fn an_alias_is_its_variable_with_its_scales() {
    let model = Ct2::from_bytes(samples::ctranslate2()).unwrap();
    let alias = "decoder/projection/weight";
    assert_eq!(model.aliases().next(), Some((alias, "decoder/embeddings/weight")));
    for name in [alias, "decoder/embeddings/weight"] {
        let weight = model.tensor(name).unwrap();
        let scales = model.scale(name).unwrap().unwrap().to_f32_vec().unwrap();
        let values: Vec<f32> =
            weight.to_f32_vec().unwrap().iter().enumerate().map(|(i, q)| q / scales[i / 3]).collect();
        assert_eq!(values, [1.0, -1.0, 0.0, 1.0 / 63.5, 2.0 / 63.5, 3.0 / 63.5]);
    }
    assert_eq!(model.tensor("decoder/projection/weight_scale").unwrap().shape, [2]);
    assert!(model.scale("encoder/conv1/weight").unwrap().is_none());
}

#[test]
fn reads_all_binary_versions() {
    for version in 1..=6 {
        let mut w = Ct2Writer::new(version, "TransformerSpec", 5);
        w.tensor_f32("a", TensorType::F32, &[1, 2], &[0.5, -1.0]).scalar_i16("n", -3);
        w.tensor_f32("q", TensorType::I8, &[2], &[3.0, -4.0]);
        if version >= 3 {
            w.alias("b", "a");
        }
        let model = Ct2::from_bytes(w.finish()).unwrap();
        assert_eq!(model.spec(), if version == 1 { "" } else { "TransformerSpec" });
        assert_eq!(model.revision(), if version == 1 { 1 } else { 5 });
        assert_eq!(model.tensor("a").unwrap().to_f32_vec().unwrap(), [0.5, -1.0]);
        assert_eq!(model.tensor("q").unwrap().to_f32_vec().unwrap(), [3.0, -4.0]);
        assert_eq!(model.integer("n").unwrap(), -3);
        assert_eq!(model.tensor("b").is_ok(), version >= 3);
    }
}

#[test]
fn asking_wrongly_says_what_is_there() {
    let model = Ct2::from_bytes(samples::ctranslate2()).unwrap();
    let error = model.tensor("encoder/conv1/weights").unwrap_err();
    assert!(error.is_not_found() && error.to_string().contains("similar: encoder/conv1/weight"), "{error}");
    let error = model.tensor("encoder/num_heads").unwrap_err();
    assert!(matches!(error.kind, FormatErrorKind::UnsupportedType { .. }), "{error}");
    for name in ["encoder/scale", "encoder/ids"] {
        let error = model.integer(name).unwrap_err();
        assert!(matches!(error.kind, FormatErrorKind::WrongType { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}
