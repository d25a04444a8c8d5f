use std::time::Duration;

use clr_events::ThreadState;

use super::*;
use crate::profile::Profile;
use crate::profile::builder::Omissions;
use crate::report::gc::{Collection, GenerationRow};
use crate::report::test_profile::profile;
use crate::report::thread_pool::{ReasonRow, ThreadPoolReport};
use crate::report::{Overview, OverviewBuilder, OverviewCallers, StreamFacts};

const SECOND: u64 = 1_000_000_000;

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

/// The names of the notes, and whether they are faults of the recording.
fn ids(overview: &Overview) -> Vec<(&'static str, bool)> {
    overview.notes().iter().map(|note| (note.id(), note.is_fault())).collect()
}

#[test]
fn an_empty_recording_has_no_notes() {
    assert_eq!(empty().notes(), []);
}

#[test]
fn small_losses_are_facts_below_all_others() {
    let with_loss = |lost| {
        let stream = StreamFacts { lost, events: 10_000, ..StreamFacts::default() };
        let jit = crate::report::JitReport { methods: 3, ..Default::default() };
        Overview { stream, jit, ..empty() }
    };
    let facts = [("compilation", false), ("lost-events", false)];
    assert_eq!(ids(&with_loss(100)), facts);
    // 102 of 10,102 events are more than 1 %.
    let fault = [("lost-events", true), ("compilation", false)];
    assert_eq!(ids(&with_loss(102)), fault);
}

#[test]
fn pauses_have_the_collections_that_the_program_asked_for() {
    let mut overview = empty();
    overview.gc.pause_percent = 10.0;
    overview.gc.collections.push(Collection::default());
    overview.gc.generations.push(GenerationRow { induced: 2, ..GenerationRow::default() });
    let note = Note::Pauses { percent: 10.0, collections: 1, induced: 2, longest: Duration::ZERO };
    assert_eq!(overview.notes(), [note]);
}

#[test]
fn a_pool_that_grew_for_starvation_says_so() {
    let row = ReasonRow { reason: "Starvation".to_owned(), count: 3, most_threads: 12 };
    let pool = ThreadPoolReport { adjustments: vec![row], ..ThreadPoolReport::default() };
    let overview = Overview { thread_pool: Some(pool), ..empty() };
    assert_eq!(overview.notes(), [Note::PoolGrowth { times: 3, most_threads: 12 }]);
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
    let notes = overview(profile(rows)).notes();
    let [Note::Work { time, source, methods, rows, leaves_out_session }] = notes.as_slice() else {
        panic!("{notes:?}");
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
        match overview.notes().first() {
            Some(Note::Work { source, .. }) => Some(*source),
            _ => None,
        }
    };
    let unverified =
        |unverified| Some(WorkSource::ThreadSamples { unverified: Duration::from_nanos(unverified) });
    assert_eq!([source(0), source(1)], [unverified(0), unverified(1)]);
    let long: &[(u32, ThreadState, u64, &[&str])] = &[(0, ThreadState::Working, 1000, &["App!P.Main()"])];
    let overview = Overview { unverified: 9, ..overview(profile(long)) };
    assert!(matches!(
        overview.notes().as_slice(),
        [Note::Work { source: WorkSource::ThreadSamples { unverified }, .. }] if unverified.is_zero()
    ));
}

#[test]
fn sleeps_and_blocked_work_are_separate_notes() {
    use ThreadState::{Blocked, Working};
    const SLEEP: &str = "System.Private.CoreLib!System.Threading.Thread.Sleep(int32)";
    const WAIT: &str = "System.Private.CoreLib!System.Threading.Monitor.Wait(class A)";
    let rows: &[(u32, ThreadState, u64, &[&str])] = &[
        (0, Working, 60, &["App!P.Work()"]),
        (0, Blocked, 40, &["App!P.Work()", WAIT]),
        (1, Blocked, 10, &["App!P.Sleeper()", SLEEP]),
        (2, Blocked, 100, &["App!P.Idle()", WAIT]),
    ];
    let ids: Vec<_> = overview(profile(rows)).notes().iter().map(Note::id).collect();
    assert_eq!(ids, ["work", "blocked", "topN", "topN"]);
}

#[test]
fn numbers_have_their_units_in_their_names() {
    let compilation = Note::Compilation { methods: 3, duration: None };
    let numbers = [("methods", NoteNumber::Integer(3)), ("duration_ns", NoteNumber::Unknown)];
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
