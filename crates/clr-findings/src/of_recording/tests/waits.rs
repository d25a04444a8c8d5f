//! Waits that last as long as the recording, and threads that do not end.

use super::*;

const PRICE: &str = "App!Shop.Catalog.Price(int)";
const STEP: &str = "App!Shop.Simulation.Step(int)";
const READ_LOCK: &str = "System.Private.CoreLib!System.Threading.ReaderWriterLockSlim.EnterReadLock()";
const BARRIER: &str = "System.Threading!System.Threading.Barrier.SignalAndWait()";
const EVENT: &str = "System.Private.CoreLib!System.Threading.WaitHandle.WaitOne()";

/// The sentence of the only cause.
#[track_caller]
fn cause(overview: &Overview) -> String {
    let findings = diagnose(&Evidence::default().with_recording(overview));
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    finding.cause.clone()
}

#[test]
fn locks_that_are_waited_for_all_the_time_are_a_cause() {
    let with = |called: &str, runtime: &str, milliseconds| {
        let stack: &[&str] = &[MAIN, PRICE, called];
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Blocked, 9_000, stack),
            (2, ThreadState::Blocked, milliseconds, stack),
            (3, ThreadState::Blocked, 9_000, &[MAIN, SELL, runtime]),
        ];
        overview(&recording(), rows)
    };
    let waits = with(READ_LOCK, "libcoreclr.so!?", 9_000);
    assert_eq!(causes(&waits), [(FindingKind::LockConvoy, Some("Catalog.Price".to_owned()))]);
    assert_eq!(
        cause(&waits),
        "3 threads wait for locks all the time, for 10.0 s: 2 in Catalog.Price (ReaderWriterLockSlim.EnterReadLock), \
         1 in Orders.Sell (a monitor)"
    );
    // One that began to wait a moment ago is not counted, nor one in a library of the user's.
    let waits = with(READ_LOCK, "libshop.so!?", 4_000);
    assert!(cause(&waits).starts_with("1 thread waits for locks all the time"), "{}", cause(&waits));
    // Work can come.
    let idle = with(EVENT, "libshop.so!?", 9_000);
    assert_eq!(causes(&idle), []);
    let diagnosis = Diagnosis::new(ProcessIdentity::default(), &Evidence::default().with_recording(&idle));
    let rows = diagnosis.rows("shop", |_| None);
    let places = "2 threads in Catalog.Price (WaitHandle.WaitOne), 1 thread in Orders.Sell";
    assert_eq!(rows[1], ("Waiting", places.to_owned()));
}

#[test]
fn signals_are_missed_if_no_other_thread_is_at_work() {
    // Threads were recorded for a part of the ten seconds.
    let with_work = |milliseconds| {
        let waits: &[&str] = &[MAIN, STEP, BARRIER];
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Blocked, 7_000, waits),
            (2, ThreadState::Blocked, 7_000, waits),
            (3, ThreadState::Blocked, 7_000, &[MAIN, SLEEP]),
            (3, ThreadState::Working, milliseconds, &[MAIN, SELL]),
        ];
        overview(&recording(), rows)
    };
    let stuck = with_work(100);
    assert_eq!(causes(&stuck), [(FindingKind::StuckWait, Some("Simulation.Step".to_owned()))]);
    assert!(
        cause(&stuck).starts_with("2 threads wait in Simulation.Step for a Barrier "),
        "{}",
        cause(&stuck)
    );
    // The slowest of them works.
    assert_eq!(causes(&with_work(200)), []);
    // Memory knows the threads better.
    let memory = [crate::MemoryFacts::default()];
    assert_eq!(diagnose(&Evidence::default().with_recording(&stuck).with_memory(&memory)), []);
}

