//! Streams of real recordings and of synthetic events, read back with `nettrace`.

use crate::plain_client::{Answer, patience, send, stop};
use dipc_sim::{Error, Fault, Runtime, Speed};
use dipc_wire::{
    CollectTracing2, CollectTracing5, Command as _, EventFilter, FilteredProviderConfig, Format, Keywords,
    Level, ProviderConfig, SessionId, StreamingSession, UserEventsSession, decode_reply,
};
use nettrace::SliceReader;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A recording of the repository.
fn recorded(name: &str) -> Vec<u8> {
    testdata::bytes(&format!("traces/{name}"))
}

fn providers(names: &[&str]) -> Vec<ProviderConfig> {
    let provider = |name: &&str| ProviderConfig {
        keywords: Keywords::ALL,
        level: Level::VERBOSE,
        name: (*name).into(),
        arguments: String::new(),
    };
    names.iter().map(provider).collect()
}

fn start(runtime: &Runtime, names: &[&str]) -> (SessionId, Answer) {
    let request =
        CollectTracing2 { buffer_mb: 64, providers: providers(names), ..CollectTracing2::default() };
    let answer = send(runtime, &request.to_bytes().unwrap(), patience()).unwrap();
    (decode_reply::<CollectTracing2>(&answer.message).unwrap().unwrap(), answer)
}

/// The stream of a session that is stopped after a while.
fn record(runtime: &Runtime, names: &[&str], run: Duration) -> Vec<u8> {
    let (id, answer) = start(runtime, names);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        std::thread::sleep(run);
        stop(runtime, id);
        reader.join().unwrap()
    })
}

/// The stream of a session that is stopped after at least this many bytes.
fn record_bytes(runtime: &Runtime, names: &[&str], bytes: usize) -> Vec<u8> {
    let (id, mut answer) = start(runtime, names);
    read_bytes(&mut answer, bytes);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        stop(runtime, id);
        reader.join().unwrap()
    })
}

fn read_bytes(answer: &mut Answer, bytes: usize) {
    let mut buffer = [0; 8192];
    while answer.behind.len() < bytes {
        let count = answer.connection.read(&mut buffer, patience()).unwrap();
        assert!(count > 0, "the stream has ended");
        answer.behind.extend(&buffer[..count]);
    }
}

/// Reads at least this many bytes of a stream that is not stopped, and the bytes that follow within a moment.
fn read_available(answer: &mut Answer, bytes: usize) -> Vec<u8> {
    read_bytes(answer, bytes);
    let mut buffer = [0; 8192];
    loop {
        match answer.connection.read(&mut buffer, crate::plain_client::moment()) {
            Ok(0) => panic!("the stream has ended"),
            Ok(count) => answer.behind.extend(&buffer[..count]),
            Err(error) if error.is_timeout() => return std::mem::take(&mut answer.behind),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Reads a complete recording: the number of events of each provider, the number of lost events, and the last
/// time in nanoseconds.
fn read(bytes: &[u8]) -> (BTreeMap<String, u64>, u64, i64) {
    let mut reader = SliceReader::new(bytes).unwrap();
    let mut count = BTreeMap::new();
    let mut last = 0;
    while let Some(event) = reader.next().unwrap() {
        *count.entry(event.provider().to_owned()).or_insert(0) += 1;
        last = last.max(event.relative_time().as_nanos());
    }
    assert!(reader.damage().is_empty(), "{:?}", reader.damage());
    assert_eq!(reader.truncated_at(), None);
    (count, reader.loss().total(), last)
}

fn runtime(build: impl FnOnce(dipc_sim::Builder) -> dipc_sim::Builder) -> (Runtime, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (build(Runtime::builder()).start_in(folder.path()).unwrap(), folder)
}

#[test]
fn the_rundown_and_the_end_come_when_the_session_is_stopped() {
    let bytes = recorded("net10-all.nettrace.xz");
    let (runtime, _folder) = runtime(|builder| builder.replay(bytes.clone()));
    let (id, mut answer) = start(&runtime, &["X"]);
    let before = read_available(&mut answer, 500_000);
    assert!(bytes.starts_with(&before) && before.len() < bytes.len());
    let mut reader = SliceReader::new(&before).unwrap();
    let mut events = 0;
    while let Some(event) = reader.next().unwrap() {
        assert_ne!(event.provider(), "Microsoft-Windows-DotNETRuntimeRundown");
        events += 1;
    }
    assert!(events > 1000 && reader.damage().is_empty());
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answer.rest());
        stop(&runtime, id);
        assert!(reader.join().unwrap() == bytes[before.len()..]);
    });
}

