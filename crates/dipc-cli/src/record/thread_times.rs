//! The kernel's accounting of a process's threads, in a file next to its recording.
//!
//! A sample of a thread does not show whether the thread ran; `/proc` does. The account of a recording is
//! kept next to it, in a recording of its own, so that the recording remains exactly what the runtime sent.

mod file;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dipc_collect::thread_times::{Round, RoundReader};

use crate::render::messages;
use file::AccountFile;

/// The time between two rounds in a recorded account.
const PERIOD: Duration = Duration::from_secs(1);
/// Each time this number of bytes is written, the time between two rounds doubles.
const BYTES_PER_PERIOD: u64 = 8 << 20;

/// A process after its first round, before its session begins.
#[derive(Debug)]
pub(crate) struct AccountStart {
    reader: RoundReader,
    first: Round,
}

impl AccountStart {
    /// Reads the first round; `None` if no account is available.
    pub(crate) fn read(pid: Option<u32>) -> Option<Self> {
        let (reader, first) = RoundReader::open(pid)?;
        Some(Self { reader, first })
    }

    /// Begins to write the account of a recording.
    pub(crate) fn record(self, recording: &Path) -> Option<AccountRecorder> {
        let path = crate::inspect::thread_times::threads_path(recording);
        let file = AccountFile::create(&path, self.reader.process(), self.first.time);
        let mut file =
            file.map_err(|failure| messages::warning(format_args!("thread times: {failure}"))).ok()?;
        let (stop, stopped) = mpsc::channel();
        let thread = thread::spawn(move || {
            let mut reader = self.reader;
            let mut round = Some(self.first);
            while let Some(read) = round {
                file.write(&read)?;
                let doublings = u32::try_from(file.written() / BYTES_PER_PERIOD).unwrap_or(u32::MAX);
                let period = PERIOD.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX));
                let is_over = stopped.recv_timeout(period) != Err(RecvTimeoutError::Timeout);
                round = reader.read();
                if is_over {
                    if let Some(last) = &round {
                        file.write(last)?;
                    }
                    break;
                }
            }
            file.finish()
        });
        Some(AccountRecorder { path, stop, thread })
    }
}

/// The account of a recording, while it is written.
#[derive(Debug)]
pub(crate) struct AccountRecorder {
    path: PathBuf,
    stop: Sender<()>,
    thread: JoinHandle<std::io::Result<()>>,
}

impl AccountRecorder {
    /// Reads the last round, and ends the file.
    pub(crate) fn finish(self) {
        // The thread may have ended with the process.
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(Ok(())) => messages::detail(format_args!(
                "Thread times   : {} has the kernel's account of threads; commands that read the recording find it",
                self.path.display()
            )),
            Ok(Err(error)) => {
                messages::warning(format_args!("thread times: {}: {error}", self.path.display()));
            }
            // The panic was printed where it happened.
            Err(_) => {}
        }
    }
}
