//! CTranslate2: every variable as a tensor and as a number, every alias.
#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use repartee_engine::formats::ctranslate2::Ct2;
use repartee_engine::formats::{TensorSource, testing};

fuzz_target!(|bytes: &[u8]| {
    let Ok(model) = Ct2::from_bytes(bytes.to_vec()) else { return };
    black_box(testing::touch(&model));
    for name in model.names() {
        let _ = black_box((model.integer(&name), model.scale(&name)));
    }
    for (alias, variable) in model.aliases() {
        assert_eq!(model.tensor(alias).is_ok(), model.tensor(variable).is_ok());
        let _ = black_box((model.integer(alias), model.scale(alias)));
    }
});
