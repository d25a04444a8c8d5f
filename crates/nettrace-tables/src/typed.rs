//! Typed columns of the events that queries use most.

use std::fmt::Write as _;

use clr_activity::{SpanEvent, SpanRole};
use clr_counters::{EventCounter, EventCounterValue, MeterEvent, MeterEventKind, MeterMeasurement};
use clr_events::{ClrEvent, EventSet, Provider, ids::runtime as id};
use nettrace::{Event, Metadata};

use crate::schema::events as column;
use crate::table_writer::Row;

/// The runtime's events that have typed columns.
static TYPED: EventSet = EventSet::new(&[
    (Provider::Runtime, id::ALLOCATION_TICK),
    (Provider::Runtime, id::ALLOCATION_SAMPLED),
    (Provider::Runtime, id::EXCEPTION_START),
    (Provider::Runtime, id::GC_START),
    (Provider::Runtime, id::GC_STOP),
    (Provider::Runtime, id::GC_SUSPEND_START),
    (Provider::Runtime, id::GC_SUSPEND_STOP),
    (Provider::Runtime, id::GC_RESTART_START),
    (Provider::Runtime, id::GC_RESTART_STOP),
    (Provider::Runtime, id::GC_HEAP_STATS),
    (Provider::Runtime, id::CONTENTION_STOP),
    (Provider::Runtime, id::THREAD_POOL_WORKER_THREAD_START),
    (Provider::Runtime, id::THREAD_POOL_WORKER_THREAD_STOP),
    (Provider::Runtime, id::THREAD_POOL_WORKER_THREAD_WAIT),
    (Provider::Runtime, id::THREAD_POOL_WORKER_THREAD_ADJUSTMENT_SAMPLE),
    (Provider::Runtime, id::THREAD_POOL_WORKER_THREAD_ADJUSTMENT_ADJUSTMENT),
]);

/// The source of a kind of event's typed columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypedKind {
    Clr,
    EventCounter,
    Meter,
    Span(SpanEvent),
}

impl TypedKind {
    /// Returns the source; `None` if the kind has no typed columns.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        if TYPED.contains(metadata) {
            return Some(Self::Clr);
        }
        match metadata.provider() {
            "System.Diagnostics.Metrics" => Some(Self::Meter),
            _ if metadata.name() == "EventCounters" => Some(Self::EventCounter),
            _ => SpanEvent::of(metadata).map(Self::Span),
        }
    }

    /// Sets the columns of an event. Returns whether it has any; if not, none is set.
    pub(crate) fn set(
        self,
        event: &Event<'_>,
        row: &mut Row<'_>,
        text: &mut String,
        drop_texts: bool,
    ) -> bool {
        match self {
            Self::Clr => match ClrEvent::of(event) {
                Ok(Some(view)) => set_clr(&view, row, text, drop_texts),
                _ => false,
            },
            Self::EventCounter => set_event_counter(event, row, text),
            Self::Meter => set_meter(event, row, text, drop_texts),
            Self::Span(span) => {
                set_span(span, event, row);
                true
            }
        }
    }
}

/// Sets a string column to the printed form of a value.
fn set(row: &mut Row<'_>, column: usize, text: &mut String, value: impl std::fmt::Display) {
    text.clear();
    // Writing into a string does not fail.
    let _ = write!(text, "{value}");
    row.text(column, text);
}

fn int(number: u32) -> i32 {
    number.cast_signed()
}

fn set_clr(view: &ClrEvent<'_>, row: &mut Row<'_>, text: &mut String, drop_texts: bool) -> bool {
    match view {
        ClrEvent::AllocationTick(tick) => {
            set(row, column::ALLOC_TYPE, text, tick.type_name);
            row.long(column::ALLOC_BYTES, tick.allocation_amount64.cast_signed());
            set(row, column::ALLOC_KIND, text, tick.allocation_kind);
            if let Some(size) = tick.object_size {
                row.long(column::ALLOC_OBJECT_BYTES, size.cast_signed());
            }
        }
        ClrEvent::AllocationSampled(sampled) => {
            set(row, column::ALLOC_TYPE, text, sampled.type_name);
            row.long(column::ALLOC_BYTES, sampled.estimated_bytes().cast_signed());
            set(row, column::ALLOC_KIND, text, sampled.allocation_kind);
            row.long(column::ALLOC_OBJECT_BYTES, sampled.object_size.cast_signed());
        }
        ClrEvent::ExceptionStart(thrown) => {
            set(row, column::EXCEPTION_TYPE, text, thrown.exception_type);
            if !drop_texts {
                set(row, column::EXCEPTION_MESSAGE, text, thrown.exception_message);
            }
            row.int(column::EXCEPTION_HRESULT, int(thrown.exception_hresult));
        }
        ClrEvent::GcStart(start) => {
            row.long(column::GC_NUMBER, start.count.into());
            row.int(column::GC_GENERATION, int(start.depth));
            set(row, column::GC_REASON, text, start.reason);
            set(row, column::GC_TYPE, text, start.kind);
        }
        ClrEvent::GcStop(stop) => {
            row.long(column::GC_NUMBER, stop.count.into());
            row.int(column::GC_GENERATION, int(stop.depth));
        }
        ClrEvent::GcSuspendStart(suspend) => {
            set(row, column::SUSPEND_REASON, text, suspend.reason);
            row.long(column::SUSPEND_GC_NUMBER, suspend.count.into());
        }
        // The only field of these events is the number of the runtime, which is the same in all programs.
        ClrEvent::GcSuspendStop(_) | ClrEvent::GcRestartStart(_) | ClrEvent::GcRestartStop(_) => {}
        ClrEvent::GcHeapStats(stats) => set_heap(stats, row),
        ClrEvent::ContentionStop(stop) => {
            set(row, column::CONTENTION_KIND, text, stop.contention_flags);
            if let Some(ns) = stop.duration_ns {
                #[allow(clippy::cast_possible_truncation, reason = "what is too large saturates")]
                row.long(column::CONTENTION_NS, ns as i64);
            }
        }
        ClrEvent::ThreadPoolWorkerThreadStart(pool)
        | ClrEvent::ThreadPoolWorkerThreadStop(pool)
        | ClrEvent::ThreadPoolWorkerThreadWait(pool) => {
            row.int(column::POOL_ACTIVE_THREADS, int(pool.active_worker_thread_count));
            row.int(column::POOL_RETIRED_THREADS, int(pool.retired_worker_thread_count));
        }
        ClrEvent::ThreadPoolWorkerThreadAdjustmentSample(sample) => {
            row.double(column::POOL_THROUGHPUT, sample.throughput);
        }
        ClrEvent::ThreadPoolWorkerThreadAdjustmentAdjustment(adjustment) => {
            row.double(column::POOL_THROUGHPUT, adjustment.average_throughput);
            row.int(column::POOL_WANTED_THREADS, int(adjustment.new_worker_thread_count));
            set(row, column::POOL_REASON, text, adjustment.reason);
        }
        _ => return false,
    }
    true
}

