//! Native allocations of a process: what `malloc` and others return, and what is freed.
//!
//! A probe at the entry and one at the return of each function runs a small program in the kernel, for all
//! threads of the process and for no other process. It follows allocations by address: those of at least
//! [`interval`](NativeAllocations::interval) bytes, and of smaller ones a random part, each of which
//! represents as many bytes. Only these are written, with their stacks, and when they are freed.

mod cost;
mod functions;
mod limit;
mod program;
mod refusal;

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::thread;

use crate::error::Error;
use crate::obstacle::AllocationObstacle;
use crate::sys;
use crate::sys::bpf::{self, MapKind, ProbePlace};
use crate::threads::possible_processors;

use cost::HitCosts;
use functions::{FoundFunctions, Function};
use limit::CostLimit;
use program::{Tables, count};
use refusal::refused;

/// Maximum number of followed allocations at a time.
const MAX_FOLLOWED: u32 = 1 << 18;
/// Maximum number of threads in a call of an allocating function at a time.
const MAX_CALLS: u32 = 1 << 14;

/// The settings of native allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NativeAllocations {
    /// The bytes that a smaller allocation represents, if it is followed; its chance is its part of them.
    /// Larger ones are always followed, and 1 follows all. 16,384 by default.
    pub interval: u32,
    /// The percentage of the process's processor time that probes may take; beyond it, they are removed. 20
    /// by default.
    pub limit_percent: u32,
}

impl Default for NativeAllocations {
    fn default() -> Self {
        Self { interval: 16_384, limit_percent: 20 }
    }
}

impl NativeAllocations {
    /// With this [`interval`](Self::interval), at least 1.
    #[must_use]
    pub fn with_interval(self, interval: u32) -> Self {
        Self { interval: interval.max(1), ..self }
    }

    /// With this [`limit_percent`](Self::limit_percent).
    #[must_use]
    pub const fn with_limit_percent(self, limit_percent: u32) -> Self {
        Self { limit_percent, ..self }
    }
}

/// Counts and cost of the probes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct AllocationCounts {
    /// The settings that the records depend on.
    pub interval: u32,
    /// Calls of allocating and freeing functions.
    pub hits: u64,
    /// The nanoseconds that these took longer, by the cost measured beforehand.
    pub cost_ns: u64,
    /// The time since the probes were set, or until they were removed.
    pub duration_ns: u64,
    /// The processor time of the process in it.
    pub cpu_ns: u64,
    /// Records of allocations that were lost: they are in no profile.
    pub lost_allocations: u64,
    /// Records of freed memory that were lost: it looks like memory in use.
    pub lost_frees: u64,
    /// Allocations that were not followed because too many were in use.
    pub left_out: u64,
    /// The time at which the probes were removed because they cost more than the limit, in nanoseconds.
    pub stopped_ns: Option<u64>,
}

impl AllocationCounts {
    /// The nanoseconds of a hit.
    pub const fn ns_per_hit(&self) -> u64 {
        if let Some(cost) = self.cost_ns.checked_div(self.hits) { cost } else { 0 }
    }

    /// The hits of a second.
    pub fn hits_per_second(&self) -> u64 {
        let hits = u128::from(self.hits).saturating_mul(1_000_000_000);
        u64::try_from(hits / u128::from(self.duration_ns.max(1))).unwrap_or(u64::MAX)
    }
}

/// The tables of the programs in the kernel.
#[derive(Debug)]
struct OwnedTables {
    counts: OwnedFd,
    calls: OwnedFd,
    followed: OwnedFd,
    stacks: OwnedFd,
    plain: OwnedFd,
}

impl OwnedTables {
    fn create(processors: u32) -> Result<Self, Error> {
        let create = |kind, key, value, entries| bpf::create_map(kind, key, value, entries).map_err(refused);
        Ok(Self {
            counts: create(MapKind::ProcessorArray, 4, 8, count::ROWS)?,
            calls: create(MapKind::Hash, 8, program::CALL_BYTES, MAX_CALLS)?,
            followed: create(MapKind::Hash, 8, 8, MAX_FOLLOWED)?,
            stacks: create(MapKind::Events, 4, 4, processors)?,
            plain: create(MapKind::Events, 4, 4, processors)?,
        })
    }

    fn of(&self) -> Tables<'_> {
        Tables {
            counts: self.counts.as_fd(),
            calls: self.calls.as_fd(),
            followed: self.followed.as_fd(),
            stacks: self.stacks.as_fd(),
            plain: self.plain.as_fd(),
        }
    }
}

/// The probes of a process.
#[derive(Debug)]
pub(crate) struct Probes {
    pid: i32,
    settings: NativeAllocations,
    tables: OwnedTables,
    /// The number of processors that the machine can have.
    processors: usize,
    /// The number of the kernel's kind of events.
    kind: u32,
    costs: HitCosts,
    /// The cost of a hit of each probe, by number.
    hit_costs: Vec<u64>,
    events: Vec<OwnedFd>,
    start: (u64, u64),
    limit: CostLimit,
    counts: AllocationCounts,
    libraries: String,
}

impl Probes {
    /// Creates the tables of the probes of a process. Their events of records are to be
    /// [added](Self::add_output) before the probes are [set](Self::set).
    pub(crate) fn new(pid: i32, settings: NativeAllocations) -> Result<Self, Error> {
        let kind = fs::read_to_string("/sys/bus/event_source/devices/uprobe/type").ok();
        let kind = kind.and_then(|text| text.trim().parse().ok());
        let kind = kind.ok_or(Error::NativeAllocations(AllocationObstacle::NoProbes))?;
        let processors = possible_processors()?;
        let tables = OwnedTables::create(u32::try_from(processors).unwrap_or(u32::MAX))?;
        Ok(Self {
            pid,
            settings: settings.with_interval(settings.interval),
            tables,
            processors,
            kind,
            costs: HitCosts::default(),
            hit_costs: Vec::new(),
            events: Vec::new(),
            start: (0, 0),
            limit: CostLimit::new(settings.limit_percent),
            counts: AllocationCounts { interval: settings.interval.max(1), ..AllocationCounts::default() },
            libraries: String::new(),
        })
    }

