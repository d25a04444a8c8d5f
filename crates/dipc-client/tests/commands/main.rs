//! Every command, in every form, against every real runtime: what each answers and what becomes of it is
//! `testdata/commands/real-runtimes.txt`, and the table of the README is made from that.
//!
//! `DIPC_UPDATE_GOLDEN=1` (`cargo xtask commands --update`) rewrites both. The runtimes are where `cargo xtask runtimes` puts
//! them (or in `$DIPC_RUNTIMES`); one that is missing is said, and a failure if `$DIPC_REQUIRE_RUNTIMES` is set.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod calls;
mod dumps;
mod forms;
mod parity;
mod report;
mod runtime;
mod startup;
mod subject;

use report::Report;
use runtime::Runtime;
use subject::Subject;

/// Something that is asked of a runtime, and what came of it.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// Whether the runtime is to be suspended at its start.
    suspended: bool,
    act: fn(&mut Subject) -> String,
}

fn cases() -> Vec<Case> {
    [forms::CASES, startup::CASES, dumps::CASES, calls::CASES].concat()
}

/// What each case comes to on one runtime. A process serves until it is spent.
fn run(runtime: Runtime) -> Vec<(&'static str, String)> {
    let mut subjects = [None, None];
    let run = |case: Case| {
        if case.suspended && !runtime.can_be_suspended() {
            return (case.name, "cannot be suspended".to_owned());
        }
        let slot = &mut subjects[usize::from(case.suspended)];
        let mut subject = slot.take().unwrap_or_else(|| Subject::start(runtime, case.suspended));
        let outcome = (case.act)(&mut subject);
        let outcome = match subject.fate() {
            Some(fate) => format!("{outcome}; {fate}"),
            None => outcome,
        };
        if !subject.is_spent() {
            *slot = Some(subject);
        }
        (case.name, outcome)
    };
    cases().into_iter().map(run).collect()
}

#[test]
fn real_runtimes_answer_as_they_did() {
    let available: Vec<_> = Runtime::ALL.into_iter().filter(|runtime| runtime.is_available()).collect();
    let mut report = Report::read();
    std::thread::scope(|scope| {
        let running: Vec<_> =
            available.iter().map(|&runtime| (runtime, scope.spawn(move || run(runtime)))).collect();
        for (runtime, outcomes) in running {
            report.compare(runtime, &outcomes.join().unwrap());
        }
    });
    report.finish(&cases().iter().map(|case| case.name).collect::<Vec<_>>());
}
