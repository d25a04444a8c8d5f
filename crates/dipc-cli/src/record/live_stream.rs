//! The events of a session while they arrive, passed to a consumer.

use nettrace::Event;
use nettrace_export::ProfileBuilder;

use crate::exit::Failure;
use crate::inspect::live_reader::LiveReader;
use crate::inspect::thread_stacks::LiveThreadStacks;
use crate::record::recorder::Consumer;

/// A consumer of events.
pub(crate) trait EventConsumer {
    /// Takes the next event.
    fn add(&mut self, event: &Event<'_>);

    /// Whether it has what it wanted, so that the session is stopped.
    fn is_satisfied(&self) -> bool {
        false
    }
}

impl EventConsumer for ProfileBuilder {
    fn add(&mut self, event: &Event<'_>) {
        Self::add(self, event);
    }
}

impl EventConsumer for LiveThreadStacks {
    fn add(&mut self, event: &Event<'_>) {
        Self::add(self, event);
    }
}

/// The stream of a session, and the consumer of its events.
pub(crate) struct LiveStream<C> {
    pub(crate) reader: LiveReader,
    pub(crate) consumer: C,
}

impl<C: EventConsumer> LiveStream<C> {
    fn drain(&mut self) {
        while let Some(event) = self.reader.next() {
            self.consumer.add(&event);
        }
    }
}

impl<C: EventConsumer> Consumer for LiveStream<C> {
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.reader.feed(bytes);
        self.drain();
        Ok(())
    }

    fn pause(&mut self) -> Result<(), Failure> {
        self.reader.release();
        self.drain();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.reader.end_of_input();
        self.drain();
        Ok(())
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
        fn add(&mut self, _: &Event<'_>) {}
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
