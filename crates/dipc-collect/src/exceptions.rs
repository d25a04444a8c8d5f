//! The exceptions of a process, from a session while they are thrown.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use clr_events::code::{Code, Symbolizer};
use clr_events::{ClrEvent, CodeMap};
use dipc_client::{Keywords, Level, LiveReader, ProviderConfig, RUNTIME_PROVIDER, Session, SessionConfig};
use nettrace::{Event, RelativeTime};

use crate::live_stream;
use crate::observer::Observer;
use crate::stacks::AddressStack;
use crate::stream::{Limits, StreamEnd};

/// The keywords of exceptions, and of methods that are compiled or loaded meanwhile.
const KEYWORDS: Keywords = Keywords(0x8000 | 0x8 | 0x10 | 0x20);
/// Maximum number of exceptions; the oldest are dropped.
const MAX_EXCEPTIONS: usize = 10_000;
/// Maximum number of characters of a message.
const MAX_MESSAGE_LENGTH: usize = 16 << 10;
/// Maximum time that an event waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(200);

/// The type with the methods that throw: since .NET 9, they are managed code.
pub const THROWING_TYPE: &str = "System.Runtime.EH";

/// An exception when it was thrown.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThrownException {
    /// The time.
    pub time: RelativeTime,
    /// The full name of its type.
    pub type_name: String,
    /// The message, at most 16,384 characters of it.
    pub message: String,
    /// The stack of the throwing thread, with the frames that throw.
    pub stack: AddressStack,
}

/// The last exceptions of a stream, at most 10,000, caught or not.
#[derive(Debug, Default)]
pub struct Exceptions {
    thrown: VecDeque<ThrownException>,
    dropped: u64,
    code: CodeMap,
}

/// The outcome of a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct CollectedExceptions {
    /// The exceptions.
    pub exceptions: Exceptions,
    /// The reader of the stream, which knows its header, losses and damage.
    pub reader: LiveReader,
    /// The end of the stream.
    pub end: StreamEnd,
}

/// Returns the configuration of a session for [`read`].
pub fn session_config() -> SessionConfig {
    SessionConfig::new([ProviderConfig {
        keywords: KEYWORDS,
        level: Level::INFORMATIONAL,
        name: RUNTIME_PROVIDER.to_owned(),
        arguments: String::new(),
    }])
}

/// Reads the exceptions of a [session](session_config) until it ends. Blocks.
///
/// The runtime names the methods of the stacks at the end of the session.
pub fn read(session: Session, limits: &Limits, observer: &mut dyn Observer) -> CollectedExceptions {
    let mut exceptions = Exceptions::default();
    let add = |reader: &mut LiveReader| {
        reader.for_each(|event| exceptions.add(event));
        Ok::<_, Infallible>(false)
    };
    let Ok((reader, end)) = live_stream::read(session, LiveReader::new(MAX_DELAY), limits, observer, add);
    CollectedExceptions { exceptions, reader, end }
}

impl Exceptions {
    /// Adds an event of the stream.
    pub fn add(&mut self, event: &Event<'_>) {
        self.code.add(event);
        let Ok(Some(ClrEvent::ExceptionStart(exception))) = ClrEvent::of(event) else { return };
        if self.thrown.len() >= MAX_EXCEPTIONS {
            self.thrown.pop_front();
            self.dropped = self.dropped.saturating_add(1);
        }
        self.thrown.push_back(ThrownException {
            time: event.relative_time(),
            type_name: exception.exception_type.chars().take(MAX_MESSAGE_LENGTH).collect(),
            message: exception.exception_message.chars().take(MAX_MESSAGE_LENGTH).collect(),
            stack: AddressStack::of(event),
        });
    }

    /// The number of earlier exceptions, which were dropped.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the exceptions in the order in which they were thrown, and the names of their frames.
    pub fn resolve(&mut self) -> (impl Iterator<Item = &ThrownException>, Symbolizer<'_>) {
        (self.thrown.iter(), self.code.symbolizer())
    }
}

impl ThrownException {
    /// Returns the address and the code of each frame, innermost first, from the method that throws.
    ///
    /// The frames that throw the exception are the runtime's own. So are, further out, those that throw it
    /// again, or throw another one from a handler. An exception's own stack does not contain them, and
    /// neither does this one.
    pub fn frames<'c>(&self, symbolizer: Symbolizer<'c>) -> Vec<(u64, Code<'c>)> {
        let throws = |code: &Code<'_>| matches!(code, Code::Method(it) if it.namespace() == THROWING_TYPE);
        let is_managed = |code: &Code<'_>| matches!(code, Code::Method(method) if method.token() != 0);
        let frames = self.stack.frames(symbolizer);
        let mut frames: Vec<_> = frames.filter(|(_, code)| !throws(code)).collect();
        let first = frames.iter().position(|(_, code)| is_managed(code)).unwrap_or(0);
        frames.drain(..first);
        frames
    }
}
