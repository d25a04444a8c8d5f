//! Profiles of all processes, by the kernel's samples, for a collector of OpenTelemetry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clr_counters::otlp::Request;
use dipc_collect::StopSignal;
use dipc_collect::profiles::{self, ProfileRequest, SamplesEnd};
use dipc_collect::stream::Limits;
use dipc_monitor::{OtlpSignal, OtlpSink, ProcessObserver, Watched, resource_attributes};
use nettrace_export::{Metric, Options};

use super::Senders;
use crate::exit::{Exit, Failure};
use crate::record::kernel_samples::{LIVE_FREQUENCY, LiveSamples, SampleSettings};
use crate::record::notes::Messages;
use crate::render::escape::escape_controls;
use crate::render::messages;

/// The time between the beginnings of two profiles of a process.
const EVERY: Duration = Duration::from_secs(60);
/// The time for which a process is sampled for a profile.
const SAMPLED: Duration = Duration::from_secs(10);
/// Number of processes to sample at once: with more than 20 processes, profiles are less frequent.
const AT_ONCE: usize = 4;
/// The time between checks for due processes.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum size of the method names of a process, in bytes.
const MAX_CODE_SIZE: usize = 64 << 20;
/// Maximum number of reported reasons for not sampling a process.
const MAX_REASONS: usize = 20;
/// The name of this program in OpenTelemetry scopes.
const EXPORTER: &str = concat!("dipc ", env!("CARGO_PKG_VERSION"));

/// The profiles of all processes. Add this to the observers of a monitor.
pub(crate) struct Profiles {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    senders: Arc<Senders>,
    /// Attributes of every resource.
    attributes: Vec<(String, String)>,
    processes: Mutex<BTreeMap<u32, Arc<Profiled>>>,
    /// The reasons that were reported.
    reasons: Mutex<BTreeSet<String>>,
    stop: StopSignal,
}

/// A process that is sampled.
struct Profiled {
    process: Arc<Watched>,
    /// The attributes of its resource, once they were asked for.
    resource: Mutex<Option<Vec<(String, String)>>>,
    /// The time of its next profile.
    next: Mutex<Instant>,
    /// True if it was sampled before.
    is_known: AtomicBool,
    /// True if the kernel does not permit it.
    is_refused: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Profiles {
    pub(super) fn start(senders: Arc<Senders>, attributes: Vec<(String, String)>) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            senders,
            attributes,
            processes: Mutex::default(),
            reasons: Mutex::default(),
            stop: StopSignal::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("profiles".to_owned()).spawn(move || of_thread.run())?;
        Ok(Self { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Ends the sampling. What was sampled for an incomplete profile is dropped.
    pub(super) fn stop(&self) {
        self.shared.stop.cancel();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic of that thread was printed where it happened.
            let _ = thread.join();
        }
    }
}

impl ProcessObserver for Profiles {
    fn started(&self, process: &Arc<Watched>) {
        let profiled = Profiled {
            process: Arc::clone(process),
            resource: Mutex::default(),
            next: Mutex::new(Instant::now()),
            is_known: AtomicBool::new(false),
            is_refused: AtomicBool::new(false),
        };
        lock(&self.shared.processes).insert(process.number, Arc::new(profiled));
    }

    fn ended(&self, process: &Arc<Watched>) {
        lock(&self.shared.processes).remove(&process.number);
    }
}

impl Shared {
    /// Samples the processes, again and again.
    fn run(&self) {
        while !self.stop.is_stopped() {
            let now = Instant::now();
            let mut due: Vec<_> = lock(&self.processes).values().cloned().collect();
            due.retain(|it| !it.is_refused.load(Ordering::Relaxed) && *lock(&it.next) <= now);
            // Processes that have waited longest are first.
            due.sort_by_key(|it| *lock(&it.next));
            due.truncate(AT_ONCE);
            thread::scope(|scope| {
                for process in &due {
                    *lock(&process.next) = now + EVERY;
                    scope.spawn(|| self.profile(process));
                }
            });
            if due.is_empty() {
                self.stop.wait(LOOK);
            }
        }
    }

    /// Samples a process for a profile, and sends it. A failure is reported once for each reason.
    fn profile(&self, profiled: &Profiled) {
        if profiled.process.has_ended() {
            return;
        }
        match self.sample(profiled) {
            Ok(None) => {}
            Ok(Some(request)) => self.senders.send(OtlpSignal::Profiles, request),
            Err(failure) => {
                profiled.is_refused.store(true, Ordering::Relaxed);
                let reason = failure.to_string();
                let mut reasons = lock(&self.reasons);
                if reasons.len() < MAX_REASONS && reasons.insert(reason.clone()) {
                    let name = format!("{} ({})", profiled.process.title(), profiled.process.facts.pid);
                    let text = format!("{name} and others like it have no profiles: {reason}");
                    messages::warning(escape_controls(&text));
                }
            }
        }
    }

    /// Returns the profile of a process; `None` if no thread ran, or the monitor ends.
    fn sample(&self, profiled: &Profiled) -> Result<Option<Request>, Failure> {
        let process = &profiled.process;
        let pid = process.system_pid().ok_or_else(|| {
            Failure::new(Exit::Failed, "the system does not show the process: it may be on another machine")
        })?;
        let is_new = !profiled.is_known.swap(true, Ordering::Relaxed);
        let settings = SampleSettings::of_processors(LIVE_FREQUENCY, false);
        let samples = match LiveSamples::start(pid, settings, is_new, Box::new(Messages)) {
            // The process has ended meanwhile.
            Err(_) if process.has_ended() => return Ok(None),
            started => started?,
        };
        let options = Options::new(Metric::Cpu).with_tracks(false).with_kinds(false);
        let request = ProfileRequest::new(options).with_max_code_size(MAX_CODE_SIZE);
        let limits = Limits::new(self.stop.clone()).with_duration(Some(SAMPLED));
        let target = process.target();
        let managed = (!target.is_native_aot().unwrap_or(false)).then_some(target);
        // Without their list, methods are unnamed; the process may have ended.
        let taken = profiles::from_samples(samples, managed, request, &limits)?;
        let profile = taken.profile;
        if taken.end == SamplesEnd::Cancelled || profile.samples() == 0 {
            return Ok(None);
        }
        let mut resource = lock(&profiled.resource);
        let resource = resource.get_or_insert_with(|| {
            let mut attributes = resource_attributes(process, &self.attributes);
            if attributes.iter().all(|(key, _)| key != "process.pid") {
                attributes.push(("process.pid".to_owned(), process.facts.pid.to_string()));
            }
            attributes
        });
        let message = nettrace_export::otlp_request(&profile, resource, EXPORTER);
        Ok(Some(Request::new(message, 1)))
    }
}
