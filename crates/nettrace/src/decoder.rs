//! A recording whose bytes are pushed as they arrive.

use crate::error::Error;
use crate::events::{Events, sealed};
use crate::read_buffer::ReadBuffer;

/// Bytes that have been pushed.
#[derive(Debug, Default)]
pub struct PushSource {
    window: ReadBuffer,
    complete: bool,
}

/// Reads a recording whose bytes are pushed as they arrive: for event loops and live sessions.
///
/// [`feed`](Self::feed) it bytes, take events with [`next`](Events::next) until there is none, and so on;
/// [`end_of_input`](Self::end_of_input) when no more will come.
pub type Decoder = Events<PushSource>;

impl sealed::Source for PushSource {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.window.bytes()
    }
    #[inline]
    fn is_complete(&self) -> bool {
        self.complete
    }
    fn more(&mut self, released: usize, _: usize) -> Result<bool, Error> {
        self.window.drop_front(released);
        Ok(false)
    }
    fn drops(&self) -> bool {
        true
    }
}

impl Decoder {
    /// A decoder of a recording none of which has arrived.
    pub fn new() -> Self {
        Self::of(PushSource::default())
    }

    /// Adds bytes behind those that were fed before.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(room) = self.source.window.room(bytes.len()).get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.source.window.filled(bytes.len());
        }
    }

    /// No more bytes will come: what is left is given as far as it is whole, and a cut is noticed.
    pub fn end_of_input(&mut self) {
        self.source.complete = true;
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}
