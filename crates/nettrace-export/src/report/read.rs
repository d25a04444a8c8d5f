//! Reading of a recording for reports.

use std::io::Read;

use nettrace::{Error, Event, Interest, Metadata, ReadSource, Reader, TimeOrder};

/// Passes all events of a recording to `each` in time order, as reports need, and returns the reader at the
/// end of the recording.
///
/// # Errors
/// If reading failed.
pub fn read<R: Read>(recording: Reader<R>, mut each: impl FnMut(&Event<'_>)) -> Result<Reader<R>, Error> {
    let mut events = recording.in_time_order();
    events.for_each(|event| each(&event))?;
    Ok(events.into_events())
}

/// Passes the events of some kinds to `each`, in the same order: kinds for which `is_needed` is true, such as
/// [`Contention::needs`](crate::report::Contention::needs). Where they are few it takes half the time of
/// [`read`].
///
/// Returns the order at the end of the recording, which knows the time of the [last
/// event](TimeOrder::last_time) of all kinds and the [reader](TimeOrder::into_events).
///
/// # Errors
/// If reading failed.
pub fn read_kinds<R: Read>(
    recording: Reader<R>,
    is_needed: impl Fn(&Metadata) -> bool + Send + Sync + 'static,
    each: impl FnMut(&Event<'_>),
) -> Result<TimeOrder<ReadSource<R>>, Error> {
    read_by(recording, move |kind| Interest::all_if(is_needed(kind)), each)
}

/// As [`read_kinds`], for reports that also look at activities, such as
/// [`Requests::interest`](crate::report::Requests::interest).
///
/// # Errors
/// If reading failed.
pub fn read_by<R: Read>(
    recording: Reader<R>,
    interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static,
    mut each: impl FnMut(&Event<'_>),
) -> Result<TimeOrder<ReadSource<R>>, Error> {
    let mut events = recording.in_time_order_by(interest);
    events.for_each(|event| each(&event))?;
    Ok(events)
}
