//! A sampler: the events of a scope, their buffers, and their records in time order.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Token};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit};

use crate::access::Access;
use crate::attributes::{Counter, EventAttributes, EventSettings, Inherit};
use crate::config::{OffCpu, SamplerConfig, Scope};
use crate::decoder::{Filter, RecordBatch, RecordDecoder, RecordOrder, Records};
use crate::error::Error;
use crate::native_allocations::{AllocationCounts, Probes};
use crate::obstacle::Obstacle;
use crate::record::{self, EventIds, EventSource, SampleEvent};
use crate::sys::{self, Ring, Tasks};
use crate::thinning::Thinning;
use crate::threads::{processors, threads};

/// Maximum number of listings of a process's threads while new ones appear.
const MAX_LISTINGS: usize = 32;

/// The pages of each processor's buffer that the kernel allows to unprivileged users by default, besides the
/// control page.
const ALLOWED_PAGES: usize = 128;
/// Maximum number of bytes of the buffers of all processors.
const MAX_BUFFERS: usize = 64 << 20;

/// Descriptors in addition to event descriptors: buffers, files, the caller's own.
const SPARE_DESCRIPTORS: u64 = 256;

/// A sampler of processes, a cgroup or the machine, from [`open`](Self::open) until it is dropped.
///
/// The sampler is read by one thread: [`read`](Self::read) waits for records and returns the ordered part of
/// them. Memory is bounded by four times the buffers. If the reader is too slow, records are lost, which the
/// kernel counts: [`RecordKind::Lost`](crate::RecordKind::Lost).
///
/// ```no_run
/// use linux_sampler::{RecordKind, Sampler, SamplerConfig};
/// use std::time::Duration;
///
/// let mut sampler = Sampler::open(&SamplerConfig::of_process(4711))?;
/// println!("with the time in the kernel: {}", sampler.access().kernel);
/// let mut samples = 0;
/// while sampler.running() > 0 {
///     let records = sampler.read(Duration::from_millis(200))?;
///     samples += records.filter(|record| matches!(record.kind, RecordKind::Sample(_))).count();
/// }
/// println!("{samples} samples");
/// # Ok::<(), linux_sampler::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    reader: RecordReader,
    decoder: RecordDecoder,
    access: Access,
}

/// A reader of a sampler's buffers, for a thread that does nothing else: [`Sampler::into_parts`].
#[derive(Debug)]
pub struct RecordReader {
    events: Vec<OwnedFd>,
    buffers: Vec<Buffer>,
    poll: mio::Poll,
    wakeups: mio::Events,
    /// Descriptors of the processes, which become readable when the process ends, by token minus the number
    /// of buffers.
    processes: Vec<Option<OwnedFd>>,
    running: usize,
    /// The bytes of the records that were read.
    bytes: Vec<u8>,
    /// The memory of the bytes before.
    spare: Vec<u8>,
    /// Time and range of each record in `bytes`.
    order: Vec<(u64, Range<usize>)>,
    /// The number of records in `order` that were returned.
    returned: usize,
    /// The time of the last read of the buffers.
    last_read_ns: u64,
    /// The probes of native allocations, which write into the buffers.
    probes: Option<Probes>,
}

/// A buffer of a processor.
#[derive(Debug)]
struct Buffer {
    processor: i32,
    /// True if it has only the stacks of switches: threads that switch often fill it, and lose no times of
    /// switches by that.
    of_switch_stacks: bool,
    /// The index in `events` of the event that it was mapped from.
    event: usize,
    ring: Ring,
}

