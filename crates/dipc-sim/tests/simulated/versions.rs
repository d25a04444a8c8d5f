//! The answers of each version, compared with real runtimes.

use crate::plain_client::{NoAnswer, moment, patience, send};
use dipc_sim::{Runtime, Version};
use dipc_wire::{
    ApplyStartupHook, AttachProfiler, CollectTracing2, CollectTracing3, CollectTracing4, CollectTracing5,
    CollectTracing6, Command as _, CommandId, CommandSet, DisablePerfMap, DumpType, EnablePerfMap,
    EventFilter, FilteredProviderConfig, Format, GenerateCoreDump1, GenerateCoreDump2, GenerateCoreDump3,
    HResult, Keywords, Level, Message, PerfMapType, ProcessEnvironment, ProcessInfo1, ProcessInfo2,
    ProcessInfo3, ProviderConfig, ResumeRuntime, ServerError, SetEnvironmentVariable, StartupProfiler,
    StopTracing, StreamingSession, StreamingSession6, TracepointConfig, UserEventsProviderConfig,
    UserEventsSession, decode_reply,
};
use std::path::Path;

const NONE: &str = "80131385";
const BAD: &str = "80131384";
const BUILT_OUT: &str = "80131515";
const DIES: &str = "dies";
const OK: &str = "ok";
const FAILS: &str = "80004005";

/// A payload shorter than any command's.
const BROKEN: &[u8] = &[1];

const VERSIONS: [Version; 4] = [Version::NET3_1, Version::NET9, Version::NET10, Version::NATIVE_AOT_9];

fn provider() -> ProviderConfig {
    ProviderConfig {
        keywords: Keywords(0x10),
        level: Level::INFORMATIONAL,
        name: "Workload-Typed".into(),
        arguments: String::new(),
    }
}

fn filtered() -> StreamingSession {
    StreamingSession {
        buffer_mb: 1,
        format: Format::NETTRACE,
        rundown_keyword: Keywords::NONE,
        request_stackwalk: false,
        providers: vec![FilteredProviderConfig { provider: provider(), filter: EventFilter::default() }],
    }
}

fn user_events(default_tracepoint: &str) -> CollectTracing5 {
    let tracepoints = TracepointConfig { default_tracepoint: default_tracepoint.into(), sets: Vec::new() };
    let provider =
        UserEventsProviderConfig { provider: provider(), filter: EventFilter::default(), tracepoints };
    CollectTracing5::UserEvents(UserEventsSession {
        rundown_keyword: Keywords::NONE,
        providers: vec![provider],
    })
}

fn set(name: &str, value: Option<&str>) -> Vec<u8> {
    SetEnvironmentVariable { name: name.to_owned(), value: value.map(str::to_owned) }.to_bytes().unwrap()
}

fn raw(set: CommandSet, id: u8, payload: &[u8]) -> Vec<u8> {
    Message::new(CommandId { set, id }, payload.to_vec()).unwrap().to_bytes().unwrap()
}

/// A request's name and bytes, and the answers of 3.1.23, 9.0.1, 10.0.5 and NativeAOT 9.0.20, as observed on
/// Linux x64.
type Seen = (&'static str, Vec<u8>, [&'static str; 4]);

fn process_commands(missing: &str) -> Vec<Seen> {
    let perf_map = |kind| EnablePerfMap { kind }.to_bytes().unwrap();
    vec![
        ("info", ProcessInfo1.to_bytes().unwrap(), [NONE, OK, OK, OK]),
        ("info 2", ProcessInfo2.to_bytes().unwrap(), [NONE, OK, OK, OK]),
        ("info 3", ProcessInfo3.to_bytes().unwrap(), [NONE, OK, OK, OK]),
        ("environment", ProcessEnvironment.to_bytes().unwrap(), [NONE, OK, OK, OK]),
        ("set", set("A", Some("b")), [NONE, OK, OK, OK]),
        ("set to nothing", set("A", Some("")), [NONE, OK, OK, OK]),
        ("unset", set("LANG", None), [NONE, OK, OK, DIES]),
        ("unset what is not set", set("NOPE", None), [NONE, "800700cb", "800700cb", DIES]),
        ("set no name", set("", Some("x")), [NONE, OK, OK, "ffffffff"]),
        ("set a bad name", set("A=B", Some("x")), [NONE, OK, OK, "ffffffff"]),
        ("set, bad", raw(CommandSet::PROCESS, 3, BROKEN), [NONE, DIES, DIES, DIES]),
        ("resume", ResumeRuntime.to_bytes().unwrap(), [NONE, OK, OK, OK]),
        ("perf map", perf_map(PerfMapType::PERF_MAP), [NONE, OK, OK, BUILT_OUT]),
        ("no perf map", perf_map(PerfMapType::DISABLED), [NONE, "80070057", "80070057", BUILT_OUT]),
        ("strange perf map", perf_map(PerfMapType(9)), [NONE, "80070057", "80070057", BUILT_OUT]),
        ("perf map, bad", raw(CommandSet::PROCESS, 5, &[]), [NONE, DIES, DIES, BUILT_OUT]),
        ("perf map off", DisablePerfMap.to_bytes().unwrap(), [NONE, OK, OK, BUILT_OUT]),
        (
            "missing hook",
            ApplyStartupHook { path: missing.to_owned() }.to_bytes().unwrap(),
            [NONE, DIES, OK, BUILT_OUT],
        ),
    ]
}

