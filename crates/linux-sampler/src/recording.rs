//! Samples as a recording of nettrace V6: the events of `Universal.System` and `Universal.Events`, which
//! PerfView, TraceEvent and `dipc` read.
//!
//! | event | payload |
//! |---|---|
//! | `Universal.System/ExistingProcess`, `/ProcessCreate` | NamespaceId, Name, NamespaceName |
//! | `/ProcessExit` | nothing |
//! | `/ProcessMappingMetadata` | Id, SymbolMetadata (JSON), VersionMetadata |
//! | `/ProcessMapping` | Id, StartAddress, EndAddress (inclusive), FileOffset, FileName, MetadataId |
//! | `/ProcessSymbol` | Id, MappingId, StartAddress, EndAddress (inclusive), Name |
//! | `Universal.Events/cpu` | Value: the milliseconds that the sample represents |
//! | `Universal.Events/cswitch` | Value: the nanoseconds that the thread was off the processors, at the time of coming back; Preempted: 1 if it could have run, and 0 if it waited for something; StackValue: the nanoseconds that the stack represents |
//!
//! | `Universal.Events/native_alloc` | Value: the bytes that the allocation represents; Size: the requested bytes; Address; Function: the name of the function that has returned it |
//! | `Universal.Events/native_free` | Address: of an allocation that is freed now |
//! | `Universal.Events/native_alloc_end` | Interval: the least Value; Hits, CostNs: the calls of probed functions, and their cost; CpuNs, DurationNs: the processor time of the process meanwhile, and the time; LostAllocations, LostFrees: records that did not fit; LeftOut: allocations beyond the limit of what is followed; IsBeyondLimit: 1 if the probes were removed early because of their cost |
//!
//! Numbers are unsigned integers of variable length, strings are UTF-8 after their length in two bytes.
//!
//! `Preempted` and `StackValue` are fields of this crate, after the field that other writers have.
//! `StackValue` is zero without a stack, and equals `Value` unless [stacks are
//! thinned](SamplerConfig::switch_stacks_per_second). Then only every n-th switch of a busy thread has a
//! stack, and `StackValue` is n times `Value`: the sum of `Value` is the time off the processors, and the sum
//! of `StackValue` by stack is an unbiased estimate of its part of it.
//!
//! # Source
//! microsoft/perfview, `src/TraceEvent/EventPipe/UniversalProviders.md`; the fields as real files have them,
//! with a `ProcessMapping` without a process.

mod events;
mod existing_waits;
mod following;
mod many;
mod native_allocations;
mod program_events;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use linux_proc_stat::Container;
use nettrace::{Ticks, TraceInfo};
use nettrace_writer::{Error, EventKindId, EventWriter, ThreadIndex};

use crate::config::{OffCpu, SamplerConfig};
use crate::image::{KnownFunctions, SymbolTable};
use crate::kernel::{kernel_symbols, kernel_symbols_at};
use crate::maps::{Mapping, Processes};
use crate::off_cpu::{OffCpuInterval, OffCpuTracker};
use crate::record::{Record, RecordKind, Sample, SampleEvent, ThreadKey};
use crate::runtime_code::RuntimeUnwinder;
use crate::threads::{folder, innermost_id, threads};
use crate::unwind::Unwinder;
use crate::waiting::ThreadWait;

use events::{Kinds, mapping_metadata, number, text};
use existing_waits::ExistingWait;
use many::ManyProcesses;
pub use many::{MACHINE_PROVIDER, SampledProcess, pid_of_id};
pub use program_events::ProgramEvent;

/// The addresses of the kernel, as TraceEvent expects them.
const KERNEL_START: u64 = 0xffff_8000_0000_0000;

/// The key of the header with a description of how samples are taken.
pub const SAMPLING_KEY: &str = "KernelSampling";

/// Maximum number of frame addresses that get names.
const MAX_ADDRESSES: usize = 1 << 20;

/// Maximum number of threads to describe.
const MAX_THREADS: usize = 1 << 20;

/// Maximum number of processes to keep after the end of their first thread.
const MAX_ENDED: usize = 64;