impl Sampler {
    /// Opens the events of a scope, which count from then on.
    ///
    /// Falls back to less if the kernel does not permit all: [`access`](Self::access) has the result.
    ///
    /// # Errors
    /// If the process does not exist, nothing is permitted, or descriptors or memory for buffers do not
    /// suffice.
    pub fn open(config: &SamplerConfig) -> Result<Self, Error> {
        let has_events = !config.tracepoints.is_empty() || config.native_allocations.is_some();
        if config.frequency == 0 && config.off_cpu == OffCpu::No && !has_events {
            return Err(Error::Settings(
                "a sampler needs a frequency, the switches of threads, tracepoints or native allocations",
            ));
        }
        if !config.stack_bytes.is_multiple_of(8) || !config.off_cpu_stack_bytes.is_multiple_of(8) {
            return Err(Error::Settings("the bytes of a stack are a multiple of 8"));
        }
        let mut config = config.clone();
        let processors = processors()?;
        let all = processors.len().saturating_mul(rustix::param::page_size());
        while config.buffer_pages > ALLOWED_PAGES && config.buffer_pages.saturating_mul(all) > MAX_BUFFERS {
            config.buffer_pages /= 2;
        }
        loop {
            match Self::open_buffers(&config, &processors) {
                Err(Error::BufferMemory { .. }) if config.buffer_pages > ALLOWED_PAGES => {
                    config.buffer_pages /= 2;
                }
                opened => return opened,
            }
        }
    }

    /// Opens the events with buffers of the configured size.
    fn open_buffers(config: &SamplerConfig, processors: &[i32]) -> Result<Self, Error> {
        let poll = mio::Poll::new().map_err(Error::io("epoll"))?;
        let mut opening = Opening::new(config, processors);
        let mut filter = Filter {
            processes: None,
            of_all_tasks: None,
            children: config.children,
            opened: HashSet::new(),
            thinning: None,
            stacks_apart: false,
        };
        let mut pids: &[i32] = &[];
        match &config.scope {
            Scope::Processes(of) => {
                pids = of;
                opening.processes(of, &mut filter.opened)?;
            }
            Scope::ProcessesByProcessor(of) => {
                pids = of;
                filter.processes = Some(of.iter().copied().collect());
                opening.clocks()?;
                opening.processes(of, &mut filter.opened)?;
            }
            Scope::Cgroup(folder) => {
                let folder = File::open(folder).map_err(Error::io(folder.display().to_string()))?;
                opening.tasks(Tasks::Cgroup(folder.as_fd()), None)?;
            }
            Scope::Machine => opening.tasks(Tasks::All, None)?,
        }
        opening.tracepoints()?;
        let probes = opening.native_allocations(pids)?;
        filter.of_all_tasks = (!pids.is_empty()).then(|| pids.iter().copied().collect());
        let Opening { events, buffers, ids, access, .. } = opening;
        filter.thinning = access.off_cpu_stacks.then(|| {
            let limit = config.switch_stacks_per_second;
            Thinning::new(limit, switches_per_stack(config), sys::monotonic_ns())
        });
        let of_stacks = buffers.iter().filter(|buffer| buffer.of_switch_stacks).count();
        filter.stacks_apart = of_stacks > 0 && of_stacks.saturating_mul(2) == buffers.len();
        for (token, buffer) in buffers.iter().enumerate() {
            let fd = events.get(buffer.event).map_or(-1, AsRawFd::as_raw_fd);
            let registered = poll.registry().register(&mut SourceFd(&fd), Token(token), Interest::READABLE);
            registered.map_err(Error::io("epoll"))?;
        }
        let processes: Vec<_> = pids.iter().map(|&pid| process_descriptor(pid)).collect();
        for (index, process) in processes.iter().enumerate() {
            if let Some(process) = process {
                let token = Token(buffers.len().saturating_add(index));
                let fd = process.as_raw_fd();
                poll.registry()
                    .register(&mut SourceFd(&fd), token, Interest::READABLE)
                    .map_err(Error::io("epoll"))?;
            }
        }
        let reader = RecordReader {
            running: processes.len(),
            events,
            buffers,
            poll,
            wakeups: mio::Events::with_capacity(64),
            processes,
            bytes: Vec::new(),
            spare: Vec::new(),
            order: Vec::new(),
            returned: 0,
            last_read_ns: sys::monotonic_ns(),
            probes,
        };
        Ok(Self { reader, decoder: RecordDecoder { ids, filter }, access })
    }

    /// Divides the sampler, so that one thread empties the buffers while another decodes the records.
    pub fn into_parts(self) -> (RecordReader, RecordDecoder) {
        (self.reader, self.decoder)
    }

    /// The counts of native allocations, if they are followed.
    pub fn allocation_counts(&mut self) -> Option<AllocationCounts> {
        Some(self.reader.probes.as_mut()?.counts())
    }

    /// The probes of native allocations and their cost, in words.
    pub fn allocation_probes(&self) -> Option<String> {
        Some(self.reader.probes.as_ref()?.description())
    }

