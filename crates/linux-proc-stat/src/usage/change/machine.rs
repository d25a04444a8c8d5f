//! A machine between two readings.

use std::collections::BTreeMap;

use super::{PressureChange, Rates, UsageChange, difference};
use crate::usage::{MachineUsage, OtherProcess, float};

/// A machine between two readings.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct MachineChange {
    /// Processor time of all processes and the kernel, in cores.
    pub cores: Option<f64>,
    /// Processor time of others than this process, in cores; includes the reader and interrupts.
    pub other_cores: Option<f64>,
    /// The share of the processors' time, from 0 to 1, in user mode.
    pub user: Option<f64>,
    /// The share in kernel mode.
    pub system: Option<f64>,
    /// The share in interrupts.
    pub interrupt: Option<f64>,
    /// The share of idle time, with waits for disks.
    pub idle: Option<f64>,
    /// The share of idle time in which a thread waited for a disk.
    pub io_wait: Option<f64>,
    /// The share that the host took from this virtual machine.
    pub steal: Option<f64>,
    /// Other processes that used a processor, the busiest first, with their cores; those that started in
    /// between count from their start, and those that ended are missing.
    pub busiest: Vec<(OtherProcess, f64)>,
    /// Processes that the kernel has killed because memory ran out.
    pub oom_kills: Option<u64>,
    /// Pages per second that were read from swap space.
    pub swapped_in_pages_per_second: Option<f64>,
    /// Pages per second that were written to swap space.
    pub swapped_out_pages_per_second: Option<f64>,
    /// The pressure on the machine.
    pub pressure: PressureChange,
}

impl MachineChange {
    pub(super) fn between(
        first: &MachineUsage,
        second: &MachineUsage,
        own_cores: Option<f64>,
        rates: Rates,
    ) -> Self {
        let mut change = Self {
            busiest: busiest(first, second, rates),
            oom_kills: difference(first.oom_kills, second.oom_kills),
            swapped_in_pages_per_second: rates.per_second(first.swapped_in_pages, second.swapped_in_pages),
            swapped_out_pages_per_second: rates.per_second(first.swapped_out_pages, second.swapped_out_pages),
            pressure: PressureChange::between(&first.pressure, &second.pressure, rates),
            ..Self::default()
        };
        let (Some(first), Some(second)) = (first.cpu, second.cpu) else { return change };
        // The kernel's idle time may go back by a tick.
        let passed = |first: u64, second: u64| float(second.saturating_sub(first)) / 1e9;
        let user = passed(first.user_ns, second.user_ns);
        let system = passed(first.system_ns, second.system_ns);
        let interrupt = passed(first.interrupt_ns, second.interrupt_ns);
        let io_wait = passed(first.io_wait_ns, second.io_wait_ns);
        let idle = passed(first.idle_ns, second.idle_ns) + io_wait;
        let steal = passed(first.steal_ns, second.steal_ns);
        let busy = user + system + interrupt;
        let all = busy + idle + steal;
        let share = |part: f64| (all > 0.0).then(|| part / all);
        change.cores = Some(busy / rates.seconds);
        change.other_cores = own_cores.map(|own| (busy / rates.seconds - own).max(0.0));
        change.user = share(user);
        change.system = share(system);
        change.interrupt = share(interrupt);
        change.idle = share(idle);
        change.io_wait = share(io_wait);
        change.steal = share(steal);
        change
    }
}

fn busiest(first: &MachineUsage, second: &MachineUsage, rates: Rates) -> Vec<(OtherProcess, f64)> {
    let before: BTreeMap<_, _> = first
        .other_processes
        .iter()
        .map(|process| ((process.pid, process.start_ticks), process.cpu_ns))
        .collect();
    // Without all processes of the first reading, one that is not among them may be an old one.
    let at_start = first.has_all_processes.then_some(0);
    let mut busy = Vec::new();
    for process in &second.other_processes {
        let earlier = before.get(&(process.pid, process.start_ticks)).copied().or(at_start);
        if let Some(cores) = rates.share(earlier, Some(process.cpu_ns)).filter(|&cores| cores > 0.0) {
            busy.push((process, cores));
        }
    }
    busy.sort_by(|one, other| other.1.total_cmp(&one.1));
    busy.truncate(UsageChange::MAX_BUSIEST);
    busy.into_iter().map(|(process, cores)| (process.clone(), cores)).collect()
}