    /// Has the programs write the records of a processor to this event.
    pub(crate) fn add_output(
        &self,
        processor: i32,
        event: BorrowedFd<'_>,
        with_stack: bool,
    ) -> Result<(), Error> {
        let index = u32::try_from(processor).unwrap_or(u32::MAX);
        let table = if with_stack { &self.tables.stacks } else { &self.tables.plain };
        bpf::set_event(table.as_fd(), index, event).map_err(refused)
    }

    /// Measures the cost of probes in this process, and sets them in the other one.
    pub(crate) fn set(&mut self) -> Result<(), Error> {
        let mut found = FoundFunctions::of_process(self.pid)?;
        self.costs = HitCosts::measure(self.kind, self.tables.of())?;
        // Of what is allocated from now on, everything that is freed has to be seen; and each entry has a
        // return.
        found.functions.sort_by_key(|of| matches!(of.function, Function::Allocating(_)));
        for of in found.functions {
            let Some(library) = found.libraries.get(of.library) else { continue };
            let number = u32::try_from(self.hit_costs.len()).unwrap_or(u32::MAX);
            let is_allocating = matches!(of.function, Function::Allocating(_));
            self.hit_costs.push(self.costs.of_hit(is_allocating, of.is_simulated));
            // The file that was looked at, whatever its path leads to by now.
            let path = format!("/proc/self/fd/{}", library.image.file().as_raw_fd());
            let path = CString::new(path).map_err(|error| refused(error.into()))?;
            let tables = self.tables.of();
            let programs = match of.function {
                Function::Allocating(function) => vec![
                    (true, program::returned(tables, function, number)),
                    (false, program::entry(tables, function, number, self.settings.interval)),
                ],
                Function::Freeing(function) => vec![(false, program::freed(tables, function, number))],
            };
            for (at_return, program) in programs {
                let program = bpf::load_program(&program).map_err(refused)?;
                let place = ProbePlace { path: &path, offset: of.offset, at_return };
                let event = bpf::open_probe(self.kind, place, self.pid, program.as_fd());
                let event = event.map_err(|error| match error.raw_os_error() {
                    Some(libc::ESRCH) => Error::NoProcess { pid: self.pid },
                    _ => refused(error),
                })?;
                self.events.push(event);
            }
        }
        let names = found.libraries.iter().map(|library| library.name.rsplit('/').next().unwrap_or_default());
        self.libraries = names.collect::<Vec<_>>().join(", ");
        self.start = (sys::monotonic_ns(), cpu_ns(self.pid));
        Ok(())
    }

    /// The probes, in words.
    pub(crate) fn description(&self) -> String {
        let HitCosts { allocating, freeing, .. } = self.costs;
        let cost = allocating.saturating_add(freeing);
        format!(
            "malloc, mmap, free and others of {}; one allocation and its release take {}.{} µs longer",
            self.libraries,
            cost / 1000,
            cost % 1000 / 100
        )
    }

    /// Updates the counts, and removes the probes if they cost more than their limit.
    pub(crate) fn check(&mut self) {
        let now = sys::monotonic_ns();
        if self.events.is_empty() || !self.limit.is_due(now) {
            return;
        }
        self.update(now);
        if self.limit.is_exceeded(now, &self.counts) {
            self.counts.stopped_ns = Some(now);
            self.remove();
        }
    }

    /// Returns the counts of now.
    pub(crate) fn counts(&mut self) -> AllocationCounts {
        if !self.events.is_empty() {
            self.update(sys::monotonic_ns());
        }
        self.counts
    }

    fn update(&mut self, now: u64) {
        let row = |index| bpf::sum(self.tables.counts.as_fd(), index, self.processors).unwrap_or(0);
        let (mut hits, mut cost_ns) = (0_u64, row(count::RECORDS).saturating_mul(self.costs.record));
        for (probe, cost) in (count::HITS..).zip(&self.hit_costs) {
            let of_probe = row(probe);
            hits = hits.saturating_add(of_probe);
            cost_ns = cost_ns.saturating_add(of_probe.saturating_mul(*cost));
        }
        let (start, cpu) = self.start;
        self.counts = AllocationCounts {
            hits,
            cost_ns,
            duration_ns: now.saturating_sub(start),
            cpu_ns: cpu_ns(self.pid).saturating_sub(cpu).max(self.counts.cpu_ns),
            lost_allocations: row(count::LOST_ALLOCATIONS),
            lost_frees: row(count::LOST_FREES),
            left_out: row(count::LEFT_OUT),
            ..self.counts
        };
    }

    /// Removes the probes.
    pub(crate) fn remove(&mut self) {
        close_all(std::mem::take(&mut self.events));
    }
}

impl Drop for Probes {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Closes probes at the same time: the kernel waits for each until no processor can be at it.
fn close_all(events: Vec<OwnedFd>) {
    thread::scope(|scope| {
        for event in events {
            scope.spawn(move || drop(event));
        }
    });
}

/// Returns the processor time of a process, in nanoseconds; zero if it has ended.
fn cpu_ns(pid: i32) -> u64 {
    let stat = linux_proc_stat::read(&linux_proc_stat::process_folder(pid.unsigned_abs()).join("stat"));
    stat.ok().and_then(|stat| linux_proc_stat::Stat::parse(&stat)?.cpu_ns()).unwrap_or(0)
}