    /// The permissions that the kernel granted.
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The number of processes of the scope that have not ended; zero for scopes without processes.
    pub const fn running(&self) -> usize {
        self.reader.running
    }

    /// The time of the records' clock, in nanoseconds.
    pub fn now_ns() -> u64 {
        sys::monotonic_ns()
    }

    /// Waits until a buffer is a quarter full, a process ends, a signal arrives or the timeout expires.
    /// Returns the records up to the previous call, in time order: a later record in one buffer can precede
    /// an earlier one in another.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn read(&mut self, timeout: Duration) -> Result<Records<'_>, Error> {
        self.reader.advance(timeout)?;
        Ok(self.decode())
    }

    /// Ends the sampling, and returns all remaining records.
    pub fn finish(&mut self) -> Records<'_> {
        self.reader.end();
        self.decode()
    }

    fn decode(&mut self) -> Records<'_> {
        let reader = &self.reader;
        self.decoder.decode(&reader.bytes, reader.ready(), reader.last_read_ns)
    }
}

impl RecordReader {
    /// Waits as [`Sampler::read`] does, and returns the same records, not decoded.
    ///
    /// # Errors
    /// If waiting fails.
    pub fn read(&mut self, timeout: Duration) -> Result<RecordBatch, Error> {
        self.advance(timeout)?;
        Ok(self.batch())
    }

    /// Ends the sampling, and returns all remaining records.
    pub fn finish(&mut self) -> RecordBatch {
        self.end();
        self.batch()
    }

    /// The number of processes of the scope that have not ended; zero for scopes without processes.
    pub const fn running(&self) -> usize {
        self.running
    }

    fn batch(&self) -> RecordBatch {
        RecordBatch::copy(&self.bytes, self.ready(), self.last_read_ns)
    }

    /// Waits for records, and makes those up to the previous call ready.
    fn advance(&mut self, timeout: Duration) -> Result<(), Error> {
        match self.poll.poll(&mut self.wakeups, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => {
                return Err(Error::io("epoll")(error));
            }
            _ => {}
        }
        self.remove_ended();
        if let Some(probes) = &mut self.probes {
            probes.check();
        }
        let horizon = self.last_read_ns;
        self.take();
        self.returned = self.order.partition_point(|(time, _)| *time <= horizon);
        Ok(())
    }

    /// Disables the events, and makes all remaining records ready.
    fn end(&mut self) {
        if let Some(probes) = &mut self.probes {
            probes.counts();
            probes.remove();
        }
        for event in &self.events {
            // Disabling fails if the thread has ended.
            let _ = sys::disable(event.as_fd());
        }
        self.take();
        self.returned = self.order.len();
    }

    /// The records that are ready, in time order.
    fn ready(&self) -> &RecordOrder {
        self.order.get(..self.returned).unwrap_or_default()
    }

    /// Removes the processes that have ended since.
    fn remove_ended(&mut self) {
        let buffers = self.buffers.len();
        for wakeup in &self.wakeups {
            let Some(index) = wakeup.token().0.checked_sub(buffers) else { continue };
            if let Some(process) = self.processes.get_mut(index).and_then(Option::take) {
                let _ = self.poll.registry().deregister(&mut SourceFd(&process.as_raw_fd()));
                self.running = self.running.saturating_sub(1);
            }
        }
    }

    /// Reads all buffers.
    fn take(&mut self) {
        // Returned records are dropped; the others move to the front.
        let left = self.order.split_off(self.returned.min(self.order.len()));
        let mut kept = std::mem::take(&mut self.spare);
        kept.clear();
        self.order.clear();
        for (time, place) in left {
            let start = kept.len();
            kept.extend_from_slice(self.bytes.get(place).unwrap_or_default());
            self.order.push((time, start..kept.len()));
        }
        let mut at = kept.len();
        self.spare = std::mem::replace(&mut self.bytes, kept);
        self.returned = 0;
        self.last_read_ns = sys::monotonic_ns();
        for buffer in &mut self.buffers {
            buffer.ring.take(&mut self.bytes);
        }
        while let Some(place) = record::record_range(&self.bytes, at) {
            at = place.end;
            let time = record::time_of(self.bytes.get(place.clone()).unwrap_or_default());
            self.order.push((time, place));
        }
        self.order.sort_by_key(|(time, _)| *time);
    }
}

