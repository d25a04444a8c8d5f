//! Reading pushed bytes.

use crate::error::Error;
use crate::events::{Events, sealed};
use crate::info::TraceInfo;
use crate::read_buffer::ReadBuffer;

/// The source of a [`Decoder`]: pushed bytes.
#[derive(Debug, Default)]
pub struct PushSource {
    buffer: ReadBuffer,
    complete: bool,
}

/// Reads a recording from bytes pushed as they arrive: for event loops and live sessions.
///
/// Pass it bytes with [`feed`](Self::feed), take events with [`next`](Events::next) until it returns `None`,
/// and so on; call [`end_of_input`](Self::end_of_input) when the input is complete.
pub type Decoder = Events<PushSource>;

impl sealed::Source for PushSource {
    #[inline]
    fn bytes(&self) -> &[u8] {
        self.buffer.bytes()
    }
    #[inline]
    fn is_complete(&self) -> bool {
        self.complete
    }
    fn more(&mut self, released: usize, _: usize) -> Result<bool, Error> {
        self.buffer.drop_front(released);
        Ok(false)
    }
    fn drops(&self) -> bool {
        true
    }
}

impl Decoder {
    /// Creates a decoder without any bytes.
    pub fn new() -> Self {
        Self::with_source(PushSource::default())
    }

    /// Appends bytes to the input.
    ///
    /// ```
    /// # let bytes: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/demo.bin"));
    /// let (mut decoder, mut count) = (nettrace::Decoder::new(), 0);
    /// for chunk in bytes.chunks(50) {
    ///     decoder.feed(chunk);
    ///     // `None` until more bytes come.
    ///     while decoder.next()?.is_some() {
    ///         count += 1;
    ///     }
    /// }
    /// decoder.end_of_input();
    /// assert!(decoder.next()?.is_none() && decoder.truncated_at().is_none());
    /// assert_eq!(count, 4);
    /// # Ok::<(), nettrace::Error>(())
    /// ```
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(room) = self.source.buffer.room(bytes.len()).get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.source.buffer.filled(bytes.len());
        }
    }

    /// Reads the header and nothing after it, if all of it has arrived and it has not been read. Returns it;
    /// `None` if more bytes are needed.
    ///
    /// [`next`](Events::next) reads it, too, but may go on to an event that a program cannot take before it
    /// knows the header.
    ///
    /// # Errors
    /// If the bytes are not a recording; as [`next`](Events::next), which returns the same error.
    pub fn read_header(&mut self) -> Result<Option<&TraceInfo>, Error> {
        self.engine.open(self.source.buffer.bytes(), self.source.complete)?;
        Ok(self.info())
    }

    /// Declares the input complete. Whole events can still be taken; a cut is noticed.
    pub fn end_of_input(&mut self) {
        self.source.complete = true;
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}
