//! The step of `cargo xtask test` that runs each target on a fixed number of inputs, a few seconds of them,
//! from the seeds and the kept inputs.

use anyhow::Result;

use super::{NO_COMPILER, TARGETS, Target, fuzz_command, has_compiler, write_corpus};
use crate::task::steps::Steps;
use crate::task::workspace::{at_lowest_priority, execute, has_cargo_subcommand, on_all_processors};

const STEP: &str = "each fuzz target for a few seconds";

/// libFuzzer stops at the first input that takes too long or too much memory. These limits are far above the
/// needs of a busy machine: targets themselves compare their memory with the size of an input. The seed and
/// the number of inputs are fixed, so a failure is caused by a change, not by luck or a faster machine.
/// `cargo xtask fuzz` tries other inputs.
const LIMITS: [&str; 6] = [
    "-seed=1",
    "-max_total_time=120",
    "-timeout=300",
    "-rss_limit_mb=4096",
    "-verbosity=0",
    "-print_final_stats=1",
];

pub(crate) fn check(steps: &mut Steps) {
    if !has_cargo_subcommand("fuzz") {
        steps.not_run(
            STEP,
            "cargo-fuzz is not installed (cargo install cargo-fuzz --locked, a minute or two)",
        );
    } else if !has_compiler() {
        steps.not_run(STEP, NO_COMPILER);
    } else {
        steps.run(STEP, run_all);
    }
}

/// Builds the targets alongside other steps, at the lowest priority, if [`check`] can run them.
pub(crate) fn build(steps: &mut Steps) {
    if has_cargo_subcommand("fuzz") && has_compiler() {
        steps.run("build of the fuzz targets", || {
            execute(&mut at_lowest_priority(&fuzz_command("build", true)?))
        });
    }
}

fn run_all() -> Result<()> {
    execute(&mut fuzz_command("build", true)?)?;
    on_all_processors(&TARGETS, run)
}

fn run(target: &Target) -> Result<()> {
    // The corpus of `cargo xtask fuzz` may have grown large here.
    let corpus = tempfile::tempdir()?;
    write_corpus(target, corpus.path())?;
    let mut run = fuzz_command("run", true)?;
    let runs = format!("-runs={}", target.brief_runs);
    execute(run.arg(target.name).arg(corpus.path()).arg("--").args(LIMITS).arg(runs))
}