fn dumps_and_profilers(folder: &Path, missing: &str) -> Vec<Seen> {
    let path = folder.join("core").to_str().unwrap().to_owned();
    let missing = missing.to_owned();
    let profiler = uuid::uuid!("11111111-2222-3333-4444-555555555555");
    let client_data = vec![1, 2, 3];
    vec![
        (
            "attach",
            AttachProfiler { timeout_ms: 1000, profiler, path: missing.clone(), client_data }
                .to_bytes()
                .unwrap(),
            ["8007007e", "8007007e", "8007007e", BUILT_OUT],
        ),
        ("attach, bad", raw(CommandSet::PROFILER, 1, BROKEN), [BAD, BAD, BAD, BUILT_OUT]),
        (
            "startup profiler",
            StartupProfiler { profiler, path: missing.clone() }.to_bytes().unwrap(),
            [BAD, OK, OK, BUILT_OUT],
        ),
        ("startup profiler, bad", raw(CommandSet::PROFILER, 2, BROKEN), [BAD, OK, OK, BUILT_OUT]),
        ("other profiler command", raw(CommandSet::PROFILER, 9, &[]), [BAD, NONE, NONE, BUILT_OUT]),
        (
            "dump",
            GenerateCoreDump1 { path: path.clone(), dump_type: DumpType::TRIAGE, ..Default::default() }
                .to_bytes()
                .unwrap(),
            [OK, OK, OK, FAILS],
        ),
        (
            "dump 2",
            GenerateCoreDump2 { path: path.clone(), dump_type: DumpType(9), ..Default::default() }
                .to_bytes()
                .unwrap(),
            [NONE, FAILS, FAILS, FAILS],
        ),
        (
            "dump 3",
            GenerateCoreDump3 { path: missing.clone(), ..Default::default() }.to_bytes().unwrap(),
            [NONE, FAILS, FAILS, FAILS],
        ),
        ("dump, bad", raw(CommandSet::DUMP, 1, BROKEN), [BAD, DIES, DIES, DIES]),
        ("other dump command", raw(CommandSet::DUMP, 9, &[]), [NONE, NONE, NONE, NONE]),
    ]
}

fn sessions_and_others() -> Vec<Seen> {
    vec![
        (
            "collect 2",
            CollectTracing2 { buffer_mb: 1, providers: vec![provider()], ..Default::default() }
                .to_bytes()
                .unwrap(),
            [OK, OK, OK, OK],
        ),
        (
            "collect 3",
            CollectTracing3 { buffer_mb: 1, providers: vec![provider()], ..Default::default() }
                .to_bytes()
                .unwrap(),
            [NONE, OK, OK, OK],
        ),
        (
            "collect 4",
            CollectTracing4 { buffer_mb: 1, providers: vec![provider()], ..Default::default() }
                .to_bytes()
                .unwrap(),
            [NONE, OK, OK, OK],
        ),
        (
            "collect 5",
            CollectTracing5::<StreamingSession, UserEventsSession>::Streaming(filtered()).to_bytes().unwrap(),
            [NONE, NONE, OK, NONE],
        ),
        ("collect 5, no tracepoint", user_events("").to_bytes().unwrap(), [NONE, NONE, BAD, NONE]),
        (
            "collect 5, the byte without a descriptor",
            [user_events("tp").to_bytes().unwrap(), vec![0]].concat(),
            [NONE, NONE, BAD, NONE],
        ),
        ("collect 5, other kind", raw(CommandSet::EVENT_PIPE, 6, &[7; 40]), [NONE, NONE, BAD, NONE]),
        (
            "collect 6",
            CollectTracing6::<StreamingSession6, UserEventsSession>::Streaming(StreamingSession6 {
                session: filtered(),
                ..StreamingSession6::default()
            })
            .to_bytes()
            .unwrap(),
            [NONE, NONE, NONE, NONE],
        ),
        ("stop", StopTracing { session: dipc_wire::SessionId(7) }.to_bytes().unwrap(), [OK, OK, OK, OK]),
        ("stop, bad", raw(CommandSet::EVENT_PIPE, 1, BROKEN), [OK, OK, OK, OK]),
        ("other session command", raw(CommandSet::EVENT_PIPE, 99, &[]), [NONE, NONE, NONE, NONE]),
        ("other set", raw(CommandSet(9), 1, &[]), [NONE, NONE, NONE, NONE]),
        ("a reply", raw(CommandSet::SERVER, 0, &[]), [NONE, NONE, NONE, NONE]),
    ]
}

