//! `repartee check`.

use anyhow::Result;
use clap::Args;

use super::setup::{self, BackendName};
use crate::check::{MODELS, check, table};
use crate::printing::out;
use crate::usage::WrongUsage;

/// Compares each model with its stored reference.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Models to compare; all when none is named.
    models: Vec<String>,
    /// What computes.
    #[arg(long, value_enum, default_value_t = BackendName::Auto)]
    backend: BackendName,
}

pub(crate) fn run(args: CheckArgs) -> Result<()> {
    let names = if args.models.is_empty() { MODELS.map(String::from).to_vec() } else { args.models };
    if let Some(wrong) = names.iter().find(|name| !MODELS.contains(&name.as_str())) {
        return Err(WrongUsage::error(format!(
            "there is no reference for {wrong}; choose from {}",
            MODELS.join(", ")
        )));
    }
    let backend = setup::backend(args.backend)?;
    let mut misses = 0;
    for name in &names {
        let rows = check(name, backend.as_ref())?;
        out!("{}", table(&rows).trim_end());
        misses += rows.iter().filter(|r| !r.passes()).count();
    }
    anyhow::ensure!(misses == 0, "{misses} comparisons miss their limits");
    Ok(())
}
