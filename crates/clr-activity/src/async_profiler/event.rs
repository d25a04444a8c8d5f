//! Single events of a buffer.

use nettrace::Ticks;

use super::callstack::{AsyncCallstack, AsyncModel};
use super::cursor::Cursor;
use super::error::AsyncBufferError;
use super::layout::{AsyncLayout, LengthWidth};

/// An event of a buffer.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AsyncEvent<'b> {
    /// The id of the event's kind.
    pub id: u8,
    /// The time on the clock of the recording.
    pub time: Ticks,
    /// The content of the event.
    pub kind: AsyncEventKind<'b>,
}

/// The content of an event.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AsyncEventKind<'b> {
    /// An asynchronous operation begins.
    ContextCreated {
        /// The operation around it.
        parent: u64,
        /// The id of the operation's dispatcher.
        dispatcher: u64,
    },
    /// The thread continues an operation.
    ContextResumed {
        /// The id of the operation's dispatcher.
        dispatcher: u64,
    },
    /// The operation that the thread runs has to wait.
    ContextSuspended,
    /// The operation that the thread runs has ended.
    ContextCompleted,
    /// An exception ends methods of the operation.
    ExceptionUnwound {
        /// The number of methods.
        frames: u32,
    },
    /// The methods of an operation that was created.
    CreatedCallstack(AsyncCallstack<'b>),
    /// The methods of the operation that the thread continues.
    ResumedCallstack(AsyncCallstack<'b>),
    /// The methods of the operation that has to wait.
    SuspendedCallstack(AsyncCallstack<'b>),
    /// Further methods that wait for the operation that the thread runs.
    AppendedCallstack(AsyncCallstack<'b>),
    /// A method continues.
    MethodResumed,
    /// A method ends.
    MethodCompleted,
    /// The thread's state is reset: earlier events about it are void, and its state follows.
    ThreadReset,
    /// The numbers of wrappers begin again.
    WrapperIndexReset,
    /// The clock, and the list of events.
    Metadata {
        /// Ticks in a second.
        frequency: u64,
        /// The time in ticks at which it was `file_time`.
        ticks: u64,
        /// Units of 100 ns since 1601, in UTC.
        file_time: u64,
        /// Bytes of a buffer.
        buffer_size: u32,
        /// The number of wrappers.
        wrappers: u8,
    },
    /// The clock at another time.
    ClockSync {
        /// The time in ticks at which it was `file_time`.
        ticks: u64,
        /// Units of 100 ns since 1601, in UTC.
        file_time: u64,
    },
    /// The W3C trace that the thread works for from now on; zeros for none.
    TraceId([u8; 16]),
    /// An event that is not known. Its fields were skipped.
    Unknown(&'b [u8]),
}

/// The names of the events, from id 1 on, as the runtime has them.
const NAMES: [&str; 24] = [
    "CreateRuntimeAsyncContext",
    "ResumeRuntimeAsyncContext",
    "SuspendRuntimeAsyncContext",
    "CompleteRuntimeAsyncContext",
    "UnwindRuntimeAsyncException",
    "CreateRuntimeAsyncCallstack",
    "ResumeRuntimeAsyncCallstack",
    "SuspendRuntimeAsyncCallstack",
    "ResumeRuntimeAsyncMethod",
    "CompleteRuntimeAsyncMethod",
    "CreateStateMachineAsyncContext",
    "ResumeStateMachineAsyncContext",
    "SuspendStateMachineAsyncContext",
    "CompleteStateMachineAsyncContext",
    "UnwindStateMachineAsyncException",
    "ResumeStateMachineAsyncCallstack",
    "ResumeStateMachineAsyncMethod",
    "CompleteStateMachineAsyncMethod",
    "AppendStateMachineAsyncCallstack",
    "ResetAsyncThreadContext",
    "ResetAsyncContinuationWrapperIndex",
    "AsyncProfilerMetadata",
    "AsyncProfilerSyncClock",
    "TraceIdChanged",
];

impl<'b> AsyncEvent<'b> {
    /// Returns its name as the runtime has it; `None` if it is not known.
    pub fn name(&self) -> Option<&'static str> {
        NAMES.get(usize::from(self.id).checked_sub(1)?).copied()
    }

    /// Parses the next event. `time` is the time of the event before.
    pub(super) fn parse(
        cursor: &mut Cursor<'b>,
        time: Ticks,
        layout: &mut AsyncLayout,
    ) -> Result<Self, AsyncBufferError> {
        let offset = cursor.offset();
        let id = cursor.u8()?;
        let time = Ticks(time.0.wrapping_add(cursor.compressed()?));
        let length = match layout.width(id).ok_or(AsyncBufferError::UnknownEvent { id, offset })? {
            LengthWidth::None => 0,
            LengthWidth::Byte => usize::from(cursor.u8()?),
            LengthWidth::Word => usize::from(cursor.u16()?),
        };
        // Later versions may append fields: the stated length counts.
        let kind = AsyncEventKind::parse(id, cursor.take(length)?, layout)?;
        Ok(Self { id, time, kind })
    }
}

impl<'b> AsyncEventKind<'b> {
    fn parse(id: u8, mut fields: Cursor<'b>, layout: &mut AsyncLayout) -> Result<Self, AsyncBufferError> {
        use AsyncModel::{Runtime, StateMachine};
        let fields = &mut fields;
        Ok(match id {
            1 | 11 => Self::ContextCreated { parent: fields.compressed()?, dispatcher: fields.compressed()? },
            2 | 12 => Self::ContextResumed { dispatcher: fields.compressed()? },
            3 | 13 => Self::ContextSuspended,
            4 | 14 => Self::ContextCompleted,
            5 | 15 => Self::ExceptionUnwound { frames: fields.compressed_u32()? },
            6 => Self::CreatedCallstack(AsyncCallstack::parse(fields, Runtime, true)?),
            7 => Self::ResumedCallstack(AsyncCallstack::parse(fields, Runtime, false)?),
            8 => Self::SuspendedCallstack(AsyncCallstack::parse(fields, Runtime, false)?),
            9 | 17 => Self::MethodResumed,
            10 | 18 => Self::MethodCompleted,
            16 => Self::ResumedCallstack(AsyncCallstack::parse(fields, StateMachine, false)?),
            19 => Self::AppendedCallstack(AsyncCallstack::parse(fields, StateMachine, false)?),
            20 => Self::ThreadReset,
            21 => Self::WrapperIndexReset,
            22 => Self::metadata(fields, layout)?,
            23 => Self::ClockSync { ticks: fields.compressed()?, file_time: fields.compressed()? },
            24 => {
                let truncated = AsyncBufferError::Truncated { offset: fields.offset() };
                Self::TraceId(fields.take(16)?.rest().try_into().map_err(|_| truncated)?)
            }
            _ => Self::Unknown(fields.rest()),
        })
    }

    fn metadata(fields: &mut Cursor<'b>, layout: &mut AsyncLayout) -> Result<Self, AsyncBufferError> {
        let metadata = Self::Metadata {
            frequency: fields.compressed()?,
            ticks: fields.compressed()?,
            file_time: fields.compressed()?,
            buffer_size: fields.compressed_u32()?,
            wrappers: fields.u8()?,
        };
        let count = fields.u8()?;
        let mut listed = *fields;
        for _ in 0..count {
            let (id, _version, offset) = (listed.u8()?, listed.u8()?, listed.offset());
            let width = LengthWidth::new(listed.u8()?).ok_or(AsyncBufferError::Number { offset })?;
            layout.set(id, width);
        }
        Ok(metadata)
    }
}
