//! `cargo xtask bench`: the criterion benchmarks.

use anyhow::Result;

use crate::arguments::BenchOptions;
use crate::task::workspace::{cargo, execute};

pub(crate) fn run(options: &BenchOptions) -> Result<()> {
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
