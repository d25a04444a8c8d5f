//! Each form of each command, sent unchanged to a running process.

use std::thread;

use dipc_client::dipc_wire::{
    AttachProfiler, BufferMode, CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4,
    CollectTracing5, CollectTracing6, Command, CommandId, CommandSet, DisablePerfMap, EnablePerfMap,
    EventFilter, FilteredProviderConfig, Keywords, Level, Message, PerfMapType, ProcessEnvironment,
    ProcessInfo1, ProcessInfo2, ProcessInfo2Reply, ProcessInfo3, ProcessInfo3Reply, ProviderConfig,
    ResumeRuntime, SessionId, SetEnvironmentVariable, StartupProfiler, StopTracing, StreamingSession,
    StreamingSession6, decode_reply,
};
use dipc_client::{Deadline, Format, Target, Uuid};

use crate::Case;
use crate::subject::{PATIENCE, Subject, file};

pub(crate) const CLASS: Uuid = Uuid::from_u128(0x1111_1111_2222_3333_4444_5555_5555_5555);
pub(crate) const NO_FILE: &str = "/no/such/file";

type Providers = Vec<FilteredProviderConfig<&'static str>>;
type Five = CollectTracing5<StreamingSession<Providers>>;
type Six = CollectTracing6<StreamingSession6<Providers>>;

pub(crate) const CASES: &[Case] = &[
    running("ProcessInfo", |it| {
        it.ask(&ProcessInfo1).map_or_else(|error| error, |info| format!("ok: {} {}", info.os, info.arch))
    }),
    running("ProcessInfo2", |it| {
        let text = |info: ProcessInfo2Reply| {
            format!("ok: {}, {}", info.clr_version, info.managed_entrypoint_assembly)
        };
        it.ask(&ProcessInfo2).map_or_else(|error| error, text)
    }),
    running("ProcessInfo3", |it| {
        let text = |info: ProcessInfo3Reply| {
            format!("ok: version {}, {}, {}", info.version, info.clr_version, info.runtime_identifier)
        };
        it.ask(&ProcessInfo3).map_or_else(|error| error, text)
    }),
    running("ProcessEnvironment", |it| it.send_command(&ProcessEnvironment)),
    running("ResumeRuntime of one that runs", |it| it.send_command(&ResumeRuntime)),
    running("SetEnvironmentVariable", |it| set(it, Some("v=ü😀"))),
    running("SetEnvironmentVariable to a NUL alone", |it| set(it, Some(""))),
    running("SetEnvironmentVariable to a string of count 0", |it| set(it, None)),
    running("SetEnvironmentVariable to a string of count 0 where there is none", |it| {
        it.send_command(&SetEnvironmentVariable { name: "DIPC_ABSENT", value: None::<&str> })
    }),
    running("SetEnvironmentVariable with an empty name", |it| {
        it.send_command(&SetEnvironmentVariable { name: "", value: Some("v") })
    }),
    running("EnablePerfMap 0", |it| perf_map(it, PerfMapType::DISABLED)),
    running("EnablePerfMap jitdump", |it| perf_map(it, PerfMapType::JIT_DUMP)),
    running("EnablePerfMap perfmap", |it| perf_map(it, PerfMapType::PERF_MAP)),
    running("EnablePerfMap all", |it| perf_map(it, PerfMapType::ALL)),
    running("EnablePerfMap 4", |it| perf_map(it, PerfMapType(4))),
    running("DisablePerfMap where there is none", |it| it.send_command(&DisablePerfMap)),
    running("CollectTracing", |it| {
        session(it, &CollectTracing1 { buffer_mb: 8, format: Format::NETTRACE, providers: providers() })
    }),
    running("CollectTracing2", |it| {
        let (format, providers) = (Format::NETTRACE, providers());
        session(it, &CollectTracing2 { buffer_mb: 8, format, request_rundown: false, providers })
    }),
    running("CollectTracing3", |it| {
        let (format, providers) = (Format::NETTRACE, providers());
        let (request_rundown, request_stackwalk) = (false, false);
        session(it, &CollectTracing3 { buffer_mb: 8, format, request_rundown, request_stackwalk, providers })
    }),
    running("CollectTracing4", |it| {
        let (format, providers) = (Format::NETTRACE, providers());
        let (rundown_keyword, request_stackwalk) = (Keywords::NONE, false);
        session(it, &CollectTracing4 { buffer_mb: 8, format, rundown_keyword, request_stackwalk, providers })
    }),
    running("CollectTracing5", |it| session(it, &Five::Streaming(streaming()))),
    running("CollectTracing6", |it| {
        let streaming = StreamingSession6 { session: streaming(), buffer_mode: BufferMode::BLOCK };
        session(it, &Six::Streaming(streaming))
    }),
    running("StopTracing of a session that does not exist", |it| {
        it.send_command(&StopTracing { session: SessionId(0x1234) })
    }),
    running("AttachProfiler of a file that does not exist", attach),
    suspended("AttachProfiler, suspended", attach),
    running("StartupProfiler of one that runs", startup_profiler),
    suspended("StartupProfiler, suspended, of a file that does not exist; then resumed", |it| {
        let answer = startup_profiler(it);
        it.spend();
        let resumed = it.send_command(&ResumeRuntime);
        it.await_program();
        format!("{answer}; {resumed}, and runs")
    }),
    running("command 0b0c", |it| {
        let id = CommandId { set: CommandSet(0x0b), id: 0x0c };
        let bytes = Message::new(id, Vec::new()).unwrap().to_bytes().unwrap();
        let (message, _) = it.send(&bytes).unwrap();
        decode_reply::<ProcessInfo1>(&message).unwrap().unwrap_err().hresult.to_string()
    }),
];

