//! Collections from simulated runtimes: every way in which a stream ends, and the example.
#![cfg(target_os = "linux")]

#[path = "../examples/artifacts.rs"]
#[expect(dead_code, reason = "its main")]
mod agent;

use std::convert::Infallible;
use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::time::{Duration, Instant};

use clr_events::ThreadState;
use clr_events::code::Code;
use dipc_client::{Level, LiveReader, ProviderConfig, Session, SessionConfig, Target};
use dipc_collect::heap::{self, CollectedHeap, HeapError, HeapRequest};
use dipc_collect::live::{IntervalSettings, IntervalSum, LiveIntervals};
use dipc_collect::names::{KeptNames, NamesRecorder, NamesRequest, names_path};
use dipc_collect::profiles::{self, ProfileRequest};
use dipc_collect::session::{self, StartError};
use dipc_collect::stacks::{
    self, CodeStacks, CollectedStacks, LiveThreadStacks, SampledStack, StackOptions, StackReader,
    StacksRequest, ThreadStackReader,
};
use dipc_collect::stream::{self, Ending, Limits, Piece, StreamEnd};
use dipc_collect::{ModuleTypes, Note, Observer, StopSignal, exceptions, live_stream};
use dipc_sim::{Builder, CommandId, Fault, Runtime, ScopedFault, Speed, Version};
use nettrace_export::{Metric, Options, Profile};
use tempfile::TempDir;

/// A runtime with sessions that replay a recording of a heap.
fn runtime() -> Builder {
    Runtime::builder().version(Version::NET9).replay(testdata::bytes("gcdump/recordings/net10.nettrace.xz"))
}

/// A running runtime in a folder of its own.
struct Simulation {
    runtime: Runtime,
    _folder: TempDir,
}

impl Simulation {
    fn start(runtime: Builder) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { runtime: runtime.start_in(folder.path()).unwrap(), _folder: folder }
    }

    fn target(&self) -> Target {
        Target::from_path(self.runtime.endpoint_path())
    }
}

/// Starts the runtime, and a session of it.
fn start(runtime: Builder) -> (Simulation, Session) {
    let simulation = Simulation::start(runtime);
    let provider = ProviderConfig { name: "Provider".into(), level: Level::VERBOSE, ..Default::default() };
    let session = simulation.target().start_session(&SessionConfig::new([provider])).unwrap();
    (simulation, session)
}

/// Reads a session of the runtime. `is_enough` is asked after each piece.
fn read(runtime: Builder, limits: &Limits, is_enough: impl Fn() -> bool) -> (usize, StreamEnd) {
    let (_simulation, session) = start(runtime);
    let mut bytes = 0;
    let end = stream::read(session, limits, |piece| {
        if let Piece::Bytes(piece) = piece {
            bytes += piece.len();
        }
        Ok::<_, Infallible>(is_enough())
    });
    let Ok(end) = end;
    (bytes, end)
}

fn unlimited() -> Limits {
    Limits::new(StopSignal::new())
}

#[test]
fn a_stream_ends_with_its_process() {
    let (bytes, end) = read(runtime().end_with_recording(), &unlimited(), || false);
    assert!(bytes > 10_000, "{bytes}");
    assert!(matches!(end.ending, Ending::Whole { asked: false }), "{end:?}");
}

#[test]
fn each_limit_stops_the_session_and_reads_its_rest() {
    let stop = StopSignal::new();
    stop.stop();
    let whole = read(runtime().end_with_recording(), &unlimited(), || false).0;
    for (limits, has_enough) in [
        (Limits::new(stop), false),
        (unlimited().with_duration(Some(Duration::from_millis(50))), false),
        (unlimited(), true),
    ] {
        let (bytes, end) = read(runtime(), &limits, || has_enough);
        assert!(matches!(end.ending, Ending::Whole { asked: true }), "{end:?}");
        assert_eq!(bytes, whole, "{limits:?}");
    }
}

#[test]
fn a_cancelled_collection_does_not_wait_for_the_rest() {
    let stop = StopSignal::new();
    stop.cancel();
    for runtime in [runtime(), runtime().fault(Fault::NeverStop)] {
        let end = read(runtime, &Limits::new(stop.clone()), || false).1;
        assert!(matches!(end.ending, Ending::Abandoned), "{end:?}");
    }
    // A user who interrupts a session that is ending after its duration does not wait either.
    let stop = StopSignal::new();
    let limits = Limits::new(stop.clone()).with_duration(Some(Duration::ZERO)).with_final_stop();
    let interrupt = || {
        stop.request();
        false
    };
    let (_simulation, session) = start(runtime().fault(Fault::NeverStop));
    let mut pieces = 0;
    let end = stream::read(session, &limits, |_| {
        pieces += 1;
        Ok::<_, Infallible>(pieces > 1 && interrupt())
    });
    let Ok(end) = end;
    assert!(matches!(end.ending, Ending::Abandoned), "{end:?}");
}

