mod requests;
mod waits;

use clr_events::ThreadState;
use nettrace_export::nettrace::{Reader, RelativeTime};
use nettrace_export::report::{
    EventGroup, OverviewBuilder, OverviewCallers, StreamFacts, callers_options, overview_profile_options,
};
use nettrace_export::{Measure, Metric, Profile, ProfileReader, Selection, StackProfileBuilder, Unit};
use nettrace_synth::clr::{Method, Recording, kind};

use super::*;
use crate::finding::FindingKind;
use crate::{Activity, Diagnosis, Evidence, ProcessIdentity, diagnose};

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = SECOND / 1000;
/// The length of the recordings.
const SECONDS: u64 = 10;

const MAIN: &str = "App!Shop.Program.Main()";
const SELL: &str = "App!Shop.Orders.Sell(int)";
const MATCH: &str = "System.Text.RegularExpressions!System.Text.RegularExpressions.Regex.IsMatch(string)";
const SLEEP: &str = "System.Private.CoreLib!System.Threading.Thread.Sleep(int)";
const COLLECT_GARBAGE: &str = "System.Private.CoreLib!System.GC.Collect()";
const JIT: &str = "libclrjit.so!?";

/// The time of a thread in a stack, in milliseconds.
type Row<'r> = (u64, ThreadState, u64, &'r [&'r str]);

fn profile(rows: &[Row<'_>]) -> Profile {
    let mut builder = StackProfileBuilder::new(Measure::new("time", "samples", Unit::Nanoseconds));
    let mut start = RelativeTime::START;
    for (thread, _, milliseconds, stack) in rows {
        builder.add_sample(42, *thread, start, milliseconds * MILLISECOND, *stack);
        start = RelativeTime::from_nanos(start.as_nanos() + 1);
    }
    let mut profile = builder.finish();
    assert_eq!(profile.stack_totals.len(), rows.len(), "each row has a stack of its own");
    for (total, (_, state, ..)) in profile.stack_totals.iter_mut().zip(rows) {
        total.state = *state;
    }
    profile
}

/// An overview of a recording with its events, and the kernel's samples of these threads on four processors.
fn overview(recording: &Recording, rows: &[Row<'_>]) -> Overview {
    overview_with(recording, profile(rows))
}

fn overview_with(recording: &Recording, profile: Profile) -> Overview {
    let bytes = recording.bytes();
    let callers =
        OverviewCallers::METRICS.map(|metric| callers_options(metric, Selection::default(), Vec::new()));
    let mut overview = OverviewBuilder::default();
    let reader = ProfileReader::new(overview_profile_options(Metric::Wall)).with_others(callers.into());
    let read = reader.read(Reader::new(&bytes[..]).unwrap(), |event| overview.add(event)).unwrap();
    let callers = OverviewCallers::of(read.others.iter().map(|(profile, _)| profile));
    let end = RelativeTime::from_nanos(i64::try_from(SECONDS * SECOND).unwrap());
    let mut stream = StreamFacts::of(&read.events, &read.counts, end);
    stream.has_kernel_samples = true;
    stream.processors = Some(4);
    overview.finish(profile, &read.omissions, callers, stream)
}

/// The kinds of causes with their methods.
fn causes(overview: &Overview) -> Vec<(FindingKind, Option<String>)> {
    let findings = diagnose(&Evidence::default().with_recording(overview));
    findings.into_iter().map(|finding| (finding.kind, finding.method)).collect()
}

/// A recording with a method of the user's at the stack with index 1.
fn recording() -> Recording {
    let mut recording = Recording::new();
    recording.module(1, "/app/App.dll").method(&Method::new(0x1000, "Shop.Orders", "Sell"));
    recording.stacks(&[&[0x1010]]);
    recording
}

fn in_sell(kind: FindingKind) -> Vec<(FindingKind, Option<String>)> {
    vec![(kind, Some("Orders.Sell".to_owned()))]
}

#[test]
fn a_recording_without_causes_says_what_the_program_did() {
    let idle = overview(&recording(), &[(1, ThreadState::Blocked, 9_000, &[MAIN, SLEEP])]);
    assert_eq!(causes(&idle), []);
    let activity = Activity::of(&idle, &EventGroup::ALL).to_string();
    assert!(activity.starts_with("0% of a processor, 0 collections, "), "{activity}");
    // Events that may not have been recorded are not counted.
    let known = [EventGroup::Exceptions, EventGroup::Requests];
    assert_eq!(Activity::of(&idle, &known).to_string(), "0% of a processor, 0 exceptions, 0 requests");
}

#[test]
fn a_program_is_healthy_if_nothing_was_missing() {
    let mut idle = overview(&recording(), &[(1, ThreadState::Blocked, 9_000, &[MAIN, SLEEP])]);
    // The recording of this test has no event of a sampler.
    idle.has_samples = true;
    let process = ProcessIdentity::default();
    let missing = ["locks and tasks in memory: permission denied".to_owned()];
    let judge = |overview: &Overview, missing: &[String]| {
        let evidence = Evidence::default().with_recording(overview).with_missing(missing);
        Diagnosis::new(process.clone(), &evidence.with_requested(&EventGroup::ALL))
    };
    assert_eq!(judge(&idle, &[]).missing, [""; 0]);
    assert!(judge(&idle, &[]).is_healthy());
    assert!(!judge(&idle, &missing).is_healthy());
    let some = [EventGroup::Collections, EventGroup::Exceptions, EventGroup::ThreadPool];
    let evidence = Evidence::default().with_recording(&idle).with_requested(&some);
    let of_some = Diagnosis::new(process.clone(), &evidence);
    let unknown = "requests, waits for locks: not recorded, or none happened";
    assert_eq!((of_some.missing.as_slice(), of_some.is_healthy()), (&[unknown.to_owned()][..], false));
    idle.stream.lost = 7;
    let diagnosis = judge(&idle, &missing);
    assert_eq!(diagnosis.missing, [&*missing[0], "7 events were lost"]);
    assert!(!diagnosis.is_healthy());
}

#[test]
fn a_method_is_hot_if_its_thread_never_rests() {
    let busy = |milliseconds| {
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Working, milliseconds, &[MAIN, SELL]),
            (2, ThreadState::Working, 500, &[MAIN]),
        ];
        causes(&overview(&recording(), rows))
    };
    assert_eq!(busy(7_900), []);
    assert_eq!(busy(8_000), in_sell(FindingKind::HotMethod));
}

#[test]
fn many_busy_threads_that_rest_are_healthy_until_the_processors_are_used_up() {
    let server = |threads: u64| {
        let stack: &[&str] = &[MAIN, SELL];
        let rows: Vec<Row<'_>> =
            (1..=threads).map(|thread| (thread, ThreadState::Working, 3_500, stack)).collect();
        causes(&overview(&recording(), &rows))
    };
    assert_eq!(server(8), []);
    assert_eq!(server(10), in_sell(FindingKind::HotMethod));
}

#[test]
fn a_regular_expression_is_the_cause_of_the_hot_method_that_runs_it() {
    let rows: &[Row<'_>] = &[(1, ThreadState::Working, 9_000, &[MAIN, SELL, MATCH])];
    assert_eq!(causes(&overview(&recording(), rows)), in_sell(FindingKind::Regex));
}

#[test]
fn compilation_is_charged_to_the_method_that_has_things_compiled() {
    let compile = "System.Linq.Expressions!System.Linq.Expressions.LambdaExpression.Compile()";
    let rows: &[Row<'_>] = &[
        (1, ThreadState::Working, 8_000, &[MAIN, SELL, compile, JIT]),
        (1, ThreadState::Working, 900, &[MAIN]),
        (2, ThreadState::Working, 1_000, &[JIT]),
    ];
    let with_methods = |milliseconds: u64| {
        let mut recording = recording();
        for index in 1..100 {
            let method = Method::new(0x1000 + index * 0x100, "Shop.Rules", "Rule");
            recording.at(index * milliseconds * MILLISECOND).method(&method);
        }
        overview(&recording, rows)
    };
    // A program that starts compiles as much, once.
    assert_eq!(causes(&with_methods(10)), in_sell(FindingKind::HotMethod));
    let overview = with_methods(100);
    assert_eq!(causes(&overview), in_sell(FindingKind::JitStorm));
    let findings = diagnose(&Evidence::default().with_recording(&overview));
    let cause = &findings[0].cause;
    assert!(
        cause.starts_with("The JIT compiler takes 90.91% of the processor time")
            && cause.contains("Orders.Sell"),
        "{cause}"
    );
}

#[test]
fn the_wait_of_a_thread_that_rests_for_a_processor_is_not_work() {
    let compiling = |working, ready| {
        let mut recording = recording();
        for index in 1..100 {
            recording.at(index * 100 * MILLISECOND).method(&Method::new(
                0x1000 + index,
                "Shop.Rules",
                "Rule",
            ));
        }
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Working, working, &[MAIN, SELL, JIT]),
            (1, ThreadState::Ready, ready, &[MAIN, JIT]),
        ];
        causes(&overview(&recording, rows))
    };
    assert_eq!(compiling(500, 4_000), []);
    assert_eq!(compiling(500, 8_000), in_sell(FindingKind::JitStorm));
}

