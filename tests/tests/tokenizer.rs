//! Tokenizers and chat templates of the published files against llama.cpp and Hugging Face `tokenizers`.

use std::sync::OnceLock;

use proptest::prelude::*;
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::text::chat::{ChatOptions, ChatTemplate, Message, Role};
use repartee_engine::text::tokenizer::{Special, TokenKind, Tokenizer};
use repartee_tests::references::{Reference, model_file};
use serde_json::Value;

const WHISPER: [&str; 2] = ["whisper-base", "whisper-tiny.en"];

/// Model, its file in the cache, its file in the reference's stamp.
const LLAMA: [[&str; 3]; 2] = [
    ["qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen2.5-coder-0.5b-instruct.gguf"],
    ["smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2-135m-instruct.q4_1.gguf"],
];

fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().expect("a list of ids");
    list.iter().map(|id| u32::try_from(id.as_u64().expect("an id")).expect("an id")).collect()
}

/// A language model's tokenizer and chat template, read once, with their reference.
struct Llama {
    model: &'static str,
    reference: Reference,
    tokenizer: Tokenizer,
    template: ChatTemplate,
}

fn llamas() -> &'static [Llama] {
    static LLAMAS: OnceLock<Vec<Llama>> = OnceLock::new();
    LLAMAS.get_or_init(|| {
        let load = |[model, file, weight]: [&'static str; 3]| {
            let reference = Reference::load(&format!("{model}.json"));
            let gguf = Gguf::open(reference.model_file(weight, model, file)).unwrap();
            let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
            let template =
                ChatTemplate::new(gguf.str("tokenizer.chat_template").unwrap(), &tokenizer).unwrap();
            Llama { model, reference, tokenizer, template }
        };
        LLAMA.map(load).into()
    })
}

fn messages(value: &Value) -> Vec<Message> {
    let message = |value: &Value| {
        let role = match value["role"].as_str().unwrap() {
            "system" => Role::System,
            "user" => Role::User,
            _ => Role::Assistant,
        };
        Message::new(role, value["content"].as_str().unwrap())
    };
    value.as_array().unwrap().iter().map(message).collect()
}

fn is_control(tokenizer: &Tokenizer, id: u32) -> bool {
    tokenizer.kind(id) == Some(TokenKind::Control)
}

#[test]
fn llama_strings_have_the_ids_of_llama_cpp() {
    for Llama { model, reference, tokenizer, .. } in llamas() {
        let strings = reference.content["tokenizer"].as_array().unwrap();
        assert!(strings.len() >= 100);
        for string in strings {
            let text = string["text"].as_str().unwrap();
            let plain = tokenizer.encode(text, Special::AsText);
            assert_eq!(plain, ids(&string["plain"]), "{model}, as text: {text:?}");
            assert_eq!(
                tokenizer.encode(text, Special::Parse),
                ids(&string["special"]),
                "{model}, parsed: {text:?}"
            );
            assert!(!plain.iter().any(|&id| is_control(tokenizer, id)), "{model}: {text:?}");
        }
        for prompt in reference.content["prompts"].as_array().unwrap() {
            let text = prompt["text"].as_str().unwrap();
            assert_eq!(tokenizer.encode(text, Special::Parse), ids(&prompt["ids"]), "{model}: {text:?}");
        }
    }
}

#[test]
fn conversations_have_the_text_and_ids_of_the_references() {
    for Llama { model, reference, tokenizer, template } in llamas() {
        let options = ChatOptions::default();
        let chats = reference.content["chat"].as_object().unwrap();
        assert!(chats.len() >= 5);
        for (name, chat) in chats {
            let messages = messages(&chat["messages"]);
            let prompt = template.render(&messages, &options).unwrap();
            assert_eq!(prompt, chat["prompt"].as_str().unwrap(), "{model}: {name}");
            // The reference's own ids take control tokens in messages for real ones.
            assert_eq!(tokenizer.encode(&prompt, Special::Parse), ids(&chat["ids"]), "{model}: {name}");
            let encoded = template.encode(tokenizer, &messages, &options).unwrap();
            assert_eq!(encoded, ids(&chat["plain_content_ids"]), "{model}: {name}");
        }
    }
}

#[test]
fn a_conversation_keeps_its_prefix_as_it_grows() {
    for Llama { model, reference, tokenizer, template } in llamas() {
        let messages = messages(&reference.content["chat"]["many_turns"]["messages"]);
        let closed = ChatOptions { add_generation_prompt: false, ..ChatOptions::default() };
        let mut before = Vec::new();
        for n in (2..=messages.len()).step_by(2) {
            let next = template.continue_from(&before, tokenizer, &messages[..n], &closed).unwrap();
            assert_eq!(next.keep, before.len(), "{model} at {n} messages");
            let asked = template
                .continue_from(&next.ids, tokenizer, &messages[..n], &ChatOptions::default())
                .unwrap();
            assert_eq!(asked.keep, next.ids.len(), "{model}: the prompt of message {n} only adds");
            before = next.ids;
        }
    }
}