#[test]
fn a_stopped_session_that_falls_silent_is_left() {
    let limits = unlimited().with_duration(Some(Duration::ZERO)).with_silence(Duration::from_millis(50));
    let end = read(runtime().fault(Fault::NeverStop), &limits, || false).1;
    let Ending::Silent { silence, .. } = end.ending else { panic!("{end:?}") };
    assert!(silence >= Duration::from_millis(50));
}

#[test]
fn an_error_of_the_consumer_ends_the_session() {
    let (_simulation, session) = start(runtime());
    let error = stream::read(session, &unlimited(), |_| Err("the disk is full")).unwrap_err();
    assert_eq!(error, "the disk is full");
}

/// Collects the heap of a runtime, and returns the notes meanwhile. `on_note` is called with each.
fn collect_heap(runtime: Builder, limits: &Limits, on_note: impl Fn(&Note)) -> (CollectedHeap, Vec<Note>) {
    struct Notes<F>(Vec<Note>, F);
    impl<F: Fn(&Note)> Observer for Notes<F> {
        fn note(&mut self, note: Note) {
            self.1(&note);
            self.0.push(note);
        }
    }
    let simulation = Simulation::start(runtime);
    let mut notes = Notes(Vec::new(), on_note);
    let (request, mut modules) = (HeapRequest::new(64), ModuleTypes::of(None));
    let heap = heap::collect(&simulation.target(), &request, &mut modules, limits, &mut notes).unwrap();
    (heap, notes.0)
}

/// A runtime with sessions that have no heap.
fn runtime_without_heap() -> Builder {
    let runtime = Runtime::builder().version(Version::NET9).end_with_recording();
    runtime.replay(testdata::bytes("traces/net10-exceptions.nettrace.xz"))
}

#[test]
fn a_heap_is_read_from_its_session() {
    let (heap, notes) = collect_heap(runtime(), &unlimited(), |_| {});
    assert!(heap.end.is_whole(), "{:?}", heap.end);
    let graph = heap.graph.unwrap();
    assert!(heap.object_count > 1000, "{}", heap.object_count);
    assert!(graph.object_count() as usize >= heap.object_count, "{}", heap.object_count);
    assert!(matches!(notes[..], [Note::SessionStarted { command: "CollectTracing4", .. }]), "{notes:?}");
}

#[test]
fn exceptions_are_read_from_their_session() {
    let simulation = Simulation::start(runtime_without_heap());
    let config = exceptions::session_config();
    let session = session::start(&simulation.target(), &config, || false, &mut ()).unwrap();
    let mut collected = exceptions::read(session, &unlimited(), &mut ());
    assert!(matches!(collected.end.ending, Ending::Whole { asked: false }), "{:?}", collected.end);
    let (thrown, symbolizer) = collected.exceptions.resolve();
    let thrown: Vec<_> = thrown.collect();
    let first = ("System.Net.Sockets.SocketException", "Name or service not known");
    assert_eq!(thrown.len(), 43);
    assert_eq!((&*thrown[0].type_name, &*thrown[0].message), first);
    assert!(thrown.iter().all(|thrown| !thrown.frames(symbolizer).is_empty()));
    assert_eq!(collected.exceptions.dropped(), 0);
}

#[test]
fn a_runtime_that_is_starting_is_asked_once_more() {
    // The stream of the first session ends after its header.
    let first = ScopedFault::new(Fault::CloseInStream { after: 600 }).on(CommandId::COLLECT_TRACING_4).nth(1);
    let (heap, notes) = collect_heap(runtime().scoped_fault(first), &unlimited(), |_| {});
    assert!(heap.graph.is_ok() && heap.end.is_whole(), "{heap:?}");
    assert!(matches!(notes[..], [_, Note::NothingCollected { .. }, _]), "{notes:?}");
}