/// A method that was compiled at a tier (bits 7 to 9 of its flags).
fn compiled(start: u64, namespace: &str, tier: u32) -> Method<'_> {
    Method { flags: tier << 7 | 8, ..Method::new(start, namespace, "Sell") }
}

#[test]
fn precompiled_code_is_not_used_if_methods_of_the_framework_are_compiled() {
    const QUICK_JITTED: u32 = 3;
    const OPTIMIZED_TIER1: u32 = 4;
    let rows: &[Row<'_>] = &[(1, ThreadState::Working, 2_000, &[MAIN, SELL, JIT])];
    let with_methods = |of_framework: u64, tier| {
        let mut recording = recording();
        for index in 0..400 {
            let namespace = if index < of_framework { "System.IO.Path" } else { "Shop.Rules" };
            let start = 0x1_0000 + index * 0x100;
            recording.at(index * 24 * MILLISECOND).method(&compiled(start, namespace, tier));
        }
        causes(&overview(&recording, rows))
    };
    assert_eq!(with_methods(200, QUICK_JITTED), [(FindingKind::NotPrecompiled, None)]);
    assert_eq!(with_methods(199, QUICK_JITTED), in_sell(FindingKind::JitStorm));
    // They are compiled once more where they are hot.
    assert_eq!(with_methods(400, OPTIMIZED_TIER1), in_sell(FindingKind::JitStorm));
}

#[test]
fn a_profiler_in_the_process_is_a_cause_by_its_share_of_the_processor_time() {
    let with_agent = |module: &str, milliseconds| {
        let agent: &[&str] = &[MAIN, SELL, "libcoreclr.so!?", module];
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Working, milliseconds, agent),
            (1, ThreadState::Working, 10_000 - milliseconds, &[MAIN]),
            (2, ThreadState::Blocked, 10_000, agent),
        ];
        let causes = causes(&overview(&recording(), rows));
        causes.contains(&(FindingKind::Profiler, None))
    };
    assert!(with_agent("Vendor.Profiler.Native.so!?", 1_000));
    assert!(!with_agent("Vendor.Profiler.Native.so!?", 999));
    assert!(!with_agent("libz.so.1!deflate", 5_000));
}

