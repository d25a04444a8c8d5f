//! A recording as a comparison sees it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use clr_events::code::CodeOrigin;
use hashbrown::HashMap;

use crate::diff::call_tree::CallTree;
use crate::diff::series::{Cell, merged};
use crate::diff::subject::{Basis, Kind, Statistic, Subject};
use crate::profile::frame_kind::FrameKind;
use crate::profile::measure::Unit;

/// The sums of a recording over slices of its time: see [`RunBuilder`](super::RunBuilder).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run {
    /// The duration of the recording, or of the selected part.
    pub duration: Duration,
    /// The unit of the amounts of [`Kind::Cpu`]: time, or samples where the kernel's sampler recorded these.
    pub cpu_unit: Unit,
    /// The part of the time in which threads could run that they spent without a processor, by the kernel's
    /// account; `None` if the recording lacks that account.
    pub queued: Option<f64>,
    /// The seconds of each slice.
    pub(super) seconds: Vec<f64>,
    pub(super) cells: HashMap<Subject, Vec<Cell>>,
    /// The stacks of the amounts of `stack_kind`.
    pub(super) stacks: CallTree,
    pub(super) stack_kind: Kind,
    /// Names of methods and types in C#, by the whole name, where they differ.
    pub(super) csharp: BTreeMap<String, String>,
}

/// The kind of the kernel's frames.
pub(super) const KERNEL: FrameKind = FrameKind::Code(CodeOrigin::Kernel);

/// Maximum number of stretches of a recording that are units of a comparison.
const MAX_UNITS: usize = 20;

impl Run {
    /// Returns true if it has any event of a kind.
    pub fn has(&self, kind: Kind) -> bool {
        let kind = if kind == Kind::CpuInclusive { Kind::Cpu } else { kind };
        self.cells.contains_key(&Subject::all(kind))
    }

    /// The unit of a kind's amounts.
    pub fn unit(&self, kind: Kind) -> Unit {
        match kind {
            Kind::Cpu | Kind::CpuInclusive => self.cpu_unit,
            Kind::Allocations | Kind::AllocatingMethods => Unit::Bytes,
            Kind::Exceptions => Unit::Count,
            _ => Unit::Nanoseconds,
        }
    }

    /// The stretches of time that are units if the recording stands alone: slices, or as many of them
    /// together as leave 20. A shorter rest belongs to the last one.
    pub(super) fn stretches(&self) -> Vec<Range<usize>> {
        let count = self.seconds.len();
        let each = count.div_ceil(MAX_UNITS).max(1);
        let mut stretches: Vec<_> =
            (0..count).step_by(each).map(|start| start..(start + each).min(count)).collect();
        let length = |range: &Range<usize>| self.seconds[range.clone()].iter().sum::<f64>();
        if let [.., before, last] = stretches.as_slice()
            && length(last) < length(before) * 0.75
        {
            let whole = before.start..last.end;
            stretches.pop();
            if let Some(last) = stretches.last_mut() {
                *last = whole;
            }
        }
        stretches
    }

    /// The sums of a subject in a stretch.
    pub(super) fn cell(&self, subject: &Subject, stretch: &Range<usize>) -> Cell {
        let Some(cells) = self.cells.get(subject) else { return Cell::default() };
        let end = stretch.end.min(cells.len());
        merged(cells.get(stretch.start.min(end)..end).unwrap_or_default())
    }

    /// The denominator of a statistic in a stretch: the amount of the basis in it.
    pub(super) fn base(&self, kind: Kind, statistic: Statistic, basis: Basis, stretch: &Range<usize>) -> f64 {
        let seconds = || self.seconds.get(stretch.clone()).unwrap_or_default().iter().sum::<f64>();
        match basis {
            _ if kind.is_spans() && statistic == Statistic::Count => seconds(),
            Basis::Second => seconds(),
            Basis::Request => self.cell(&Subject::all(Kind::Requests), stretch).count,
            // All stretches together are one run.
            Basis::Run => seconds() / self.seconds.iter().sum::<f64>().max(f64::MIN_POSITIVE),
            Basis::Share => {
                let all = if kind == Kind::CpuInclusive { Kind::Cpu } else { kind };
                let cell = self.cell(&Subject::all(all), stretch);
                if statistic == Statistic::Count { cell.count } else { cell.amount }
            }
        }
    }

    /// The name of a subject in C#.
    pub(super) fn csharp<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.csharp.get(name).map(String::as_str)
    }
}
