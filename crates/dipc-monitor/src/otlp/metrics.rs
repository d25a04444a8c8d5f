//! The counters of all processes as metrics.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clr_counters::otlp::{Exporter, Process, Temporality};
use clr_counters::{ProcessKey, Sample};
use dipc_client::nettrace::TraceInfo;

use super::{OtlpSignal, OtlpSink, unix_now};
use crate::counters::{CounterConsumer, CounterSubscription};
use crate::metrics::{MetricsConfig, add_memory};
use crate::owner_memory::OwnerMemory;
use crate::process::Watched;

/// The time between two requests.
const INTERVAL: Duration = Duration::from_secs(10);
/// Maximum number of series of all processes.
const MAX_SERIES: usize = 100_000;

/// The export of counters.
pub(super) struct MetricsExport {
    config: MetricsConfig,
    shared: Arc<Shared>,
    subscriptions: Mutex<BTreeMap<u32, CounterSubscription>>,
}

struct Shared {
    sink: Arc<dyn OtlpSink>,
    start: Instant,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    exporter: Exporter,
    /// The memory of the processes that run.
    memory: BTreeMap<ProcessKey, Arc<OwnerMemory>>,
    /// Ended processes with last values that were not sent.
    ended: Vec<ProcessKey>,
    is_over: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on the values.
    fn push(&self) {
        let mut state = self.state();
        let now = self.start.elapsed();
        let State { exporter, memory, .. } = &mut *state;
        for (key, memory) in memory {
            if let Some(sizes) = memory.sizes() {
                add_memory(&sizes, now, |sample| exporter.add(*key, sample, now));
            }
        }
        let requests = state.exporter.encode(now, unix_now());
        for process in std::mem::take(&mut state.ended) {
            state.exporter.end_process(process);
        }
        drop(state);
        for request in requests {
            self.sink.send(OtlpSignal::Metrics, request);
        }
    }

    fn run(&self) {
        let mut due = self.start + INTERVAL;
        loop {
            let state = self.state();
            if state.is_over {
                return;
            }
            let wait = due.saturating_duration_since(Instant::now());
            if !wait.is_zero() {
                drop(self.changed.wait_timeout(state, wait));
                continue;
            }
            drop(state);
            self.push();
            due = (due + INTERVAL).max(Instant::now());
        }
    }
}

impl MetricsExport {
    pub(super) fn start(config: MetricsConfig, sink: Arc<dyn OtlpSink>) -> std::io::Result<Self> {
        let state = State {
            exporter: Exporter::new(Temporality::Cumulative, MAX_SERIES),
            memory: BTreeMap::new(),
            ended: Vec::new(),
            is_over: false,
        };
        let shared = Arc::new(Shared {
            sink,
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        thread::Builder::new().name("otlp-metrics".to_owned()).spawn(move || of_thread.run())?;
        Ok(Self { config, shared, subscriptions: Mutex::default() })
    }

    fn subscriptions(&self) -> MutexGuard<'_, BTreeMap<u32, CounterSubscription>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, process: &Watched, attributes: Vec<(String, String)>) {
        let request = self.config.request().with_exponential_histograms(true);
        let consumer = Consumer {
            key: ProcessKey(process.number),
            pid: process.facts.pid,
            attributes,
            shared: Arc::clone(&self.shared),
        };
        process.owner_memory.want();
        self.shared.state().memory.insert(ProcessKey(process.number), Arc::clone(&process.owner_memory));
        let subscription = process.counters.subscribe(request, Box::new(consumer));
        self.subscriptions().insert(process.number, subscription);
    }

    pub(super) fn end(&self, process: &Watched) {
        let subscription = self.subscriptions().remove(&process.number);
        drop(subscription);
        let key = ProcessKey(process.number);
        let mut state = self.shared.state();
        state.memory.remove(&key);
        state.exporter.keep_process(key, self.shared.start.elapsed());
        state.ended.push(key);
    }

    /// Passes on the last values.
    pub(super) fn stop(&self) {
        let subscriptions = std::mem::take(&mut *self.subscriptions());
        drop(subscriptions);
        self.shared.state().is_over = true;
        self.shared.changed.notify_all();
        self.shared.push();
    }
}

/// The consumer of a process's samples.
struct Consumer {
    key: ProcessKey,
    pid: u32,
    attributes: Vec<(String, String)>,
    shared: Arc<Shared>,
}

impl CounterConsumer for Consumer {
    fn begin(&mut self, _: &TraceInfo) {
        let process = Process::new(Some(self.pid), unix_now()).with_attributes(self.attributes.clone());
        self.shared.state().exporter.begin_process(self.key, process);
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let now = self.shared.start.elapsed();
        self.shared.state().exporter.add(self.key, sample, now);
    }
}
