//! ONNX: every initializer, and every attribute of every node in every graph.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use repartee_engine::formats::onnx::{Attribute, Graph, Onnx, OnnxTensor};
use repartee_engine::formats::{TensorSource, testing};

fuzz_target!(|bytes: &[u8]| {
    let Ok(onnx) = Onnx::from_bytes(bytes.to_vec()) else { return };
    black_box((onnx.opset(""), onnx.metadata("author")));
    let _ = black_box(onnx.tensor("layer.weight"));
    black_box(testing::touch(&onnx));
    walk(&onnx, onnx.graph());
});

fn walk(onnx: &Onnx, graph: &Graph) {
    for name in graph.initializers() {
        if let Ok(tensor) = onnx.tensor_in(graph, name) {
            black_box(tensor.to_f32_vec().expect("a checked view"));
        }
    }
    for node in &graph.nodes {
        if let Some(input) = node.inputs.first() {
            black_box(graph.producer(input));
        }
        for (name, attribute) in node.attributes() {
            assert!(node.attribute(name).is_some());
            let _ = black_box((node.int(name), node.float(name), node.text(name), node.ints(name)));
            match attribute {
                Attribute::Tensor(tensor) => view(onnx, tensor),
                Attribute::Tensors(tensors) => tensors.iter().for_each(|tensor| view(onnx, tensor)),
                Attribute::Graph(graph) => walk(onnx, graph),
                Attribute::Graphs(graphs) => graphs.iter().for_each(|graph| walk(onnx, graph)),
                _ => {}
            }
        }
    }
}

fn view(onnx: &Onnx, tensor: &OnnxTensor) {
    if let Ok(view) = tensor.view(onnx) {
        assert!(!tensor.is_empty());
        black_box(view.to_f32_vec().expect("a checked view"));
    }
}
