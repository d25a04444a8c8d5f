//! Buffers: the events of one thread, with the times between them.

use nettrace::Ticks;

use super::cursor::Cursor;
use super::error::AsyncBufferError;
use super::event::AsyncEvent;
use super::layout::AsyncLayout;

/// The version of the layout.
const VERSION: u8 = 1;

/// A buffer of a thread's events.
///
/// ```
/// use clr_activity::AsyncBuffer;
///
/// // The payload of another event.
/// assert!(AsyncBuffer::parse(&[1, 0, 0, 0, 9]).is_err());
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AsyncBuffer<'b> {
    /// The number of the thread in the operating system. Another thread may have written the buffer.
    pub thread: u64,
    /// The number of the runtime's data about the thread.
    pub thread_context: u32,
    /// The number of events.
    pub event_count: u32,
    /// The time from which that of the first event counts.
    pub start: Ticks,
    /// The time of the last event.
    pub end: Ticks,
    events: Cursor<'b>,
}

impl<'b> AsyncBuffer<'b> {
    /// Parses the header of the buffer in an event's payload.
    ///
    /// # Errors
    /// If the payload is too short, or the buffer has another version.
    pub fn parse(payload: &'b [u8]) -> Result<Self, AsyncBufferError> {
        let mut payload = Cursor::new(payload);
        let length = payload.u32()?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = payload.take(length)?.rest();
        let mut header = Cursor::new(bytes);
        let version = header.u8()?;
        if version != VERSION {
            return Err(AsyncBufferError::Version(version));
        }
        let size = header.u32()?;
        let (thread_context, thread, event_count) = (header.u32()?, header.u64()?, header.u32()?);
        let (start, end) = (Ticks(header.u64()?), Ticks(header.u64()?));
        // Bytes past the stated size do not belong to the buffer.
        let size = usize::try_from(size).ok().filter(|size| *size <= bytes.len()).unwrap_or(bytes.len());
        let events = header.take(size.saturating_sub(header.offset()))?;
        Ok(Self { thread, thread_context, event_count, start, end, events })
    }

    /// Returns the events. `layout` belongs to the process, and learns from them.
    pub const fn events<'l>(&self, layout: &'l mut AsyncLayout) -> AsyncEvents<'b, 'l> {
        AsyncEvents { rest: self.events, time: self.start, layout, has_failed: false }
    }
}

/// The events of a buffer. The iterator ends after an error.
#[derive(Debug)]
pub struct AsyncEvents<'b, 'l> {
    rest: Cursor<'b>,
    time: Ticks,
    layout: &'l mut AsyncLayout,
    has_failed: bool,
}

impl<'b> Iterator for AsyncEvents<'b, '_> {
    type Item = Result<AsyncEvent<'b>, AsyncBufferError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed || self.rest.is_at_end() {
            return None;
        }
        let event = AsyncEvent::parse(&mut self.rest, self.time, self.layout);
        match &event {
            Ok(event) => self.time = event.time,
            Err(_) => self.has_failed = true,
        }
        Some(event)
    }
}