fn set_heap(stats: &clr_events::view::GcHeapStats, row: &mut Row<'_>) {
    for (column, bytes) in [
        (column::HEAP_GEN0_BYTES, Some(stats.generation_size0)),
        (column::HEAP_GEN1_BYTES, Some(stats.generation_size1)),
        (column::HEAP_GEN2_BYTES, Some(stats.generation_size2)),
        (column::HEAP_LOH_BYTES, Some(stats.generation_size3)),
        (column::HEAP_POH_BYTES, stats.generation_size4),
        (column::HEAP_GEN0_PROMOTED_BYTES, Some(stats.total_promoted_size0)),
        (column::HEAP_GEN1_PROMOTED_BYTES, Some(stats.total_promoted_size1)),
        (column::HEAP_GEN2_PROMOTED_BYTES, Some(stats.total_promoted_size2)),
        (column::HEAP_LOH_PROMOTED_BYTES, Some(stats.total_promoted_size3)),
        (column::HEAP_POH_PROMOTED_BYTES, stats.total_promoted_size4),
        (column::HEAP_FINALIZATION_BYTES, Some(stats.finalization_promoted_size)),
        (column::HEAP_FINALIZATION_COUNT, Some(stats.finalization_promoted_count)),
        (column::HEAP_PINNED_COUNT, Some(stats.pinned_object_count.into())),
        (column::HEAP_SINK_BLOCK_COUNT, Some(stats.sink_block_count.into())),
        (column::HEAP_HANDLE_COUNT, Some(stats.gc_handle_count.into())),
    ] {
        if let Some(bytes) = bytes {
            row.long(column, bytes.cast_signed());
        }
    }
}

fn set_event_counter(event: &Event<'_>, row: &mut Row<'_>, text: &mut String) -> bool {
    let Some(counter) = EventCounter::of(event) else { return false };
    set(row, column::COUNTER_NAME, text, counter.name);
    set(row, column::COUNTER_UNIT, text, counter.display_units);
    if let Some(interval) = counter.interval {
        row.long(column::COUNTER_INTERVAL_NS, i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX));
    }
    match counter.value {
        EventCounterValue::Mean { mean, count, min, max, .. } => {
            row.text(column::COUNTER_KIND, "mean");
            row.double(column::COUNTER_VALUE, mean);
            row.long(column::COUNTER_COUNT, count.into());
            row.double(column::COUNTER_MIN, min);
            row.double(column::COUNTER_MAX, max);
        }
        EventCounterValue::Sum { increment } => {
            row.text(column::COUNTER_KIND, "sum");
            row.double(column::COUNTER_VALUE, increment);
        }
    }
    true
}

fn set_meter(event: &Event<'_>, row: &mut Row<'_>, text: &mut String, drop_texts: bool) -> bool {
    let Some(MeterEvent { kind: MeterEventKind::Value(value), .. }) = MeterEvent::of(event) else {
        return false;
    };
    let (kind, number) = match value.measurement {
        MeterMeasurement::Counter { increment, .. } => ("counter", increment),
        MeterMeasurement::UpDownCounter { change, value } => ("updown", value.or(change)),
        MeterMeasurement::Gauge { value } => ("gauge", value),
        // There are no columns for quantiles and buckets.
        _ => return false,
    };
    row.text(column::COUNTER_KIND, kind);
    let instrument = &value.instrument;
    set(row, column::COUNTER_NAME, text, format_args!("{}/{}", instrument.meter, instrument.name));
    set(row, column::COUNTER_UNIT, text, instrument.unit);
    if !drop_texts {
        set(row, column::COUNTER_TAGS, text, value.tags);
    }
    if let Some(number) = number {
        row.double(column::COUNTER_VALUE, number);
    }
    true
}

fn set_span(span: SpanEvent, event: &Event<'_>, row: &mut Row<'_>) {
    let role = match span.role() {
        SpanRole::Server => "server",
        SpanRole::Outgoing => "outgoing",
        _ => "other",
    };
    row.text(column::REQUEST_ROLE, role);
    if let Some(name) = span.name(event) {
        row.text(column::REQUEST_NAME, &name);
    }
    if let Some(key) = span.key(event) {
        row.text(column::REQUEST_KEY, &key);
    }
    if let Some((status, is_error)) = span.outcome(event) {
        if let Some(status) = status {
            row.text(column::REQUEST_STATUS, &status);
        }
        row.bool(column::REQUEST_ERROR, is_error);
    }
}
