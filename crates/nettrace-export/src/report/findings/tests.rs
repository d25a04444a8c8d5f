use std::time::Duration;

use clr_events::ThreadState;

use super::*;
use crate::profile::builder::Omissions;
use crate::profile::index::{ProcessIndex, ThreadIndex};
use crate::profile::metric::Metric;
use crate::profile::{Profile, ProfileSum, StackTotal, Thread};
use crate::report::contention::LockRow;
use crate::report::gc::{Collection, GenerationRow};
use crate::report::thread_pool::{ReasonRow, ThreadPoolReport};
use crate::report::{Overview, OverviewBuilder, OverviewCallers, StreamFacts};

const SECOND: u64 = 1_000_000_000;

/// A profile of threads with a state, a weight and frames, root first.
fn profile(stacks: &[(u32, ThreadState, u64, &[&str])]) -> Profile {
    let mut profile = ProfileSum::new(Metric::Wall, 1 << 10).into_profile();
    for (thread, state, weight, frames) in stacks {
        while profile.threads.len() <= *thread as usize {
            profile.threads.push(Thread {
                process: ProcessIndex(0),
                id: profile.threads.len() as u64,
                name: None,
                role: None,
                frame: String::new(),
                track: None,
            });
        }
        let frames: Vec<_> = frames.iter().map(|name| profile.frames.intern(name)).collect();
        let stack = Some(profile.stacks.add(frames));
        let total = StackTotal::new(ThreadIndex(*thread), stack, *weight, 1);
        profile.stack_totals.push(StackTotal { state: *state, ..total });
    }
    profile
}

/// The overview of a recording of ten seconds.
fn overview(profile: Profile) -> Overview {
    let callers = OverviewCallers::default();
    let overview =
        OverviewBuilder::default().finish(profile, &Omissions::default(), callers, StreamFacts::default());
    Overview { duration: Duration::from_secs(10), ..overview }
}

fn empty() -> Overview {
    overview(profile(&[]))
}

fn ids(overview: &Overview) -> Vec<(&'static str, Severity)> {
    overview.findings().iter().map(|finding| (finding.id(), finding.severity())).collect()
}

#[test]
fn an_empty_recording_has_no_findings() {
    assert_eq!(empty().findings(), []);
}

#[test]
fn small_losses_are_facts_below_all_others() {
    let with_loss = |lost| {
        let stream = StreamFacts { lost, events: 10_000, ..StreamFacts::default() };
        let jit = crate::report::JitReport { methods: 3, ..Default::default() };
        Overview { stream, jit, ..empty() }
    };
    let facts = [("compilation", Severity::Fact), ("lost-events", Severity::Fact)];
    assert_eq!(ids(&with_loss(100)), facts);
    // 102 of 10,102 events are more than 1 %.
    let problem = [("lost-events", Severity::Problem), ("compilation", Severity::Fact)];
    assert_eq!(ids(&with_loss(102)), problem);
}

#[test]
fn pauses_are_a_problem_from_a_tenth_of_the_time() {
    let with_pauses = |pause_percent| {
        let mut overview = empty();
        overview.gc.pause_percent = pause_percent;
        overview.gc.collections.push(Collection::default());
        overview.gc.generations.push(GenerationRow { induced: 2, ..GenerationRow::default() });
        overview
    };
    assert_eq!(ids(&with_pauses(9.99)), [("pauses", Severity::Fact)]);
    assert_eq!(ids(&with_pauses(10.0)), [("pauses", Severity::Problem)]);
    let finding = Finding::Pauses { percent: 10.0, collections: 1, induced: 2, longest: Duration::ZERO };
    assert_eq!(with_pauses(10.0).findings(), [finding]);
}

#[test]
fn many_long_waits_of_several_threads_for_a_lock_are_a_convoy() {
    let with_lock = |waits, threads, milliseconds| {
        let mut overview = empty();
        let total = Duration::from_millis(milliseconds);
        overview.contention.waits.count = waits;
        overview.contention.locks.push(LockRow { lock: 7, waits, threads, total, ..LockRow::default() });
        ids(&overview)
    };
    assert_eq!(with_lock(100, 2, 1000), [("lock-convoy", Severity::Problem)]);
    for (waits, threads, milliseconds) in [(99, 2, 1000), (100, 1, 1000), (100, 2, 999)] {
        assert_eq!(with_lock(waits, threads, milliseconds), [("lock-waits", Severity::Fact)]);
    }
}

#[test]
fn starvation_is_a_problem_from_half_a_second() {
    let severity = |milliseconds| {
        let starvation = Starvation {
            process: None,
            workers: 2,
            total: Duration::from_millis(milliseconds),
            longest: Duration::ZERO,
            blocked: Duration::ZERO,
            task_waits: Duration::ZERO,
            method: None,
            method_time: Duration::ZERO,
        };
        Finding::Starvation(starvation).severity()
    };
    assert_eq!([severity(499), severity(500)], [Severity::Fact, Severity::Problem]);
}

