//! Profiles of all sampled processes for a collector of OpenTelemetry, one of each process and recording.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use clr_counters::otlp::Request;
use clr_events::CodeMap;
use dipc_collect::kernel_samples::{SegmentReceiver, pid_of_id};
use nettrace::Reader;
use nettrace_export::{Metric, Options, Process, ProfileReader, otlp_request_by_process};

use super::process_lives::ProcessLives;
use super::selection::WatchedProcesses;
use super::{ProfileLog, ProfileMessage};
use crate::otlp::{OtlpSignal, OtlpSink};
use crate::resource;

/// Maximum number of recordings that wait to become profiles: processes that are asked for their environment
/// delay them.
const MAX_WAITING: usize = 2;
/// Maximum size of the names of methods of all processes, in bytes.
const MAX_CODE_SIZE: usize = 64 << 20;
/// Maximum number of processes with attributes that are kept for a recording in which they end, and the
/// number of recordings without samples of a process for which they are kept.
const MAX_KNOWN: usize = 4096;
const MAX_AGE: u64 = 60;
/// The name of this program in OpenTelemetry scopes.
const EXPORTER: &str = concat!("dipc ", env!("CARGO_PKG_VERSION"));

/// The destination of profiles.
#[derive(Clone)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct ProfileExportConfig {
    /// The sender of requests.
    pub sink: Arc<dyn OtlpSink>,
    /// Attributes of every resource. They replace the attributes of the processes.
    pub attributes: Vec<(String, String)>,
}

impl fmt::Debug for ProfileExportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProfileExportConfig").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

/// A recording, with its number among all, of which some are dropped.
struct Numbered {
    number: u64,
    bytes: Vec<u8>,
}

/// The thread that makes profiles of recordings.
#[derive(Debug)]
pub(super) struct ProfileExport {
    recordings: Mutex<Option<SyncSender<Numbered>>>,
    log: Log,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// True at the end: no process is asked for its environment then, which can take seconds for each.
    is_ending: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Log(ProfileLog);

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Log")
    }
}

impl ProfileExport {
    pub(super) fn start(
        config: ProfileExportConfig,
        watched: WatchedProcesses,
        log: ProfileLog,
    ) -> io::Result<Self> {
        let (recordings, received) = mpsc::sync_channel(MAX_WAITING);
        let of_thread = Arc::clone(&log);
        let thread = thread::Builder::new().name("profiles".to_owned());
        let is_ending = Arc::new(AtomicBool::new(false));
        let resources = Resources::new(config, watched, Arc::clone(&is_ending));
        let thread = thread.spawn(move || export(&received, resources, &of_thread))?;
        let (recordings, thread) = (Mutex::new(Some(recordings)), Mutex::new(Some(thread)));
        Ok(Self { recordings, log: Log(log), thread, is_ending })
    }

    /// The receiver of recordings, which does not wait.
    pub(super) fn receiver(&self) -> SegmentReceiver {
        let recordings = lock(&self.recordings).clone();
        let Log(log) = self.log.clone();
        let mut number = 0_u64;
        Box::new(move |_, bytes| {
            number = number.wrapping_add(1);
            let recording = || Numbered { number, bytes: bytes.to_vec() };
            let is_taken = recordings.as_ref().is_some_and(|all| all.try_send(recording()).is_ok());
            if !is_taken {
                log(&ProfileMessage::NotExported("they are made too slowly".to_owned()));
            }
        })
    }