fn seen(folder: &Path) -> Vec<Seen> {
    let missing = folder.join("no/such/file").to_str().unwrap().to_owned();
    [process_commands(&missing), dumps_and_profilers(folder, &missing), sessions_and_others()].concat()
}

/// The request's outcome in one word.
fn outcome(runtime: &Runtime, request: &[u8]) -> String {
    match send(runtime, request, patience()) {
        Ok(answer) if answer.message.header.command == CommandId::OK => OK.into(),
        Ok(answer) => {
            let error = decode_reply::<ProcessInfo1>(&answer.message).unwrap().unwrap_err();
            format!("{:08x}", error.hresult.bits())
        }
        Err(NoAnswer::End(0)) => DIES.into(),
        Err(NoAnswer::Transport(error)) if error.is_disconnected() => DIES.into(),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn each_version_answers_as_observed() {
    for (column, version) in VERSIONS.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        for (name, request, expected) in seen(folder.path()) {
            let runtime = Runtime::builder().version(version).start_in(folder.path()).unwrap();
            assert_eq!(outcome(&runtime, &request), expected[column], "{name} on {version}");
            assert_eq!(runtime.has_died(), expected[column] == DIES, "{name} on {version}");
        }
    }
}

/// As seen on 8.0.28.
#[test]
fn net_8_refuses_a_hook_that_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().version(Version::NET8).start_in(folder.path()).unwrap();
    let path = folder.path().join("no/such/file").to_str().unwrap().to_owned();
    assert_eq!(outcome(&runtime, &ApplyStartupHook { path }.to_bytes().unwrap()), "80070057");
    assert!(!runtime.has_died());
}

#[test]
fn only_net_11_has_sessions_that_block() {
    let session = |mode| {
        CollectTracing6::<StreamingSession6, UserEventsSession>::Streaming(StreamingSession6 {
            session: filtered(),
            buffer_mode: dipc_wire::BufferMode(mode),
        })
        .to_bytes()
        .unwrap()
    };
    for version in Version::ALL {
        let folder = tempfile::tempdir().unwrap();
        let runtime = Runtime::builder().version(*version).start_in(folder.path()).unwrap();
        let expected = if *version == Version::NET11 { [OK, OK, BAD] } else { [NONE; 3] };
        for (mode, expected) in [0, 1, 2].into_iter().zip(expected) {
            assert_eq!(outcome(&runtime, &session(mode)), expected, "{version}, mode {mode}");
        }
    }
}

#[test]
fn a_session_into_user_events_waits_for_its_descriptor() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::builder().version(Version::NET10).start_in(folder.path()).unwrap();
    let mut connection = crate::plain_client::connect(&runtime);
    connection.write_all(&user_events("tp").to_bytes().unwrap(), patience()).unwrap();
    let mut buffer = [0; 100];
    assert!(connection.read(&mut buffer, moment()).unwrap_err().is_timeout());
    let file = tempfile::tempfile().unwrap();
    connection.send_with_descriptors(&[0], &[std::os::fd::AsFd::as_fd(&file)], patience()).unwrap();
    let count = connection.read(&mut buffer, patience()).unwrap();
    assert_eq!(buffer[..count], dipc_wire::encode_error(HResult::FAIL));
    assert_eq!(runtime.session_count(), 0);
}

/// The text of an error without a reason, and of one with it.
#[test]
fn a_failed_dump_has_a_log_or_an_empty_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/such/folder/core").to_str().unwrap().to_owned();
    let ask = |version, dump_type| {
        let runtime = Runtime::builder().version(version).start_in(folder.path()).unwrap();
        let request = GenerateCoreDump3 { path: path.clone(), dump_type, ..Default::default() };
        let answer = send(&runtime, &request.to_bytes().unwrap(), patience()).unwrap();
        (answer.message.header.size, decode_reply::<ProcessInfo1>(&answer.message).unwrap().unwrap_err())
    };
    let (_, error) = ask(Version::NET9, DumpType::FULL);
    assert_eq!(
        error.detail.unwrap(),
        format!(
            "[createdump] Could not create output file '{path}': No such file or directory (2)\n[createdump] Failure took 1ms\n"
        )
    );
    let silent = ServerError::new(HResult::FAIL).with_extra(vec![1, 0, 0, 0, 0, 0]);
    assert_eq!(ask(Version::NET9, DumpType(0)), (30, silent.clone()));
    assert_eq!(ask(Version::NATIVE_AOT_9, DumpType::FULL), (30, silent));
}