/// The sample counts of a recording, for a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RecordingCounts {
    /// Samples of running threads.
    pub cpu_samples: u64,
    /// The nanoseconds that they represent.
    pub cpu_ns: u64,
    /// Intervals off the processors.
    pub off_cpu_intervals: u64,
    /// The nanoseconds of these.
    pub off_cpu_ns: u64,
    /// Samples and records that the kernel lost. In the recording they are lost events of thread 0 of the
    /// process.
    pub lost: u64,
    /// Stacks of switches that the kernel lost. The switches have their times, and the next stacks of a
    /// thread have the weight of the lost ones.
    pub lost_stacks: u64,
    /// The number of times that the kernel took fewer samples than requested.
    pub throttled: u64,
    /// Allocations that were followed.
    pub native_allocations: u64,
    /// Events of tracepoints that were [added](RecordingWriter::program_event).
    pub program_events: u64,
    /// Stacks cut at the limit of frames.
    pub cut_stacks: u64,
    /// Processes that are described.
    pub processes: u64,
    /// Those of them that were started meanwhile, in a recording of many.
    pub born: u64,
    /// Those that have ended.
    pub ended: u64,
    /// Samples that were left out because their processes are outside this process's pid namespace.
    pub outside: u64,
}

/// Turns the records of a [`Sampler`](crate::Sampler) into a recording, in memory: see
/// [`bytes`](Self::bytes).
///
/// ```no_run
/// use linux_sampler::{RecordingWriter, Sampler, SamplerConfig};
/// use std::time::{Duration, SystemTime};
///
/// let config = SamplerConfig::of_process(4711);
/// let mut sampler = Sampler::open(&config)?;
/// let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
/// let now_ms = u64::try_from(now.as_millis())?;
/// let mut recording = RecordingWriter::new(now_ms, Sampler::now_ns(), Some(4711), &config, "997 Hz")?;
/// recording.existing_process(4711)?;
/// while sampler.running() > 0 {
///     for record in sampler.read(Duration::from_millis(200))? {
///         recording.record(&record)?;
///     }
/// }
/// println!("{:?}", recording.finish(Sampler::now_ns())?);
/// std::fs::write("app.nettrace", recording.bytes())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordingWriter {
    writer: EventWriter,
    kinds: Kinds,
    /// The state of a recording of many processes; `None` for others.
    many: Option<ManyProcesses>,
    processes: Processes,
    unwinder: Unwinder,
    off_cpu: OffCpuTracker<SwitchStack>,
    /// The threads that waited when the recording began.
    existing_waits: HashMap<ThreadKey, ExistingWait>,
    threads: HashMap<i32, ThreadIndex>,
    known: HashMap<i32, KnownProcess>,
    next_mapping: u64,
    next_metadata: u64,
    next_symbol: u64,
    kernel_frames: BTreeSet<u64>,
    /// The number of the kernel's mapping, which all processes share, and the functions with written names.
    kernel_mapping: Option<u64>,
    kernel_named: HashSet<u64>,
    /// The names of the kernel's functions, once they are needed repeatedly: see [`flush`](Self::flush).
    kernel_symbols: Option<SymbolTable>,
    /// Those that were needed, in a recording that follows another.
    kernel_functions: KernelFunctions,
    max_frames: usize,
    /// Processes after the end of their first thread.
    ended: VecDeque<i32>,
    /// True if switches are recorded.
    off_cpu_times: bool,
    counts: RecordingCounts,
    /// The thread that lost events are attributed to.
    lost_thread: Option<ThreadIndex>,
    process_id: u64,
    /// Nanoseconds of samples beyond the whole milliseconds that are in the recording.
    carry_ns: u64,
    start_ns: u64,
    last_ns: u64,
    /// The least bytes that a native allocation represents.
    allocation_interval: u64,
    stack: Vec<u64>,
    payload: Vec<u8>,
}

/// The names of some of the kernel's functions, since a time.
#[derive(Debug, Default)]
struct KernelFunctions {
    known: KnownFunctions,
    since_ns: u64,
}

/// The stack of a switch.
#[derive(Debug)]
struct SwitchStack {
    frames: Vec<u64>,
    /// The number of switches that it represents.
    switches: u64,
}

