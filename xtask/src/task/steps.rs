//! A task of several steps: each is announced and timed, and a summary follows.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

enum Outcome {
    Succeeded,
    Failed(String),
    NotRun(String),
}

/// A step that has ended, or could not run.
struct Step {
    name: String,
    outcome: Outcome,
    duration: Duration,
}

/// A runner of steps, one after the other. Later steps run even after one has failed, so that the summary
/// shows all failures.
pub(crate) struct Steps {
    start: Instant,
    results: Vec<Step>,
    /// True if a step that cannot run is a failure.
    strict: bool,
}

impl Steps {
    /// Returns a runner that, with `require_all`, counts a step that cannot run as a failure.
    pub(crate) fn new(require_all: bool) -> Self {
        Self { start: Instant::now(), strict: require_all, results: Vec::new() }
    }

    /// Runs a step.
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = match work() {
            Ok(()) => Outcome::Succeeded,
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                Outcome::Failed(format!("{error:#}"))
            }
        };
        let duration = start.elapsed();
        println!("=== {name}: {:.1} s", duration.as_secs_f64());
        self.results.push(Step { name: name.to_owned(), outcome, duration });
    }

    /// Records a step that cannot run on this machine, with the reason.
    pub(crate) fn not_run(&mut self, name: &str, reason: &str) {
        println!("\n!!! NOT RUN {name}: {reason}");
        let outcome = if self.strict {
            Outcome::Failed(format!("not run: {reason}"))
        } else {
            Outcome::NotRun(reason.to_owned())
        };
        self.results.push(Step { name: name.to_owned(), outcome, duration: Duration::ZERO });
    }

    /// Adds the steps that ran beside these.
    pub(crate) fn append(&mut self, other: Self) {
        self.results.extend(other.results);
    }

    /// Returns true if a step has failed.
    pub(crate) fn have_failed(&self) -> bool {
        self.results.iter().any(|step| matches!(step.outcome, Outcome::Failed(_)))
    }

    /// Prints the summary; an error if any step failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n=== summary");
        for step in &self.results {
            let seconds = step.duration.as_secs_f64();
            match &step.outcome {
                Outcome::Succeeded => println!("  passed   {seconds:7.1} s  {}", step.name),
                Outcome::Failed(reason) => println!("  FAILED   {seconds:7.1} s  {}: {reason}", step.name),
                Outcome::NotRun(reason) => println!("  NOT RUN             {}: {reason}", step.name),
            }
        }
        let failed = self.results.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        let total = self.start.elapsed();
        println!("  {} steps in {:.0} s, {failed} failed", self.results.len(), total.as_secs_f64());
        if failed > 0 {
            bail!("{failed} of {} steps failed", self.results.len());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_cannot_run_fails_only_a_strict_task() {
        for fails in [false, true] {
            let mut steps = Steps::new(fails);
            steps.run("one that passes", || Ok(()));
            steps.not_run("one that cannot run", "no network");
            assert_eq!(steps.have_failed(), fails);
            assert_eq!(steps.finish().is_err(), fails);
        }
    }
}
