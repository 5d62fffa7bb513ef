//! Tools of the phoneme tests: timings, the letter-to-sound error beside espeak-ng's, and trying a text.
//!
//! ```text
//! cargo run --release -p repartee-tests --bin phonemes -- say    LEXICON_DIR us "Some text."
//! cargo run --release -p repartee-tests --bin phonemes -- time   LEXICON_DIR us
//! cargo run --release -p repartee-tests --bin phonemes -- letters LEXICON_DIR us
//! ```
//!
//! LEXICON_DIR holds misaki's `us_gold.json`, `us_silver.json`, `gb_gold.json` and `gb_silver.json`. `letters` asks
//! `espeak-ng` (from the system's package of that name) for the same words and writes its phonemes in misaki's
//! alphabet the way misaki's own fallback does.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use repartee_engine::text::phonemes::{Accent, Lexicon, Phonemizer, Source};

mod espeak;
mod letters;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [command, folder, accent, rest @ ..] = args.as_slice() else {
        return Err("usage: phonemes say|time|letters LEXICON_DIR us|gb [TEXT]".into());
    };
    let accent = match accent.as_str() {
        "us" => Accent::American,
        "gb" => Accent::British,
        other => return Err(format!("{other}: the accent is us or gb").into()),
    };
    let folder = Path::new(folder);
    match command.as_str() {
        "time" => time(folder, accent),
        "letters" => letters::report(&load(folder, accent)?),
        "say" => {
            let phonemizer = Phonemizer::new(load(folder, accent)?)?;
            for text in rest {
                let said = phonemizer.phonemize(text);
                println!("{}", said.to_misaki_string());
                for token in
                    said.tokens.iter().filter(|t| t.source > Source::Silver && t.source != Source::Mark)
                {
                    println!("  {:?}: {} ({:?})", &text[token.text.clone()], token.phonemes, token.source);
                }
            }
            Ok(())
        }
        other => Err(format!("{other}: no such command").into()),
    }
}

fn read(folder: &Path, accent: Accent) -> Result<[Vec<u8>; 2], Box<dyn Error>> {
    let name = match accent {
        Accent::American => "us",
        Accent::British => "gb",
    };
    Ok([
        std::fs::read(folder.join(format!("{name}_gold.json")))?,
        std::fs::read(folder.join(format!("{name}_silver.json")))?,
    ])
}

fn load(folder: &Path, accent: Accent) -> Result<Lexicon, Box<dyn Error>> {
    let [gold, silver] = read(folder, accent)?;
    Ok(Lexicon::from_json(accent, &gold, &silver)?)
}

fn time(folder: &Path, accent: Accent) -> Result<(), Box<dyn Error>> {
    let [gold, silver] = read(folder, accent)?;
    let mut loads_ms: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            let lexicon = Lexicon::from_json(accent, &gold, &silver).expect("these files load");
            std::hint::black_box(lexicon.len());
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    loads_ms.sort_by(f64::total_cmp);
    println!("lexicon load: median {:.1} ms, min {:.1} ms", loads_ms[4], loads_ms[0]);
    Ok(())
}
