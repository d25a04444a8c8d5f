//! The selection of records.

use nettrace::{Event, Events, PassedPoint, Source, TraceInfo};

use crate::range::RecordedRange;

/// The decision about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventDecision {
    /// Written.
    Keep,
    /// Written, but without the losses before it: the event lies outside the kept time.
    KeepBeyond,
    /// Left out, without counting as a loss.
    Remove,
    /// Left out, together with the losses before it.
    Skip,
}

impl EventDecision {
    /// Returns true if the event is written.
    pub const fn is_written(self) -> bool {
        matches!(self, Self::Keep | Self::KeepBeyond)
    }
}

/// The selection of the records of a recording that are copied, and of the payloads that they get.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace::{Event, PassedPoint};
/// use nettrace_edit::{EventDecision, RecordSelector};
///
/// /// Every second event.
/// #[derive(Default)]
/// struct Half(bool);
///
/// impl RecordSelector for Half {
///     fn event(&mut self, _: &Event<'_>) -> EventDecision {
///         self.0 = !self.0;
///         if self.0 { EventDecision::Keep } else { EventDecision::Remove }
///     }
///     fn keeps_point(&mut self, _: &PassedPoint<'_>, _: &TraceInfo) -> bool {
///         true
///     }
/// }
///
/// let copied = nettrace_edit::copy(&recording[..], &mut Vec::new(), &mut Half::default())?;
/// assert_eq!((copied.read, copied.kept), (10, 5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait RecordSelector {
    /// Decides about an event.
    fn event(&mut self, event: &Event<'_>) -> EventDecision;

    /// Returns true to keep the losses that a sequence point reports.
    fn keeps_point(&mut self, point: &PassedPoint<'_>, info: &TraceInfo) -> bool;

    /// The time to which the copy is limited, and which it therefore [states](RecordedRange); `None` without
    /// a limit.
    fn range(&self) -> Option<RecordedRange> {
        None
    }

    /// Makes the reader skip blocks in which nothing is wanted. Returns whether there may be such blocks.
    fn skip_blocks<S: Source>(&self, events: &mut Events<S>) -> bool
    where
        Self: Sized,
    {
        let _ = events;
        false
    }

    /// Returns true if all records are written as they are.
    fn keeps_all(&self) -> bool {
        false
    }

    /// Returns the payload to write for the event that was decided about last.
    fn payload<'a>(&'a mut self, event: &Event<'a>) -> &'a [u8] {
        event.payload()
    }

    /// Returns true if the stack of that event is kept.
    fn keeps_stacks(&self) -> bool {
        true
    }
}

/// The selection of everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeepAll;

impl RecordSelector for KeepAll {
    fn keeps_all(&self) -> bool {
        true
    }

    fn event(&mut self, _: &Event<'_>) -> EventDecision {
        EventDecision::Keep
    }

    fn keeps_point(&mut self, _: &PassedPoint<'_>, _: &TraceInfo) -> bool {
        true
    }
}
