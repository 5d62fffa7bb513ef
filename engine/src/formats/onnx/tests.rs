use super::*;
use crate::formats::TensorType;
use crate::formats::testing::{OnnxWriter, Proto, samples};

#[test]
fn reads_raw_and_typed_initializers() {
    let onnx = Onnx::from_bytes(samples::onnx()).unwrap();
    assert_eq!(onnx.graph().initializers().count(), onnx.names().len());
    for ty in TensorType::ALL.into_iter().filter(|ty| ty.block_len() == 1) {
        let tensor = onnx.tensor(&format!("{ty}.weight")).unwrap();
        assert_eq!((tensor.ty, &tensor.shape[..]), (ty, &[2, 3][..]));
    }
    let values = |name: &str| onnx.tensor(name).unwrap().to_f32_vec().unwrap();
    assert_eq!(values("float_data"), [0.0, 0.7f32.sin(), 1.4f32.sin()]);
    assert_eq!(values("float_data_unpacked"), [0.5, -2.0]);
    assert_eq!(values("int32_data_as_i8"), [-128.0, 0.0, 127.0]);
    assert_eq!(values("int32_data_as_f16"), [1.0, -2.0]);
    assert_eq!(values("int64_data"), [-1.0, (1u64 << 40) as f32]);
}

#[test]
fn gives_the_facts_of_the_graph() {
    let onnx = Onnx::from_bytes(samples::onnx()).unwrap();
    assert_eq!((onnx.ir_version(), onnx.producer(), onnx.opset("")), (8, "test", Some(17)));
    assert_eq!(onnx.metadata("author"), Some("test"));
    let graph = onnx.graph();
    assert_eq!(graph.name, "main");
    assert_eq!(graph.inputs[0].name, "x");
    assert_eq!(graph.inputs[0].element_type, 1);
    assert_eq!(graph.inputs[0].dims, Some(vec![Dim::Named("n".into()), Dim::Fixed(3)]));
    assert_eq!(graph.outputs[0].name, "y");
    let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op_type.as_str()).collect();
    assert_eq!(ops, ["Conv", "If"]);

    let conv = graph.producer("c").unwrap();
    assert_eq!((&conv.name[..], &conv.inputs[..]), ("/conv", &["x", "F32.weight", ""].map(String::from)[..]));
    assert_eq!(conv.ints("strides").unwrap(), Some(&[1, -2][..]));
    assert_eq!(conv.float("alpha").unwrap(), Some(0.1));
    assert_eq!(conv.int("axis").unwrap(), Some(-1));
    assert_eq!(conv.text("mode").unwrap(), Some("linear"));
    assert_eq!(conv.floats("scales").unwrap(), Some(&[1.0, 2.0][..]));
    assert_eq!(conv.int("absent").unwrap(), None);
    assert!(matches!(conv.attribute("names"), Some(Attribute::Strings(names)) if names[1] == b"b"));
    let names: Vec<&str> = conv.attributes().map(|(name, _)| name).collect();
    assert_eq!(names, ["alpha", "axis", "mode", "names", "scales", "strides"]);
    let error = conv.ints("axis").unwrap_err();
    assert!(error.to_string().contains("attribute `axis` of node `/conv` is an integer"), "{error}");
}

#[test]
fn gives_the_constants_of_a_branch() {
    let onnx = Onnx::from_bytes(samples::onnx()).unwrap();
    let branch = onnx.graph().nodes[1].graph("then_branch").unwrap().unwrap();
    let value = branch.nodes[0].tensor("value").unwrap().unwrap();
    assert!(value.shape().is_empty());
    assert_eq!(value.view(&onnx).unwrap().to_f32_vec().unwrap(), [2.0]);
    assert!(onnx.tensor_in(branch, "F32.weight").unwrap_err().is_not_found());
}

#[test]
fn an_attribute_of_an_old_file_has_the_type_of_its_value() {
    let mut old = Proto::new();
    old.bytes(1, "axis").int(3, 4);
    let mut w = OnnxWriter::new();
    w.node("Concat", "", &[], &[], &[old]);
    let onnx = Onnx::from_bytes(w.finish()).unwrap();
    assert_eq!(onnx.graph().nodes[0].int("axis").unwrap(), Some(4));
}

#[test]
fn an_empty_list_can_be_there_but_not_viewed() {
    let mut value = Proto::attribute("value", 4);
    value.message(5, &Proto::tensor_head("", 7, &[0]));
    let mut w = OnnxWriter::new();
    w.initializer(&Proto::tensor_head("roi", 1, &[0]));
    w.node("Constant", "", &[], &["axes"], &[value]);
    let onnx = Onnx::from_bytes(w.finish()).unwrap();
    let axes = onnx.graph().nodes[0].tensor("value").unwrap().unwrap();
    assert!(axes.is_empty());
    for error in [axes.view(&onnx).unwrap_err(), onnx.tensor("roi").unwrap_err()] {
        assert!(matches!(error.kind, FormatErrorKind::BadShape { .. }), "{error}");
    }
}

#[test]
fn external_data_is_refused_with_its_place() {
    let mut location = Proto::new();
    location.bytes(1, "location").bytes(2, "../weights.bin");
    let mut tensor = Proto::tensor_head("w", 1, &[2]);
    tensor.message(13, &location).int(14, 1);
    let error = Onnx::from_bytes(OnnxWriter::new().initializer(&tensor).finish()).unwrap_err();
    assert!(error.to_string().contains("external file `../weights.bin`"), "{error}");
}

#[test]
fn types_without_use_are_refused_when_asked_for() {
    let mut double = Proto::tensor_head("d", 11, &[1]);
    double.bytes(9, 1f64.to_le_bytes());
    let mut text = Proto::tensor_head("s", 8, &[2]);
    text.bytes(6, "a").bytes(6, "b");
    let onnx = Onnx::from_bytes(OnnxWriter::new().initializer(&double).initializer(&text).finish()).unwrap();
    assert!(onnx.tensor("d").unwrap_err().to_string().contains("DOUBLE"));
    assert!(onnx.tensor("s").unwrap_err().to_string().contains("STRING"));
}
