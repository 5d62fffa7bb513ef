//! Whisper in the layout of the hub, on small files: the same weights in CTranslate2's layout give the same numbers.

use std::path::Path;

use repartee_engine::backends::cpu::{Cpu, CpuOptions};
use repartee_engine::formats::TensorType;
use repartee_engine::formats::testing::{Ct2Writer, SafeTensorsWriter};
use repartee_engine::models::whisper::Whisper;
use serde_json::json;

const WIDTH: usize = 64;
const FEED_FORWARD: usize = 96;
const VOCABULARY: usize = 265;

/// Random weights that go into both files, each under its own name.
struct Twins {
    ct2: Ct2Writer,
    hub: SafeTensorsWriter,
    state: u32,
}

impl Twins {
    fn new() -> Self {
        Self { ct2: Ct2Writer::new(6, "WhisperSpec", 3), hub: SafeTensorsWriter::new(), state: 7 }
    }

    fn random(&mut self, shape: &[usize]) -> Vec<f32> {
        let scale = (*shape.last().expect("a dimension") as f32).sqrt().recip();
        let mut next = || {
            self.state = self.state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            scale * ((self.state >> 8) as f32 / 8_388_608.0 - 1.0)
        };
        (0..shape.iter().product()).map(|_| next()).collect()
    }

    fn same(&mut self, ours: &str, theirs: &str, shape: &[usize]) {
        let values = self.random(shape);
        self.ct2.tensor_f32(ours, TensorType::F32, shape, &values);
        self.hub.tensor_f32(theirs, TensorType::F32, shape, &values);
    }

    fn module(&mut self, ours: &str, theirs: &str, shape: &[usize]) {
        self.same(&format!("{ours}/weight"), &format!("{theirs}.weight"), shape);
        self.same(&format!("{ours}/bias"), &format!("{theirs}.bias"), &shape[..1]);
    }

    fn norm(&mut self, ours: &str, theirs: &str) {
        self.same(&format!("{ours}/gamma"), &format!("{theirs}.weight"), &[WIDTH]);
        self.same(&format!("{ours}/beta"), &format!("{theirs}.bias"), &[WIDTH]);
    }

    /// Projections apart on the hub and stacked in CTranslate2; k has no bias on the hub and zeros there.
    fn stacked(&mut self, ours: &str, theirs: &str, parts: &[&str]) {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        for part in parts {
            let weight = self.random(&[WIDTH, WIDTH]);
            self.hub.tensor_f32(
                &format!("{theirs}.{part}_proj.weight"),
                TensorType::F32,
                &[WIDTH, WIDTH],
                &weight,
            );
            weights.extend(weight);
            if *part == "k" {
                biases.extend([0.0; WIDTH]);
            } else {
                let bias = self.random(&[WIDTH]);
                self.hub.tensor_f32(&format!("{theirs}.{part}_proj.bias"), TensorType::F32, &[WIDTH], &bias);
                biases.extend(bias);
            }
        }
        let rows = parts.len() * WIDTH;
        self.ct2.tensor_f32(&format!("{ours}/weight"), TensorType::F32, &[rows, WIDTH], &weights);
        self.ct2.tensor_f32(&format!("{ours}/bias"), TensorType::F32, &[rows], &biases);
    }

    fn half(&mut self, half: &str, positions: usize, layers: usize) {
        let root = format!("model.{half}");
        self.same(
            &format!("{half}/position_encodings/encodings"),
            &format!("{root}.embed_positions.weight"),
            &[positions, WIDTH],
        );
        self.norm(&format!("{half}/layer_norm"), &format!("{root}.layer_norm"));
        for layer in 0..layers {
            let (ours, theirs) = (format!("{half}/layer_{layer}"), format!("{root}.layers.{layer}"));
            let [our, their] =
                [&ours, &theirs].map(|base| move |part: &str, dot: &str| format!("{base}{dot}{part}"));
            self.norm(&our("self_attention/layer_norm", "/"), &their("self_attn_layer_norm", "."));
            self.stacked(&our("self_attention/linear_0", "/"), &their("self_attn", "."), &["q", "k", "v"]);
            self.module(
                &our("self_attention/linear_1", "/"),
                &their("self_attn.out_proj", "."),
                &[WIDTH, WIDTH],
            );
            if half == "decoder" {
                self.norm(&our("attention/layer_norm", "/"), &their("encoder_attn_layer_norm", "."));
                self.module(
                    &our("attention/linear_0", "/"),
                    &their("encoder_attn.q_proj", "."),
                    &[WIDTH, WIDTH],
                );
                self.stacked(&our("attention/linear_1", "/"), &their("encoder_attn", "."), &["k", "v"]);
                self.module(
                    &our("attention/linear_2", "/"),
                    &their("encoder_attn.out_proj", "."),
                    &[WIDTH, WIDTH],
                );
            }
            self.norm(&our("ffn/layer_norm", "/"), &their("final_layer_norm", "."));
            self.module(&our("ffn/linear_0", "/"), &their("fc1", "."), &[FEED_FORWARD, WIDTH]);
            self.module(&our("ffn/linear_1", "/"), &their("fc2", "."), &[WIDTH, FEED_FORWARD]);
        }
    }
}

