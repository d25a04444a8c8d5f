//! A chore of several steps: each is announced, timed, and summed up at the end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

enum Outcome {
    Passed,
    Failed(String),
    NotRun(String),
}

struct Step {
    name: String,
    outcome: Outcome,
    took: Duration,
}

/// Runs steps one after the other. A failed step does not keep the later ones from running: one look at the summary shows
/// all that is wrong.
#[derive(Default)]
pub(crate) struct Steps {
    done: Vec<Step>,
}

impl Steps {
    pub(crate) fn run(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = match work() {
            Ok(()) => Outcome::Passed,
            Err(error) => {
                println!("FAILED {name}: {error:#}");
                Outcome::Failed(format!("{error:#}"))
            }
        };
        let took = start.elapsed();
        println!("=== {name}: {:.1} s", took.as_secs_f64());
        self.done.push(Step { name: name.to_owned(), outcome, took });
    }

    /// Records something that should have run and could not, for a reason that lies with the machine.
    pub(crate) fn not_run(&mut self, name: &str, why: &str) {
        println!("\n!!! NOT RUN {name}: {why}");
        let outcome = Outcome::NotRun(why.to_owned());
        self.done.push(Step { name: name.to_owned(), outcome, took: Duration::ZERO });
    }

    /// Prints the summary; an error if any step failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n=== summary");
        for step in &self.done {
            let took = step.took.as_secs_f64();
            match &step.outcome {
                Outcome::Passed => println!("  passed   {took:7.1} s  {}", step.name),
                Outcome::Failed(why) => println!("  FAILED   {took:7.1} s  {}: {why}", step.name),
                Outcome::NotRun(why) => println!("  NOT RUN             {}: {why}", step.name),
            }
        }
        let failed = self.done.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
        let total: Duration = self.done.iter().map(|step| step.took).sum();
        println!("  {} steps in {:.0} s, {failed} failed", self.done.len(), total.as_secs_f64());
        if failed > 0 {
            bail!("{failed} of {} steps failed", self.done.len());
        }
        Ok(())
    }
}
