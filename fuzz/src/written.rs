//! Recordings that are being written.

use nettrace::Decoder;

/// A recording that is read while it is written, so that it need not be kept.
#[derive(Debug, Default)]
pub struct Written {
    decoder: Decoder,
    events: u64,
}

impl Written {
    /// Reads the next bytes.
    ///
    /// # Panics
    /// If they are no recording.
    pub fn add(&mut self, bytes: &[u8]) {
        self.decoder.feed(bytes);
        self.drain();
    }

    /// Returns the number of events.
    ///
    /// # Panics
    /// If the recording is not whole.
    pub fn count(mut self) -> u64 {
        self.decoder.end_of_input();
        self.drain();
        assert_eq!((self.decoder.damage(), self.decoder.truncated_at()), (&[][..], None));
        self.events
    }

    fn drain(&mut self) {
        self.decoder.for_each(|_| self.events += 1).expect("what is written can be read");
    }
}
