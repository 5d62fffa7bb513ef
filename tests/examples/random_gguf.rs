//! Writes a language model of random weights: `random_gguf FILE [SEED] [qwen2.5-0.5b | small]`.
//!
//! For machines that have no models: `repartee bench --model-file FILE` times it, and `repartee check --model-file FILE
//! --backend wgpu` compares what a GPU computes with what the processor does.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the output of a tool for the terminal")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;

use repartee_tests::random_model::{QWEN2_5_0_5B, SMALL, Shape, write};

fn parse(args: &[String]) -> Option<(&str, u64, &'static Shape)> {
    let [file, rest @ ..] = args else { return None };
    let seed = rest.first().map_or(Some(0), |seed| seed.parse().ok())?;
    let shape = match rest.get(1).map(String::as_str) {
        None | Some("qwen2.5-0.5b") => &QWEN2_5_0_5B,
        Some("small") => &SMALL,
        Some(_) => return None,
    };
    (rest.len() <= 2).then_some((file, seed, shape))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((file, seed, shape)) = parse(&args) else {
        eprintln!("usage: random_gguf FILE [SEED] [qwen2.5-0.5b | small]");
        return ExitCode::from(2);
    };
    let made = File::create(file).and_then(|made| {
        let mut to = BufWriter::with_capacity(1 << 20, made);
        write(shape, seed, &mut to)?;
        to.flush()?;
        to.get_ref().metadata()
    });
    match made {
        Ok(metadata) => {
            println!("{file}: {}, seed {seed}, {} bytes", shape.name, metadata.len());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
