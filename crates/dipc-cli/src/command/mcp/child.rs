//! One command in a process of its own: it can neither end nor fill the server, and is ended by its deadline.

use std::env;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::command::mcp::answer::KEPT;

/// The time that a command may take beyond the one it was told to watch.
const OWN_TIME: Duration = Duration::from_secs(120);
/// The time in which a command that was asked to end writes what it has.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// The result of a command.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) end: End,
    /// Standard output, then standard error.
    pub(super) text: String,
    /// The bytes that were written and not kept.
    pub(super) lost: u64,
}

/// The end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Code(i32),
    Signal,
    /// It took longer than this, and was ended.
    Late(Duration),
    Cancelled,
}

impl Ran {
    /// Returns true if the command had an answer, though perhaps not all of it.
    pub(super) fn has_answer(&self) -> bool {
        matches!(self.end, End::Code(0 | 6))
    }
}

/// Runs this program with these words, until `cancelled` is ready.
///
/// # Errors
///
/// The program could not be started.
pub(super) async fn run(
    words: &[impl AsRef<OsStr>],
    seconds: u64,
    cancelled: impl Future<Output = ()>,
) -> io::Result<Ran> {
    let limit = OWN_TIME + Duration::from_secs(seconds);
    let mut child = Command::new(env::current_exe()?)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // The server's own end is the end of its commands.
        .kill_on_drop(true)
        .spawn()?;
    let output = tokio::spawn(read(child.stdout.take()));
    let messages = tokio::spawn(read(child.stderr.take()));
    let end = tokio::select! {
        status = child.wait() => ended(status?),
        () = tokio::time::sleep(limit) => stop(&mut child, End::Late(limit)).await?,
        () = cancelled => stop(&mut child, End::Cancelled).await?,
    };
    // A program that it started can keep the pipes open.
    let (mut text, mut lost) =
        timeout(LAST_WORDS, output).await.ok().and_then(Result::ok).unwrap_or_default();
    let (messages, lost_messages) =
        timeout(LAST_WORDS, messages).await.ok().and_then(Result::ok).unwrap_or_default();
    text.push_str(&messages);
    lost += lost_messages;
    Ok(Ran { end, text, lost })
}

/// Asks a command to end, as Ctrl-C does, so that it completes its files; then ends it.
async fn stop(child: &mut Child, end: End) -> io::Result<End> {
    #[cfg(unix)]
    if let Some(pid) = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?)) {
        // Its end is seen below, whatever this says.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        if timeout(LAST_WORDS, child.wait()).await.is_ok() {
            return Ok(end);
        }
    }
    child.kill().await?;
    Ok(end)
}

fn ended(status: ExitStatus) -> End {
    status.code().map_or(End::Signal, End::Code)
}

/// Reads all, and keeps the beginning. Returns it with the number of bytes that were not kept.
async fn read(pipe: Option<impl AsyncRead + Unpin>) -> (String, u64) {
    let Some(mut pipe) = pipe else { return <_>::default() };
    let mut kept = Vec::new();
    let mut lost = 0;
    let mut part = vec![0; 64 << 10];
    while let Ok(bytes @ 1..) = pipe.read(&mut part).await {
        let room = bytes.min(KEPT - kept.len());
        kept.extend_from_slice(&part[..room]);
        lost += u64::try_from(bytes - room).unwrap_or(u64::MAX);
    }
    (String::from_utf8_lossy(&kept).into_owned(), lost)
}