fn switches_per_stack(config: &SamplerConfig) -> u32 {
    if let OffCpu::Stacks { every } = config.off_cpu { every.max(1) } else { 1 }
}

fn process_descriptor(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// The buffer of an event.
#[derive(Debug, Clone, Copy)]
struct Place {
    processor: i32,
    of_switch_stacks: bool,
}

/// A sampler with events that are being opened.
struct Opening<'c> {
    config: &'c SamplerConfig,
    processors: Vec<i32>,
    inherit: Inherit,
    access: Access,
    events: Vec<OwnedFd>,
    buffers: Vec<Buffer>,
    ids: EventIds,
    /// True if one of the events is of a thread.
    has_thread: bool,
}

impl<'c> Opening<'c> {
    fn new(config: &'c SamplerConfig, processors: &[i32]) -> Self {
        let inherit = match config.scope {
            Scope::Processes(_) | Scope::ProcessesByProcessor(_) if config.children => Inherit::Children,
            Scope::Processes(_) | Scope::ProcessesByProcessor(_) => Inherit::Threads,
            Scope::Cgroup(_) | Scope::Machine => Inherit::No,
        };
        let access = Access {
            kernel: config.kernel,
            off_cpu_stacks: config.kernel && matches!(config.off_cpu, OffCpu::Stacks { .. }),
            children_excluded: !config.children,
        };
        Self {
            config,
            processors: processors.to_vec(),
            inherit,
            access,
            events: Vec::new(),
            buffers: Vec::new(),
            ids: EventIds::default(),
            has_thread: false,
        }
    }

    /// Opens the events of all threads of processes, including threads that begin meanwhile.
    fn processes(&mut self, pids: &[i32], opened: &mut HashSet<i32>) -> Result<(), Error> {
        for _ in 0..MAX_LISTINGS {
            let mut new = Vec::new();
            for &pid in pids {
                new.extend(
                    threads(pid)?.into_iter().filter(|tid| !opened.contains(tid)).map(|tid| (pid, tid)),
                );
            }
            if new.is_empty() {
                break;
            }
            self.reserve_descriptors(opened.len().saturating_add(new.len()))?;
            for (pid, tid) in new {
                match self.tasks(Tasks::Thread(tid), Some(pid)) {
                    // The thread has ended.
                    Err(Error::NoProcess { .. }) => {}
                    Err(error) => return Err(error),
                    Ok(()) => {
                        opened.insert(tid);
                    }
                }
            }
        }
        match (opened.is_empty(), pids.first()) {
            (true, Some(&pid)) => Err(Error::NoProcess { pid }),
            (true, None) => Err(Error::Settings("no processes to sample")),
            (false, _) => Ok(()),
        }
    }

    /// Raises the limit of descriptors if the events need it.
    fn reserve_descriptors(&self, threads: usize) -> Result<(), Error> {
        let each = if self.access.off_cpu_stacks { 2 } else { 1 };
        let needed = (threads as u64)
            .saturating_mul(self.processors.len() as u64)
            .saturating_mul(each)
            .saturating_add(SPARE_DESCRIPTORS);
        let limit = rustix::process::getrlimit(Resource::Nofile);
        if limit.current.is_none_or(|current| current >= needed) {
            return Ok(());
        }
        let hard = limit.maximum.unwrap_or(u64::MAX);
        let raised = Rlimit { current: Some(needed.min(hard)), maximum: limit.maximum };
        if hard < needed || rustix::process::setrlimit(Resource::Nofile, raised).is_err() {
            let processors = self.processors.len();
            return Err(Error::TooManyDescriptors { needed, threads, processors, limit: hard });
        }
        Ok(())
    }

    /// Opens the events of these tasks on every processor.
    fn tasks(&mut self, tasks: Tasks<'_>, pid: Option<i32>) -> Result<(), Error> {
        for processor in self.processors.clone() {
            self.event(tasks, pid, processor, Self::main_event)?;
            if self.access.off_cpu_stacks {
                self.event(tasks, pid, processor, Self::switch_event)?;
            }
        }
        Ok(())
    }