/// A process that is in the recording.
#[derive(Debug, Default)]
struct KnownProcess {
    /// Thread 0 of the process, used by the events of `Universal.System`.
    system_thread: Option<ThreadIndex>,
    /// The process id in the process's own namespace.
    own_id: u64,
    /// Numbers and images of its mappings, by the first address.
    mappings: HashMap<u64, KnownMapping>,
    /// Addresses of frames in images that are not named yet.
    frames: BTreeSet<u64>,
    /// Functions with written names, as mapping number and first address.
    named: HashSet<(u64, u64)>,
    /// True if the kernel is mapped into it.
    has_kernel_mapping: bool,
    /// The [changes](crate::ProcessMaps::changes) of mappings that are already in the recording.
    described: u64,
    /// The name of its program.
    name: Vec<u8>,
    /// In a recording of many processes: the process that started it, or 0, and its control group.
    parent: u64,
    container: Container,
    has_ended: bool,
    samples: u64,
    /// Sampled addresses in code outside native images, and those of them that were not taken yet.
    other_code: HashSet<u64>,
    new_other_code: Vec<u64>,
}

#[derive(Debug)]
struct KnownMapping {
    id: u64,
    mapping: Mapping,
}

impl RecordingWriter {
    /// Begins a recording of the process `pid`, or of several processes. `start_unix_ms` is the time of day
    /// at `start_ns`. `sampling` describes how the samples are taken, and missing permissions, in the
    /// header's key [`SAMPLING_KEY`].
    ///
    /// # Errors
    /// None in practice.
    pub fn new(
        start_unix_ms: u64,
        start_ns: u64,
        pid: Option<i32>,
        config: &SamplerConfig,
        sampling: &str,
    ) -> Result<Self, Error> {
        let (frequency, max_frames) = (config.frequency, config.max_frames);
        let interval = 1_000_000_000_u32.checked_div(frequency).unwrap_or(0);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let pairs = [
            ("HardwareThreadCount", processors.to_string()),
            ("ExpectedCPUSamplingRate", interval.to_string()),
            ("SystemPageSize", rustix::param::page_size().to_string()),
            (SAMPLING_KEY, sampling.to_owned()),
        ];
        let mut pairs: Vec<_> = pairs.map(|(key, value)| (key.to_owned(), value)).into();
        let process_id = pid.map(|pid| innermost_id(pid, pid).unwrap_or(pid).unsigned_abs());
        if let Some(process_id) = process_id {
            pairs.push(("ProcessId".to_owned(), process_id.to_string()));
        }
        let info = TraceInfo::new_v6(start_unix_ms, Ticks(start_ns), pairs);
        let mut writer = EventWriter::new(&info)?;
        let kinds = Kinds::define(&mut writer)?;
        Ok(Self {
            writer,
            kinds,
            many: None,
            processes: Processes::new(),
            unwinder: Unwinder::new(),
            off_cpu: OffCpuTracker::new(),
            existing_waits: HashMap::new(),
            threads: HashMap::new(),
            known: HashMap::new(),
            next_mapping: 1,
            next_metadata: 1,
            next_symbol: 1,
            kernel_frames: BTreeSet::new(),
            kernel_mapping: None,
            kernel_named: HashSet::new(),
            kernel_symbols: None,
            kernel_functions: KernelFunctions::default(),
            max_frames: usize::from(max_frames),
            ended: VecDeque::new(),
            off_cpu_times: config.off_cpu != OffCpu::No,
            counts: RecordingCounts::default(),
            lost_thread: None,
            process_id: process_id.unwrap_or(0).into(),
            carry_ns: 0,
            start_ns,
            last_ns: start_ns,
            allocation_interval: config.native_allocations.map_or(1, |of| of.interval.into()),
            stack: Vec::new(),
            payload: Vec::new(),
        })
    }

    /// With an unwinder for code outside images: see [`Unwinder::with_runtime_unwinder`].
    #[must_use]
    pub fn with_runtime_unwinder(self, runtime: Box<dyn RuntimeUnwinder>) -> Self {
        Self { unwinder: self.unwinder.with_runtime_unwinder(runtime), ..self }
    }