/// A byte-level vocabulary with Whisper's control tokens.
fn tokenizer() -> serde_json::Value {
    let plain = |b: u32| (33..127).contains(&b) || (161..173).contains(&b) || (174..256).contains(&b);
    let mut other = 256..;
    let letters = (0..256_u32).map(|b| if plain(b) { b } else { other.next().expect("a letter") });
    let letters = letters.map(|c| char::from_u32(c).expect("a letter").to_string());
    let vocab: serde_json::Map<_, _> = letters.enumerate().map(|(i, letter)| (letter, json!(i))).collect();
    let control = [
        "<|endoftext|>",
        "<|startoftranscript|>",
        "<|en|>",
        "<|de|>",
        "<|translate|>",
        "<|transcribe|>",
        "<|startofprev|>",
        "<|nospeech|>",
        "<|notimestamps|>",
    ];
    let added = control.iter().enumerate().map(|(i, token)| {
        json!({"id": 256 + i, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
               "normalized": false, "special": true})
    });
    let pre =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let model = json!({"type": "BPE", "vocab": vocab, "merges": []});
    json!({"version": "1.0", "added_tokens": added.collect::<Vec<_>>(), "normalizer": null, "pre_tokenizer": pre,
           "model": model})
}

fn numbers(whisper: &mut Whisper, clip: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let mel = whisper.log_mel(clip, 4 * clip.len());
    let mut encoded = Vec::new();
    whisper.encode(&mel, Some(&mut encoded), None).expect("an encoded clip");
    (encoded, whisper.forced_logits("de", &[10, 20, 30]).expect("logits"))
}

#[test]
fn hub_files_equal_ctranslate2_files() {
    let mut twins = Twins::new();
    twins.module("encoder/conv1", "model.encoder.conv1", &[WIDTH, 80, 3]);
    twins.module("encoder/conv2", "model.encoder.conv2", &[WIDTH, WIDTH, 3]);
    twins.half("encoder", 1500, 2);
    twins.same("decoder/embeddings/weight", "model.decoder.embed_tokens.weight", &[VOCABULARY, WIDTH]);
    twins.half("decoder", 448, 3);
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(folder.path().join(name), bytes).expect("a file");
    };
    write("model.bin", &twins.ct2.finish());
    write("model.safetensors", &twins.hub.finish());
    write("tokenizer.json", tokenizer().to_string().as_bytes());
    let lists = json!({"suppress_ids": [7, 8], "suppress_ids_begin": [220, 256], "lang_ids": [258, 259]});
    write("config.json", lists.to_string().as_bytes());
    let lists = json!({"suppress_tokens": [7, 8], "begin_suppress_tokens": [220, 256],
                       "lang_to_id": {"<|de|>": 259, "<|en|>": 258}, "no_timestamps_token_id": 264,
                       "return_timestamps": false, "task_to_id": {"transcribe": 261, "translate": 260}});
    write("generation_config.json", lists.to_string().as_bytes());

    let backend = Cpu::new(CpuOptions::default());
    let load = |weights: &str, config: &str| {
        let path = |name: &str| folder.path().join(name);
        Whisper::load(path(weights), path("tokenizer.json"), path(config), &backend)
    };
    let mut ct2 = load("model.bin", "config.json").expect("the CTranslate2 file");
    let mut hub = load("model.safetensors", "generation_config.json").expect("the hub's file");
    assert_eq!(hub.config(), ct2.config());
    assert_eq!(hub.config().decoder_layers, 3);
    let lists = |w: &Whisper| {
        let mut languages = w.special().languages.clone();
        languages.sort();
        (languages, w.special().suppress.clone(), w.special().suppress_first.clone())
    };
    assert_eq!(lists(&hub), lists(&ct2));
    assert_eq!(lists(&hub).0, [("de".to_owned(), 259), ("en".to_owned(), 258)]);
    let clip: Vec<f32> = (0..8_000).map(|i| (i as f32 * 0.05).sin() * (i as f32 * 0.000_3).cos()).collect();
    let (expected, got) = (numbers(&mut ct2, &clip), numbers(&mut hub, &clip));
    assert!(expected.1.iter().all(|x| x.is_finite()) && expected.1.iter().any(|x| x.abs() > 0.1));
    assert_eq!(got, expected);
}

#[test]
fn hub_files_with_parts_missing_name_them() {
    let mut hub = SafeTensorsWriter::new();
    hub.tensor_f32("model.encoder.layers.0.self_attn.q_proj.weight", TensorType::F32, &[2, 2], &[0.0; 4]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("model.safetensors"), hub.finish()).expect("a file");
    std::fs::write(path("tokenizer.json"), tokenizer().to_string()).expect("a file");
    std::fs::write(path("config.json"), "{}").expect("a file");
    let backend = Cpu::new(CpuOptions::default());
    let result =
        Whisper::load(path("model.safetensors"), path("tokenizer.json"), path("config.json"), &backend);
    let error = result.err().expect("a refusal").to_string();
    assert!(error.contains("self_attn.q_proj.bias"), "{error}");
    let missing =
        Whisper::load(Path::new("none.safetensors"), path("tokenizer.json"), path("config.json"), &backend);
    assert!(missing.err().expect("a refusal").to_string().contains("none.safetensors"));
}