#[test]
fn a_runtime_that_collects_nothing_is_asked_twice() {
    let (heap, notes) = collect_heap(runtime_without_heap(), &unlimited(), |_| {});
    assert!(matches!(heap.graph, Err(HeapError::NothingCollected)), "{heap:?}");
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn a_stop_ends_the_wait_for_a_runtime_that_is_starting() {
    let stop = StopSignal::new();
    let (heap, notes) = collect_heap(runtime_without_heap(), &Limits::new(stop.clone()), |note| {
        if matches!(note, Note::NothingCollected { .. }) {
            stop.stop();
        }
    });
    assert!(matches!(heap.graph, Err(HeapError::Stopped)), "{heap:?}");
    assert_eq!(notes.len(), 2, "{notes:?}");
}

#[test]
fn a_session_that_is_not_answered_can_be_given_up() {
    let simulation = Simulation::start(runtime().fault(Fault::NeverAnswer));
    let stop = StopSignal::new();
    stop.stop();
    let (limits, mut modules) = (Limits::new(stop), ModuleTypes::of(None));
    let request = HeapRequest::new(64);
    let error = heap::collect(&simulation.target(), &request, &mut modules, &limits, &mut ()).unwrap_err();
    assert!(matches!(error, StartError::Stopped), "{error}");
}

/// Collects the stacks of a runtime with the recording of the sampler by this reader.
fn collect_stacks<R: StackReader>(reader: impl FnMut() -> R) -> CollectedStacks<R::Stacks> {
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let simulation = Simulation::start(Runtime::builder().replay(recording));
    let request = StacksRequest::new(1);
    stacks::collect(&simulation.target(), &request, &unlimited(), &mut (), reader).unwrap()
}

#[test]
fn each_thread_has_a_stack() {
    let collected = collect_stacks(CodeStacks::default);
    assert!(collected.end.is_whole(), "{:?}", collected.end);
    let mut stacks = collected.stacks.unwrap();
    let (threads, symbolizer) = stacks.resolve();
    let threads: Vec<_> = threads.map(|thread| (thread.thread(), thread.frames(symbolizer))).collect();
    assert!(threads.len() > 3, "{}", threads.len());
    let mut frames = threads.into_iter().flat_map(|(_, frames)| frames);
    let is_worker = |(_, code): (u64, Code<'_>)| matches!(code, Code::Method(method) if method.name() == "WorkerThreadStart");
    assert!(frames.any(is_worker));
}

#[test]
fn samples_of_threads_have_states() {
    let collected = collect_stacks(|| ThreadStackReader::new(None, StackOptions::default(), 1));
    let LiveThreadStacks { stacks, kernel_threads, .. } = collected.stacks.unwrap();
    assert!(stacks.threads().len() > 3 && kernel_threads.is_empty());
    let names = |stack: &SampledStack| -> Vec<_> {
        stack.frames.iter().map(|frame| stacks.frames().full_name(*frame).to_owned()).collect()
    };
    let is_idle_worker = |stack: &SampledStack| {
        stack.state == ThreadState::Idle && names(stack).iter().any(|name| name.contains("WorkerThreadStart"))
    };
    assert!(stacks.threads().iter().flat_map(|thread| &thread.stacks).any(is_idle_worker), "{stacks:?}");
    assert!(stacks.threads().iter().all(|thread| thread.samples == 1), "{stacks:?}");
}

#[test]
fn a_profile_has_the_samples_and_methods_of_its_session() {
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let simulation = Simulation::start(
        Runtime::builder().replay(recording.clone()).speed(Speed::Max).end_with_recording(),
    );
    let collect = |request: ProfileRequest| {
        let session =
            simulation.target().start_session(&profiles::session_config(&[Metric::Wall]).unwrap()).unwrap();
        profiles::from_session(session, request, &unlimited(), &mut ()).unwrap()
    };
    let has_worker = |profile: &Profile| {
        profile.frames.iter().any(|(frame, _)| profile.frames.full_name(frame).contains("WorkerThreadStart"))
    };
    let options = Options::new(Metric::Wall).with_tracks(false);
    let taken = collect(ProfileRequest::new(options.clone()));
    assert!(matches!(taken.end.ending, Ending::Whole { asked: false }), "{:?}", taken.end);
    let (expected, _) = nettrace_export::profile(Cursor::new(recording), options.clone()).unwrap();
    let amounts = |profile: &Profile| (profile.samples(), profile.total(), profile.stack_totals.len());
    assert!(expected.samples() > 100 && has_worker(&expected), "{}", expected.samples());
    assert_eq!(amounts(&taken.profile), amounts(&expected));
    assert!(has_worker(&taken.profile));
    let taken = collect(ProfileRequest::new(options).with_max_code_size(0));
    assert_eq!(taken.profile.samples(), expected.samples());
    assert!(!has_worker(&taken.profile), "names beyond the limit are kept");
}

#[test]
fn a_process_without_samples_has_longer_and_longer_sessions() {
    let simulation = Simulation::start(runtime());
    let (mut sessions, request) = (0, StacksRequest::new(1).with_max_wait(Duration::from_millis(500)));
    let collected = stacks::collect(&simulation.target(), &request, &unlimited(), &mut (), || {
        sessions += 1;
        CodeStacks::default()
    });
    assert!(collected.unwrap().stacks.is_none());
    assert_eq!(sessions, 3);
    // A stop leaves out the others.
    let (stop, mut sessions) = (StopSignal::new(), 0);
    let limits = Limits::new(stop.clone());
    let error = stacks::collect(&simulation.target(), &request, &limits, &mut (), || {
        sessions += 1;
        if sessions == 2 {
            stop.stop();
        }
        CodeStacks::default()
    });
    assert!(
        matches!(error, Err(StartError::Stopped) | Ok(CollectedStacks { stacks: None, .. })),
        "{error:?}"
    );
    assert_eq!(sessions, 2);
}

/// Starts the sessions for the names of a recording, and waits until the list is kept.
fn record_names(target: &Target, recording: &Path) -> NamesRecorder {
    let names = NamesRecorder::start(target, NamesRequest::new(recording), |error| panic!("{error}"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while !names_path(recording).exists() {
        assert!(Instant::now() < deadline, "there are no names");
        std::thread::sleep(Duration::from_millis(5));
    }
    names
}

#[test]
fn names_stay_if_the_recording_lacks_them() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("app.nettrace");
    let simulation = Simulation::start(runtime().end_with_recording());
    let kept = record_names(&simulation.target(), &recording).finish(true);
    let KeptNames::File(path) = kept else { panic!("{kept:?}") };
    assert_eq!(path, names_path(&recording));
    assert!(fs::read(&path).unwrap().starts_with(b"Nettrace"));
    fs::remove_file(path).unwrap();
    let kept = record_names(&simulation.target(), &recording).finish(false);
    assert!(matches!(kept, KeptNames::Unneeded), "{kept:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_incomplete_list_of_names_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("app.nettrace");
    // The list of an earlier recording.
    fs::write(names_path(&recording), "old").unwrap();
    let simulation = Simulation::start(runtime().fault(Fault::NeverStop));
    let request = NamesRequest::new(&recording);
    let names = NamesRecorder::start(&simulation.target(), request, |error| panic!("{error}"));
    let deadline = Instant::now() + Duration::from_secs(60);
    while names_path(&recording).exists() {
        assert!(Instant::now() < deadline, "the old names stay");
        std::thread::sleep(Duration::from_millis(5));
    }
    let kept = names.finish(true);
    assert!(matches!(kept, KeptNames::Missing(None)), "{kept:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn intervals_follow_one_another() {
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let simulation =
        Simulation::start(Runtime::builder().replay(recording).speed(Speed::Max).end_with_recording());
    let length = Duration::from_millis(100);
    let settings = IntervalSettings::new(length);
    let session = simulation.target().start_session(&settings.session_config()).unwrap();
    let (mut live, mut taken) = (LiveIntervals::<()>::new(&settings, None, None, None), Vec::new());
    let read = live_stream::read(session, LiveReader::in_whole_order(), &unlimited(), &mut (), |reader| {
        live.read(reader, false, |interval| taken.push(interval));
        Ok::<_, Infallible>(false)
    });
    let Ok((mut reader, end)) = read;
    assert!(end.is_whole(), "{end:?}");
    live.read(&mut reader, true, |interval| taken.push(interval));
    let (last, others) = taken.split_last().unwrap();
    assert!(others.len() > 3 && last.length <= length, "{}: {:?}", others.len(), last.length);
    assert!(others.iter().all(|interval| interval.length == length));
    assert!(others.iter().any(|interval| interval.threads.len() > 3 && interval.method_samples() > 0));
    let mut sum = IntervalSum::default();
    for interval in &taken {
        sum.add(interval);
    }
    assert_eq!(sum.length, last.length + length * u32::try_from(others.len()).unwrap());
    assert_eq!(sum.sum().total(), taken.iter().map(|interval| interval.profile.total()).sum::<u64>());
}

#[test]
fn the_agent_collects_a_heap_and_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let simulation = Simulation::start(runtime());
    let target = simulation.target();
    let mut out = Vec::new();
    agent::collect(&target, Duration::from_millis(50), folder.path(), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(out.starts_with("stacks: 0 threads\nnote: SessionStarted"), "{out}");
    assert!(out.contains("\nheap: ") && out.contains("Whole { asked: true }"), "{out}");
    let recording = fs::read(folder.path().join("profile.nettrace")).unwrap();
    assert!(recording.starts_with(b"Nettrace") && recording.len() > 10_000);
    assert!(gcdump::file::read(&fs::read(folder.path().join("heap.gcdump")).unwrap()).is_ok());
}