#[test]
fn a_recording_is_paced_by_its_own_times() {
    for name in ["net10-all.nettrace.xz", "net10-netperf.netperf.xz", "v6-record-trace.nettrace.xz"] {
        let bytes = recorded(name);
        let (_, _, last) = read(&bytes);
        let length = Duration::from_nanos(last.unsigned_abs());
        // The whole recording in a third of a second.
        let speed = Speed::Recorded(length.as_secs_f64() * 3.0);
        let (runtime, _folder) =
            runtime(|builder| builder.replay(bytes.clone()).speed(speed).end_with_recording());
        let started = Instant::now();
        let (_, answer) = start(&runtime, &["X"]);
        assert!(answer.rest() == bytes, "{name}");
        assert!(started.elapsed() >= Duration::from_millis(330), "{name}");
    }
}

#[test]
fn a_looped_recording_is_one_recording_in_time_order() {
    let name = "net10-sample.nettrace.xz";
    let bytes = recorded(name);
    let (once, lost, length) = read(&bytes);
    assert_eq!(lost, 0);
    let (runtime, _folder) = runtime(|builder| builder.replay(bytes.clone()).looped());
    let stream = record_bytes(&runtime, &["X"], 4 * bytes.len());
    let (many, lost, end) = read(&stream);
    assert_eq!(lost, 0);
    let rundown = "Microsoft-Windows-DotNETRuntimeRundown";
    let sampler = "Microsoft-DotNETCore-SampleProfiler";
    let rounds = many[sampler] / once[sampler];
    assert!(rounds >= 4, "{rounds} rounds");
    for (provider, count) in &once {
        let expected = if provider == rundown { *count } else { count * rounds };
        assert_eq!(many[provider], expected, "{provider}");
    }
    assert!(end > length * i64::try_from(rounds - 1).unwrap());
    // In time order no event is out of place, and every stack is found.
    let mut ordered = SliceReader::new(&stream).unwrap().in_time_order();
    let mut time = i64::MIN;
    while let Some(event) = ordered.next().unwrap() {
        assert!(event.relative_time().as_nanos() >= time);
        time = event.relative_time().as_nanos();
        assert!(event.provider() != sampler || event.stack().count() > 0);
    }
}

#[test]
fn a_loop_that_is_stopped_in_its_first_round_is_the_recording() {
    let bytes = recorded("net10-all.nettrace.xz");
    let (runtime, _folder) = runtime(|builder| {
        builder.replay(bytes.clone()).looped().speed(Speed::Over(Duration::from_secs(3600)))
    });
    assert!(record(&runtime, &["X"], Duration::from_millis(20)) == bytes);
}

#[test]
fn lost_events_are_lost_again_in_each_round() {
    let bytes = recorded("net10-tinybuf.nettrace.xz");
    let (once, lost, _) = read(&bytes);
    assert!(lost > 0, "this recording has losses");
    let len = bytes.len();
    let (runtime, _folder) = runtime(|builder| builder.replay(bytes).looped());
    let (many, lost_in_all, _) = read(&record_bytes(&runtime, &["X"], 4 * len));
    let (provider, count) = once.iter().find(|(provider, _)| !provider.ends_with("Rundown")).unwrap();
    let rounds = many[provider] / count;
    assert!(rounds >= 2 && lost_in_all >= lost * rounds, "{lost_in_all} in {rounds} rounds of {lost}");
}

