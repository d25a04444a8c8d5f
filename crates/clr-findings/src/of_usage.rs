//! Causes that the kernel's account of a process and its machine shows.

#[cfg(all(test, target_os = "linux"))]
mod tests;

use linux_proc_stat::{DescriptorKind, ProcessUsage, UsageChange};
use nettrace_export::units::{count, counted, share, short_percent};

use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::growth::steady;
use crate::memory_facts::{MemoryFacts, ThreadFacts};
use crate::of_memory::most_frequent;
use crate::thresholds;

/// Returns the causes that readings show, in any order. `memory` are readings of the same time: the threads
/// that are new have methods.
pub(crate) fn findings(usage: &[ProcessUsage], memory: &[MemoryFacts]) -> Vec<Finding> {
    let (Some(first), Some(last)) = (usage.first(), usage.last()) else { return Vec::new() };
    let Some(change) = UsageChange::between(first, last) else { return Vec::new() };
    let halves = usage.windows(2).filter_map(|pair| UsageChange::between(pair.first()?, pair.last()?));
    let readings = Readings { last, change, halves: halves.collect() };
    let single = [
        readings.throttled(),
        readings.busy_neighbour(),
        readings.page_faults(),
        readings.memory_limit(),
        readings.thread_growth(memory),
        readings.descriptors(),
    ];
    single.into_iter().flatten().collect()
}

/// The name of the runtime's threads that write the events of sessions, since .NET 8.
const SESSION_THREAD: &str = ".NET EventPipe";

/// Threads that were ready without a processor.
struct Ready {
    /// Their mean number.
    waiting: f64,
    /// Their share of the time that threads wanted to run, in percent.
    percent: f64,
}

struct Readings<'r> {
    last: &'r ProcessUsage,
    change: UsageChange,
    /// The changes between neighbouring readings: what grows in all of them does not stop.
    halves: Vec<UsageChange>,
}

