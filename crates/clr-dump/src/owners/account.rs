//! The account: each mapping's memory goes to the owners of its pages.

use std::time::Instant;

use linux_proc_stat::{MappingSizes, Smaps, ThreadStackPointer};

use super::claims::{Claims, Piece};
use super::files::Files;
use super::owner::{GenerationUse, MemoryOwner, OwnedMemory};
use super::parts::Shares;
use super::runtime::RuntimeMemory;
use super::stacks::Guards;
use super::{native, stacks};
use crate::dump::Dump;
use crate::memory::Memory;
use crate::memory::core_file::CoreFile;
use crate::memory::mapping::Mapping;
use crate::memory::resident::ResidentPages;
use crate::native_heap::{NativeHeap, NativeHeapError};

/// Maximum time for the kernel's files. Without the last mappings the sum would be too small.
#[cfg(target_os = "linux")]
const KERNEL_TIME: std::time::Duration = std::time::Duration::from_secs(5);

/// Minimum time for the blocks of malloc: without any of them their memory has no known owner.
const MIN_BLOCKS_TIME: std::time::Duration = std::time::Duration::from_millis(500);

/// The sources of an account, apart from the mappings.
#[derive(Clone, Copy)]
#[allow(clippy::exhaustive_structs, reason = "the arguments of a function")]
pub struct AccountSources<'a> {
    /// The memory of the process.
    pub memory: &'a dyn Memory,
    /// The runtime in it, if there is one that can be read.
    pub dump: Option<&'a Dump<'a>>,
    /// The pages of a live process, by which mappings of several owners are divided; without them, by
    /// addresses.
    pub pages: Option<&'a dyn ResidentPages>,
    /// The end of the time for reading blocks of malloc, by which all of the rest takes milliseconds.
    pub end: Option<Instant>,
}

impl std::fmt::Debug for AccountSources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountSources").field("end", &self.end).finish_non_exhaustive()
    }
}

/// Mappings with their memory.
#[derive(Clone, Copy)]
struct Measured<'m> {
    mappings: &'m [Mapping],
    /// The memory of each of them.
    sizes: &'m [MappingSizes],
    /// The memory of mappings that are not listed.
    unlisted: MappingSizes,
}

/// The memory of a process by its owners. The shares of the owners sum to the total, to the byte.
///
/// ```no_run
/// # #[cfg(target_os = "linux")]
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use clr_dump::{Dump, MemoryAccount, ProcessMemory};
///
/// let memory = ProcessMemory::open(4711)?;
/// let dump = Dump::find(&memory, &memory.files()?)?;
/// for owned in MemoryAccount::read(&memory, Some(&dump), None)?.owners {
///     println!("{} {}", owned.sizes.resident, owned.owner.id());
/// }
/// # Ok(())
/// # }
/// # #[cfg(not(target_os = "linux"))]
/// # fn main() {}
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct MemoryAccount {
    /// The owners, the largest first.
    pub owners: Vec<OwnedMemory>,
    /// The sum: the kernel's numbers of a process, or the bytes in a core dump as `resident`, and as
    /// `private_dirty` without those of files that the process could not write.
    pub total: MappingSizes,
    /// The use of the managed heap.
    pub generations: Vec<GenerationUse>,
    /// True if the managed heap is known.
    pub has_heap: bool,
    /// True if the collector's tables are known.
    pub has_tables: bool,
    /// The heap of the C library.
    pub native_heap: Result<NativeHeap, NativeHeapError>,
    /// The number of threads with stacks that are known by their form at best: they ran whenever they were
    /// looked at.
    pub running_threads: u64,
    /// False if the time was over before the last mapping: the total is too small.
    pub is_complete: bool,
}