pub(crate) const fn running(name: &'static str, act: fn(&mut Subject) -> String) -> Case {
    Case { name, suspended: false, act }
}

pub(crate) const fn suspended(name: &'static str, act: fn(&mut Subject) -> String) -> Case {
    Case { name, suspended: true, act }
}

/// Sets an existing variable, and returns its new state.
fn set(it: &mut Subject, value: Option<&str>) -> String {
    const NAME: &str = "DIPC_VARIABLE";
    if let Err(error) = it.ask(&SetEnvironmentVariable { name: NAME, value: Some("before") }) {
        return error;
    }
    let answer = it.send_command(&SetEnvironmentVariable { name: NAME, value });
    let Ok(environment) = Target::from_pid(it.pid()).and_then(|target| target.environment()) else {
        return answer;
    };
    let found = environment.iter().find(|variable| variable.starts_with(NAME));
    format!("{answer}: {}", found.map_or("not there", String::as_str))
}

fn perf_map(it: &mut Subject, kind: PerfMapType) -> String {
    let (map, dump) = (format!("perf-{}.map", it.pid()), format!("jit-{}.dump", it.pid()));
    let (map, dump) = (it.path(&map), it.path(&dump));
    let answer = it.send_command(&EnablePerfMap { kind });
    if answer != "ok" {
        return answer;
    }
    let files = format!("perf-PID.map {}, jit-PID.dump {}", file(&map), file(&dump));
    let disabled = it.send_command(&DisablePerfMap);
    let _ = (std::fs::remove_file(map), std::fs::remove_file(dump));
    format!("{answer}: {files}; disabled: {disabled}")
}

fn provider() -> ProviderConfig<&'static str> {
    ProviderConfig {
        keywords: Keywords::ALL,
        level: Level::INFORMATIONAL,
        name: "Some-Provider",
        arguments: "",
    }
}

fn providers() -> Vec<ProviderConfig<&'static str>> {
    vec![provider()]
}

fn streaming() -> StreamingSession<Providers> {
    let filter = EventFilter { enable: true, ids: vec![1, 2] };
    StreamingSession {
        buffer_mb: 8,
        format: Format::NETTRACE,
        rundown_keyword: Keywords::NONE,
        request_stackwalk: false,
        providers: vec![FilteredProviderConfig { provider: provider(), filter }],
    }
}

/// Starts a session and stops it, with a reader of its stream: without one, 3.1 was seen to end.
fn session<C: Command<Reply = SessionId>>(it: &mut Subject, command: &C) -> String {
    let (session, mut stream) = match it.converse(command) {
        Ok(answer) => answer,
        Err(error) => return error,
    };
    let reading = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while stream.read(&mut buffer, Deadline::after(PATIENCE)).unwrap() > 0 {}
    });
    let stopped = it.send_command(&StopTracing { session });
    reading.join().unwrap();
    format!("ok; stopped: {stopped}")
}

fn attach(it: &mut Subject) -> String {
    it.send_command(&AttachProfiler {
        timeout_ms: 120_000,
        profiler: CLASS,
        path: NO_FILE,
        client_data: Vec::<u8>::new(),
    })
}

fn startup_profiler(it: &mut Subject) -> String {
    it.send_command(&StartupProfiler { profiler: CLASS, path: NO_FILE })
}
