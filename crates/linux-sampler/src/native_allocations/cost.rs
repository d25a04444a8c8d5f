//! The cost of probes, measured in this process before another one pays it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use super::close_all;
use super::program::{self, Tables, count};
use super::refusal::refused;
use crate::allocation_function::{AllocatingFunction, FreeingFunction};
use crate::error::Error;
use crate::maps::ProcessMaps;
use crate::sys::bpf::{
    self, MapKind, ProbePlace, other_simulated_function, returning_function, simulated_function,
    stepped_function,
};

/// Calls of a measurement, of which the fastest counts: others were interrupted.
const CALLS: u32 = 200;
const MEASUREMENTS: usize = 5;
/// Calls of a measurement with records, which take space in the buffers.
const FOLLOWED_CALLS: u32 = 10;

/// An address that no program has memory at, and a size.
const NOWHERE: u64 = 1;

/// A function that is probed.
type Probed = extern "C" fn(u64) -> u64;

/// The nanoseconds that probes cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HitCosts {
    /// A call of a function that allocates, whose return is probed as well.
    pub(super) allocating: u64,
    /// A call of a function that frees.
    pub(super) freeing: u64,
    /// The additional cost of an instruction that the kernel does not simulate.
    pub(super) on_stepping: u64,
    /// The additional cost of a record, about half of which have a stack.
    pub(super) record: u64,
}

impl HitCosts {
    /// Probes functions of this process that do nothing, and calls them.
    pub(super) fn measure(kind: u32, tables: Tables<'_>) -> Result<Self, Error> {
        // The calls and records of this process are not those of the other one.
        let counts = bpf::create_map(MapKind::ProcessorArray, 4, 8, count::ROWS).map_err(refused)?;
        let tables = Tables { counts: counts.as_fd(), ..tables };
        let function = AllocatingFunction::Malloc;
        let load = |program: &[u64]| bpf::load_program(program).map_err(refused);
        let entry = load(&program::entry(tables, function, 0, u32::MAX))?;
        let following = load(&program::entry(tables, function, 0, 1))?;
        let returned = load(&program::returned(tables, function, 0))?;
        let freed = load(&program::freed(tables, FreeingFunction::Free, 0))?;
        let plain = fastest(CALLS, || simulated_function(NOWHERE));
        let maps = ProcessMaps::read(i32::try_from(std::process::id()).unwrap_or(0))?;
        let offset = |function: Probed| {
            let address = function as usize as u64;
            let mapping = maps.at(address)?;
            address.checked_sub(mapping.start)?.checked_add(mapping.file_offset)
        };
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let probes: [(Probed, bool, &OwnedFd); 7] = [
            (simulated_function, true, &returned),
            (simulated_function, false, &entry),
            (stepped_function, true, &returned),
            (stepped_function, false, &entry),
            (returning_function, true, &returned),
            (returning_function, false, &following),
            (other_simulated_function, false, &freed),
        ];
        let mut events = Vec::new();
        for (function, at_return, program) in probes {
            let Some(offset) = offset(function) else { continue };
            let place = ProbePlace { path: c"/proc/self/exe", offset, at_return };
            events.push(bpf::open_probe(kind, place, tid, program.as_fd()).map_err(refused)?);
        }
        let cost = |calls, call: &dyn Fn() -> u64| fastest(calls, call).saturating_sub(plain);
        let allocating = cost(CALLS, &|| simulated_function(NOWHERE));
        let freeing = cost(CALLS, &|| other_simulated_function(NOWHERE));
        let stepped = cost(CALLS, &|| stepped_function(NOWHERE));
        let followed = cost(FOLLOWED_CALLS, &|| other_simulated_function(returning_function(NOWHERE)));
        close_all(events);
        let without_records = allocating.saturating_add(freeing);
        Ok(Self {
            allocating,
            freeing,
            on_stepping: stepped.saturating_sub(allocating),
            record: followed.saturating_sub(without_records) / 2,
        })
    }

    /// Returns the cost of a hit.
    pub(super) const fn of_hit(self, is_allocating: bool, is_simulated: bool) -> u64 {
        let base = if is_allocating { self.allocating } else { self.freeing };
        let more = if is_simulated { 0 } else { self.on_stepping };
        base.saturating_add(more)
    }
}

/// Returns the nanoseconds that a call takes.
fn fastest(calls: u32, call: impl Fn() -> u64) -> u64 {
    let measure = |_| {
        let start = Instant::now();
        for _ in 0..calls {
            std::hint::black_box(call());
        }
        let passed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        passed / u64::from(calls.max(1))
    };
    (0..MEASUREMENTS).map(measure).min().unwrap_or(0)
}
