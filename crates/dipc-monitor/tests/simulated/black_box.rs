//! The last seconds of processes: on demand, and in the bundles of those that crash.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use dipc_client::dipc_transport::Address;
use dipc_monitor::{
    BlackBoxConfig, BlackBoxEvent, BlackBoxMessage, BlackBoxes, ProcessObserver, Retention, RulesConfig,
    Tokens,
};
use dipc_sim::{Builder, Fault, Runtime, Speed};
use tempfile::TempDir;

use crate::{Fixture, await_that, http};

struct BoxFixture {
    fixture: Fixture,
    boxes: Arc<BlackBoxes>,
    messages: Arc<Mutex<Vec<BlackBoxMessage>>>,
    bundles: PathBuf,
    _folder: TempDir,
}

impl BoxFixture {
    /// Watches over TCP: the process of a runtime, which is a thread of the test, is not visible, and counts
    /// as ended when its runtime does not answer.
    fn start(change: impl FnOnce(BlackBoxConfig) -> BlackBoxConfig) -> Self {
        Self::at(|_| "127.0.0.1:0".parse().unwrap(), change)
    }

    /// Watches at an address, which may be in a folder of the test.
    fn at(
        address: impl FnOnce(&Path) -> Address,
        change: impl FnOnce(BlackBoxConfig) -> BlackBoxConfig,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bundles = folder.path().join("new/bundles");
        let config = change(BlackBoxConfig::default().with_directory(Some(bundles.clone())));
        let messages = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&messages);
        let log = Arc::new(move |message: &BlackBoxMessage| log.lock().unwrap().push(message.clone()));
        let boxes = Arc::new(BlackBoxes::new(config, log));
        let observers = vec![Arc::clone(&boxes) as Arc<dyn ProcessObserver>];
        let address = address(folder.path());
        let fixture = Fixture::observed(
            address,
            Tokens::default(),
            None,
            RulesConfig::default(),
            observers,
            |config| config,
        );
        Self { fixture, boxes, messages, bundles, _folder: folder }
    }

    fn bundles(&self) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(&self.bundles) else { return Vec::new() };
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    /// Starts a runtime that crashes within its recording, and waits for its bundle.
    fn crash(&self, builder: Builder) -> PathBuf {
        let count = self.messages.lock().unwrap().len();
        let _runtime = builder.connect(&self.fixture.port).unwrap();
        await_that("the crash is reported", || self.messages.lock().unwrap().len() > count);
        let message = self.messages.lock().unwrap()[count].clone();
        match message.event {
            BlackBoxEvent::Crashed { bundle: Some(bundle), .. } => bundle,
            other => panic!("{other:?}"),
        }
    }
}

/// The recording of a server whose stream has 138,930 bytes, most of them before its last exception.
fn exceptions() -> Builder {
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    Runtime::builder().replay(recording).speed(Speed::Max)
}

/// The payloads and providers of events, as a multiset of strings.
fn events(bytes: &[u8]) -> Vec<String> {
    let mut events = Vec::new();
    // A cut stream ends in an error, after the events before it.
    let _ = nettrace::Reader::new(bytes).unwrap().for_each(|event| {
        if !event.provider().starts_with("Dipc-") {
            events.push(format!("{} {} {:x?}", event.provider(), event.id(), event.payload()));
        }
    });
    events
}

#[test]
fn a_crash_leaves_a_bundle_with_everything_that_was_sent() {
    let fixture = BoxFixture::start(|config| config);
    let whole = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let bundle = fixture.crash(exceptions().fault(Fault::DieInTheMiddle { after: 120_000 }));
    let names: BTreeSet<_> = fs::read_dir(&bundle).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["events.nettrace".into(), "overview.txt".into()].into());
    let kept = events(&fs::read(bundle.join("events.nettrace")).unwrap());
    let sent = events(&whole[..120_000]);
    assert!(!kept.is_empty() && sent.starts_with(&kept), "{} of {}", kept.len(), sent.len());
    // The last block was cut.
    assert!(sent.len() - kept.len() < 200, "{} of {}", kept.len(), sent.len());
    let overview = fs::read_to_string(bundle.join("overview.txt")).unwrap();
    let thrown = kept.iter().filter(|it| it.starts_with("Microsoft-Windows-DotNETRuntime 80 ")).count();
    assert!(thrown > 0);
    let title = format!("The last exceptions ({} of {thrown}):", thrown.min(50));
    assert!(overview.contains(&title), "{title}: {overview}");
    assert!(overview.contains("Reason         : the process has disappeared\n"), "{overview}");
    assert_eq!(fixture.bundles(), [bundle]);
}

