//! `cargo xtask bench`: the criterion benchmarks.

use anyhow::Result;
use clap::Args;

use crate::workspace::{cargo, execute};

#[derive(Args)]
pub(crate) struct Options {
    /// Only the benchmarks whose name contains this
    filter: Option<String>,
    /// Compares with the results saved under this name, which stay as they are
    #[arg(long)]
    baseline: Option<String>,
    /// Saves the results under this name
    #[arg(long, conflicts_with = "baseline")]
    save_baseline: Option<String>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut bench = cargo(["bench", "--workspace", "--all-features", "--bench", "*", "--"]);
    bench.args(&options.filter);
    if let Some(name) = &options.baseline {
        bench.args(["--baseline", name]);
    }
    if let Some(name) = &options.save_baseline {
        bench.args(["--save-baseline", name]);
    }
    execute(&mut bench)
}