    /// Opens the timer of every processor, for all tasks.
    fn clocks(&mut self) -> Result<(), Error> {
        if self.config.frequency > 0 {
            for processor in self.processors.clone() {
                self.event(Tasks::All, None, processor, Self::clock_event)?;
            }
        }
        Ok(())
    }

    /// Opens the tracepoints on every processor, for all tasks.
    fn tracepoints(&mut self) -> Result<(), Error> {
        let config = self.config;
        for (index, tracepoint) in config.tracepoints.iter().enumerate() {
            for processor in self.processors.clone() {
                let of = |opening: &Self| opening.tracepoint_event(index, tracepoint.id());
                self.event(Tasks::All, None, processor, of)?;
            }
        }
        Ok(())
    }

    /// Sets the probes of native allocations, with an event for their records on every processor.
    fn native_allocations(&mut self, pids: &[i32]) -> Result<Option<Probes>, Error> {
        let Some(settings) = self.config.native_allocations else { return Ok(None) };
        let &[pid] = pids else {
            return Err(Error::Settings("native allocations are those of one process"));
        };
        let mut probes = Probes::new(pid, settings)?;
        for processor in self.processors.clone() {
            for with_stack in [true, false] {
                let of = |opening: &Self| opening.allocation_event(with_stack);
                self.event(Tasks::All, Some(pid), processor, of)?;
                let Some(event) = self.events.last() else { continue };
                probes.add_output(processor, event.as_fd(), with_stack)?;
            }
        }
        probes.set()?;
        Ok(Some(probes))
    }

    /// The event of records about native allocations.
    fn allocation_event(&self, with_stack: bool) -> (EventSettings, SampleEvent) {
        let settings = EventSettings {
            counter: Counter::ProgramOutput,
            stack_bytes: if with_stack { self.config.stack_bytes } else { 0 },
            kernel_stacks: false,
            inherit: Inherit::No,
            ..self.common()
        };
        (settings, SampleEvent::NativeAllocation)
    }

    /// The event of a tracepoint. The kernel writes it while the thread is in the kernel, but the chain is of
    /// the program alone.
    fn tracepoint_event(&self, index: usize, id: u32) -> (EventSettings, SampleEvent) {
        let settings = EventSettings {
            counter: Counter::Tracepoint(id),
            stack_bytes: self.config.stack_bytes,
            kernel: true,
            kernel_stacks: false,
            inherit: Inherit::No,
            ..self.common()
        };
        (settings, SampleEvent::Tracepoint(index))
    }

    fn clock_event(&self) -> (EventSettings, SampleEvent) {
        let settings = EventSettings {
            counter: Counter::CpuClock,
            rate: u64::from(self.config.frequency),
            stack_bytes: self.config.stack_bytes,
            inherit: Inherit::No,
            ..self.common()
        };
        (settings, SampleEvent::Cpu)
    }

    fn main_event(&self) -> (EventSettings, SampleEvent) {
        let has_clocks = matches!(self.config.scope, Scope::ProcessesByProcessor(_));
        let counter =
            if self.config.frequency == 0 || has_clocks { Counter::Dummy } else { Counter::CpuClock };
        let settings = EventSettings {
            counter,
            rate: u64::from(self.config.frequency.max(1)),
            stack_bytes: self.config.stack_bytes,
            side_band: true,
            switches: self.config.off_cpu != OffCpu::No,
            ..self.common()
        };
        (settings, SampleEvent::Cpu)
    }

    fn switch_event(&self) -> (EventSettings, SampleEvent) {
        let settings = EventSettings {
            counter: Counter::ContextSwitches,
            rate: 1,
            stack_bytes: self.config.off_cpu_stack_bytes,
            side_band: false,
            switches: false,
            ..self.common()
        };
        (settings, SampleEvent::Switch)
    }

    fn common(&self) -> EventSettings {
        let bytes = self.config.buffer_pages.saturating_mul(rustix::param::page_size());
        EventSettings {
            counter: Counter::Dummy,
            rate: 1,
            stack_bytes: 0,
            max_frames: self.config.max_frames,
            kernel: self.access.kernel,
            kernel_stacks: self.config.kernel_stacks,
            inherit: self.inherit,
            side_band: false,
            switches: false,
            watermark: u32::try_from(bytes / 4).unwrap_or(u32::MAX),
        }
    }