#[test]
fn the_overview_of_a_bundle_has_the_causes_in_its_events() {
    let fixture = BoxFixture::start(|config| config);
    let recording = testdata::bytes("stacks/net9-deadlock.nettrace.xz");
    let deadlock = Runtime::builder().replay(recording).speed(Speed::Max);
    let bundle = fixture.crash(deadlock.fault(Fault::DieInTheMiddle { after: 400_000 }));
    let overview = fs::read_to_string(bundle.join("overview.txt")).unwrap();
    assert!(overview.contains("\nCause          : Deadlock: thread "), "{overview}");
}

/// The runtime is a thread of the test, whose process lives on.
#[test]
#[cfg(target_os = "linux")]
fn a_process_that_runs_on_without_its_port_has_not_crashed() {
    let fixture = BoxFixture::at(|folder| folder.join("port").as_path().into(), |config| config);
    let bundle = fixture.crash(exceptions().fault(Fault::DieInTheMiddle { after: 120_000 }));
    let overview = fs::read_to_string(bundle.join("overview.txt")).unwrap();
    let reason = "Reason         : the process has closed its diagnostic port, and still runs\n";
    assert!(overview.contains(reason), "{overview}");
}

#[test]
fn old_bundles_are_removed() {
    let fixture = BoxFixture::start(|config| config.with_retention(Retention::default().with_files(Some(2))));
    let crash = || fixture.crash(exceptions().fault(Fault::DieInTheMiddle { after: 20_000 }));
    let bundles: Vec<_> = (0..3).map(|_| crash()).collect();
    assert_eq!(fixture.bundles(), bundles[1..]);
}

#[test]
fn exited_and_unwatched_processes_leave_no_bundle() {
    let fixture = BoxFixture::start(|config| config);
    let ended = fixture.fixture.add(exceptions().end_with_recording());
    await_that("its session has ended", || {
        // The session of its counters may begin before.
        let is_of_box = |request: &str| {
            request.starts_with("CollectTracing") && request.contains("Microsoft-Windows-DotNETRuntime")
        };
        let has_begun = ended.requests().iter().any(|request| is_of_box(&format!("{request:?}")));
        has_begun && ended.session_count() == 0 && fixture.boxes.totals().sessions == 0
    });
    let _watched = fixture.fixture.add(exceptions().looped());
    await_that("its events are kept", || fixture.boxes.totals().bytes > 0);
    drop(ended);
    fixture.boxes.stop();
    assert_eq!(fixture.boxes.totals().sessions, 0);
    let messages = fixture.messages.lock().unwrap();
    assert!(fixture.bundles().is_empty() && messages.is_empty(), "{:?}, {messages:?}", fixture.bundles());
}

#[test]
fn a_lost_connection_is_not_a_crash() {
    let fixture = BoxFixture::start(|config| config);
    let runtime = fixture.fixture.add(Runtime::builder().rate(1000));
    await_that("events are kept", || fixture.boxes.totals().bytes > 0);
    let (id, _) = runtime.sessions()[0].clone();
    // Another client stops the session: its stream ends as a runtime ends it.
    fixture.fixture.monitor.processes()[0].target().stop(id).unwrap();
    await_that("another session has begun", || {
        runtime.sessions().first().is_some_and(|(other, _)| *other != id)
    });
    assert!(fixture.bundles().is_empty());
}