#[test]
fn a_hot_method_of_a_debug_build_is_said_to_be_one() {
    let of_tier = |tier| {
        let mut recording = recording();
        recording.method(&compiled(0x2000, "Shop.Orders", tier));
        let rows: &[Row<'_>] = &[(1, ThreadState::Working, 9_000, &[MAIN, "App!Shop.Orders.Sell()"])];
        let overview = overview(&recording, rows);
        let findings = diagnose(&Evidence::default().with_recording(&overview));
        findings[0].evidence.iter().any(|evidence| evidence.contains("debug build"))
    };
    assert!(of_tier(1));
    assert!(!of_tier(3));
}

#[test]
fn methods_that_are_made_all_the_time_and_stay_are_a_cause() {
    let emit =
        "System.Private.CoreLib!System.Reflection.Emit.DynamicMethod.CreateDelegate(class System.Type)";
    let rows: &[Row<'_>] = &[(1, ThreadState::Working, 100, &[MAIN, SELL, emit, JIT])];
    let made = |milliseconds: u64, flags, is_unloaded: bool| {
        let mut recording = recording();
        for index in 1..100 {
            let start = 0x1000 + index * 0x100;
            let method = Method { flags, ..Method::new(start, "dynamicClass", "formula") };
            recording.at(index * milliseconds * MILLISECOND).method(&method);
            if is_unloaded {
                recording.event(kind::METHOD_UNLOAD_VERBOSE, &method.verbose());
            }
        }
        causes(&overview(&recording, rows))
    };
    assert_eq!(made(100, 9, false), in_sell(FindingKind::DynamicMethodGrowth));
    // They go, are compiled from the program's file, or are made once at the start.
    assert_eq!(made(100, 9, true), []);
    assert_eq!(made(100, 8, false), []);
    assert_eq!(made(10, 9, false), []);
}

#[test]
fn collections_that_the_program_asks_for_are_the_cause_of_its_pauses() {
    let collected_for = |reason| {
        let mut recording = recording();
        for number in 1..=20 {
            let start = u64::from(number) * 400 * MILLISECOND;
            recording.at(start).suspend_begin(1).suspend_end().gc_start(number, 2, reason);
            recording.at(start + 100 * MILLISECOND).gc_end(number, 2).restart_end();
        }
        recording
    };
    let waits: &[Row<'_>] = &[(1, ThreadState::Blocked, 2_000, &[MAIN, SELL, COLLECT_GARBAGE])];
    let collects: &[Row<'_>] =
        &[(1, ThreadState::Working, 2_000, &[MAIN, SELL, "libcoreclr.so!WKS::gc_heap::mark_phase"])];
    let with_reason = |reason, rows| causes(&overview(&collected_for(reason), rows));
    assert_eq!(with_reason(1, waits), in_sell(FindingKind::InducedCollections));
    assert_eq!(with_reason(1, collects), in_sell(FindingKind::InducedCollections));
    // A runtime without names of its functions.
    let calls: &[Row<'_>] = &[(1, ThreadState::Working, 2_000, &[MAIN, SELL, "libcoreclr.so!?"])];
    assert_eq!(with_reason(1, calls), in_sell(FindingKind::InducedCollections));
    assert_eq!(with_reason(0, waits), [(FindingKind::GcPressure, None)]);
}

#[test]
fn a_program_that_collects_its_whole_heap_again_and_again_has_a_cause() {
    let collections = |full: u32, young: u32| {
        let mut recording = recording();
        for number in 1..=full + young {
            let generation = if number <= full { 2 } else { 0 };
            recording.at(u64::from(number) * 90 * MILLISECOND).suspend_begin(1).suspend_end();
            recording.gc_start(number, generation, 0).gc_end(number, generation).restart_end();
            recording.allocation(100_000, "System.Byte[]").on(1);
        }
        causes(&overview(&recording, &[]))
    };
    assert_eq!(collections(49, 0), []);
    assert_eq!(collections(50, 0), in_sell(FindingKind::GcPressure));
    assert_eq!(collections(50, 51), []);
}

#[test]
fn free_memory_after_collections_of_the_whole_heap_is_fragmentation() {
    const MB: u64 = 1_000_000;
    let judge = |collections: &[(u32, u64)]| {
        let mut recording = recording();
        for (number, (generation, _)) in (1..).zip(collections) {
            recording
                .at(u64::from(number) * SECOND)
                .gc_start(number, *generation, 0)
                .gc_end(number, *generation);
        }
        let mut overview = overview(&recording, &[]);
        for (collection, (_, free)) in overview.gc.collections.iter_mut().zip(collections) {
            collection.generations_bytes = Some([0, 0, 300 * MB, 40 * MB, 0]);
            collection.free_bytes = Some([0, 0, *free, 30 * MB, 0]);
        }
        diagnose(&Evidence::default().with_recording(&overview))
    };
    let findings = judge(&[(2, 250 * MB), (0, 0), (2, 240 * MB)]);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.kind, FindingKind::HeapFragmentation);
    assert_eq!(finding.cause, "240 MB of the 300 MB of generation 2 are free between objects");
    // It is used again from time to time; young collections say nothing of the oldest generation.
    assert_eq!(judge(&[(2, 250 * MB), (2, 100 * MB)]), []);
    assert_eq!(judge(&[(1, 250 * MB)]), []);
}

#[test]
fn exceptions_are_a_cause_by_their_rate() {
    let thrown = |number: u64| {
        let mut recording = recording();
        for index in 0..number {
            recording.at(index * MILLISECOND).exception("System.FormatException", "not a number").on(1);
        }
        causes(&overview(&recording, &[]))
    };
    assert_eq!(thrown(499), []);
    assert_eq!(thrown(500), in_sell(FindingKind::Exceptions));
}

#[test]
fn the_rate_of_exceptions_is_that_of_the_time_in_which_they_were_recorded() {
    let mut recording = recording();
    for index in 0..101 {
        recording.at(index * MILLISECOND).exception("System.FormatException", "not a number").on(1);
    }
    let recording = overview(&recording, &[]);
    assert_eq!(causes(&recording), []);
    let evidence = Evidence::default().with_recording(&recording).with_partial_exceptions(true);
    let diagnosis = Diagnosis::new(ProcessIdentity::default(), &evidence);
    let [finding] = &diagnosis.findings[..] else { panic!("{diagnosis:?}") };
    assert!(finding.cause.starts_with("1,010 exceptions per second, 100% of them "), "{}", finding.cause);
    assert!(diagnosis.looked_at[0].ends_with("exceptions of 100 ms, which are many"), "{diagnosis:?}");
}

#[test]
fn a_convoy_is_judged_by_the_share_of_time_that_threads_wait() {
    let waits = |milliseconds: u64| {
        let mut recording = recording();
        for thread in 2..6 {
            recording.at(SECOND).thread(thread).contention_start(0x5000, 1).on(1);
        }
        for thread in 2..6 {
            let end = SECOND + milliseconds * MILLISECOND;
            recording.at(end).thread(thread).contention_stop((milliseconds * MILLISECOND) as f64).on(1);
        }
        causes(&overview(&recording, &[]))
    };
    assert_eq!(waits(999), []);
    assert_eq!(waits(1_000), in_sell(FindingKind::LockConvoy));
}

#[test]
fn waits_that_last_until_the_end_are_a_convoy() {
    let mut recording = recording();
    for thread in 2..6 {
        recording.at(SECOND).thread(thread).contention_start(0x5000, 1).on(1);
    }
    recording.at(9 * SECOND).thread(2).contention_stop(8e9).on(1);
    let findings = diagnose(&Evidence::default().with_recording(&overview(&recording, &[])));
    let causes: Vec<_> = findings.iter().map(|finding| finding.cause.as_str()).collect();
    // 8 s of one thread, and 9 s of three.
    assert_eq!(causes, ["4 threads wait for one lock in Orders.Sell 87.5% of their time"]);
}
