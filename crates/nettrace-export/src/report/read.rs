//! Reading of a recording for reports.

use std::io::Read;

use nettrace::{Error, Event, Reader};

/// Passes all events of a recording to `each` in the order that reports need, which is that of time, and returns the reader at
/// the end of the recording.
///
/// # Errors
/// If reading failed.
pub fn read<R: Read>(recording: Reader<R>, mut each: impl FnMut(&Event<'_>)) -> Result<Reader<R>, Error> {
    let mut events = recording.in_time_order();
    events.for_each(|event| each(&event))?;
    Ok(events.into_events())
}
