//! The cost of probes, measured in this process before another one pays it.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

use super::close_all;
use super::program::{self, Tables};
use super::refusal::refused;
use crate::allocation_function::{AllocatingFunction, FreeingFunction};
use crate::error::Error;
use crate::maps::ProcessMaps;
use crate::sys::bpf::{
    self, ProbePlace, other_simulated_function, returning_function, simulated_function, stepped_function,
};

/// Calls of a measurement, of which the fastest counts: others were interrupted.
const CALLS: u32 = 200;
const MEASUREMENTS: usize = 5;

/// An address that no program has memory at, and a size.
const NOWHERE: u64 = 1;

/// A function that is probed.
type Probed = extern "C" fn(u64) -> u64;

/// The nanoseconds that probes cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HitCosts {
    /// A call of a function that allocates, whose return is probed as well.
    pub(super) allocating_ns: u64,
    /// A call of a function that frees.
    pub(super) freeing_ns: u64,
    /// The additional cost of an instruction that the kernel does not simulate.
    pub(super) stepped_ns: u64,
    /// The additional cost of a record, about half of which have a stack.
    pub(super) record_ns: u64,
}

impl HitCosts {
    /// Probes functions of this process that do nothing, and calls them.
    pub(super) fn measure(kind: u32, tables: Tables<'_>) -> Result<Self, Error> {
        let function = AllocatingFunction::Malloc;
        let load = |program: &[u64]| bpf::load_program(program).map_err(refused);
        let entry = load(&program::entry(tables, function, 0, u32::MAX))?;
        let following = load(&program::entry(tables, function, 0, 1))?;
        let returned = load(&program::returned(tables, function, 0))?;
        let freed = load(&program::freed(tables, FreeingFunction::Free, 0))?;
        let plain = fastest(|| simulated_function(NOWHERE));
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
        let allocating_ns = fastest(|| simulated_function(NOWHERE)).saturating_sub(plain);
        let freeing_ns = fastest(|| other_simulated_function(NOWHERE)).saturating_sub(plain);
        let stepped = fastest(|| stepped_function(NOWHERE)).saturating_sub(plain);
        let followed =
            fastest(|| other_simulated_function(returning_function(NOWHERE))).saturating_sub(plain);
        close_all(events);
        let without_records = allocating_ns.saturating_add(freeing_ns);
        Ok(Self {
            allocating_ns,
            freeing_ns,
            stepped_ns: stepped.saturating_sub(allocating_ns),
            record_ns: followed.saturating_sub(without_records) / 2,
        })
    }

    /// Returns the cost of a hit.
    pub(super) const fn of_hit(self, is_allocating: bool, is_simulated: bool) -> u64 {
        let base = if is_allocating { self.allocating_ns } else { self.freeing_ns };
        let more = if is_simulated { 0 } else { self.stepped_ns };
        base.saturating_add(more)
    }
}

/// Returns the nanoseconds that a call takes.
fn fastest(call: impl Fn() -> u64) -> u64 {
    let measure = |_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            std::hint::black_box(call());
        }
        let passed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        passed / u64::from(CALLS)
    };
    (0..MEASUREMENTS).map(measure).min().unwrap_or(0)
}