#[test]
fn a_snapshot_has_the_content_of_the_ring() {
    let fixture = BoxFixture::start(|config| config);
    let runtime = fixture.fixture.add(exceptions());
    let whole = events(&testdata::bytes("traces/net10-exceptions.nettrace.xz"));
    let snapshot = || {
        let answer = fixture.fixture.get("/snapshot");
        (answer.status == 200).then(|| events(&answer.body))
    };
    await_that("all events are kept", || snapshot().is_some_and(|kept| kept.len() == whole.len()));
    assert_eq!(snapshot().unwrap(), whole);
    // The session goes on.
    assert_eq!(runtime.session_count(), 1);
}

/// Without having been asked before, and without a session of their own.
#[test]
fn exceptions_of_the_past_are_there_at_once() {
    let fixture = BoxFixture::start(|config| config);
    let runtime = fixture.fixture.add(exceptions());
    let read = |path: &str| {
        let answer = fixture.fixture.get(path);
        let lines = answer.text();
        let parse = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        (answer.status == 200).then(|| lines.lines().map(parse).collect::<Vec<_>>())
    };
    await_that("all exceptions are kept", || read("/exceptions").is_some_and(|all| all.len() == 43));
    let past = read("/exceptions").unwrap();
    assert_eq!((&past[0]["id"], &past[42]["id"]), (&1.into(), &43.into()));
    assert_eq!(past[0]["typeName"], "System.Net.Sockets.SocketException");
    assert!(!past[0]["message"].as_str().unwrap().is_empty());
    assert_eq!(past[0]["stack"]["frames"], serde_json::json!([]));
    let filter = r#"{"include":[{"exceptionType":"System.Net.Http.HttpRequestException"}]}"#;
    let answer = http::post(fixture.fixture.address(), "/exceptions", filter);
    let filtered = answer.text().lines().count();
    let expected = past.iter().filter(|it| it["typeName"] == "System.Net.Http.HttpRequestException").count();
    assert_eq!((answer.status, filtered), (200, expected));
    assert!(expected > 0 && expected < 43, "{expected}");
    assert_eq!(runtime.session_count(), 1);
    // Those of the next time come from a session.
    assert!(read("/exceptions?durationSeconds=1").is_some_and(|thrown| thrown != past));
}

#[test]
fn snapshots_need_a_black_box() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder());
    let answer = fixture.get("/snapshot");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("--keep"), "{}", answer.text());
}

#[test]
fn a_ring_is_bounded() {
    let fixture = BoxFixture::start(|config| config.with_total_bytes(1));
    let _runtime = fixture.fixture.add(exceptions().looped());
    // A part of a recording ends with an event that states its time.
    let is_part = || {
        let answer = fixture.fixture.get("/snapshot");
        let mut is_part = false;
        if answer.status == 200 {
            let mut events = nettrace::Reader::new(&*answer.body).unwrap();
            events.for_each(|event| is_part |= event.provider() == "Dipc-Recording").unwrap();
        }
        is_part
    };
    await_that("the first events are dropped", is_part);
    // The least part of a process, and what is added to it before the oldest eighth goes.
    assert!(fixture.boxes.totals().bytes < 2 << 20, "{:?}", fixture.boxes.totals());
}

/// Nothing that a process calls itself leads out of the directory.
#[test]
fn names_of_bundles_are_plain() {
    let fixture = BoxFixture::start(|config| config);
    let mut identity = dipc_sim::Identity::new(1, dipc_sim::Version::NET10);
    identity.command_line = "/a/..\u{1b}[31m;x/ü".to_owned();
    let bundle =
        fixture.crash(exceptions().identity(identity).fault(Fault::DieInTheMiddle { after: 20_000 }));
    let name = bundle.file_name().unwrap().to_str().unwrap();
    assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)), "{name}");
    assert_eq!(bundle.parent(), Some(&*fixture.bundles));
    let overview = fs::read_to_string(Path::new(&bundle).join("overview.txt")).unwrap();
    assert!(!overview.contains('\u{1b}'));
}
