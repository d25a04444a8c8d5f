//! Every command, in every form, against every real runtime: `testdata/commands/real-runtimes.txt` has each
//! answer and its effect, and the table of the README is made from that.
//!
//! `DIPC_UPDATE_GOLDEN=1` (`cargo xtask commands --update`) rewrites both. The runtimes are where
//! `cargo xtask runtimes` puts them (or in `$DIPC_RUNTIMES`); a missing runtime is reported, and is a failure
//! if `$DIPC_REQUIRE_RUNTIMES` is set.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod calls;
mod dumps;
mod forms;
mod parity;
mod report;
mod runtime;
mod startup;
mod subject;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use report::{Outcomes, Report};
use runtime::Runtime;
use subject::Subject;

/// A request to a runtime, with its outcome.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// True if the runtime has to be suspended at its start.
    suspended: bool,
    act: fn(&mut Subject) -> String,
}

fn cases() -> Vec<Case> {
    [forms::CASES, startup::CASES, dumps::CASES, calls::CASES].concat()
}

/// The processes of one runtime that cases run on: each serves until it is spent.
struct Subjects {
    runtime: Runtime,
    running: Option<Subject>,
    suspended: Option<Subject>,
}

impl Subjects {
    fn of(runtime: Runtime) -> Self {
        Self { runtime, running: None, suspended: None }
    }

    /// Returns the outcome of a case.
    fn outcome(&mut self, case: &Case) -> String {
        if case.suspended && !self.runtime.can_be_suspended() {
            return "cannot be suspended".to_owned();
        }
        let slot = if case.suspended { &mut self.suspended } else { &mut self.running };
        let mut subject = slot.take().unwrap_or_else(|| Subject::start(self.runtime, case.suspended));
        let outcome = (case.act)(&mut subject);
        let outcome = match subject.fate() {
            Some(fate) => format!("{outcome}; {fate}"),
            None => outcome,
        };
        if !subject.is_spent() {
            *slot = Some(subject);
        }
        outcome
    }
}

/// The number of processes that a case is tried on before it counts as different.
const ATTEMPTS: usize = 4;

/// Returns the outcome of each case on one runtime.
///
/// Runtimes have races of their own, which a loaded machine loses: the `createdump` of 3.1 gives up if a
/// thread ends while it attaches, and one was seen not to end. So a case that differs or panics is reported,
/// and tried again on a process of its own.
fn run(runtime: Runtime, expected: &Outcomes) -> Vec<(&'static str, String)> {
    let mut subjects = Subjects::of(runtime);
    let run = |case: Case| {
        let expected = expected.get(case.name).and_then(|outcomes| outcomes.get(runtime.name()));
        let is_expected = |outcome: &String| expected.is_none_or(|expected| expected == outcome);
        let mut outcome = attempt(&mut subjects, &case);
        for _ in 1..ATTEMPTS {
            match &outcome {
                Ok(outcome) if is_expected(outcome) => break,
                Ok(outcome) => eprintln!("TRIED AGAIN: {} on {}: {outcome}", case.name, runtime.name()),
                Err(_) => eprintln!("TRIED AGAIN: {} on {}, which panicked", case.name, runtime.name()),
            }
            outcome = attempt(&mut Subjects::of(runtime), &case);
        }
        (case.name, outcome.unwrap_or_else(|panic| resume_unwind(panic)))
    };
    cases().into_iter().map(run).collect()
}

/// Returns the outcome of a case, or its panic. Its process ends with a panic: it was taken for the case.
fn attempt(subjects: &mut Subjects, case: &Case) -> thread::Result<String> {
    catch_unwind(AssertUnwindSafe(|| subjects.outcome(case)))
}

#[test]
fn a_case_that_panics_is_tried_again() {
    fn panics(_: &mut Subject) -> String {
        panic!("as a wait for a createdump that does not end")
    }
    let mut subjects = Subjects::of(Runtime::NativeAot9);
    let first = attempt(&mut subjects, &forms::running("one that panics", panics));
    assert!(first.is_err() && subjects.running.is_none(), "{first:?}");
    let second = attempt(&mut subjects, &forms::running("one that does not", |it| it.pid().to_string()));
    assert!(second.is_ok() && subjects.running.is_some(), "{second:?}");
}

#[test]
fn real_runtimes_answer_as_they_did() {
    let available: Vec<_> = Runtime::ALL.into_iter().filter(|runtime| runtime.is_available()).collect();
    let mut report = Report::read();
    let expected = report::committed();
    let expected = &expected;
    thread::scope(|scope| {
        let running: Vec<_> =
            available.iter().map(|&runtime| (runtime, scope.spawn(move || run(runtime, expected)))).collect();
        for (runtime, outcomes) in running {
            report.compare(runtime, &outcomes.join().unwrap());
        }
    });
    report.finish(&cases().iter().map(|case| case.name).collect::<Vec<_>>());
}