    /// Sends the profiles of the recordings that wait. The sampler with the receiver has to be at its end.
    pub(super) fn stop(&self) {
        self.is_ending.store(true, Ordering::Relaxed);
        drop(lock(&self.recordings).take());
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of that thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resources of processes.
struct Resources {
    config: ProfileExportConfig,
    watched: WatchedProcesses,
    is_ending: Arc<AtomicBool>,
    /// The attributes of processes that ran at the end of an earlier recording, by number: their environment
    /// is gone when they have ended.
    known: HashMap<u32, Known>,
    /// The number of the recording.
    recording: u64,
}

#[derive(Debug)]
struct Known {
    attributes: Vec<(String, String)>,
    recording: u64,
}

fn export(recordings: &Receiver<Numbered>, mut resources: Resources, log: &ProfileLog) {
    while let Ok(Numbered { number, bytes }) = recordings.recv() {
        resources.begin(number);
        match request(&bytes, |process, lives| resources.of(process, lives)) {
            Ok((request, lives)) => {
                resources.forget_ended(&lives);
                if let Some(request) = request {
                    resources.config.sink.send(OtlpSignal::Profiles, request);
                }
            }
            Err(error) => log(&ProfileMessage::NotExported(error.to_string())),
        }
    }
}

/// Makes the request with the profiles of a recording, `None` if nothing was sampled.
fn request(
    bytes: &[u8],
    mut resource_of: impl FnMut(&Process, &ProcessLives) -> Vec<(String, String)>,
) -> Result<(Option<Request>, ProcessLives), nettrace::Error> {
    let options = Options::new(Metric::Cpu).with_tracks(false).with_kinds(false);
    let mut limit_code = |code: &mut CodeMap| *code = CodeMap::with_limit(MAX_CODE_SIZE);
    let reader = ProfileReader::new(options).with_interest(ProcessLives::interest).with_code(&mut limit_code);
    let mut lives = ProcessLives::default();
    let read = reader.read_file(|| Reader::new(bytes), |event| lives.add(event))?;
    lives.start_ns = read.events.info().map_or(0, |info| info.start_ticks.0);
    let request = otlp_request_by_process(&read.profile, EXPORTER, |process| resource_of(process, &lives));
    Ok(((request.profiles > 0).then(|| Request::new(request.body, request.profiles)), lives))
}

impl Resources {
    fn new(config: ProfileExportConfig, watched: WatchedProcesses, is_ending: Arc<AtomicBool>) -> Self {
        Self { config, watched, is_ending, known: HashMap::new(), recording: 0 }
    }

    /// Begins with the recording of this number.
    fn begin(&mut self, number: u64) {
        if number != self.recording.wrapping_add(1) {
            // Ends of processes are in a recording that was dropped.
            self.known.clear();
        }
        self.recording = number;
    }

    /// The attributes of a process.
    fn of(&mut self, process: &Process, lives: &ProcessLives) -> Vec<(String, String)> {
        self.of_process(process.id, process.name.as_deref(), process.container.as_deref(), lives)
    }

    /// The attributes of the process with an id in the recording.
    fn of_process(
        &mut self,
        id: u64,
        name: Option<&str>,
        container: Option<&str>,
        lives: &ProcessLives,
    ) -> Vec<(String, String)> {
        let pid = pid_of_id(id);
        let given = &self.config.attributes;
        let is_running = lives.is_running(id);
        let known = self.known.get(&pid).filter(|_| !is_running && !lives.was_born(id));
        if let Some(known) = known {
            return known.attributes.clone();
        }
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        let watched =
            self.watched.with_pid(pid).filter(|of| is_running && (!is_ending || resource::is_known(of)));
        let mut attributes = if let Some(watched) = watched {
            resource::attributes(&watched, given)
        } else if is_running {
            resource::attributes_of_system(pid, name, container, given)
        } else {
            resource::attributes_of_ended(pid, name, container, given)
        };
        if attributes.iter().all(|(key, _)| key != "process.pid") {
            attributes.push(("process.pid".to_owned(), pid.to_string()));
        }
        // It may have ended meanwhile, and another have its number.
        if is_running && lives.is_running(id) {
            if self.known.len() < MAX_KNOWN || self.known.contains_key(&pid) {
                let known = Known { attributes: attributes.clone(), recording: self.recording };
                self.known.insert(pid, known);
            }
            return attributes;
        }
        if is_running { resource::attributes_of_ended(pid, name, container, given) } else { attributes }
    }

    /// Removes the attributes of processes that have ended, or were not sampled for long.
    fn forget_ended(&mut self, lives: &ProcessLives) {
        let (now, changed) = (self.recording, lives.changed());
        self.known.retain(|pid, known| {
            // A process that was started in the recording is known by that.
            known.recording == now || !changed.contains(pid) && now.wrapping_sub(known.recording) < MAX_AGE
        });
    }
}

#[cfg(test)]
mod tests {
    use nettrace_synth::clr::Recording;

    use super::*;

    #[derive(Debug)]
    struct NoSink;

    impl OtlpSink for NoSink {
        fn send(&self, _: OtlpSignal, _: Request) {}
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_has_ended_has_the_attributes_of_its_recordings_before() {
        let config = ProfileExportConfig { sink: Arc::new(NoSink), attributes: Vec::new() };
        let mut resources = Resources::new(config, WatchedProcesses::default(), Arc::default());
        let since = ProcessLives::since;
        let value = |attributes: &[(String, String)], key: &str| {
            attributes.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
        };
        let own = std::process::id();
        let of = |resources: &mut Resources, lives: &ProcessLives| {
            let attributes = resources.of_process(own.into(), Some("shop"), None, lives);
            assert_eq!(value(&attributes, "process.pid"), Some(own.to_string()));
            (value(&attributes, "service.name"), value(&attributes, "process.executable.path"))
        };
        let path = std::env::current_exe().unwrap().display().to_string();
        let (name, running) = (Some("shop".to_owned()), (Some("shop".to_owned()), Some(path)));
        // In the second, the process with the number is another.
        for (number, lives) in [(1, since(u64::MAX)), (2, since(0))] {
            resources.begin(number);
            assert_eq!(of(&mut resources, &lives), running);
            resources.forget_ended(&lives);
        }
        // Its end may be in the third.
        resources.begin(4);
        assert_eq!(of(&mut resources, &since(0)), (name.clone(), None));
        // It is not the one whose end was in the recording before.
        resources.begin(5);
        assert_eq!(of(&mut resources, &since(u64::MAX)), running);
        resources.begin(6);
        resources.forget_ended(&since(0).with_end(own.into()));
        resources.begin(7);
        assert_eq!(of(&mut resources, &since(0)), (name, None));
    }

    #[test]
    fn recordings_without_samples_have_no_request() {
        let mut recording = Recording::new();
        recording.at(5).thread(7).exception("System.TimeoutException", "no answer");
        assert!(request(&recording.bytes(), |_, _| Vec::new()).unwrap().0.is_none());
        assert!(request(b"Nettr", |_, _| Vec::new()).is_err());
    }
}
