//! The `async` methods that wait for each other.

use super::cursor::Cursor;
use super::error::AsyncBufferError;

/// The way `async` methods are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the runtime has these two")]
pub enum AsyncModel {
    /// The runtime suspends and resumes methods (runtime async).
    Runtime,
    /// The compiler makes a state machine of each method.
    StateMachine,
}

/// A method that awaits the one before it, and continues after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct AsyncFrame {
    /// An address in its code, with [`AsyncModel::Runtime`]; its id, as events of loaded methods have it,
    /// with [`AsyncModel::StateMachine`].
    pub method: u64,
    /// The state of its state machine: the number of the `await`.
    pub state: Option<i32>,
}

/// The methods of an asynchronous operation.
#[derive(Debug, Clone, Copy)]
pub struct AsyncCallstack<'b> {
    /// The compilation of its methods, which determines the content of a frame.
    pub model: AsyncModel,
    /// The number of the wrapper that runs the first frame.
    pub continuation_index: u8,
    /// The operation around this one, if the event states it.
    pub parent: Option<u64>,
    /// The id of the operation.
    pub dispatcher: u64,
    count: u8,
    frames: Cursor<'b>,
}

impl<'b> AsyncCallstack<'b> {
    pub(super) fn parse(
        fields: &mut Cursor<'b>,
        model: AsyncModel,
        has_parent: bool,
    ) -> Result<Self, AsyncBufferError> {
        // An id, which is reserved.
        fields.u8()?;
        let continuation_index = fields.u8()?;
        let count = fields.u8()?;
        let parent = if has_parent { Some(fields.compressed()?) } else { None };
        let dispatcher = fields.compressed()?;
        let callstack = Self { model, continuation_index, parent, dispatcher, count, frames: *fields };
        callstack.decode(|_| {})?;
        Ok(callstack)
    }

    /// Returns the number of frames. Zero means the frames of an earlier event of the operation.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if there are no frames.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the frames, the innermost first: each is awaited by the next one.
    pub fn frames(&self) -> Vec<AsyncFrame> {
        let mut frames = Vec::with_capacity(self.len());
        // The frames were decoded before without an error.
        let _ = self.decode(|frame| frames.push(frame));
        frames
    }

    /// Methods are differences to the one before.
    fn decode(&self, mut each: impl FnMut(AsyncFrame)) -> Result<(), AsyncBufferError> {
        let mut fields = self.frames;
        let mut method = 0u64;
        for index in 0..self.count {
            method =
                if index == 0 { fields.compressed()? } else { method.wrapping_add_signed(fields.signed()?) };
            let state = match self.model {
                AsyncModel::Runtime => None,
                AsyncModel::StateMachine => Some(fields.signed_i32()?),
            };
            each(AsyncFrame { method, state });
        }
        Ok(())
    }
}
