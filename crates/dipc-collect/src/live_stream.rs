//! The events of a session while they arrive, passed to a consumer.

use dipc_client::{LiveReader, Session};

use crate::observer::Observer;
use crate::stream::{self, Consumer, Limits, StreamEnd};

/// The consumer of a session's events.
pub trait EventConsumer {
    /// The error of a consumer that cannot go on.
    type Error;

    /// Called with the number of bytes that have arrived, before their events are read.
    fn receive(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Takes the events that are ready. With `is_end`, no more follow.
    ///
    /// # Errors
    /// The consumer's own, which end the session.
    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Self::Error>;

    /// Returns true once the consumer is satisfied, which stops the session.
    fn is_satisfied(&self) -> bool {
        false
    }
}

/// The reader of a session's stream, and the consumer of its events. It is what [`stream::run`] takes.
///
/// A stream that cannot be read is stopped: it yields no more events.
#[derive(Debug)]
pub struct LiveStream<C> {
    reader: LiveReader,
    consumer: C,
}

impl<C> LiveStream<C> {
    /// Passes the events of `reader` to `consumer`.
    pub const fn new(reader: LiveReader, consumer: C) -> Self {
        Self { reader, consumer }
    }

    /// Returns the reader, which knows the header, the losses and the damage of the stream, and the consumer.
    pub fn into_parts(self) -> (LiveReader, C) {
        (self.reader, self.consumer)
    }
}

impl<F> LiveStream<ReadFn<F>> {
    /// Passes `reader` to a closure whenever events are ready. The closure returns true once it has enough.
    pub const fn reading<E>(reader: LiveReader, read: F) -> Self
    where
        F: FnMut(&mut LiveReader) -> Result<bool, E>,
    {
        Self { reader, consumer: ReadFn { read, has_enough: false } }
    }
}

impl<C: EventConsumer> Consumer for LiveStream<C> {
    type Error = C::Error;

    fn take(&mut self, bytes: &[u8]) -> Result<(), C::Error> {
        self.reader.feed(bytes);
        self.consumer.receive(bytes.len());
        self.consumer.read(&mut self.reader, false)
    }

    fn pause(&mut self) -> Result<(), C::Error> {
        self.reader.release();
        self.consumer.read(&mut self.reader, false)
    }

    fn end(&mut self) -> Result<(), C::Error> {
        self.reader.end_of_input();
        self.consumer.read(&mut self.reader, true)
    }

    fn is_satisfied(&self) -> bool {
        self.consumer.is_satisfied() || self.reader.unreadable().is_some()
    }

    fn is_whole(&self) -> bool {
        self.reader.is_whole()
    }
}

/// A closure as the consumer of events.
#[derive(Debug)]
pub struct ReadFn<F> {
    read: F,
    has_enough: bool,
}

impl<E, F: FnMut(&mut LiveReader) -> Result<bool, E>> EventConsumer for ReadFn<F> {
    type Error = E;

    fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), E> {
        self.has_enough |= (self.read)(reader)?;
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.has_enough
    }
}

/// Passes the events of a session to a closure, which returns true once it has enough. Returns the reader and
/// how the stream ended. Blocks.
///
/// # Errors
/// Returns the errors of `read`.
pub fn read<E>(
    session: Session,
    reader: LiveReader,
    limits: &Limits,
    observer: &mut dyn Observer,
    read: impl FnMut(&mut LiveReader) -> Result<bool, E>,
) -> Result<(LiveReader, StreamEnd), E> {
    let mut stream = LiveStream::reading(reader, read);
    let end = stream::run(session, &mut stream, limits, observer)?;
    Ok((stream.reader, end))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_stream_that_cannot_be_read_is_stopped() {
        let read = |reader: &mut LiveReader| {
            reader.for_each(|_| {});
            Ok::<_, Infallible>(false)
        };
        let mut stream = LiveStream::reading(LiveReader::new(Duration::ZERO), read);
        let Ok(()) = stream.take(b"Nettrace");
        assert!(!stream.is_satisfied());
        let Ok(()) = stream.take(&[0xff; 64]);
        assert!(stream.reader.unreadable().is_some() && stream.is_satisfied());
        let Ok(()) = stream.end();
        assert!(!stream.is_whole());
    }

    #[test]
    fn a_closure_is_satisfied_for_good_once_it_has_enough() {
        let mut calls = 0;
        let mut stream = LiveStream::reading(LiveReader::new(Duration::ZERO), |_| {
            calls += 1;
            Ok::<_, Infallible>(calls == 1)
        });
        for _ in 0..2 {
            let Ok(()) = stream.pause();
            assert!(stream.is_satisfied());
        }
    }
}
