//! `repartee check`.

use anyhow::Result;
use clap::Args;
use repartee_engine::backends::cpu::{Cpu, CpuOptions};

use crate::check::{MODELS, check, table};

/// Compares each model with its stored reference.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Models to compare; all when none is named.
    models: Vec<String>,
}

#[expect(clippy::print_stdout, reason = "the command's output")]
pub(crate) fn run(args: CheckArgs) -> Result<()> {
    let backend = Cpu::new(CpuOptions::default());
    let names = if args.models.is_empty() { MODELS.map(String::from).to_vec() } else { args.models };
    let mut misses = 0;
    for name in &names {
        let rows = check(name, &backend)?;
        print!("{}", table(&rows));
        misses += rows.iter().filter(|r| !r.passes()).count();
    }
    anyhow::ensure!(misses == 0, "{misses} comparisons miss their limits");
    Ok(())
}
