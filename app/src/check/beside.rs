//! A language model that has no reference: what a backend computes beside what the processor does, from the same file.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use repartee_engine::backends::Backend;
use repartee_engine::backends::cpu::{Cpu, CpuOptions, InstructionSet};
use repartee_engine::formats::gguf::Gguf;
use repartee_engine::models::llama::{Llama, LlamaOptions, Sampling};
use repartee_engine::text::tokenizer::Special;

use super::Row;
use super::llama::best;

/// Tokens of the prompt, and tokens that are written behind it.
const PROMPT: usize = 48;
const WRITTEN: usize = 48;

/// How far the logits may be from the processor's, as a multiple of what another order of summing does there.
const LIMIT: f64 = 2.0;

/// The same for a processor with one instruction set, as a share of the logits' spread: what is usual elsewhere.
const USUAL: f64 = 0.05;

pub(super) fn check(path: &Path, backend: &dyn Backend) -> Result<Vec<Row>> {
    let name = path.file_stem().map_or("model".into(), |stem| stem.to_string_lossy());
    let file = Arc::new(Gguf::open(path)?);
    let load = |backend: &dyn Backend| {
        let loaded = Llama::load(&file, backend, LlamaOptions { context: 2 * (PROMPT + WRITTEN) });
        loaded.with_context(|| format!("cannot load {} on {}", path.display(), backend.name()))
    };
    let processor = Cpu::new(CpuOptions::default());
    let mut theirs = load(&processor)?;
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(PROMPT);
    let mut prompt = theirs.tokenizer().encode(&text, Special::AsText);
    prompt.truncate(PROMPT);
    let expected = write(&mut theirs, &prompt)?;
    let truth = logits(&mut theirs, &prompt, &expected)?;
    drop(theirs);
    // Integer products are exact everywhere. What is summed in another order moves an activation over the border of an
    // integer now and then, and how much that does depends on the model: the processor's plainest kernels tell.
    let plainest = InstructionSet::available()[0];
    let options = CpuOptions { instruction_set: Some(plainest), ..CpuOptions::default() };
    let other = Cpu::new(options);
    let usual = if other.name() == processor.name() {
        USUAL
    } else {
        Distance::between(&truth, &logits(&mut load(&other)?, &prompt, &expected)?)?.share()
    };
    let mut ours = load(backend)?;
    let got = write(&mut ours, &prompt)?;
    let found = logits(&mut ours, &prompt, &expected)?;
    let distance = Distance::between(&truth, &found)?;

    let near = 4.0 * LIMIT * usual * distance.spread;
    let margins: Vec<f64> = truth.iter().map(|logits| margin(logits)).collect();
    let agrees: Vec<bool> = truth.iter().zip(&found).map(|(a, b)| best(a) == best(b)).collect();
    let clear = margins.iter().filter(|&&margin| margin > near).count();
    let wrong = margins.iter().zip(&agrees).filter(|&(&margin, &agrees)| margin > near && !agrees).count();
    let same = expected.iter().zip(&got).take_while(|(a, b)| a == b).count();
    let parts_clearly = margins.get(same).is_some_and(|&margin| margin > near);
    let note = format!(
        "root mean square, as a share of their spread; largest {:.3} of {:.3}; {} is {usual:.4} away",
        distance.largest,
        distance.spread,
        other.name()
    );
    let same_choices = agrees.iter().filter(|&&agrees| agrees).count();
    let choices = format!("{clear} of {WRITTEN} have a margin above {near:.3}; {same_choices} of all agree");
    let text = format!("the first {same} of {WRITTEN} written tokens are the same");
    Ok(vec![
        Row::new(&name, "logits beside the processor's", distance.share(), LIMIT * usual).note(note),
        Row::new(&name, "clear choices that differ", wrong as f64, 0.0).note(choices),
        Row::new(&name, "texts that part at a clear choice", f64::from(u8::from(parts_clearly)), 0.0)
            .note(text),
    ])
}

/// How far logits are from others.
struct Distance {
    /// Root mean square of the distance.
    rms: f64,
    largest: f64,
    /// Standard deviation of the logits of a position.
    spread: f64,
}

impl Distance {
    fn between(truth: &[Vec<f32>], found: &[Vec<f32>]) -> Result<Self> {
        let (mut squares, mut variance, mut largest, mut count) = (0.0, 0.0, 0.0_f64, 0);
        for (a, b) in truth.iter().zip(found) {
            anyhow::ensure!(a.len() == b.len() && !a.is_empty(), "{} logits beside {}", b.len(), a.len());
            let mean = a.iter().map(|&x| f64::from(x)).sum::<f64>() / a.len() as f64;
            variance += a.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>();
            squares += a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
            largest = largest.max(super::largest_difference(a, b));
            count += a.len();
        }
        let root = |sum: f64| (sum / count as f64).sqrt();
        Ok(Self { rms: root(squares), largest, spread: root(variance) })
    }

    fn share(&self) -> f64 {
        self.rms / self.spread
    }
}

/// How far the largest logit is above the next.
fn margin(logits: &[f32]) -> f64 {
    let choice = best(logits);
    let others = logits.iter().enumerate().filter(|(i, _)| *i != choice).map(|(_, &x)| x);
    f64::from(logits[choice] - others.fold(f32::NEG_INFINITY, f32::max))
}

/// Logits in front of each of the tokens behind a prompt.
fn logits(llama: &mut Llama, prompt: &[u32], behind: &[u32]) -> Result<Vec<Vec<f32>>> {
    let mut tokens = prompt.to_vec();
    let mut all = Vec::new();
    for &token in behind {
        let mut logits = Vec::new();
        llama.logits(&tokens, &mut logits)?;
        all.push(logits);
        tokens.push(token);
    }
    Ok(all)
}

/// Greedy tokens behind a prompt, drawn by the model's own loop; nothing ends them.
fn write(llama: &mut Llama, prompt: &[u32]) -> Result<Vec<u32>> {
    let mut tokens = vec![llama.begin(prompt, &Sampling::default(), &[], None)?];
    while tokens.len() < WRITTEN {
        tokens.push(llama.next(None)?.context("the model stopped without a stop token")?);
    }
    Ok(tokens)
}