    /// Opens an event, falling back to less if the kernel refuses.
    fn event(
        &mut self,
        tasks: Tasks<'_>,
        pid: Option<i32>,
        processor: i32,
        of: impl Fn(&Self) -> (EventSettings, SampleEvent),
    ) -> Result<(), Error> {
        let (event, kind) = loop {
            let (settings, kind) = of(self);
            match sys::open_event(&EventAttributes::new(&settings), tasks, processor) {
                Ok(event) => break (event, kind),
                Err(error) => self.ask_for_less(error, tasks, pid)?,
            }
        };
        let id = sys::event_id(event.as_fd()).map_err(Error::io("the identifier of an event"))?;
        let thread = if let Tasks::Thread(tid) = tasks { Some(tid) } else { None };
        self.has_thread |= thread.is_some();
        self.ids.insert(id, EventSource { event: kind, thread });
        let place = Place { processor, of_switch_stacks: kind == SampleEvent::Switch };
        self.give_buffer(&event, place)?;
        sys::enable(event.as_fd()).map_err(Error::io("the start of an event"))?;
        self.events.push(event);
        Ok(())
    }

    /// Maps a buffer for an event, or lets it use an existing buffer.
    fn give_buffer(&mut self, event: &OwnedFd, place: Place) -> Result<(), Error> {
        if let Some(leader) = self.leader(place) {
            return sys::set_output(event.as_fd(), leader).map_err(Error::io("the buffer of an event"));
        }
        let pages = self.config.buffer_pages;
        let ring = match Ring::map(event.as_fd(), pages) {
            Ok(ring) => ring,
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                // More memory is not permitted: stacks of switches share the buffer of the other events.
                let main = Place { of_switch_stacks: false, ..place };
                let Some(leader) = self.leader(main) else {
                    let processors = self.processors.len();
                    return Err(Error::BufferMemory { pages, processors, error });
                };
                return sys::set_output(event.as_fd(), leader).map_err(Error::io("the buffer of an event"));
            }
            Err(error) => return Err(Error::io("the buffer of an event")(error)),
        };
        let Place { processor, of_switch_stacks } = place;
        self.buffers.push(Buffer { processor, of_switch_stacks, event: self.events.len(), ring });
        Ok(())
    }

    /// The event that owns the buffer of this place.
    fn leader(&self, place: Place) -> Option<BorrowedFd<'_>> {
        let Place { processor, of_switch_stacks } = place;
        let is_it =
            |buffer: &&Buffer| buffer.processor == processor && buffer.of_switch_stacks == of_switch_stacks;
        Some(self.events.get(self.buffers.iter().find(is_it)?.event)?.as_fd())
    }

    /// Drops the setting that the kernel may have refused, or returns its error.
    fn ask_for_less(&mut self, error: io::Error, tasks: Tasks<'_>, pid: Option<i32>) -> Result<(), Error> {
        match error.raw_os_error() {
            Some(libc::ESRCH) => return Err(Error::NoProcess { pid: pid.unwrap_or(0) }),
            Some(libc::EINVAL) if !self.has_thread && self.inherit == Inherit::Threads => {
                self.inherit = Inherit::Children;
                self.access.children_excluded = false;
            }
            Some(libc::EACCES | libc::EPERM) if self.events.is_empty() && self.access.kernel => {
                self.access.kernel = false;
                self.access.off_cpu_stacks = false;
            }
            _ => {
                let reason = match (Obstacle::of(&error, pid), tasks) {
                    (Obstacle::Paranoid(level), Tasks::All | Tasks::Cgroup(_)) => {
                        Obstacle::ParanoidForMachine(level)
                    }
                    (reason, _) => reason,
                };
                let tasks = match (tasks, pid) {
                    (Tasks::Thread(tid), Some(pid)) => format!("thread {tid} of process {pid}"),
                    (Tasks::Thread(tid), None) => format!("thread {tid}"),
                    (Tasks::All, _) => "all tasks".to_owned(),
                    (Tasks::Cgroup(_), _) => "a cgroup".to_owned(),
                };
                return Err(Error::NotPermitted { tasks, error, reason });
            }
        }
        Ok(())
    }
}