#[test]
fn a_recording_that_cannot_be_played_as_configured_is_an_error_of_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded("net10-all.nettrace.xz");
    let start = |bytes: &[u8], speed, looped| {
        let builder = Runtime::builder().replay(bytes).speed(speed);
        let builder = if looped { builder.looped() } else { builder };
        builder.start_in(folder.path()).map(drop)
    };
    for (bytes, speed, looped) in [
        (&whole[..whole.len() - 100], Speed::Max, true),
        (&recorded("v6-record-trace.nettrace.xz"), Speed::Max, true),
        (&recorded("net10-netperf.netperf.xz"), Speed::Max, true),
        (&b"nonsense"[..], Speed::Max, true),
        (&b"nonsense"[..], Speed::Recorded(1.0), false),
    ] {
        let error = start(bytes, speed, looped).unwrap_err();
        assert!(matches!(error, Error::Recording { .. }), "{error}");
    }
    // A truncated recording can be played once.
    start(&whole[..whole.len() - 100], Speed::Recorded(2.0), false).unwrap();
}

#[test]
fn a_cut_recording_is_not_looped() {
    let whole = recorded("net10-typed.nettrace.xz");
    let folder = tempfile::tempdir().unwrap();
    for len in (0..whole.len()).step_by(37) {
        let looped = Runtime::builder().replay(&whole[..len]).looped().start_in(folder.path());
        assert!(looped.is_err(), "{len}");
    }
}

const TICKS: &str = "Dipc-Simulated";
const SAMPLES: &str = "Microsoft-DotNETCore-SampleProfiler";

#[test]
fn synthetic_events_have_the_configured_rate() {
    let (runtime, _folder) = runtime(|builder| builder.rate(20_000));
    let started = Instant::now();
    let stream = record(&runtime, &[TICKS, SAMPLES], Duration::from_millis(1200));
    let longest = started.elapsed();
    let (count, lost, end) = read(&stream);
    assert_eq!(lost, 0);
    let events = count[TICKS] + count[SAMPLES];
    assert!(count[TICKS].abs_diff(count[SAMPLES]) <= 4);
    assert!(
        events >= 24_000 && u128::from(events) <= longest.as_micros() * 20 / 1000 + 1,
        "{events} in {longest:?}"
    );
    assert!(end >= 1_199_000_000);
    let mut reader = SliceReader::new(&stream).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().fields().count(), 2);
    assert_eq!(reader.info().unwrap().process_id, Some(std::process::id().into()));
}

#[test]
fn only_enabled_synthetic_events_are_sent() {
    let (runtime, _folder) = runtime(|builder| builder.version(dipc_sim::Version::NET10).rate(10_000));
    let (count, _, _) = read(&record(&runtime, &["dipc-SIMULATED"], Duration::from_millis(50)));
    assert_eq!(count.keys().collect::<Vec<_>>(), [TICKS]);
    let (count, _, _) = read(&record(&runtime, &["Something.Else"], Duration::from_millis(50)));
    assert!(count.is_empty());

    let filtered = |enable, ids: &[u32], level| {
        let provider = ProviderConfig { level: Level(level), ..providers(&[TICKS]).remove(0) };
        let filter = EventFilter { enable, ids: ids.to_vec() };
        let request = CollectTracing5::<_, UserEventsSession>::Streaming(StreamingSession {
            buffer_mb: 1,
            format: Format::NETTRACE,
            rundown_keyword: Keywords::NONE,
            request_stackwalk: true,
            providers: vec![FilteredProviderConfig { provider, filter }],
        });
        let answer = send(&runtime, &request.to_bytes().unwrap(), patience()).unwrap();
        let (id, _) = runtime.sessions().remove(0);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| answer.rest());
            std::thread::sleep(Duration::from_millis(50));
            stop(&runtime, id);
            !read(&reader.join().unwrap()).0.is_empty()
        })
    };
    assert!(filtered(false, &[], 4) && filtered(true, &[1, 7], 5) && filtered(false, &[7], 4));
    // Level 0 has the events of all levels.
    assert!(filtered(false, &[], 0));
    assert!(!filtered(true, &[7], 5) && !filtered(false, &[1], 5) && !filtered(false, &[], 3));
}

#[test]
fn flood() {
    let (runtime, _folder) = runtime(|builder| builder.fault(Fault::Flood));
    let stream = record(&runtime, &[TICKS], Duration::from_millis(300));
    let (count, lost, _) = read(&stream);
    assert!(count[TICKS] > 0 && lost > 1_000_000, "{count:?}, {lost} lost");
}
