//! The events of a session while they arrive, passed to a consumer.

use dipc_client::LiveReader;
use nettrace_export::ProfileBuilder;

use crate::exit::Failure;
use crate::inspect::thread_stacks::LiveThreadStacks;
use crate::record::recorder::Consumer;

/// A consumer of the events of a stream.
pub(crate) trait EventConsumer {
    /// Called with the number of bytes that have arrived, before their events are read.
    fn receive(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// Takes the events that are ready. With `is_end`, no more follow.
    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure>;

    /// Returns true if the consumer is satisfied, so the session is stopped.
    fn is_satisfied(&self) -> bool {
        false
    }
}

impl EventConsumer for ProfileBuilder {
    fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), Failure> {
        reader.for_each(|event| self.add(event));
        Ok(())
    }
}

impl EventConsumer for LiveThreadStacks {
    fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), Failure> {
        reader.for_each(|event| self.add(event));
        Ok(())
    }
}

/// The stream of a session, and the consumer of its events.
pub(crate) struct LiveStream<C> {
    pub(crate) reader: LiveReader,
    pub(crate) consumer: C,
}

impl<C: EventConsumer> Consumer for LiveStream<C> {
    type Error = Failure;

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.reader.feed(bytes);
        self.consumer.receive(bytes.len());
        self.consumer.read(&mut self.reader, false)
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.reader.release();
        self.consumer.read(&mut self.reader, false)
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.reader.end_of_input();
        self.consumer.read(&mut self.reader, true)
    }

    fn is_satisfied(&self) -> bool {
        // An unreadable stream yields no more events.
        self.consumer.is_satisfied() || self.reader.unreadable().is_some()
    }

    fn is_whole(&self) -> bool {
        self.reader.is_whole()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Ignoring;

    impl EventConsumer for Ignoring {
        fn read(&mut self, reader: &mut LiveReader, _: bool) -> Result<(), Failure> {
            reader.for_each(|_| {});
            Ok(())
        }
    }

    #[test]
    fn a_stream_that_cannot_be_read_is_stopped() {
        let mut stream = LiveStream { reader: LiveReader::new(Duration::ZERO), consumer: Ignoring };
        stream.take(b"Nettrace").unwrap();
        assert!(!stream.is_satisfied());
        stream.take(&[0xff; 64]).unwrap();
        assert!(stream.reader.unreadable().is_some() && stream.is_satisfied());
        stream.end().unwrap();
        assert!(!stream.is_whole());
    }
}
