//! The records of a session's stream while it arrives.

use nettrace::{Decoder, Error, Event, Record, TraceInfo};

/// The records of a stream while it arrives, in the order of the stream. For events in the order of time, use
/// [`LiveReader`](dipc_client::LiveReader).
///
/// A stream that becomes unreadable yields no more records: see [`unreadable`](Self::unreadable).
///
/// ```
/// use dipc_collect::RecordStream;
/// use std::convert::Infallible;
///
/// # let recording = nettrace_synth::nettrace::Trace::new(&Default::default()).finish();
/// let mut stream = RecordStream::default();
/// for piece in recording.chunks(10) {
///     stream.feed(piece);
///     let Ok(()) = stream.for_each(|record| Ok::<_, Infallible>(println!("{record:?}")));
/// }
/// stream.end_of_input();
/// let Ok(()) = stream.for_each(|record| Ok::<_, Infallible>(println!("{record:?}")));
/// assert!(stream.is_whole());
/// assert_eq!(stream.event_count(), 0);
/// ```
#[derive(Debug, Default)]
pub struct RecordStream {
    decoder: Decoder,
    event_count: u64,
    unreadable: Option<Error>,
}

impl RecordStream {
    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.unreadable.is_none() {
            self.decoder.feed(bytes);
        }
    }

    /// Ends the stream. The last records can be read then.
    pub fn end_of_input(&mut self) {
        self.decoder.end_of_input();
    }

    /// Returns the header, once its bytes have arrived. The next record reports an error in it.
    pub fn read_header(&mut self) -> Option<&TraceInfo> {
        self.decoder.read_header().ok().flatten()
    }

    /// Passes the records that have arrived to `each`.
    ///
    /// # Errors
    /// The first error of `each`. The records after that one are passed by the next call.
    pub fn for_each<E>(&mut self, mut each: impl FnMut(&Record<'_>) -> Result<(), E>) -> Result<(), E> {
        while self.unreadable.is_none() {
            let record = match self.decoder.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    self.unreadable = Some(error);
                    break;
                }
            };
            if let Record::Event(_) = &record {
                self.event_count = self.event_count.saturating_add(1);
            }
            each(&record)?;
        }
        Ok(())
    }

    /// Passes the events that have arrived to `each`, without the other records, and faster.
    pub fn for_each_event(&mut self, mut each: impl FnMut(&Event<'_>)) {
        if self.unreadable.is_some() {
            return;
        }
        let count = &mut self.event_count;
        let read = self.decoder.for_each(|event| {
            *count = count.saturating_add(1);
            each(&event);
        });
        self.unreadable = read.err();
    }

    /// The decoder, with the header, the threads, the losses and the damage of the stream so far.
    pub const fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The number of events that were passed.
    pub const fn event_count(&self) -> u64 {
        self.event_count
    }

    /// The error that made the stream unreadable.
    pub const fn unreadable(&self) -> Option<&Error> {
        self.unreadable.as_ref()
    }

    /// Returns true if the ended stream has the end that a runtime writes.
    pub fn is_whole(&self) -> bool {
        self.unreadable.is_none() && self.decoder.truncated_at().is_none()
    }
}
