//! Whisper's weights as OpenAI publishes them on the hub (`model.safetensors`), under CTranslate2's names.
//!
//! The hub keeps q, k and v apart and gives k no bias; CTranslate2 stacks their rows and has zeros there. The
//! stacked tensors are put together once when the file is opened; all others stay where the file has them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::formats::safetensors::SafeTensors;
use crate::formats::{FormatError, TensorSource, TensorType, TensorView};
use crate::models::ModelError;

/// The file and where each of CTranslate2's names is in it.
pub(super) struct HubWeights {
    file: SafeTensors,
    places: BTreeMap<String, Place>,
}

enum Place {
    /// A tensor of the file, by its name there.
    File(String),
    /// Rows of several tensors.
    Stacked { ty: TensorType, shape: Vec<usize>, data: Vec<u8> },
}

/// A layer's modules: CTranslate2's name, the hub's.
const ENCODER_MODULES: [(&str, &str); 3] =
    [("self_attention/linear_1", "self_attn.out_proj"), ("ffn/linear_0", "fc1"), ("ffn/linear_1", "fc2")];
const DECODER_MODULES: [(&str, &str); 2] =
    [("attention/linear_0", "encoder_attn.q_proj"), ("attention/linear_2", "encoder_attn.out_proj")];

impl HubWeights {
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        Self::new(SafeTensors::open(path)?)
    }

    pub(super) fn new(file: SafeTensors) -> Result<Self, ModelError> {
        let names = file.names();
        // Files saved from the bare network lack the first part.
        let prefix = if names.iter().any(|n| n.starts_with("model.")) { "model." } else { "" };
        let mut hub = Self { file, places: BTreeMap::new() };
        for half in ["encoder", "decoder"] {
            let root = format!("{prefix}{half}");
            hub.alias(
                format!("{half}/position_encodings/encodings"),
                format!("{root}.embed_positions.weight"),
            );
            hub.norm(&format!("{half}/layer_norm"), &format!("{root}.layer_norm"));
            let has = |n: &usize| names.iter().any(|name| name.starts_with(&format!("{root}.layers.{n}.")));
            for layer in (0..256).take_while(has) {
                hub.layer(half, &format!("{half}/layer_{layer}"), &format!("{root}.layers.{layer}"))?;
            }
        }
        for conv in ["conv1", "conv2"] {
            hub.module(&format!("encoder/{conv}"), &format!("{prefix}encoder.{conv}"));
        }
        hub.alias("decoder/embeddings/weight".into(), format!("{prefix}decoder.embed_tokens.weight"));
        Ok(hub)
    }

    fn layer(&mut self, half: &str, ours: &str, theirs: &str) -> Result<(), ModelError> {
        self.norm(&format!("{ours}/self_attention/layer_norm"), &format!("{theirs}.self_attn_layer_norm"));
        self.norm(&format!("{ours}/ffn/layer_norm"), &format!("{theirs}.final_layer_norm"));
        for (our, their) in ENCODER_MODULES {
            self.module(&format!("{ours}/{our}"), &format!("{theirs}.{their}"));
        }
        self.stack(
            &format!("{ours}/self_attention/linear_0"),
            &format!("{theirs}.self_attn"),
            &["q", "k", "v"],
        )?;
        if half == "decoder" {
            self.norm(&format!("{ours}/attention/layer_norm"), &format!("{theirs}.encoder_attn_layer_norm"));
            for (our, their) in DECODER_MODULES {
                self.module(&format!("{ours}/{our}"), &format!("{theirs}.{their}"));
            }
            self.stack(
                &format!("{ours}/attention/linear_1"),
                &format!("{theirs}.encoder_attn"),
                &["k", "v"],
            )?;
        }
        Ok(())
    }

    fn alias(&mut self, ours: String, theirs: String) {
        self.places.insert(ours, Place::File(theirs));
    }

    fn module(&mut self, ours: &str, theirs: &str) {
        self.alias(format!("{ours}/weight"), format!("{theirs}.weight"));
        self.alias(format!("{ours}/bias"), format!("{theirs}.bias"));
    }

    fn norm(&mut self, ours: &str, theirs: &str) {
        self.alias(format!("{ours}/gamma"), format!("{theirs}.weight"));
        self.alias(format!("{ours}/beta"), format!("{theirs}.bias"));
    }

    /// Stacks the projections `parts` of an attention: weights, and biases with zeros for k.
    fn stack(&mut self, ours: &str, theirs: &str, parts: &[&str]) -> Result<(), ModelError> {
        let (mut weights, mut biases) = (Vec::new(), Vec::new());
        let first = self.file.tensor(&format!("{theirs}.{}_proj.weight", parts[0]))?;
        let &[rows, columns] = first.shape.as_slice() else {
            return Err(ModelError::config(first.name, format!("{:?}", first.shape), "needs two dimensions"));
        };
        let ty = first.ty;
        let float = matches!(ty, TensorType::F32 | TensorType::F16 | TensorType::BF16);
        for part in parts {
            for (suffix, shape, data) in
                [("weight", &[rows, columns][..], &mut weights), ("bias", &[rows], &mut biases)]
            {
                let name = format!("{theirs}.{part}_proj.{suffix}");
                if *part == "k" && suffix == "bias" {
                    data.resize(data.len() + rows * ty.block_bytes(), 0);
                    continue;
                }
                let tensor = self.file.tensor(&name)?.expect_shape(shape)?;
                if !float || tensor.ty != ty {
                    let problem = format!("must be floats of the same type as its neighbours, {ty}");
                    return Err(ModelError::config(name, tensor.ty, problem));
                }
                data.extend_from_slice(tensor.data);
            }
        }
        let rows = rows * parts.len();
        let weight = Place::Stacked { ty, shape: vec![rows, columns], data: weights };
        let bias = Place::Stacked { ty, shape: vec![rows], data: biases };
        self.places.insert(format!("{ours}/weight"), weight);
        self.places.insert(format!("{ours}/bias"), bias);
        Ok(())
    }
}

impl TensorSource for HubWeights {
    fn names(&self) -> Vec<String> {
        self.places.keys().cloned().collect()
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'_>, FormatError> {
        match self.places.get_key_value(name) {
            Some((name, Place::Stacked { ty, shape, data })) => {
                Ok(TensorView { name, ty: *ty, shape: shape.clone(), data, affine: None })
            }
            Some((_, Place::File(theirs))) => self.file.tensor(theirs),
            // The file's own error lists names that resemble this one.
            None => self.file.tensor(name),
        }
    }

    fn release(&self, name: &str) {
        if let Some(Place::File(theirs)) = self.places.get(name) {
            self.file.release(theirs);
        }
    }
}