impl Readings<'_> {
    fn throttled(&self) -> Option<Finding> {
        let throttling = self.change.group.throttling?;
        let processors = throttling.throttled_processors;
        if processors < thresholds::THROTTLED_PROCESSORS {
            return None;
        }
        let quota = self.last.group.and_then(|group| group.quota());
        let quota = quota.map_or_else(String::new, |quota| format!(" of {quota:.2} processors"));
        let percent = 100.0 * throttling.share_of_periods.unwrap_or_default();
        let cause = format!(
            "Throttled: the control group's quota{quota} was used up in {} of the periods, and {processors:.1} threads \
             waited for the next one",
            short_percent(percent),
        );
        Some(
            Finding::new(FindingKind::Throttled, processors, cause, Details::Machine).with_numbers([
                Number::new("throttled_percent", percent),
                Number::new("threads", processors),
            ]),
        )
    }

    fn busy_neighbour(&self) -> Option<Finding> {
        let machine = &self.change.machine;
        let steal = 100.0 * machine.steal.unwrap_or_default();
        let Ready { waiting, percent } = self.ready();
        let reader = std::process::id();
        let of_reader = machine.busiest.iter().find(|(other, _)| other.pid == reader);
        let of_reader = of_reader.map_or(0.0, |(_, cores)| *cores);
        let others = machine.other_cores.unwrap_or_default() - of_reader;
        let is_waiting = waiting >= thresholds::RUN_QUEUE && percent >= thresholds::WITHOUT_PROCESSOR;
        if is_waiting && steal >= thresholds::STEAL {
            let cause =
                format!("The host takes {} of this virtual machine's processors", short_percent(steal));
            return Some(
                Finding::new(FindingKind::BusyNeighbour, waiting, cause, Details::Machine)
                    .with_numbers([Number::new("steal_percent", steal)]),
            );
        }
        let cores = self.change.cpu.cores.unwrap_or_default();
        if !is_waiting || others < thresholds::OTHER_PROCESSORS || others < cores {
            return None;
        }
        let (busiest, cores) = machine.busiest.iter().find(|(other, _)| other.pid != reader)?;
        let name = clr_events::escape_controls(&busiest.name);
        let cause = format!(
            "Other processes are in the way: {waiting:.1} threads were ready without a processor, {} of the time that they \
             wanted to run; the busiest is {name} ({}) with {cores:.1} processors",
            short_percent(percent),
            busiest.pid,
        );
        Some(
            Finding::new(FindingKind::BusyNeighbour, waiting, cause, Details::Machine)
                .with_object(Some(busiest.name.clone()))
                .with_numbers([Number::new("threads", waiting), Number::new("other_processors", others)]),
        )
    }

    /// The threads that were ready without a processor, apart from those that serve sessions: this program's
    /// is one.
    fn ready(&self) -> Ready {
        let threads = self.change.threads.iter().filter(|thread| thread.name != SESSION_THREAD);
        let of_each =
            threads.filter_map(|thread| Some((thread.run_queue?, thread.cores.unwrap_or_default())));
        let sum = |(waiting, cores), (more_waiting, more_cores)| (waiting + more_waiting, cores + more_cores);
        let (waiting, cores) = of_each.fold((0.0, 0.0), sum);
        let runnable: f64 = waiting + cores;
        let percent = if runnable > 0.0 { 100.0 * waiting / runnable } else { 0.0 };
        Ready { waiting, percent }
    }

    fn page_faults(&self) -> Option<Finding> {
        let faults = self.change.major_faults_per_second?;
        if faults < thresholds::MAJOR_FAULTS {
            return None;
        }
        let swapped = self.change.machine.swapped_in_pages_per_second.unwrap_or_default();
        let from = if swapped >= faults / 2.0 { "swap space" } else { "files on disk" };
        let waiting = self.change.cpu.io_delay.unwrap_or_default();
        let cause = format!("{faults:.0} pages per second are read from {from}, while threads wait for them");
        Some(Finding::new(FindingKind::PageFaults, waiting, cause, Details::Machine).with_numbers([
            Number::new("faults_per_second", faults),
            Number::new("swapped_in_per_second", swapped),
        ]))
    }

    fn memory_limit(&self) -> Option<Finding> {
        let group = self.last.group?;
        let (used, limit) = group.memory?.limited?;
        let percent = share(used, limit);
        let hits = self.change.group.memory_limit_hits_per_second.unwrap_or_default();
        let kills = self.change.group.oom_kills.unwrap_or_default();
        if percent < thresholds::MEMORY_LIMIT && hits <= 0.0 && kills == 0 {
            return None;
        }
        let killed = if kills > 0 {
            format!(", and the kernel has killed {}", counted(kills, "process", "processes"))
        } else {
            String::new()
        };
        let cause = format!(
            "The memory limit of the control group is near: {} of {} used{killed}",
            short_percent(percent),
            nettrace_export::units::bytes(limit),
        );
        Some(
            Finding::new(FindingKind::MemoryLimit, percent / 100.0, cause, Details::Machine).with_numbers([
                Number::new("used_percent", percent),
                Number::new("limit_hits_per_second", hits),
            ]),
        )
    }

    fn thread_growth(&self, memory: &[MemoryFacts]) -> Option<Finding> {
        let threads = self.last.thread_count?;
        let growth = self.steady_growth(threads, |change| change.thread_growth)?;
        let new = new_threads(memory);
        // The pool starts a thread or two per second while its workers wait for a moment.
        let of_pool = new.iter().filter(|thread| thread.is_pool_worker).count();
        if of_pool.saturating_mul(2) > new.len() {
            return None;
        }
        let methods: Vec<_> = new.iter().filter_map(|thread| thread.method.clone()).collect();
        let method = most_frequent(&methods).map(|(method, _)| method.to_owned());
        let place = method
            .as_deref()
            .map_or_else(String::new, |method| format!(", most of the new ones in {method}"));
        let seconds = self.change.elapsed.as_secs_f64();
        let cause = format!(
            "The number of threads grows: {} more in {seconds:.1} s, now {}{place}",
            count(growth),
            count(threads),
        );
        Some(
            Finding::new(FindingKind::ThreadGrowth, growth as f64 / seconds, cause, Details::Stacks)
                .with_method(method)
                .with_numbers([Number::new("growth", growth as f64), Number::new("threads", threads as f64)]),
        )
    }

    fn descriptors(&self) -> Option<Finding> {
        let descriptors = self.last.descriptors.as_ref()?;
        let seconds = self.change.elapsed.as_secs_f64();
        let growth = self.steady_growth(descriptors.count, |change| change.descriptor_growth);
        let growth = growth.filter(|growth| *growth >= thresholds::SESSION_DESCRIPTORS);
        let percent = descriptors.limit.map_or(0.0, |limit| share(descriptors.count, limit));
        let near = if percent >= thresholds::DESCRIPTOR_LIMIT {
            format!("; {} of the limit", short_percent(percent))
        } else {
            String::new()
        };
        let grown = self.change.descriptor_kind_growth.iter().max_by_key(|(_, growth)| **growth);
        let kind = grown.map_or(DescriptorKind::Other, |(kind, _)| *kind);
        let cause = match growth {
            Some(growth) => format!(
                "Open files are not closed: {} more in {seconds:.1} s, most of them {}, now {}{near}",
                count(growth),
                kind.name(),
                count(descriptors.count),
            ),
            None if !near.is_empty() => format!("{} open files{near}", count(descriptors.count)),
            None => return None,
        };
        let growth = growth.unwrap_or_default() as f64;
        Some(
            Finding::new(FindingKind::DescriptorGrowth, growth / seconds, cause, Details::Machine)
                .with_object(Some(kind.name().to_owned()))
                .with_confidence(Confidence::Likely)
                .with_numbers([
                    Number::new("growth", growth),
                    Number::new("open_files", descriptors.count as f64),
                ]),
        )
    }

    /// The growth of a number that is `last` now, if it has grown evenly and by enough: a program that starts
    /// opens files and threads in bursts.
    fn steady_growth(&self, last: u64, of: impl Fn(&UsageChange) -> Option<i64>) -> Option<u64> {
        let mut now = (0.0, last as f64 - of(&self.change)? as f64);
        let mut values = vec![now];
        for half in &self.halves {
            now = (now.0 + half.elapsed.as_secs_f64(), now.1 + of(half)? as f64);
            values.push(now);
        }
        let average = of(&self.change)? as f64 / self.change.elapsed.as_secs_f64();
        let minimum = (average * thresholds::EVEN_COUNTS / 100.0).max(thresholds::GROWTH_PER_SECOND);
        let growth = steady(&values, minimum)?.count();
        (share(growth, last) >= thresholds::GROWTH).then_some(growth)
    }
}

/// The threads that are in the last reading only.
fn new_threads(memory: &[MemoryFacts]) -> Vec<&ThreadFacts> {
    let [first, .., last] = memory else { return Vec::new() };
    let is_new = |tid: u64| first.threads.iter().all(|thread| thread.tid != tid);
    last.threads.iter().filter(|thread| is_new(thread.tid)).collect()
}
