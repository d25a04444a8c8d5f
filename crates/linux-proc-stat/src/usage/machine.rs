//! The machine that a process runs on, and its other processes.

use std::path::Path;

use super::Files;
use super::memory::size;
use crate::file::{ids, read as read_file};
use crate::pressure::ResourcePressure;
use crate::stat::{Stat, TICK_NS};

/// Maximum number of other processes in a reading.
const MAX_PROCESSES: usize = 20_000;

/// The kernel's counts for the machine. In a container they are the host's unless the container has files of
/// its own for that (LXCFS); on a virtual machine it is the guest's.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MachineUsage {
    /// Processor time.
    pub cpu: Option<MachineCpu>,
    /// The number of processors that are switched on.
    pub processors: Option<u32>,
    /// The averages of runnable and uninterruptible threads over 1, 5 and 15 minutes.
    pub load: Option<[f64; 3]>,
    /// Threads that are running or runnable now.
    pub runnable: Option<u64>,
    /// Threads that wait for disks now.
    pub blocked: Option<u64>,
    /// Memory.
    pub memory: Option<MachineMemory>,
    /// Processes that the kernel has killed because memory ran out, of the machine or of a control group.
    pub oom_kills: Option<u64>,
    /// Pages that were read from swap space.
    pub swapped_in_pages: Option<u64>,
    /// Pages that were written to swap space.
    pub swapped_out_pages: Option<u64>,
    /// The pressure on the machine's resources.
    pub pressure: ResourcePressure,
    /// The visible other processes, at most 20,000, in the order of their ids; the reader is one of them.
    /// Empty if [`UsageReader::other_processes`](crate::UsageReader::other_processes) leaves them out.
    pub other_processes: Vec<OtherProcess>,
    /// True if no visible process was left out.
    pub has_all_processes: bool,
}

/// The processor time of a machine since it started, in nanoseconds, to 10 ms, summed over processors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MachineCpu {
    /// In user mode, with the time of virtual machines that run on it.
    pub user_ns: u64,
    /// In kernel mode.
    pub system_ns: u64,
    /// In interrupts.
    pub interrupt_ns: u64,
    /// Idle.
    pub idle_ns: u64,
    /// Idle while a thread waits for a disk.
    pub io_wait_ns: u64,
    /// Taken by the host for others while this virtual machine had something to run.
    pub steal_ns: u64,
}

impl MachineCpu {
    /// Parses the line `cpu USER NICE SYSTEM IDLE IOWAIT IRQ SOFTIRQ STEAL …` of `/proc/stat`. Old kernels
    /// write fewer numbers.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.lines().find_map(|line| line.strip_prefix("cpu "))?.split_ascii_whitespace();
        let mut next = || {
            fields.next().map_or(Some(0), |field| Some(field.parse::<u64>().ok()?.saturating_mul(TICK_NS)))
        };
        let (user, nice, system_ns, idle_ns) = (next()?, next()?, next()?, next()?);
        let (io_wait_ns, interrupts, soft_interrupts, steal_ns) = (next()?, next()?, next()?, next()?);
        let user_ns = user.saturating_add(nice);
        let interrupt_ns = interrupts.saturating_add(soft_interrupts);
        Some(Self { user_ns, system_ns, interrupt_ns, idle_ns, io_wait_ns, steal_ns })
    }
}

/// The memory of a machine, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct MachineMemory {
    /// All of it.
    pub total: Option<u64>,
    /// Memory for new allocations without swapping, by the kernel's estimate.
    pub available: Option<u64>,
    /// Swap space.
    pub swap_total: Option<u64>,
    /// Swap space that is not used.
    pub swap_free: Option<u64>,
}

/// Another process of the machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct OtherProcess {
    /// The process, in the reader's pid namespace.
    pub pid: u32,
    /// The name, with replacements for bytes that are not UTF-8.
    pub name: String,
    /// The start in clock ticks since the system's start.
    pub start_ticks: Option<u64>,
    /// Processor time in nanoseconds, to 10 ms.
    pub cpu_ns: u64,
}