impl MemoryAccount {
    /// Reads the memory of a live process, and divides it. The process is not stopped. `end` bounds the time
    /// for blocks of malloc; mappings and threads take milliseconds, and have five seconds on a machine that
    /// is overloaded.
    ///
    /// # Errors
    /// If the process has ended, or the caller may not trace it.
    #[cfg(target_os = "linux")]
    pub fn read(
        memory: &crate::memory::process::ProcessMemory,
        dump: Option<&Dump<'_>>,
        end: Option<Instant>,
    ) -> std::io::Result<Self> {
        let pid = memory.pid();
        let kernel_end = Instant::now().checked_add(KERNEL_TIME);
        let threads = ThreadStackPointer::of_process(pid, kernel_end)?;
        let pages = crate::memory::page_map::PageMap::open(pid).ok();
        let pages = pages.as_ref().map(|pages| pages as &dyn ResidentPages);
        let smaps = Smaps::read(pid, kernel_end)?;
        Ok(Self::of_process(AccountSources { memory, dump, pages, end }, &smaps, &threads))
    }

    /// Divides the memory of a live process. It runs meanwhile: memory that changes between the kernel's
    /// count and the reading of its owner can go to another one, and the sum is the kernel's.
    pub fn of_process(sources: AccountSources<'_>, smaps: &Smaps, threads: &[ThreadStackPointer]) -> Self {
        let mappings: Vec<_> = smaps.mappings.iter().map(|of| Mapping::from(of.mapping.clone())).collect();
        let sizes: Vec<MappingSizes> = smaps.mappings.iter().map(|mapping| mapping.sizes).collect();
        let measured = Measured { mappings: &mappings, sizes: &sizes, unlisted: smaps.unlisted_sizes };
        let mut account = Self::new(sources, measured, threads, Guards::Mapped);
        account.is_complete = smaps.is_complete;
        account
    }

    /// Divides the memory that a core dump has.
    pub fn of_core(core: &CoreFile, dump: Option<&Dump<'_>>, end: Option<Instant>) -> Self {
        let mappings = core.mappings();
        let size = |mapping: &Mapping| {
            let mut sizes = MappingSizes::default();
            sizes.resident = mapping.size();
            let is_in_file = mapping.is_file() && !mapping.is_writable;
            sizes.private_dirty = if is_in_file { 0 } else { mapping.size() };
            sizes
        };
        let sizes: Vec<MappingSizes> = mappings.iter().map(size).collect();
        let registers = core.thread_registers();
        let thread = |thread: &crate::memory::core_file::CoreThread| {
            let sp = registers.get(&thread.tid).map(|registers| registers.sp);
            ThreadStackPointer::new(thread.tid, String::new(), sp)
        };
        let threads: Vec<_> = core.threads().iter().map(thread).collect();
        let sources = AccountSources { memory: core, dump, pages: None, end };
        let measured = Measured { mappings: &mappings, sizes: &sizes, unlisted: MappingSizes::default() };
        Self::new(sources, measured, &threads, Guards::LeftOut)
    }

    fn new(
        sources: AccountSources<'_>,
        measured: Measured<'_>,
        threads: &[ThreadStackPointer],
        guards: Guards,
    ) -> Self {
        let AccountSources { memory, dump, pages, end } = sources;
        let Measured { mappings, sizes, unlisted } = measured;
        let mut claims = Claims::default();
        // The best known first.
        let runtime = dump.map(|dump| RuntimeMemory::claim(dump, mappings, &mut claims)).unwrap_or_default();
        // On an overloaded machine the time can be over by now.
        let end = end.zip(Instant::now().checked_add(MIN_BLOCKS_TIME)).map(|(end, least)| end.max(least));
        let native_heap = native::claim_arenas(memory, mappings, pages, end, &mut claims);
        let running_threads = stacks::claim(threads, dump, mappings, &mut claims);
        let files = Files::read(memory, dump.map(Dump::runtime), mappings, &mut claims);
        runtime.claim_reserved(mappings, &mut claims);
        stacks::claim_by_form(threads, mappings, guards, &mut claims);
        runtime.claim_loader_heaps(mappings, &files, &mut claims);
        if let Ok(heap) = &native_heap {
            let touched = mappings.iter().zip(sizes).filter(|(_, sizes)| has_memory(sizes));
            native::claim_blocks(memory, touched.map(|(mapping, _)| mapping), heap, &mut claims);
        }
        let mut shares = Shares::default();
        for (mapping, sizes) in mappings.iter().zip(sizes) {
            divide(mapping, sizes, &claims, &files, pages, &mut shares);
        }
        if unlisted != MappingSizes::default() {
            shares.add(MemoryOwner::Unknown, None, 0, 0, &unlisted);
        }
        let mut total = unlisted;
        for sizes in sizes {
            total.add(sizes);
        }
        Self {
            owners: shares.finish(),
            total,
            generations: runtime.generations,
            has_heap: runtime.has_heap,
            has_tables: runtime.has_tables,
            native_heap,
            running_threads,
            is_complete: true,
        }
    }

