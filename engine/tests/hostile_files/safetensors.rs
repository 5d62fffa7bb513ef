//! safetensors: one file for each lie.

use repartee_engine::formats::testing::{SafeTensorsWriter, samples};

use super::{all_refused, safetensors};

#[test]
fn each_lie_is_refused() {
    let raw = |header: &str, data: usize| SafeTensorsWriter::raw(header, &vec![0; data]);
    let tensor = |rest: &str, data| raw(&format!(r#"{{"t":{{"dtype":"F32",{rest}}}}}"#), data);
    let member = r#""t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}"#;
    let mut huge = samples::safetensors();
    huge[..8].copy_from_slice(&(1u64 << 60).to_le_bytes());
    let mut beyond = samples::safetensors();
    beyond[..8].copy_from_slice(&(1u64 << 20).to_le_bytes());
    let many: Vec<String> = (0..70_000)
        .map(|i| format!(r#""{i}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1))
        .collect();
    let texts: Vec<String> = (0..70_000).map(|i| format!(r#""{i}":"""#)).collect();
    let million = vec!["1"; 1_000_000].join(",");
    all_refused(
        safetensors,
        [
            ("empty file", vec![], "header length (at byte 0) needs 8 bytes"),
            ("header length", huge, "header length (at byte 0) 1152921504606846976 is above"),
            ("header beyond the file", beyond, "header (at byte 8) needs 1048576"),
            ("no JSON", raw("GGUF", 0), "not a safetensors file"),
            ("empty header", raw("", 0), "not a safetensors file"),
            ("list", raw("{]", 0), "JSON header (at byte 9)"),
            ("text behind the header", raw("{} x", 0), "trailing characters"),
            ("nesting", raw(&format!(r#"{{"t":{{"x":{}"#, "[".repeat(100_000)), 0), "cut short"),
            ("not a map", raw(r#"{"t":[]}"#, 0), "expected a tensor"),
            ("no dtype", raw(r#"{"t":{"shape":[1],"data_offsets":[0,4]}}"#, 4), "missing field `dtype`"),
            ("no shape", tensor(r#""data_offsets":[0,4]"#, 4), "missing field `shape`"),
            ("no offsets", tensor(r#""shape":[1]"#, 4), "missing field `data_offsets`"),
            (
                "dtype twice",
                tensor(r#""dtype":"F32","shape":[1],"data_offsets":[0,4]"#, 4),
                "`dtype` is there twice",
            ),
            ("dtype that is none", raw(r#"{"t":{"dtype":"Q9"}}"#, 0), "dtype `Q9` is not known"),
            ("empty name", raw(r#"{"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, 4), "is empty"),
            (
                "long name",
                raw(&format!(r#"{{"{}":1}}"#, "n".repeat(70_000)), 0),
                "tensor name (at byte 8) 70000",
            ),
            (
                "name twice",
                raw(
                    r#"{"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"t":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
                    2,
                ),
                "tensor `t` (at byte 8) is there twice",
            ),
            (
                "dimension 0",
                tensor(r#""shape":[3,0],"data_offsets":[0,0]"#, 0),
                "shape of tensor `t` (at byte 9) has an impossible shape [3, 0]",
            ),
            ("dimension -1", tensor(r#""shape":[-1],"data_offsets":[0,4]"#, 4), "invalid value"),
            ("dimension 1.5", tensor(r#""shape":[1.5],"data_offsets":[0,4]"#, 4), "invalid type"),
            (
                "dimension 2^42+1",
                tensor(r#""shape":[4398046511105],"data_offsets":[0,4]"#, 4),
                "call for 17592186044420",
            ),
            (
                "dimensions that overflow",
                tensor(r#""shape":[4294967296,4294967296],"data_offsets":[0,4]"#, 4),
                "impossible shape",
            ),
            (
                "a million dimensions",
                tensor(&format!(r#""shape":[{million}],"data_offsets":[0,4]"#), 4),
                "at most 8 whole numbers",
            ),
            (
                "offset past the end",
                tensor(r#""shape":[2],"data_offsets":[0,8]"#, 4),
                "data after the header",
            ),
            (
                "offset that overflows",
                tensor(r#""shape":[2],"data_offsets":[0,18446744073709551615]"#, 4),
                "data after the header",
            ),
            (
                "offset too large for 64 bits",
                tensor(r#""shape":[2],"data_offsets":[0,18446744073709551616]"#, 4),
                "invalid",
            ),
            ("offsets reversed", tensor(r#""shape":[1],"data_offsets":[4,0]"#, 4), "not a start and an end"),
            ("one offset", tensor(r#""shape":[1],"data_offsets":[4]"#, 4), "not a start and an end"),
            ("three offsets", tensor(r#""shape":[1],"data_offsets":[0,4,4]"#, 4), "at most 2 whole numbers"),
            ("gap", tensor(r#""shape":[1],"data_offsets":[4,8]"#, 8), "0 is the next free byte"),
            ("data left over", raw(&format!("{{{member}}}"), 8), "has 8 bytes"),
            (
                "overlap",
                raw(&format!(r#"{{{member},"u":{{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}}}"#), 4),
                "start at 3",
            ),
            ("shape and offsets", tensor(r#""shape":[2],"data_offsets":[0,4]"#, 4), "call for 8"),
            ("metadata not text", raw(r#"{"__metadata__":{"a":1}}"#, 0), "expected a string"),
            ("metadata twice", raw(r#"{"__metadata__":{},"__metadata__":{}}"#, 0), "twice"),
            ("metadata key twice", raw(r#"{"__metadata__":{"a":"","a":""}}"#, 0), "`a` is there twice"),
            ("too many tensors", raw(&format!("{{{}}}", many.join(",")), 70_000), "number of tensors"),
            (
                "too much metadata",
                raw(&format!(r#"{{"__metadata__":{{{}}}}}"#, texts.join(",")), 0),
                "invalid length",
            ),
            (
                // Quotes that nearly repeat the name: looking for its place must not cost their product.
                "a name of quotes",
                raw(
                    &format!(
                        r#"{{"t":{{"x":"{0}","dtype":"U8","shape":[1],"data_offsets":[0,1]}},"{1}":{{"dtype":"U8","shape":[2],"data_offsets":[1,2]}}}}"#,
                        r#"\""#.repeat(4_000_000),
                        r#"\""#.repeat(30_000),
                    ),
                    2,
                ),
                "call for 2",
            ),
            ("bad text", raw("{\"\\ud800\":1}", 0), "JSON header"),
        ],
    );
}