impl MachineUsage {
    pub(super) fn read(proc: &Path, files: &mut Files) -> Self {
        let mut text = |name: &str| String::from_utf8(files.read(&proc.join(name))?).ok();
        let (stat, load) = (text("stat").unwrap_or_default(), text("loadavg").unwrap_or_default());
        let (memory, paging) = (text("meminfo"), text("vmstat").unwrap_or_default());
        let number = |text: &str, name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
        };
        Self {
            cpu: MachineCpu::parse(&stat),
            processors: processors(&stat),
            load: parse_load(&load),
            runnable: number(&stat, "procs_running"),
            blocked: number(&stat, "procs_blocked"),
            memory: memory.map(|text| MachineMemory {
                total: size(&text, "MemTotal"),
                available: size(&text, "MemAvailable"),
                swap_total: size(&text, "SwapTotal"),
                swap_free: size(&text, "SwapFree"),
            }),
            oom_kills: number(&paging, "oom_kill"),
            swapped_in_pages: number(&paging, "pswpin"),
            swapped_out_pages: number(&paging, "pswpout"),
            pressure: ResourcePressure::read(|resource| files.read(&proc.join("pressure").join(resource))),
            other_processes: Vec::new(),
            has_all_processes: false,
        }
    }

    /// Reads the processes except one.
    pub(super) fn read_other_processes(&mut self, proc: &Path, own: u32, files: &mut Files) {
        let Some(pids) = files.kept(proc, ids(proc)) else { return };
        self.has_all_processes = pids.len() <= MAX_PROCESSES;
        for pid in pids.into_iter().filter(|&pid| pid != own).take(MAX_PROCESSES) {
            if files.is_late() {
                self.has_all_processes = false;
                break;
            }
            let Ok(line) = read_file(&proc.join(pid.to_string()).join("stat")) else { continue };
            self.other_processes.extend(Stat::parse(&line).and_then(|stat| {
                let name = String::from_utf8_lossy(stat.name()).into_owned();
                Some(OtherProcess { pid, name, start_ticks: stat.start_ticks(), cpu_ns: stat.cpu_ns()? })
            }));
        }
    }
}

/// Counts the lines `cpuNUMBER`.
fn processors(stat: &str) -> Option<u32> {
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    u32::try_from(stat.lines().filter(is_one).count()).ok().filter(|&count| count > 0)
}

fn parse_load(text: &str) -> Option<[f64; 3]> {
    let mut numbers =
        text.split_ascii_whitespace().map(|number| number.parse().ok().filter(|load: &f64| load.is_finite()));
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_machine_are_in_nanoseconds() {
        let text = "cpu  1 2 4 8 16 32 64 128 256 512\ncpu0 1 2 4 8 16 32 64 128 256 512\ncpu7 0 0 0 0\n\
            intr 9\nprocs_running 3\n";
        let cpu = MachineCpu::parse(text).unwrap();
        let ticks = [cpu.user_ns, cpu.system_ns, cpu.interrupt_ns, cpu.idle_ns, cpu.io_wait_ns, cpu.steal_ns];
        assert_eq!(ticks.map(|ns| ns / TICK_NS), [3, 4, 96, 8, 16, 128]);
        assert_eq!((processors(text), processors("cpu  1 2\n")), (Some(2), None));
        // Linux 2.4.
        assert_eq!(MachineCpu::parse("cpu  1 2 4 8\n").map(|cpu| cpu.steal_ns), Some(0));
        for text in ["", "cpu", "cpu0 1 2 3 4", "cpu  1 2 x 4", "cpu  -1 2 3 4", "cpu  99999999999999999999"]
        {
            assert_eq!(MachineCpu::parse(text), None, "{text}");
        }
        let most = format!("cpu  {0} {0} {0} {0} {0} {0} {0} {0}", u64::MAX);
        assert_eq!(MachineCpu::parse(&most).map(|cpu| cpu.interrupt_ns), Some(u64::MAX));
    }

    #[test]
    fn loads_are_finite() {
        assert_eq!(parse_load("0.51 0.87 12.84 1/87 20839\n"), Some([0.51, 0.87, 12.84]));
        for text in ["", "1 2", "1 x 3", "NaN 1 2", "1 inf 2"] {
            assert_eq!(parse_load(text), None, "{text}");
        }
    }
}
