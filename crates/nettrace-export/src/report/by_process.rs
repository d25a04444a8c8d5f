//! The weight of a profile by process, and by container.

use hashbrown::HashMap;
use serde::Serialize;

use crate::profile::frame::FrameId;
use crate::profile::{Process, Profile};
use crate::units::share;

/// The weight of a profile by process and by container, in the form that JSON has.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (process, weight) in [(42, 5_000_000), (43, 2_500_000)] {
/// #     builder.add_sample(process, 7, RelativeTime::START, weight, ["Shop!Program.Main()"]);
/// # }
/// # let profile = builder.finish();
/// use nettrace_export::report::ProcessReport;
///
/// let report = ProcessReport::new(&profile);
/// assert_eq!((report.total, report.processes.len()), (7_500_000, 2));
/// assert_eq!((report.processes[0].pid, report.processes[0].threads), (42, 1));
/// assert_eq!(report.containers()[0].processes, 2);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProcessReport {
    /// The [metric](crate::Metric::name).
    pub metric: &'static str,
    /// The unit of weights: `ns`, `bytes` or `count`.
    pub unit: &'static str,
    /// The weight of everything shown.
    pub total: u64,
    /// The number of samples.
    pub samples: u64,
    /// The processes with any weight, the largest first.
    pub processes: Vec<ProcessWeight>,
}

/// The weight of a process.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProcessWeight {
    /// The process, by its id in the recording.
    pub pid: u64,
    /// The name of its program, if the recording has it.
    pub name: Option<String>,
    /// The id of its container, if it is in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The path of its control group, if the recording has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_group: Option<String>,
    /// The number of its threads with samples.
    pub threads: u64,
    /// The number of its samples.
    pub samples: u64,
    /// The weight of its samples.
    pub weight: u64,
    /// Its part of everything, in percent.
    pub percent: f64,
    /// The code with the most of its weight, alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top: Option<TopCode>,
}

/// The code with the most weight, alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TopCode {
    /// The name of its frame.
    pub frame: String,
    /// Its part of the process's weight, in percent.
    pub percent: f64,
    /// The frame of the profile.
    #[serde(skip)]
    pub frame_id: FrameId,
}

/// The weight of a container, or of a control group outside containers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ContainerWeight {
    /// The id of the container; `None` outside containers.
    pub container: Option<String>,
    /// The path of the control group, if the recording has it.
    pub control_group: Option<String>,
    /// The number of its processes with samples.
    pub processes: u64,
    /// The number of its samples.
    pub samples: u64,
    /// The weight of its samples.
    pub weight: u64,
    /// Its part of everything, in percent.
    pub percent: f64,
    /// The name of the process with the most of it.
    pub top_process: Option<String>,
}

#[derive(Default)]
struct Sums {
    weight: u64,
    samples: u64,
    threads: u64,
    frames: HashMap<FrameId, u64>,
}

impl ProcessReport {
    /// Sums up a profile by process.
    pub fn new(profile: &Profile) -> Self {
        let total = profile.total();
        let mut sums: Vec<Sums> = profile.processes.iter().map(|_| Sums::default()).collect();
        let mut seen = vec![false; profile.threads.len()];
        for stack_total in &profile.stack_totals {
            let Some(stack) = stack_total.stack else { continue };
            let index = stack_total.thread.index();
            let Some(thread) = profile.threads.get(index) else { continue };
            let Some(sums) = sums.get_mut(thread.process.index()) else { continue };
            sums.weight = sums.weight.saturating_add(stack_total.weight);
            sums.samples = sums.samples.saturating_add(stack_total.samples);
            if let Some(seen) = seen.get_mut(index)
                && !std::mem::replace(seen, true)
            {
                sums.threads = sums.threads.saturating_add(1);
            }
            if let Some(frame) = profile.stacks.leaf(stack) {
                let weight = sums.frames.entry(frame).or_default();
                *weight = weight.saturating_add(stack_total.weight);
            }
        }
        let rows = profile.processes.iter().zip(&sums).filter(|(_, sums)| sums.weight > 0);
        let mut processes: Vec<_> =
            rows.map(|(process, sums)| weight_of(profile, process, sums, total)).collect();
        processes.sort_by_key(|row| (std::cmp::Reverse(row.weight), row.pid));
        Self {
            metric: profile.metric.name(),
            unit: profile.measure.unit.symbol(),
            total,
            samples: profile.samples(),
            processes,
        }
    }

    /// Sums up the processes of each container, and outside containers of each control group; the largest
    /// first.
    pub fn containers(&self) -> Vec<ContainerWeight> {
        let mut rows: Vec<ContainerWeight> = Vec::new();
        let mut by_key = HashMap::new();
        // The first process of each has the most of it.
        for process in &self.processes {
            let key = process.container.as_ref().or(process.control_group.as_ref());
            let index = *by_key.entry(key).or_insert_with(|| {
                rows.push(ContainerWeight {
                    container: process.container.clone(),
                    control_group: process.control_group.clone(),
                    processes: 0,
                    samples: 0,
                    weight: 0,
                    percent: 0.0,
                    top_process: process.name.clone(),
                });
                rows.len().saturating_sub(1)
            });
            let Some(row) = rows.get_mut(index) else { continue };
            row.processes = row.processes.saturating_add(1);
            row.samples = row.samples.saturating_add(process.samples);
            row.weight = row.weight.saturating_add(process.weight);
            row.percent = share(row.weight, self.total);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.weight));
        rows
    }
}

fn weight_of(profile: &Profile, process: &Process, sums: &Sums, total: u64) -> ProcessWeight {
    let top = sums.frames.iter().max_by_key(|(frame, weight)| (**weight, std::cmp::Reverse(**frame)));
    ProcessWeight {
        pid: process.id,
        name: process.name.clone(),
        container: process.container.clone(),
        control_group: process.control_group.clone(),
        threads: sums.threads,
        samples: sums.samples,
        weight: sums.weight,
        percent: share(sums.weight, total),
        top: top.map(|(frame, weight)| TopCode {
            frame: profile.frames.name(*frame).to_owned(),
            percent: share(*weight, sums.weight),
            frame_id: *frame,
        }),
    }
}