    /// Returns the memory without a known owner.
    pub fn unattributed(&self) -> u64 {
        self.resident_of(|owner| owner == MemoryOwner::Unknown)
    }

    /// Returns the resident memory of some owners.
    pub fn resident_of(&self, is_wanted: impl Fn(MemoryOwner) -> bool) -> u64 {
        let wanted = self.owners.iter().filter(|owned| is_wanted(owned.owner));
        wanted.map(|owned| owned.sizes.resident).fold(0, u64::saturating_add)
    }
}

/// Adds the memory of a mapping to the shares of its owners.
fn divide(
    mapping: &Mapping,
    sizes: &MappingSizes,
    claims: &Claims,
    files: &Files,
    pages: Option<&dyn ResidentPages>,
    shares: &mut Shares,
) {
    let (start, end) = (mapping.start.get(), mapping.end.get());
    let pieces = claims.pieces(start, end);
    if pieces.is_empty() {
        // Only a damaged list has mappings without addresses.
        let (owner, of) = files.owner(mapping);
        shares.add(owner, of.as_ref(), start, 0, sizes);
        return;
    }
    let weights = weights(&pieces, sizes, pages);
    let all: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut before = 0_u128;
    for (piece, weight) in pieces.iter().zip(weights) {
        let to = before.saturating_add(weight.into());
        // What is left after the last piece is zero: parts are differences of rounded sums.
        let sizes = sizes.map(|size| part(size, to, all).saturating_sub(part(size, before, all)));
        before = to;
        let bytes = piece.end.saturating_sub(piece.start);
        if let Some((owner, of)) = piece.claim {
            let of = of.and_then(|number| claims.part_at(number));
            shares.add(owner, of, piece.start, bytes, &sizes);
        } else {
            let (owner, of) = files.owner(mapping);
            shares.add(owner, of.as_ref(), piece.start, bytes, &sizes);
        }
    }
}

/// The part of a size that belongs to the first `part` of `all` pages.
fn part(size: u64, part: u128, all: u128) -> u64 {
    let of = u128::from(size).saturating_mul(part).checked_div(all);
    of.and_then(|of| u64::try_from(of).ok()).unwrap_or_default()
}

const fn has_memory(sizes: &MappingSizes) -> bool {
    sizes.resident > 0 || sizes.swap > 0
}

/// The weights of the pieces of a mapping: bytes of pages that take memory, or of addresses where these are
/// unknown.
fn weights(pieces: &[Piece], sizes: &MappingSizes, pages: Option<&dyn ResidentPages>) -> Vec<u64> {
    let size = |piece: &Piece| piece.end.saturating_sub(piece.start);
    if let Some(pages) = pages.filter(|_| has_memory(sizes) && pieces.len() > 1) {
        let weights = pieces.iter().map(|piece| pages.resident_bytes(piece.start, piece.end));
        let weights: Option<Vec<u64>> = weights.collect();
        if let Some(weights) = weights.filter(|weights| weights.iter().any(|weight| *weight > 0)) {
            return weights;
        }
    }
    pieces.iter().map(size).collect()
}
