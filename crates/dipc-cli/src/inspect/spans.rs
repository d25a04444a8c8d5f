//! Detection of recordings that may have requests and other spans.

use clr_activity::Spans;
use nettrace::{Format, Ticks};

use crate::inspect::recording::Recording;

/// Returns false if no kind of event of a recording starts or stops a span. Only kinds are read, which takes
/// hardly any time, if the input is a file and has them in blocks of their own; otherwise the answer is true.
pub(crate) fn may_have_spans(recording: &Recording) -> bool {
    let Some(file) = recording.file() else { return true };
    if recording.events.info().is_none_or(|info| info.format != Format::Nettrace) {
        return true;
    }
    let Ok(again) = file.open() else { return true };
    let (mut events, _) = again.into_parts();
    let no_time = Ticks(i64::MAX.cast_unsigned())..=Ticks(i64::MIN.cast_unsigned());
    events.skip_blocks_outside(no_time, |_| false);
    let read = events.for_each(|_| {});
    // Kinds may be missing after damage.
    read.is_err() || events.damage_count() > 0 || events.metadata().iter().any(Spans::is_start_or_stop)
}
