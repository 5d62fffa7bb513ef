//! ONNX: one file for each lie.

use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{OnnxWriter, Proto};

use super::{all_refused, onnx};

/// Adds the field a million times.
fn million(proto: &mut Proto, field: u32, bytes: impl AsRef<[u8]>) -> &mut Proto {
    for _ in 0..1_000_000 {
        proto.bytes(field, bytes.as_ref());
    }
    proto
}

#[test]
fn each_lie_is_refused() {
    let tensor = |tensor: &Proto| OnnxWriter::new().initializer(tensor).finish();
    let head = |data_type, dims: &[i64]| Proto::tensor_head("t", data_type, dims);
    let with = |mut proto: Proto, change: &dyn Fn(&mut Proto) -> &mut Proto| {
        change(&mut proto);
        proto
    };
    let raw =
        |data_type, dims: &[i64], bytes: &[u8]| tensor(&with(head(data_type, dims), &|t| t.bytes(9, bytes)));
    let graph = |change: &dyn Fn(&mut Proto) -> &mut Proto| {
        let mut w = OnnxWriter::new();
        change(&mut w.graph);
        w.finish()
    };
    let model = |change: &dyn Fn(&mut Proto) -> &mut Proto| with(Proto::new(), change).0;
    let attribute = |change: &dyn Fn(&mut Proto) -> &mut Proto| {
        let mut w = OnnxWriter::new();
        w.node("Op", "", &[], &[], &[with(Proto::new(), change)]);
        w.finish()
    };
    let deep = |depth: usize| {
        let mut inner = Proto::new();
        for _ in 0..depth {
            let mut branch = Proto::attribute("then_branch", 5);
            branch.message(6, &inner);
            inner = Proto::new();
            inner.message(1, &Proto::node("If", "", &[], &[], &[branch]));
        }
        let mut w = OnnxWriter::new();
        w.graph = inner;
        w.finish()
    };
    let value = |bytes: &[u8]| bytes.to_vec();
    let entry = |key: &str| {
        let mut pair = Proto::new();
        pair.bytes(1, key);
        pair
    };
    all_refused(
        onnx,
        [
            ("empty file", vec![], "not an ONNX model"),
            ("no graph", model(&|m| m.int(1, 8)), "not an ONNX model"),
            ("no operator set", model(&|m| m.bytes(7, "")), "opset_import (at byte 2) is missing"),
            ("two graphs", model(&|m| m.bytes(7, "").bytes(7, "")), "graph (at byte 2) is there twice"),
            ("metadata twice", model(&|m| m.message(14, &entry("a")).message(14, &entry("a"))), "twice"),
            ("length past the end", value(&[0x3a, 0x7f]), "field of model (at byte 2) needs 127"),
            (
                "length that overflows",
                value(&[0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]),
                "cut short",
            ),
            (
                "integer of eleven bytes",
                value(&[[0x08; 1].as_slice(), &[0x80; 11]].concat()),
                "more than 64 bits",
            ),
            (
                "integer of 65 bits",
                value(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]),
                "64 bits",
            ),
            ("wire type 3", value(&[0x0b]), "has wire type 3"),
            ("field number 0", value(&[0x00, 0x01]), "impossible number 0"),
            ("graph as integer", value(&[0x38, 0x01]), "graph (at byte 0) is an integer, expected bytes"),
            ("name of other bytes", graph(&|g| g.bytes(2, [0xff])), "not UTF-8"),
            (
                "empty tensor name",
                tensor(&with(Proto::tensor_head("", 1, &[]), &|t| t.bytes(9, [0; 4]))),
                "name of initializer 0",
            ),
            (
                "tensor twice",
                OnnxWriter::new()
                    .tensor_f32("t", TensorType::U8, &[1], &[1.0])
                    .tensor_f32("t", TensorType::U8, &[1], &[1.0])
                    .finish(),
                "tensor `t`",
            ),
            ("type 0", raw(0, &[1], &[0; 4]), "type number 0"),
            ("type that is none", raw(99, &[1], &[0; 4]), "type number 99"),
            ("dimension -1", raw(1, &[-1], &[0; 4]), "dimensions of tensor of initializer 0"),
            ("dimension 0 with data", raw(1, &[0], &[0; 4]), "has 4 bytes"),
            ("dimension 2^42+1", raw(1, &[(1 << 42) + 1], &[0; 4]), "call for 17592186044420"),
            ("dimensions that overflow", raw(1, &[1 << 32, 1 << 32], &[0; 4]), "impossible shape"),
            ("nine dimensions", raw(1, &[1; 9], &[0; 4]), "above the limit of 8"),
            ("a million dimensions", raw(1, &vec![1; 1_000_000], &[0; 4]), "above the limit of 8"),
            (
                "a million packed dimensions",
                tensor(&with(head(1, &[]), &|t| t.packed(1, &vec![1; 1_000_000]))),
                "limit of 8",
            ),
            ("no data", tensor(&head(1, &[2])), "has 0 bytes where its type and shape call for 8"),
            ("short raw data", raw(1, &[2], &[0; 7]), "has 7 bytes"),
            ("long raw data", raw(11, &[2], &[0; 17]), "has 17 bytes"),
            ("short typed data", tensor(&with(head(7, &[9]), &|t| t.packed(7, &[1, 2]))), "call for 9"),
            ("long typed data", tensor(&with(head(7, &[2]), &|t| t.packed(7, &[1, 2, 3]))), "has 3 elements"),
            (
                "long typed floats",
                tensor(&with(head(1, &[1]), &|t| t.float(4, 1.0).float(4, 1.0))),
                "has 2 elements",
            ),
            (
                "typed data of 2^40 elements",
                tensor(&with(head(7, &[1 << 40]), &|t| t.packed(7, &[1]))),
                "call for 1099511627776",
            ),
            (
                "wrong typed field",
                tensor(&with(head(1, &[1]), &|t| t.packed(7, &[1]))),
                "its data in field 7",
            ),
            (
                "two typed fields",
                tensor(&with(head(1, &[1]), &|t| t.packed(7, &[1]).float(4, 0.0))),
                "data of two types",
            ),
            (
                "raw and typed data",
                tensor(&with(head(1, &[1]), &|t| t.float(4, 0.0).bytes(9, [0; 4]))),
                "both raw and typed",
            ),
            (
                "integer beyond its type",
                tensor(&with(head(3, &[1]), &|t| t.packed(5, &[128]))),
                "has 128, which is no I8",
            ),
            ("half a packed float", tensor(&with(head(1, &[1]), &|t| t.bytes(4, [0; 5]))), "cut short"),
            ("external data", tensor(&with(head(1, &[1]), &|t| t.int(14, 1))), "external file"),
            ("segment", tensor(&with(head(1, &[1]), &|t| t.bytes(3, ""))), "segment"),
            ("sparse tensor", graph(&|g| g.bytes(15, "")), "sparse"),
            ("graphs in graphs", deep(1000), "nested deeper than 8"),
            ("graphs in graphs, just above", deep(9), "nested deeper than 8"),
            (
                "attribute twice",
                OnnxWriter::new()
                    .node("Op", "", &[], &[], &[Proto::attribute("a", 2), Proto::attribute("a", 2)])
                    .finish(),
                "attribute `a` of node 0",
            ),
            ("attribute without value", attribute(&|a| a.bytes(1, "a").int(20, 4)), "`a` has type code 4"),
            (
                "attribute of another kind",
                attribute(&|a| a.bytes(1, "a").bytes(3, "x")),
                "expected an integer",
            ),
            ("a million nodes", graph(&|g| million(g, 1, "")), "names and metadata"),
            (
                "a million inputs",
                graph(&|g| g.message(1, &with(Proto::new(), &|n| million(n, 1, "")))),
                "names and metadata",
            ),
            (
                "a million attributes",
                graph(&|g| g.message(1, &with(Proto::new(), &|n| million(n, 5, "")))),
                "names and metadata",
            ),
            ("four million integers", attribute(&|a| a.packed(8, &vec![1; 4_000_000])), "names and metadata"),
            ("a million texts", attribute(&|a| million(a, 9, "")), "names and metadata"),
            ("a million tensors", attribute(&|a| million(a, 10, &head(8, &[]).0)), "names and metadata"),
            ("a million graphs", attribute(&|a| million(a, 11, "")), "names and metadata"),
            ("a million inputs of the graph", graph(&|g| million(g, 11, "")), "names and metadata"),
            ("a million operator sets", model(&|m| million(m, 8, "")), "names and metadata"),
            ("a name of 30 MB", graph(&|g| g.bytes(2, vec![b'x'; 30 << 20])), "names and metadata"),
        ],
    );
}
