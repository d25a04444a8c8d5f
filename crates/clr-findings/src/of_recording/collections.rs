//! Causes in collections.

use clr_events::code::CodeOrigin;
use clr_events::escape_controls;
use nettrace_export::FrameKind;
use nettrace_export::units::{bytes, count, counted, share, short_percent, time};

use super::{OfRecording, caller, per_second};
use crate::finding::{Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

/// The method that asks for a collection.
const COLLECT: &str = "System.GC.Collect";

impl OfRecording<'_> {
    pub(super) fn induced_collections(&self) -> Option<Finding> {
        let induced = self.induced();
        let rate = induced as f64 / self.seconds;
        let is_often = induced >= thresholds::MIN_INDUCED && rate >= thresholds::INDUCED_COLLECTIONS;
        if !is_often || self.overview.gc.pause_percent < thresholds::INDUCED_PAUSES {
            return None;
        }
        let profile = &self.overview.profile;
        let collects = |frame| profile.frames.full_parts(frame).1.starts_with(COLLECT);
        // Threads wait for collections, or do them.
        let method = self.part(collects).method(|_| true);
        // .NET Core 3.1 has no frame of it: the collector runs in the user's method.
        let in_collector = |frame| profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Gc);
        let are_most = induced.saturating_mul(2) >= self.overview.gc.collections.len() as u64;
        let collecting = || self.part(in_collector).worker();
        let method = method.or_else(|| collecting().filter(|_| are_most));
        let cause = format!(
            "The program asks for collections{}: {} of {}, {rate:.1} per second, paused {} of the time",
            in_method(method.as_deref()),
            count(induced),
            counted(self.overview.gc.collections.len() as u64, "collection", "collections"),
            short_percent(self.overview.gc.pause_percent),
        );
        Some(
            Finding::new(FindingKind::InducedCollections, self.collector_cost(), cause, Details::Collections)
                .with_method(method)
                .with_numbers([
                    Number::new("induced", induced as f64),
                    Number::new("pause_percent", self.overview.gc.pause_percent),
                ]),
        )
    }

    pub(super) fn gc_pressure(&self) -> Option<Finding> {
        let gc = &self.overview.gc;
        let work = self.runtime_work(CodeOrigin::Gc);
        let (of_cpu, processors) = work.unwrap_or_default();
        let is_busy = of_cpu >= thresholds::GC_SHARE && processors >= thresholds::GC_PROCESSORS;
        let full = gc.collections.iter().filter(|collection| collection.generation >= 2).count() as u64;
        // Those that the program asks for have a cause of their own.
        let unasked = full.saturating_sub(self.induced());
        let full_rate = unasked as f64 / self.seconds;
        let are_full = share(unasked, gc.collections.len() as u64) >= thresholds::FULL_COLLECTIONS
            && full_rate >= thresholds::FULL_COLLECTIONS_PER_SECOND;
        if gc.is_empty() || (gc.pause_percent < thresholds::PAUSES && !is_busy && !are_full) {
            return None;
        }
        let allocations = &self.overview.allocations;
        let first = allocations.types.first();
        let method = first.and_then(|row| caller(row.from.as_ref()));
        let allocated = match first {
            Some(row) => format!(
                ": {} per second allocated, {} of it {}{}",
                bytes(per_second(allocations.bytes, self.seconds)),
                short_percent(share(row.bytes, allocations.bytes)),
                escape_controls(&row.csharp),
                in_method(method.as_deref()),
            ),
            None => String::new(),
        };
        let cause = if gc.pause_percent < thresholds::PAUSES && are_full {
            format!("{full_rate:.1} collections of the whole heap per second{allocated}")
        } else {
            format!("Collections pause {} of the time{allocated}", short_percent(gc.pause_percent))
        };
        let of_collector = work.map_or_else(String::new, |_| {
            format!("; the collector takes {} of the processor time", short_percent(of_cpu))
        });
        let evidence = format!(
            "{}, {} of generation 2, {} of pause at the longest{of_collector}",
            counted(gc.collections.len() as u64, "collection", "collections"),
            count(full),
            time(gc.pauses.max),
        );
        let details = if first.is_some() { Details::Allocations } else { Details::Collections };
        Some(
            Finding::new(FindingKind::GcPressure, self.collector_cost(), cause, details)
                .with_method(method)
                .with_object(first.map(|row| row.csharp.clone()))
                .with_evidence([evidence])
                .with_numbers([
                    Number::new("pause_percent", gc.pause_percent),
                    Number::new("gc_cpu_percent", of_cpu),
                ]),
        )
    }

    /// The collections that the program asked for.
    fn induced(&self) -> u64 {
        let all = self.overview.gc.generations.iter().filter(|row| row.generation.is_none());
        all.map(|row| row.induced).sum()
    }

    /// The processors that collections take, at least those that the pauses leave idle.
    fn collector_cost(&self) -> f64 {
        let busy = self.runtime_work(CodeOrigin::Gc).map_or(0.0, |(_, processors)| processors);
        busy.max(self.overview.gc.pause_percent / 100.0)
    }
}
