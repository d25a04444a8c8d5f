//! Ways to misbehave.

mod parse;

pub use parse::ParseFaultError;

use dipc_wire::HResult;
use std::fmt;
use std::time::Duration;

/// A way in which a simulated runtime misbehaves. Each has a name, by which it is printed and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `never-answer`: takes the request and says nothing, with the connection open.
    NeverAnswer,
    /// `answer-late:MILLISECONDS`: waits so long before it answers.
    AnswerLate(Duration),
    /// `wrong-magic`: the reply does not begin as a message does.
    WrongMagic,
    /// `wrong-size`: the reply says that it is shorter than its own header.
    WrongSize,
    /// `oversize`: the reply says that it is as long as a message can be, and is not.
    Oversize,
    /// `error:HRESULT`: refuses, with this code.
    Error(HResult),
    /// `close-after-header`: closes the connection after the reply's first 20 bytes.
    CloseAfterHeader,
    /// `close-in-stream:BYTES`: closes a session's connection after so many bytes of its stream.
    CloseInStream {
        /// The bytes of the stream that are sent.
        after: usize,
    },
    /// `damage-in-stream:BYTES`: after so many bytes of a session's stream, some bytes are not what they should be.
    DamageInStream {
        /// The bytes of the stream that are as they should be.
        after: usize,
    },
    /// `one-byte-at-a-time`: sends replies and streams in pieces of one byte.
    OneByteAtATime,
    /// `never-stop`: takes a StopTracing, and neither answers it nor ends the stream.
    NeverStop,
    /// `stop-reply-before-stream-end`: answers a StopTracing before it ends the stream. Real runtimes do the one or the other; without
    /// this fault the stream has ended when the answer comes.
    StopReplyBeforeStreamEnd,
    /// `flood`: a session's stream has more events than anybody can read, so that some are lost, as its sequence numbers tell.
    Flood,
    /// `die-in-the-middle:BYTES`: ends, with all its connections, after so many bytes of a session's stream. The socket
    /// stays behind with nobody listening on it, as that of a killed process.
    DieInTheMiddle {
        /// The bytes of the stream that are sent.
        after: usize,
    },
    /// `stale-socket`: is dead from the start: the socket is there, and nobody listens on it.
    StaleSocket,
    /// `foreign-owner`: the socket belongs to another user ([`Fault::FOREIGN_USER`]), as if that one had planted it. Only root can do this.
    ForeignOwner,
}

impl Fault {
    /// The user to whom a socket belongs under [`Fault::ForeignOwner`]: `nobody`, as most systems have it.
    pub const FOREIGN_USER: u32 = 65_534;
    /// How many bytes are wrong under [`Fault::DamageInStream`].
    pub const DAMAGED_BYTES: usize = 64;

    /// How each fault is written, with an argument that shows its form, and what it does.
    pub const LIST: &'static [(&'static str, &'static str)] = &[
        ("never-answer", "takes requests and never answers"),
        ("answer-late:2000", "answers so many milliseconds late"),
        ("wrong-magic", "answers with something that is not a message"),
        ("wrong-size", "answers with a size smaller than the header"),
        ("oversize", "answers with a size that is longer than the answer"),
        ("error:0x80004005", "refuses, with this HRESULT"),
        ("close-after-header", "closes the connection after the header of the reply"),
        ("close-in-stream:4096", "closes a session's connection after so many bytes of its stream"),
        ("damage-in-stream:4096", "damages a session's stream after so many bytes of it"),
        ("one-byte-at-a-time", "sends everything in pieces of one byte"),
        ("never-stop", "neither answers StopTracing nor ends the stream"),
        ("stop-reply-before-stream-end", "answers StopTracing first, and ends the stream then"),
        ("flood", "makes more events than anybody can read, and loses some"),
        ("die-in-the-middle:4096", "dies after so many bytes of a session's stream"),
        ("stale-socket", "is dead from the start, and its socket still there"),
        ("foreign-owner", "the socket belongs to another user (only root can do this)"),
    ];
}

/// Prints the fault as it is read.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverAnswer => f.write_str("never-answer"),
            Self::AnswerLate(delay) => write!(f, "answer-late:{}", delay.as_millis()),
            Self::WrongMagic => f.write_str("wrong-magic"),
            Self::WrongSize => f.write_str("wrong-size"),
            Self::Oversize => f.write_str("oversize"),
            Self::Error(hresult) => write!(f, "error:0x{:08x}", hresult.bits()),
            Self::CloseAfterHeader => f.write_str("close-after-header"),
            Self::CloseInStream { after } => write!(f, "close-in-stream:{after}"),
            Self::DamageInStream { after } => write!(f, "damage-in-stream:{after}"),
            Self::OneByteAtATime => f.write_str("one-byte-at-a-time"),
            Self::NeverStop => f.write_str("never-stop"),
            Self::StopReplyBeforeStreamEnd => f.write_str("stop-reply-before-stream-end"),
            Self::Flood => f.write_str("flood"),
            Self::DieInTheMiddle { after } => write!(f, "die-in-the-middle:{after}"),
            Self::StaleSocket => f.write_str("stale-socket"),
            Self::ForeignOwner => f.write_str("foreign-owner"),
        }
    }
}
