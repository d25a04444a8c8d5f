//! Managed code for the unwinder of the kernel's samples: small methods of Tier 1 lack a frame pointer, and
//! only the runtime has their unwind information.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clr_dump::{Address, Memory, MemoryResult, Missing, ProcessMemory, Runtime};
use linux_sampler::{Registers, RuntimeUnwinder, SampledFrame};

/// The time after which cached structures are read again: methods are compiled and freed meanwhile.
const LIFETIME: Duration = Duration::from_secs(1);
/// Maximum number of addresses to keep functions of.
const MAX_ADDRESSES: usize = 1 << 16;
/// The pages that are kept: 4 MiB.
const PAGES: usize = 1 << 10;
const PAGE: usize = 4096;
/// The bytes above the stack pointer that are read from the sample only.
const STACK_BYTES: u64 = 256 << 10;
/// Maximum number of searches for a runtime, which may not be loaded yet.
const MAX_SEARCHES: u32 = 10;
/// The time between the first two searches; it doubles.
const FIRST_DELAY: Duration = Duration::from_millis(50);

/// Unwinds the managed code of a process with the runtime's own structures. Does nothing for runtimes with
/// unknown structures.
#[derive(Debug)]
pub(super) struct ManagedCode {
    pid: i32,
    search: Search,
    found: Option<Process>,
}

/// Maximum number of processes whose runtimes are known.
const MAX_PROCESSES: usize = 512;
/// Maximum number of processes with pages in memory: 4 MiB for each at most.
const MAX_CACHED: usize = 48;

/// The managed code of many processes. Of more than a limit, those are kept that were sampled last.
#[derive(Debug)]
pub(super) struct ManagedCodes {
    by_pid: HashMap<i32, (ManagedCode, u64)>,
    /// The number of frames so far.
    asked: u64,
    /// The time at which pages that were not used since were removed.
    swept: Instant,
}

impl Default for ManagedCodes {
    fn default() -> Self {
        Self { by_pid: HashMap::new(), asked: 0, swept: Instant::now() }
    }
}

impl ManagedCodes {
    /// Removes what is cached of processes that were not sampled for a while, and of the oldest if there are
    /// too many.
    fn sweep(&mut self) {
        if self.swept.elapsed() > LIFETIME {
            self.by_pid.values_mut().filter_map(|(code, _)| code.found.as_mut()).for_each(Process::expire);
            self.swept = Instant::now();
        }
        let cached = self.by_pid.values_mut().filter_map(|(code, last)| {
            let process = code.found.as_mut()?;
            process.has_pages().then_some((process, *last))
        });
        let mut cached: Vec<_> = cached.collect();
        if cached.len() > MAX_CACHED {
            cached.sort_unstable_by_key(|(_, last)| *last);
            let beyond = cached.len() - MAX_CACHED;
            cached.into_iter().take(beyond).for_each(|(process, _)| process.clear());
        }
    }
}

impl RuntimeUnwinder for ManagedCodes {
    fn caller(&mut self, pid: i32, frame: &SampledFrame<'_>) -> Option<Registers> {
        self.asked = self.asked.wrapping_add(1);
        if !self.by_pid.contains_key(&pid) && self.by_pid.len() >= MAX_PROCESSES {
            let oldest = self.by_pid.iter().min_by_key(|(_, (_, last))| *last).map(|(pid, _)| *pid);
            self.by_pid.remove(&oldest?);
        }
        let (code, last) = self.by_pid.entry(pid).or_insert_with(|| (ManagedCode::new(pid), 0));
        *last = self.asked;
        let had_pages = code.found.as_mut().is_some_and(Process::has_pages);
        let caller = code.caller(pid, frame);
        if !had_pages {
            self.sweep();
        }
        caller
    }

    fn forget(&mut self, pid: i32) {
        self.by_pid.remove(&pid);
    }
}

/// The search for a runtime.
#[derive(Debug)]
struct Search {
    done: u32,
    next: Instant,
}

#[derive(Debug)]
struct Process {
    runtime: Runtime,
    memory: CachedMemory,
    /// The function at each address that was looked up.
    functions: HashMap<Address, Option<clr_dump::FunctionEntry>>,
    since: Instant,
}

impl ManagedCode {
    /// The code of the process `pid`.
    pub(super) fn new(pid: i32) -> Self {
        Self { pid, search: Search::new(), found: None }
    }

    fn process(&mut self) -> Option<&mut Process> {
        if self.found.is_none() && self.search.is_due() {
            self.found = Process::find(self.pid);
        }
        self.found.as_mut()
    }
}

impl Search {
    fn new() -> Self {
        Self { done: 0, next: Instant::now() }
    }