#[test]
fn a_pool_that_grew_for_starvation_is_a_problem() {
    let row = ReasonRow { reason: "Starvation".to_owned(), count: 3, most_threads: 12 };
    let pool = ThreadPoolReport { adjustments: vec![row], ..ThreadPoolReport::default() };
    let overview = Overview { thread_pool: Some(pool), ..empty() };
    assert_eq!(overview.findings(), [Finding::PoolGrowth { times: 3, most_threads: 12 }]);
    assert_eq!(overview.findings().first().map(Finding::severity), Some(Severity::Problem));
}

#[test]
fn work_names_three_methods_of_a_percent_and_the_users_callers() {
    use ThreadState::Working;
    const CORE: &str = "System.Private.CoreLib!System.String.Concat(class System.String)";
    let rows: &[(u32, ThreadState, u64, &[&str])] = &[
        (0, Working, 70 * SECOND, &["App!App.P.Main()", "App!App.P.Work(int32)"]),
        (0, Working, 29 * SECOND, &["App!App.P.Main()", CORE]),
        (0, Working, SECOND / 2, &["App!App.P.Main()"]),
    ];
    let findings = overview(profile(rows)).findings();
    let [Finding::Work { time, source, methods, rows, leaves_out_session }] = findings.as_slice() else {
        panic!("{findings:?}");
    };
    assert_eq!((*time, *rows, *leaves_out_session), (Duration::from_millis(99_500), 3, false));
    assert_eq!(*source, WorkSource::ThreadSamples { unverified: Duration::ZERO });
    let names: Vec<_> =
        methods.methods.iter().map(|share| (&*share.method, share.caller.as_deref())).collect();
    // The third has half a percent.
    assert_eq!(names, [("P.Work", None), ("String.Concat", Some("P.Main"))]);
    assert_eq!(methods.common_caller, None);
}

#[test]
fn unverified_work_is_mentioned_from_a_percent() {
    let rows: &[(u32, ThreadState, u64, &[&str])] = &[(0, ThreadState::Working, 100, &["App!P.Main()"])];
    let source = |unverified| {
        let overview = Overview { unverified, ..overview(profile(rows)) };
        match overview.findings().first() {
            Some(Finding::Work { source, .. }) => Some(*source),
            _ => None,
        }
    };
    let unverified =
        |unverified| Some(WorkSource::ThreadSamples { unverified: Duration::from_nanos(unverified) });
    assert_eq!([source(0), source(1)], [unverified(0), unverified(1)]);
    let long: &[(u32, ThreadState, u64, &[&str])] = &[(0, ThreadState::Working, 1000, &["App!P.Main()"])];
    let overview = Overview { unverified: 9, ..overview(profile(long)) };
    assert!(matches!(
        overview.findings().as_slice(),
        [Finding::Work { source: WorkSource::ThreadSamples { unverified }, .. }] if unverified.is_zero()
    ));
}

#[test]
fn sleeps_and_blocked_work_are_separate_findings() {
    use ThreadState::{Blocked, Working};
    const SLEEP: &str = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
    const WAIT: &str = "System.Private.CoreLib!System.Threading.Monitor.Wait(class A)";
    let rows: &[(u32, ThreadState, u64, &[&str])] = &[
        (0, Working, 60, &["App!P.Work()"]),
        (0, Blocked, 40, &["App!P.Work()", WAIT]),
        (1, Blocked, 10, &["App!P.Sleeper()", SLEEP]),
        (2, Blocked, 100, &["App!P.Idle()", WAIT]),
    ];
    let ids: Vec<_> = overview(profile(rows)).findings().iter().map(Finding::id).collect();
    assert_eq!(ids, ["work", "blocked", "topN", "topN"]);
}

#[test]
fn numbers_have_their_units_in_their_names() {
    let compilation = Finding::Compilation { methods: 3, duration: None };
    let numbers = [("methods", FindingNumber::Integer(3)), ("duration_ns", FindingNumber::Unknown)];
    assert_eq!(compilation.numbers(), numbers);
    let json: std::collections::BTreeMap<_, _> = compilation.numbers().into_iter().collect();
    assert_eq!(serde_json::to_string(&json).unwrap(), r#"{"duration_ns":null,"methods":3}"#);
}

#[test]
fn controls_in_names_are_escaped() {
    let share = MethodShare { method: "P.\u{1b}[2J".to_owned(), caller: None, percent: 50.0 };
    let methods = MethodShares { methods: vec![share], common_caller: None };
    assert_eq!(methods.to_string(), r": 50% P.\u001b[2J");
}
