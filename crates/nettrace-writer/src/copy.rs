//! Whole recordings.

use alloc::vec::Vec;

use nettrace::{Events, Format, Source};

use crate::error::Error;
use crate::merge_order::MergeOrder;
use crate::merger::{Merger, MergerOptions};
use crate::transcoder::Transcoder;
use crate::version::Version;

/// Calls `write` with the bytes of a recording of all events that are left in `events`, part by part. Losses
/// and order are as they were.
///
/// Netperf recordings have no sequence points: they are read in time order, and sequence points are added.
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
/// use nettrace::SliceReader;
/// use nettrace_writer::{Error, Version, transcode};
///
/// let mut v4 = Vec::new();
/// let write = |bytes: &[u8]| -> Result<(), Error> {
///     v4.extend_from_slice(bytes);
///     Ok(())
/// };
/// transcode(SliceReader::new(&recording)?, Version::V4, write)?;
/// assert_eq!(SliceReader::new(&v4)?.info().map(|info| info.version), Some(4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If reading failed, if a size exceeds the version's limit, and errors of `write`.
pub fn transcode<S: Source, E: From<Error>>(
    mut events: Events<S>,
    version: Version,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(Events<S>, Transcoder), E> {
    let Some(info) = events.info() else {
        return Err(Error::Read(nettrace::Error::Empty).into());
    };
    let is_netperf = info.format == Format::Netperf;
    let mut transcoder = Transcoder::new(version, info)?;
    if is_netperf {
        let mut in_time_order = events.in_time_order();
        while let Some(event) = in_time_order.next().map_err(Error::from)? {
            transcoder.event(&event)?;
            transcoder.drain(PART, &mut write)?;
            if transcoder.is_large_since_point() {
                transcoder.sequence_point(in_time_order.events().threads())?;
            }
        }
        events = in_time_order.into_events();
    } else {
        while let Some(record) = events.next_record().map_err(Error::from)? {
            transcoder.write(&record)?;
            transcoder.drain(PART, &mut write)?;
        }
    }
    transcoder.finish(events.threads())?;
    transcoder.drain(0, &mut write)?;
    Ok((events, transcoder))
}

/// Calls `write` with the bytes of a recording of V6 that has all events of many recordings, in the order of
/// time, part by part. See [`Merger`].
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
/// use nettrace::SliceReader;
/// use nettrace_writer::{Error, MergerOptions, merge};
///
/// # let (first, second) = (recording.clone(), recording.clone());
/// let mut merged = Vec::new();
/// let write = |bytes: &[u8]| -> Result<(), Error> {
///     merged.extend_from_slice(bytes);
///     Ok(())
/// };
/// let recordings = vec![SliceReader::new(&first)?, SliceReader::new(&second)?];
/// let (_, merger) = merge(recordings, MergerOptions::default(), write)?;
/// // The second is the same recording: each of its events repeats one of the first.
/// assert_eq!((merger.events(0), merger.events(1)), ((10, 0), (0, 10)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`Merger::new`], if reading failed, if a size exceeds the format's limit, and errors of `write`.
pub fn merge<S: Source, E: From<Error>>(
    recordings: Vec<Events<S>>,
    options: MergerOptions,
    mut write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(MergeOrder<S>, Merger), E> {
    let infos = recordings.iter().map(|events| events.info().cloned());
    let infos: Option<Vec<_>> = infos.collect();
    let mut merger = Merger::new(&infos.ok_or(Error::Read(nettrace::Error::Empty))?, options)?;
    let mut order = MergeOrder::new(recordings);
    while let Some((source, event)) = order.next(&merger).map_err(|(_, error)| Error::Read(error))? {
        merger.event(source, &event)?;
        merger.drain(PART, &mut write)?;
    }
    merger.finish(order.events().map(Events::threads))?;
    merger.drain(0, &mut write)?;
    Ok((order, merger))
}

/// Minimum size of a part in bytes.
const PART: usize = 256 * 1024;