    fn is_due(&mut self) -> bool {
        let now = Instant::now();
        if self.done >= MAX_SEARCHES || now < self.next {
            return false;
        }
        self.next = now + FIRST_DELAY * 2_u32.pow(self.done);
        self.done += 1;
        true
    }
}

impl Process {
    fn find(pid: i32) -> Option<Self> {
        let memory = ProcessMemory::open(u32::try_from(pid).ok()?).ok()?;
        let runtime = Runtime::find(&memory, &memory.files().ok()?).ok()?;
        let memory = CachedMemory { memory, pages: Mutex::default() };
        Some(Self { runtime, memory, functions: HashMap::new(), since: Instant::now() })
    }

    fn expire(&mut self) {
        if self.since.elapsed() > LIFETIME || self.functions.len() >= MAX_ADDRESSES {
            self.clear();
        }
    }

    /// Removes what is cached.
    fn clear(&mut self) {
        self.functions = HashMap::new();
        *self.memory.pages.get_mut().unwrap_or_else(PoisonError::into_inner) = Vec::new();
        self.since = Instant::now();
    }

    /// Returns true if pages are cached.
    fn has_pages(&mut self) -> bool {
        !self.memory.pages.get_mut().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn caller(&mut self, frame: &SampledFrame<'_>) -> Option<Registers> {
        self.expire();
        let position = clr_dump::FramePosition::from(frame.position);
        let address = position.lookup_address(Address::new(frame.registers.ip));
        let (runtime, memory) = (&self.runtime, &self.memory);
        let function = *self.functions.entry(address).or_insert_with(|| {
            let code = runtime.code().find(memory, address).ok().flatten();
            code.map(|code| code.function)
        });
        let memory = SampleMemory { frame, memory };
        clr_dump::unwind(&memory, function?, &frame.registers.into(), position).ok()?.to_sampled()
    }
}

impl RuntimeUnwinder for ManagedCode {
    fn caller(&mut self, pid: i32, frame: &SampledFrame<'_>) -> Option<Registers> {
        if pid != self.pid {
            return None;
        }
        self.process()?.caller(frame)
    }

    fn forget(&mut self, pid: i32) {
        if pid == self.pid {
            (self.found, self.search) = (None, Search::new());
        }
    }
}

/// The memory of a process, by pages that are read once, or again if others took their places.
#[derive(Debug)]
struct CachedMemory {
    memory: ProcessMemory,
    /// Pages at their numbers modulo [`PAGES`]; empty without any.
    pages: Mutex<Vec<Option<CachedPage>>>,
}

#[derive(Debug, Clone)]
struct CachedPage {
    number: u64,
    /// `None` if it cannot be read.
    bytes: Option<Box<[u8; PAGE]>>,
}

impl CachedMemory {
    /// Reads the part of `buffer` that is in the page of `address`. Returns its length.
    fn read_part(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<usize> {
        let missing = Missing { address };
        let number = address / PAGE as u64;
        let start = usize::try_from(address % PAGE as u64).map_err(|_| missing)?;
        let length = buffer.len().min(PAGE - start);
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if pages.is_empty() {
            pages.resize(PAGES, None);
        }
        let place = usize::try_from(number % PAGES as u64).map_err(|_| missing)?;
        let place = pages.get_mut(place).ok_or(missing)?;
        let page = match place {
            Some(page) if page.number == number => page,
            _ => place.insert(CachedPage { number, bytes: self.page(number) }),
        };
        let bytes = page.bytes.as_ref().and_then(|page| page.get(start..start + length)).ok_or(missing)?;
        buffer.get_mut(..length).ok_or(missing)?.copy_from_slice(bytes);
        Ok(length)
    }

    fn page(&self, number: u64) -> Option<Box<[u8; PAGE]>> {
        let mut page = Box::new([0; PAGE]);
        self.memory.read(number * PAGE as u64, page.as_mut_slice()).ok()?;
        Some(page)
    }
}

impl Memory for CachedMemory {
    fn read(&self, mut address: u64, mut buffer: &mut [u8]) -> MemoryResult<()> {
        while !buffer.is_empty() {
            let length = self.read_part(address, buffer)?;
            buffer = buffer.get_mut(length..).unwrap_or_default();
            address = address.checked_add(length as u64).ok_or(Missing { address })?;
        }
        Ok(())
    }
}

/// The stack as the sample has it, and code as the process has it.
struct SampleMemory<'a> {
    frame: &'a SampledFrame<'a>,
    memory: &'a CachedMemory,
}

impl Memory for SampleMemory<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let start = self.frame.stack_start;
        let Some(offset) = address.checked_sub(start).filter(|offset| *offset < STACK_BYTES) else {
            return self.memory.read(address, buffer);
        };
        let from = usize::try_from(offset).map_err(|_| Missing { address })?;
        let bytes = self.frame.stack.get(from..from + buffer.len()).ok_or(Missing { address })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
