//! How replies are sent: as they are, or spoilt.

use super::{Client, Step};
use crate::fault::Fault;
use dipc_transport::{Deadline, Error};
use dipc_wire::{Encode, HEADER_LEN, HResult, MAX_MESSAGE_LEN, encode_error, encode_ok};
use std::ops::ControlFlow;
use std::time::Duration;

/// How long a client may leave a write waiting before it counts as vanished.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// The most that is written at once.
const CHUNK: usize = 64 * 1024;

impl Client<'_> {
    /// Answers with an error, and leaves the connection open if the runtime does.
    pub(crate) fn refuse(&mut self, hresult: HResult, stays_open: bool) -> Step {
        let step = self.reply(encode_error(hresult))?;
        if step.is_continue() && stays_open {
            return self.wait(Deadline::never());
        }
        Ok(ControlFlow::Break(()))
    }

    /// Answers with a result: an OK reply, or an error.
    pub(crate) fn reply_result(&mut self, result: HResult) -> Step {
        if result.is_failure() { self.reply(encode_error(result)) } else { self.reply_ok(&result) }
    }

    pub(crate) fn reply_ok(&mut self, payload: &impl Encode) -> Step {
        match encode_ok(payload) {
            Ok(bytes) => self.reply(bytes),
            // Only numbers are answered in this way, and they always fit.
            Err(_) => self.reply(encode_error(HResult::FAIL)),
        }
    }

    /// Sends a reply, spoilt by the faults; `Break` if the connection is to be closed behind it.
    pub(crate) fn reply(&mut self, mut bytes: Vec<u8>) -> Step {
        let mut after = ControlFlow::Continue(());
        for fault in &self.faults {
            match fault {
                Fault::WrongMagic => overwrite(&mut bytes, 0, b"DOTNET_IPC_V9\0"),
                Fault::WrongSize => overwrite(&mut bytes, 14, &7_u16.to_le_bytes()),
                Fault::Oversize => {
                    let longest = u16::try_from(MAX_MESSAGE_LEN).unwrap_or(u16::MAX);
                    overwrite(&mut bytes, 14, &longest.to_le_bytes());
                }
                Fault::CloseAfterHeader => {
                    bytes.truncate(HEADER_LEN);
                    after = ControlFlow::Break(());
                }
                _ => {}
            }
        }
        self.send(&bytes)?;
        Ok(after)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let piece = if self.faults.contains(&Fault::OneByteAtATime) { 1 } else { CHUNK };
        let mut pieces = bytes.chunks(piece);
        pieces.try_for_each(|piece| self.connection.write_all(piece, Deadline::after(WRITE_TIMEOUT)))
    }

    /// Waits until the deadline; `Break` if the client closes the connection first. What it sends meanwhile is not read by
    /// runtimes either, and is dropped.
    pub(crate) fn wait(&mut self, deadline: Deadline) -> Step {
        let mut buffer = [0; 256];
        loop {
            match self.connection.read(&mut buffer, deadline) {
                Ok(0) => return Ok(ControlFlow::Break(())),
                Ok(_) if deadline.is_over() => return Ok(ControlFlow::Continue(())),
                Ok(_) => {}
                Err(error) if error.is_timeout() => return Ok(ControlFlow::Continue(())),
                Err(error) => return Err(error),
            }
        }
    }
}

/// Puts other bytes in the place of those at `offset`, if there are so many.
fn overwrite(bytes: &mut [u8], offset: usize, others: &[u8]) {
    for (byte, other) in bytes.iter_mut().skip(offset).zip(others) {
        *byte = *other;
    }
}
