//! Profiles of all sampled processes for a collector of OpenTelemetry, one of each process and recording.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use clr_counters::otlp::Request;
use clr_events::CodeMap;
use dipc_collect::kernel_samples::{SegmentReceiver, pid_of_id};
use nettrace::{Interest, Reader};
use nettrace_export::{Metric, Options, Process, ProfileReader, otlp_request_by_process};

use super::selection::WatchedProcesses;
use super::{ProfileLog, ProfileMessage};
use crate::otlp::{OtlpSignal, OtlpSink};
use crate::resource;

/// Maximum number of recordings that wait to become profiles: processes that are asked for their environment
/// delay them.
const MAX_WAITING: usize = 2;
/// Maximum size of the names of methods of all processes, in bytes.
const MAX_CODE_SIZE: usize = 64 << 20;
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

/// The thread that makes profiles of recordings.
#[derive(Debug)]
pub(super) struct ProfileExport {
    recordings: Mutex<Option<SyncSender<Vec<u8>>>>,
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
        let resources = Resources { config, watched, is_ending: Arc::clone(&is_ending) };
        let thread = thread.spawn(move || export(&received, &resources, &of_thread))?;
        let (recordings, thread) = (Mutex::new(Some(recordings)), Mutex::new(Some(thread)));
        Ok(Self { recordings, log: Log(log), thread, is_ending })
    }

    /// The receiver of recordings, which does not wait.
    pub(super) fn receiver(&self) -> SegmentReceiver {
        let recordings = lock(&self.recordings).clone();
        let Log(log) = self.log.clone();
        Box::new(move |_, bytes| {
            let is_taken = recordings.as_ref().is_some_and(|all| all.try_send(bytes.to_vec()).is_ok());
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
}

fn export(recordings: &Receiver<Vec<u8>>, resources: &Resources, log: &ProfileLog) {
    while let Ok(bytes) = recordings.recv() {
        match request(&bytes, |process| resources.of(process)) {
            Ok(Some(request)) => resources.config.sink.send(OtlpSignal::Profiles, request),
            Ok(None) => {}
            Err(error) => log(&ProfileMessage::NotExported(error.to_string())),
        }
    }
}

/// Makes the request with the profiles of a recording; `None` if nothing was sampled.
fn request(
    bytes: &[u8],
    resource_of: impl FnMut(&Process) -> Vec<(String, String)>,
) -> Result<Option<Request>, nettrace::Error> {
    let options = Options::new(Metric::Cpu).with_tracks(false).with_kinds(false);
    let mut limit_code = |code: &mut CodeMap| *code = CodeMap::with_limit(MAX_CODE_SIZE);
    let reader = ProfileReader::new(options).with_interest(|_| Interest::None).with_code(&mut limit_code);
    let read = reader.read_file(|| Reader::new(bytes), |_| {})?;
    let request = otlp_request_by_process(&read.profile, EXPORTER, resource_of);
    Ok((request.profiles > 0).then(|| Request::new(request.body, request.profiles)))
}

impl Resources {
    /// The attributes of a process.
    fn of(&self, process: &Process) -> Vec<(String, String)> {
        let pid = pid_of_id(process.id);
        let is_ending = self.is_ending.load(Ordering::Relaxed);
        let watched = self.watched.with_pid(pid).filter(|of| !is_ending || resource::is_known(of));
        let mut attributes = if let Some(watched) = watched {
            resource::attributes(&watched, &self.config.attributes)
        } else {
            let (name, container) = (process.name.as_deref(), process.container.as_deref());
            resource::attributes_of_system(pid, name, container, &self.config.attributes)
        };
        if attributes.iter().all(|(key, _)| key != "process.pid") {
            attributes.push(("process.pid".to_owned(), pid.to_string()));
        }
        attributes
    }
}

#[cfg(test)]
mod tests {
    use nettrace_synth::clr::Recording;

    use super::*;

    #[test]
    fn recordings_without_samples_have_no_request() {
        let mut recording = Recording::new();
        recording.at(5).thread(7).exception("System.TimeoutException", "no answer");
        assert!(request(&recording.bytes(), |_| Vec::new()).unwrap().is_none());
        assert!(request(b"Nettr", |_| Vec::new()).is_err());
    }
}