#[test]
fn finalizers_and_static_constructors_that_wait_are_causes() {
    let below = |method: &str, milliseconds| {
        let rows: &[Row<'_>] = &[(1, ThreadState::Blocked, milliseconds, &[method, PRICE, SLEEP])];
        overview(&recording(), rows)
    };
    let method = Some("Catalog.Price".to_owned());
    let finalizer = "App!Shop.Attachment.Finalize()";
    assert_eq!(causes(&below(finalizer, 5_000)), [(FindingKind::Finalizer, method.clone())]);
    assert_eq!(causes(&below(finalizer, 4_999)), []);
    let waits = below("App!Shop.Rates..cctor()", 9_000);
    assert_eq!(causes(&waits), [(FindingKind::StaticConstructor, method)]);
    assert_eq!(
        cause(&waits),
        "The static constructor of Rates waits in Catalog.Price 90% of the time: the code that uses it waits, too"
    );
    // A method of the framework of that name.
    assert_eq!(causes(&below("System.Private.CoreLib!System.Rates.Finalize()", 9_000)), []);
}

/// The overview of a recording in which four threads begin each second. Each lives for some time, or stays.
fn growing_threads(recording: &Recording, milliseconds_of_life: Option<u64>, is_of_pool: bool) -> Overview {
    let mut builder = StackProfileBuilder::new(Measure::new("time", "samples", Unit::Nanoseconds));
    let worker = "System.Private.CoreLib!System.Threading.ThreadPoolWorkQueue.Dispatch()";
    let stack: &[&str] = if is_of_pool { &[worker, PRICE, EVENT] } else { &[PRICE, EVENT] };
    builder.add_sample(42, 1, RelativeTime::START, 10 * SECOND, [MAIN, SLEEP]);
    for number in 1..40 {
        let start = number * SECOND / 4;
        let life = milliseconds_of_life.map_or(10 * SECOND - start, |life| life * MILLISECOND);
        let start = RelativeTime::from_nanos(i64::try_from(start).unwrap());
        builder.add_sample(42, 1 + number, start, life, stack);
    }
    let mut profile = builder.finish();
    for total in &mut profile.stack_totals {
        total.state = ThreadState::Blocked;
    }
    overview_with(recording, profile)
}

#[test]
fn threads_that_begin_all_the_time_and_stay_are_a_cause() {
    let threads = |life, is_of_pool| growing_threads(&recording(), life, is_of_pool);
    let grows = threads(None, false);
    assert_eq!(causes(&grows), [(FindingKind::ThreadGrowth, Some("Catalog.Price".to_owned()))]);
    assert!(cause(&grows).starts_with("The number of threads grows: "), "{}", cause(&grows));
    assert!(cause(&grows).ends_with("most of the new ones in Catalog.Price"), "{}", cause(&grows));
    assert_eq!(causes(&threads(Some(20), false)), []);
    // The pool adds threads while its workers are blocked.
    let starved = (FindingKind::Starvation, Some("Catalog.Price".to_owned()));
    assert_eq!(causes(&threads(None, true)), [starved]);
}

#[test]
fn growth_at_a_start_is_not_judged() {
    let made = |milliseconds: u64| {
        let mut recording = recording();
        for index in 1..1_000 {
            let method = Method::new(0x1000 + index * 0x100, "Shop.Rules", "Rule");
            recording.at(index * milliseconds * MILLISECOND).method(&method);
        }
        let descriptors = growing_threads(&recording, None, false);
        let diagnosis =
            Diagnosis::new(ProcessIdentity::default(), &Evidence::default().with_recording(&descriptors));
        (
            causes(&descriptors).len(),
            diagnosis.missing.iter().any(|missing| missing.starts_with("what grows: ")),
        )
    };
    assert_eq!(made(10), (0, true));
    // The start is over.
    assert_eq!(made(7), (1, false));
}

#[test]
fn the_holder_of_most_waits_for_a_lock_is_named() {
    let held_by = |owner: u64| {
        let mut recording = recording();
        for thread in 2..6 {
            recording.at(SECOND).thread(thread).contention_start(0x5000, owner).on(1);
            recording.at(5 * SECOND).thread(thread).contention_stop(4e9).on(1);
        }
        recording.sort();
        let rows: &[Row<'_>] = &[
            (1, ThreadState::Blocked, 4_000, &[MAIN, SELL, PRICE, SLEEP]),
            (1, ThreadState::Working, 4_500, &[MAIN, SELL]),
            (2, ThreadState::Working, 1_000, &[MAIN, SELL]),
        ];
        cause(&overview(&recording, rows))
    };
    let waits = "4 threads wait for one lock in Orders.Sell 40% of their time";
    assert_eq!(held_by(1), format!("{waits}, most of it for thread 1, which is mostly in Catalog.Price"));
    // All that it does is to wait.
    assert_eq!(held_by(2), waits);
}