#[test]
fn replies_end_where_llama_cpp_ends_them() {
    let names = |llama: &Llama| -> Vec<String> {
        let name = |&id: &u32| String::from_utf8(llama.tokenizer.token_bytes(id).unwrap().to_vec()).unwrap();
        llama.tokenizer.end_of_generation().iter().map(name).collect()
    };
    // What llama.cpp prints as EOG tokens when it loads these files.
    let [qwen, smollm] = llamas() else { unreachable!() };
    assert_eq!(
        names(qwen),
        ["</s>", "<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
    );
    assert_eq!(names(smollm), ["<|endoftext|>", "<|im_end|>", "<reponame>"]);
}

#[test]
fn a_megabyte_of_anything_is_encoded() {
    let size = 1 << 20;
    for Llama { model, tokenizer, .. } in llamas() {
        for unit in [" ", "\n", "a", "1", "é", "\u{3000}", "<|im_end|>", " word", "日本", "'", "\r\n "] {
            let text = unit.repeat(size / unit.len());
            let ids = tokenizer.encode(&text, Special::AsText);
            assert!(ids.len() <= text.len(), "{model}: {unit:?}");
            assert_eq!(tokenizer.decode(&ids).unwrap(), text, "{model}: {unit:?}");
            assert!(!ids.iter().any(|&id| is_control(tokenizer, id)), "{model}: {unit:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_comes_back(text in any::<String>()) {
        for Llama { model, tokenizer, .. } in llamas() {
            let ids = tokenizer.encode(&text, Special::AsText);
            prop_assert!(!ids.iter().any(|&id| is_control(tokenizer, id)));
            // SmolLM2's vocabulary lacks some bytes; llama.cpp leaves them out as well.
            if *model != "smollm2-135m" {
                prop_assert_eq!(tokenizer.decode(&ids).unwrap(), text.as_str());
            }
        }
    }

    #[test]
    fn messages_hold_no_control_tokens(parts in prop::collection::vec(
        prop_oneof!["<\\|im_(start|end)\\|>", "</s>", "<\\|endoftext\\|>", "<\\|im_", "\\|>", "\\PC{0,8}", "[ \n]{0,3}"],
        0..8,
    )) {
        for Llama { tokenizer, template, .. } in llamas() {
            let count = |text: &str| {
                let messages = [Message::new(Role::User, text)];
                let ids = template.encode(tokenizer, &messages, &ChatOptions::default()).unwrap();
                ids.iter().filter(|&&id| is_control(tokenizer, id)).count()
            };
            prop_assert_eq!(count(&parts.concat()), count("Hi"));
        }
    }
}

fn whisper(model: &str) -> (Reference, Tokenizer) {
    let reference = Reference::load(&format!("{model}-tokens.json"));
    let path = reference.model_file(&format!("{model}/tokenizer.json"), model, "tokenizer.json");
    (reference, Tokenizer::from_tokenizer_json(&std::fs::read(path).unwrap()).unwrap())
}

#[test]
fn whisper_decodes_as_the_reference() {
    for model in WHISPER {
        let (reference, tokenizer) = whisper(model);
        let strings = reference.content["tokenizer"].as_array().unwrap();
        assert!(strings.len() >= 100);
        for string in strings {
            let special = ids(&string["special"]);
            assert_eq!(tokenizer.decode(&special).unwrap(), string["decoded"].as_str().unwrap(), "{model}");
            // The multilingual file lacks its first merge rule, so that only the English one can be asked to encode;
            // it lacks the timestamp tokens, so that the reference takes them for text.
            let text = string["text"].as_str().unwrap();
            if model == "whisper-tiny.en" && !text.contains("<|0.00|>") {
                let plain = tokenizer.encode(text, Special::AsText);
                assert_eq!(plain, ids(&string["plain"]), "{model}: {text:?}");
                assert_eq!(tokenizer.encode(text, Special::Parse), special, "{model}: {text:?}");
            }
        }
    }
}

#[test]
fn whisper_vocabularies_name_the_columns_of_the_output() {
    for model in WHISPER {
        let (_, tokenizer) = whisper(model);
        let vocabulary = std::fs::read_to_string(model_file(model, "vocabulary.txt")).unwrap();
        let columns: Vec<&str> = vocabulary.lines().collect();
        // The tokenizer's own file ends before the timestamps, every 20 ms from 0 to 30 s.
        let (named, timestamps) = columns.split_at(tokenizer.vocabulary_size());
        assert_eq!(timestamps.len(), 1501, "{model}");
        assert!(timestamps[0] == "<|0.00|>" && timestamps[1500] == "<|30.00|>", "{model}");
        for (id, name) in (0u32..).zip(named).filter(|(_, name)| name.starts_with("<|")) {
            assert_eq!(tokenizer.token_bytes(id), Some(name.as_bytes()), "{model}");
            assert_eq!(tokenizer.kind(id), Some(TokenKind::Control), "{model}: {name}");
        }
    }
}