    /// Lists a process with its current mappings and threads, at the start time. If switches are recorded, it
    /// reads the stacks of waiting threads: without a switch, their time would be missing.
    ///
    /// # Errors
    /// As [`EventWriter::event`].
    pub fn existing_process(&mut self, pid: i32) -> Result<(), Error> {
        let time = self.start_ns;
        if self.many.is_some() && !self.off_cpu_times {
            return self.process(pid, time, true);
        }
        let threads = threads(pid).unwrap_or_default();
        if self.off_cpu_times {
            // First: a wait that is confirmed at the end counts from here.
            self.note_waits(pid, &threads);
        }
        self.process(pid, time, true)?;
        for &tid in &threads {
            self.thread(ThreadKey { pid, tid })?;
        }
        if self.off_cpu_times {
            self.existing_waits(pid, &threads);
        }
        Ok(())
    }

    /// Adds a record.
    ///
    /// # Errors
    /// As [`EventWriter::event`].
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.last_ns = self.last_ns.max(record.time_ns);
        match record.kind {
            RecordKind::Lost { count } | RecordKind::LostSamples { count } => self.lost(count)?,
            RecordKind::LostStacks { count } => {
                self.counts.lost_stacks = self.counts.lost_stacks.saturating_add(count);
            }
            RecordKind::Throttled => self.counts.throttled = self.counts.throttled.saturating_add(1),
            RecordKind::Sample(sample) => return self.sample(record, &sample),
            RecordKind::NativeAllocation(allocation) => return self.native_allocation(record, &allocation),
            _ => {}
        }
        if let Some(interval) = self.off_cpu.handle(record) {
            self.interval(&interval, Some(record.cpu))?;
        }
        self.lifetime(record)?;
        if let Some(pid) = self.processes.handle(record) {
            self.unwinder.forget(pid);
        }
        Ok(())
    }

    /// Follows the births, programs and ends of processes.
    fn lifetime(&mut self, record: &Record<'_>) -> Result<(), Error> {
        match record.kind {
            RecordKind::Ended { thread } => {
                if thread.pid == thread.tid {
                    self.ended_one(thread.pid, record.time_ns)?;
                    self.ended(thread.pid);
                }
                // Another thread may reuse the number.
                self.threads.remove(&thread.tid);
            }
            RecordKind::Name { exec: true, name } if self.many.is_some() => {
                self.became(record.thread.pid, name, record.time_ns)?;
            }
            RecordKind::Name { exec: true, .. } => {
                self.symbols(record.thread.pid)?;
                self.known.remove(&record.thread.pid);
            }
            RecordKind::Started { thread, parent } if thread.pid == thread.tid => {
                // The number of a process that has ended.
                self.known.remove(&thread.pid);
                self.ended.retain(|ended| *ended != thread.pid);
                self.born(thread.pid, parent.pid, record.time_ns)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the stack of a thread that waits now, as a sample of one millisecond at `now_ns`: see
    /// [`Unwinder::waiting_stack`].
    ///
    /// # Errors
    /// As [`EventWriter::event`]. A stack that cannot be read is empty.
    pub fn waiting_thread(&mut self, thread: ThreadKey, wait: &ThreadWait, now_ns: u64) -> Result<(), Error> {
        self.last_ns = self.last_ns.max(now_ns);
        self.process(thread.pid, self.last_ns, true)?;
        let mut stack = std::mem::take(&mut self.stack);
        if self.unwinder.waiting_stack(thread.pid, wait, &mut self.processes, &mut stack).is_err() {
            stack.clear();
        }
        self.note_frames(thread.pid, &stack);
        self.payload.clear();
        number(&mut self.payload, 1);
        let index = self.thread(thread)?;
        let result =
            self.writer.event(self.kinds.cpu, Ticks(self.last_ns), index, Some(0), &stack, &self.payload);
        self.stack = stack;
        result
    }

    /// Writes the names of the frames so far, and moves everything to the [bytes](Self::bytes), for a reader
    /// that shows samples while they are taken.
    ///
    /// # Errors
    /// As [`EventWriter::event`].
    pub fn flush(&mut self) -> Result<(), Error> {
        // All names together take megabytes, which are not spent for long.
        if !self.kernel_frames.is_empty() && self.kernel_symbols.is_none() && !self.is_continued() {
            self.kernel_symbols = Some(kernel_symbols().unwrap_or_default());
        }
        self.names()?;
        self.writer.flush()
    }

    /// Ends the recording: writes intervals off the processors that last until `now_ns`, and the names of all
    /// frames.
    ///
    /// # Errors
    /// As [`EventWriter::event`].
    pub fn finish(&mut self, now_ns: u64) -> Result<RecordingCounts, Error> {
        self.last_ns = self.last_ns.max(now_ns);
        let waits = std::mem::take(&mut self.existing_waits);
        self.off_cpu.confirm(|thread| waits.get(&thread)?.since(thread));
        let mut left: Vec<_> = self.off_cpu.finish(now_ns).collect();
        left.sort_by_key(|interval| interval.thread);
        for interval in &left {
            self.interval(interval, None)?;
        }
        self.names()?;
        self.writer.finish()?;
        Ok(self.counts)
    }

    /// Names the frames that are not named yet.
    fn names(&mut self) -> Result<(), Error> {
        let mut pids: Vec<i32> = self.known.keys().copied().collect();
        pids.sort_unstable();
        for &pid in &pids {
            self.symbols(pid)?;
        }
        self.kernel()
    }

    /// The counts so far.
    pub const fn counts(&self) -> RecordingCounts {
        self.counts
    }

    /// The bytes of the recording that were not [cleared](Self::clear_bytes) yet.
    pub fn bytes(&self) -> &[u8] {
        self.writer.bytes()
    }

    /// Drops the pending bytes.
    pub fn clear_bytes(&mut self) {
        self.writer.clear_bytes();
    }

    /// Writes the pending bytes to `out` and drops them, if there are more than `most`.
    ///
    /// # Errors
    /// Of `out`; the bytes are kept then.
    pub fn drain_to(&mut self, most: usize, out: &mut impl std::io::Write) -> Result<(), Error> {
        self.writer.drain_to(most, out)
    }

    /// Keeps a process for its other threads after its first thread has ended, until many such processes are
    /// kept.
    fn ended(&mut self, pid: i32) {
        self.ended.push_back(pid);
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    /// Counts lost samples and records.
    fn lost(&mut self, count: u64) -> Result<(), Error> {
        self.counts.lost = self.counts.lost.saturating_add(count);
        let thread = match self.lost_thread {
            Some(thread) => thread,
            None => *self.lost_thread.insert(self.writer.thread(self.process_id, 0, None)?),
        };
        self.writer.lost(thread, u32::try_from(count).unwrap_or(u32::MAX));
        Ok(())
    }

    fn sample(&mut self, record: &Record<'_>, sample: &Sample<'_>) -> Result<(), Error> {
        let thread = record.thread;
        if thread.pid <= 0 {
            self.outside(thread, sample.user_frames());
            return Ok(());
        }
        self.process(thread.pid, record.time_ns, self.is_continued())?;
        let mut stack = std::mem::take(&mut self.stack);
        self.unwinder.user_stack(thread, sample, &mut self.processes, &mut stack);
        self.mappings_of(thread.pid, record.time_ns, &stack)?;
        self.note_frames(thread.pid, &stack);
        if sample.chain_len() >= self.max_frames {
            self.counts.cut_stacks = self.counts.cut_stacks.saturating_add(1);
        }
        if let Some(known) = self.known.get_mut(&thread.pid) {
            known.samples = known.samples.saturating_add(1);
        }
        let kernel: Vec<u64> = sample.kernel_frames().collect();
        self.kernel_mapping_of(thread.pid, record.time_ns, &kernel)?;
        if self.kernel_frames.len() < MAX_ADDRESSES {
            self.kernel_frames.extend(kernel.iter().copied());
        }
        let result = match sample.event {
            SampleEvent::Switch => {
                let frames = [&kernel[..], &stack].concat();
                self.off_cpu.stack(thread, SwitchStack { frames, switches: sample.period.max(1) });
                Ok(())
            }
            SampleEvent::Cpu => {
                self.counts.cpu_samples = self.counts.cpu_samples.saturating_add(1);
                self.counts.cpu_ns = self.counts.cpu_ns.saturating_add(sample.period);
                let whole = [&kernel[..], &stack].concat();
                // Weights are whole milliseconds; the rest is the next sample's, so that sums are right.
                let time = self.carry_ns.saturating_add(sample.period);
                self.carry_ns = time % 1_000_000;
                self.payload.clear();
                number(&mut self.payload, time / 1_000_000);
                let index = self.thread(thread)?;
                let time = Ticks(record.time_ns);
                self.writer.event(self.kinds.cpu, time, index, Some(record.cpu), &whole, &self.payload)
            }
            _ => Ok(()),
        };
        self.stack = stack;
        result
    }

    fn interval(&mut self, interval: &OffCpuInterval<SwitchStack>, cpu: Option<u32>) -> Result<(), Error> {
        let off_ns = interval.to_ns.saturating_sub(interval.from_ns);
        self.counts.off_cpu_intervals = self.counts.off_cpu_intervals.saturating_add(1);
        self.counts.off_cpu_ns = self.counts.off_cpu_ns.saturating_add(off_ns);
        self.process(interval.thread.pid, interval.to_ns, false)?;
        let index = self.thread(interval.thread)?;
        self.payload.clear();
        number(&mut self.payload, off_ns);
        number(&mut self.payload, interval.preempted.into());
        let (stack, switches) =
            interval.stack.as_ref().map_or((&[][..], 0), |stack| (&stack.frames[..], stack.switches));
        number(&mut self.payload, off_ns.saturating_mul(switches));
        let processor = cpu.unwrap_or(0);
        self.writer.event(
            self.kinds.switch,
            Ticks(interval.to_ns),
            index,
            Some(processor),
            stack,
            &self.payload,
        )
    }

    /// Records the addresses that get names at the end.
    fn note_frames(&mut self, pid: i32, stack: &[u64]) {
        let Some(known) = self.known.get_mut(&pid) else { return };
        if known.frames.len() < MAX_ADDRESSES {
            let mut frames = stack.iter();
            known.frames.extend(frames.next());
            // A return address can be past the end of a function that ends with a call.
            known.frames.extend(frames.map(|frame| frame.wrapping_sub(1)));
        }
    }

    /// Describes a thread, once.
    fn thread(&mut self, thread: ThreadKey) -> Result<ThreadIndex, Error> {
        if let Some(&index) = self.threads.get(&thread.tid) {
            return Ok(index);
        }
        let process_id = self.known.get(&thread.pid).map_or(0, |known| known.own_id);
        let id = if self.many.is_some() || process_id == u64::from(thread.pid.unsigned_abs()) {
            thread.tid
        } else {
            innermost_id(thread.pid, thread.tid).unwrap_or(thread.tid)
        };
        let name = linux_proc_stat::read(&folder(thread.pid, thread.tid).join("comm")).ok();
        let name = name.map(|name| String::from_utf8_lossy(name.trim_ascii_end()).into_owned());
        let index = self.writer.thread(process_id, id.unsigned_abs().into(), name.as_deref())?;
        if self.threads.len() < MAX_THREADS {
            self.threads.insert(thread.tid, index);
        }
        Ok(index)
    }

    /// Describes a process and its new mappings.
    fn process(&mut self, pid: i32, time: u64, existing: bool) -> Result<(), Error> {
        if !self.known.contains_key(&pid) {
            self.describe(pid, time, existing, None)?;
            self.group(pid, None, time)?;
        }
        if self.many.is_some() {
            // Mappings are listed with the first sample in them.
            return Ok(());
        }
        let maps = self.processes.of(pid);
        let Some(known) = self.known.get(&pid) else { return Ok(()) };
        let changes = maps.changes();
        if known.described == changes {
            return Ok(());
        }
        let is_new = |mapping: &&Mapping| {
            known.mappings.get(&mapping.start).is_none_or(|known| known.mapping != **mapping)
        };
        let new: Vec<Mapping> = maps.iter().filter(is_new).cloned().collect();
        for mapping in new {
            self.mapping(pid, time, mapping)?;
        }
        if let Some(known) = self.known.get_mut(&pid) {
            known.described = changes;
        }
        Ok(())
    }

    /// Describes a process that is new in the recording, by its name or that of another.
    fn describe(&mut self, pid: i32, time: u64, existing: bool, name: Option<&[u8]>) -> Result<(), Error> {
        let own_id = match &self.many {
            Some(many) => many.id(pid),
            None => innermost_id(pid, pid).unwrap_or(pid).unsigned_abs().into(),
        };
        let read = || linux_proc_stat::read(&folder(pid, pid).join("comm")).unwrap_or_default();
        let name = name.map_or_else(|| read().trim_ascii_end().to_vec(), <[u8]>::to_vec);
        self.known.insert(pid, KnownProcess { own_id, name, ..KnownProcess::default() });
        self.counts.processes = self.counts.processes.saturating_add(1);
        let kind = if existing { self.kinds.existing } else { self.kinds.created };
        self.process_event(pid, time, kind)?;
        if self.many.is_some() { Ok(()) } else { self.kernel_mapping(pid, time) }
    }

    /// Writes the id and the name of a process.
    fn process_event(&mut self, pid: i32, time: u64, kind: EventKindId) -> Result<(), Error> {
        let Some(known) = self.known.get(&pid) else { return Ok(()) };
        let mut payload = std::mem::take(&mut self.payload);
        payload.clear();
        number(&mut payload, known.own_id);
        text(&mut payload, &known.name);
        text(&mut payload, b"Unknown");
        let result = self.system_event(pid, time, kind, &payload);
        self.payload = payload;
        result
    }

    fn mapping(&mut self, pid: i32, time: u64, mapping: Mapping) -> Result<(), Error> {
        let metadata_id = match mapping.image(pid) {
            None => 0,
            Some(image) => {
                let id = self.next_metadata;
                self.next_metadata = id.saturating_add(1);
                let payload = mapping_metadata(id, image);
                self.system_event(pid, time, self.kinds.metadata, &payload)?;
                id
            }
        };
        let id = self.next_mapping;
        self.next_mapping = id.saturating_add(1);
        self.mapping_event(
            pid,
            time,
            id,
            (mapping.start, mapping.end.saturating_sub(1)),
            &mapping,
            metadata_id,
        )?;
        if let Some(known) = self.known.get_mut(&pid) {
            known.mappings.insert(mapping.start, KnownMapping { id, mapping });
        }
        Ok(())
    }

    fn mapping_event(
        &mut self,
        pid: i32,
        time: u64,
        id: u64,
        (start, last): (u64, u64),
        mapping: &Mapping,
        metadata_id: u64,
    ) -> Result<(), Error> {
        // JIT code is recognised by this name, which the anonymous memory of 3.1 lacks.
        let is_anonymous = mapping.name.is_empty() || &*mapping.name == "//anon";
        let name = if is_anonymous { "/memfd:doublemapper" } else { &mapping.name };
        let mut payload = Vec::new();
        number(&mut payload, id);
        number(&mut payload, start);
        number(&mut payload, last);
        number(&mut payload, mapping.file_offset);
        text(&mut payload, name.as_bytes());
        number(&mut payload, metadata_id);
        self.system_event(pid, time, self.kinds.mapping, &payload)
    }

    /// Names the frames of a process in its images.
    fn symbols(&mut self, pid: i32) -> Result<(), Error> {
        let is_continued = self.is_continued();
        let Some(known) = self.known.get_mut(&pid) else { return Ok(()) };
        let mut rows = Vec::new();
        let all = std::mem::take(&mut known.frames);
        if all.is_empty() {
            return Ok(());
        }
        for known_mapping in known.mappings.values() {
            let KnownMapping { id, mapping } = known_mapping;
            let Some(image) = mapping.image(pid) else { continue };
            let frames = all.range(mapping.start..mapping.end);
            let own = |frame: &u64| Some((*frame, mapping.address_in(image, *frame)?));
            let frames: Vec<(u64, u64)> = frames.filter_map(own).collect();
            if frames.is_empty() {
                continue;
            }
            let of_some = is_continued
                .then(|| image.functions_at(&frames.iter().map(|(_, own)| *own).collect::<BTreeSet<_>>()));
            let symbols = of_some.as_ref().unwrap_or_else(|| image.functions());
            for (frame, own) in frames {
                let Some(symbol) = symbols.at(own) else { continue };
                if known.named.insert((*id, symbol.start)) {
                    let start = frame.saturating_sub(own.saturating_sub(symbol.start));
                    let last = frame.saturating_add(symbol.end.saturating_sub(own)).saturating_sub(1);
                    rows.push((*id, start, last.min(mapping.end.saturating_sub(1)), symbol.name.to_vec()));
                }
            }
        }
        rows.sort();
        for (mapping, start, last, name) in rows {
            self.symbol_event(pid, mapping, start, last, &name)?;
        }
        Ok(())
    }

    /// Maps the kernel into a process, so that its frames are found there.
    fn kernel_mapping(&mut self, pid: i32, time: u64) -> Result<(), Error> {
        let id = if let Some(id) = self.kernel_mapping {
            id
        } else {
            let id = self.next_mapping;
            self.next_mapping = id.saturating_add(1);
            *self.kernel_mapping.insert(id)
        };
        if let Some(known) = self.known.get_mut(&pid) {
            known.has_kernel_mapping = true;
        }
        let mapping = Mapping::new(KERNEL_START, u64::MAX, 0, "vmlinux");
        self.mapping_event(pid, time, id, (KERNEL_START, u64::MAX), &mapping, 0)
    }

    /// Names the frames in the kernel, which all processes share.
    fn kernel(&mut self) -> Result<(), Error> {
        let frames = std::mem::take(&mut self.kernel_frames);
        if frames.is_empty() {
            return Ok(());
        }
        if let Some(symbols) = self.kernel_symbols.take() {
            let named = self.kernel_names(&frames, &symbols);
            self.kernel_symbols = Some(symbols);
            return named;
        }
        let read = |frames: &BTreeSet<u64>| kernel_symbols_at(frames).unwrap_or_default();
        let symbols = if self.is_continued() {
            self.kernel_functions.known.table_of(&frames, read)
        } else {
            read(&frames)
        };
        self.kernel_names(&frames, &symbols)
    }

    fn kernel_names(&mut self, frames: &BTreeSet<u64>, symbols: &SymbolTable) -> Result<(), Error> {
        let Some(mapping) = self.kernel_mapping else { return Ok(()) };
        let Some(pid) = self.known.keys().copied().min() else { return Ok(()) };
        for &frame in frames {
            let Some(symbol) = symbols.at(frame) else { continue };
            if self.kernel_named.insert(symbol.start) {
                self.symbol_event(pid, mapping, symbol.start, symbol.end.saturating_sub(1), symbol.name)?;
            }
        }
        Ok(())
    }

    fn symbol_event(
        &mut self,
        pid: i32,
        mapping: u64,
        start: u64,
        last: u64,
        name: &[u8],
    ) -> Result<(), Error> {
        let id = self.next_symbol;
        self.next_symbol = id.saturating_add(1);
        let mut payload = Vec::new();
        for value in [id, mapping, start, last] {
            number(&mut payload, value);
        }
        text(&mut payload, String::from_utf8_lossy(name).as_bytes());
        let time = self.last_ns;
        self.system_event(pid, time, self.kinds.symbol, &payload)
    }

    /// Writes an event of `Universal.System`, on thread 0 of its process.
    fn system_event(&mut self, pid: i32, time: u64, kind: EventKindId, payload: &[u8]) -> Result<(), Error> {
        let known = self.known.entry(pid).or_default();
        let thread = match known.system_thread {
            Some(thread) => thread,
            None => *known.system_thread.insert(self.writer.thread(known.own_id, 0, None)?),
        };
        self.writer.event(kind, Ticks(time), thread, Some(0), &[], payload)
    }
}
