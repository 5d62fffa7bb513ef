//! `repartee check`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::setup::{self, BackendName};
use crate::check::{MODELS, Row, check, check_file, table};
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
    /// A language model of your own in place of these: what the backend computes beside what the processor does.
    #[arg(long, value_name = "GGUF", conflicts_with = "models")]
    model_file: Option<PathBuf>,
}

pub(crate) fn run(args: CheckArgs) -> Result<()> {
    let names = if args.models.is_empty() { MODELS.map(String::from).to_vec() } else { args.models };
    if let Some(wrong) = names.iter().find(|name| !MODELS.contains(&name.as_str())) {
        return Err(WrongUsage::error(format!(
            "there is no reference for {wrong}; choose from {}",
            MODELS.join(", ")
        )));
    }
    if args.model_file.is_some() && matches!(args.backend, BackendName::Auto | BackendName::Cpu) {
        let message =
            "a file is compared with what the processor makes of it: choose another backend with `--backend`";
        return Err(WrongUsage::error(message));
    }
    let backend = setup::backend(args.backend)?;
    let mut misses = 0;
    let mut show = |rows: Vec<Row>| {
        out!("{}", table(&rows).trim_end());
        misses += rows.iter().filter(|r| !r.passes()).count();
    };
    match &args.model_file {
        Some(path) => show(check_file(path, backend.as_ref())?),
        None => {
            for name in &names {
                show(check(name, backend.as_ref())?);
            }
        }
    }
    anyhow::ensure!(misses == 0, "{misses} comparisons miss their limits");
    Ok(())
}
