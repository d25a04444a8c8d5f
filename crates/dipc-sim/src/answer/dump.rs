//! The command set Dump.

use crate::client::{Client, Step};
use crate::state::push_bounded;
use crate::version::Quirk;
use dipc_wire::{CommandId, DumpFlags, DumpType, HResult, ServerError, encode_error, encode_server_error};
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

impl Client<'_> {
    /// Answers any form of GenerateCoreDump, and writes a small text file instead of a core dump.
    pub(super) fn generate_core_dump(
        &mut self,
        command: CommandId,
        path: &str,
        kind: DumpType,
        flags: DumpFlags,
    ) -> Step {
        if self.has(Quirk::CannotDump) || kind.name().is_none() {
            return self.refuse_dump(command, String::new());
        }
        if self.state().suspended && self.has(Quirk::DumpsNothingEarly) {
            return self.reply_result(HResult::OK);
        }
        if path.is_empty() {
            return Ok(self.die());
        }
        let pid = self.config().identity.process_id;
        let text =
            format!("core dump of a simulated runtime\nprocess {pid}\ntype {kind}\nflags {:#x}\n", flags.0);
        match write(Path::new(path), &text) {
            Ok(()) => {
                let result = push_bounded(&mut self.state().dumps, PathBuf::from(path));
                self.reply_result(result)
            }
            Err(error) => {
                let reason = error.to_string().replace("os error ", "");
                let log = format!(
                    "[createdump] Could not create output file '{path}': {reason}\n[createdump] Failure took 1ms\n"
                );
                self.refuse_dump(command, log)
            }
        }
    }

    /// Answers that the dump failed. Only the reply to GenerateCoreDump3 has the log of `createdump`.
    fn refuse_dump(&mut self, command: CommandId, log: String) -> Step {
        if command != CommandId::GENERATE_CORE_DUMP_3 {
            return self.reply(encode_error(HResult::FAIL));
        }
        let error = if log.is_empty() {
            // The empty string on the wire: a length of 1, and NUL.
            ServerError::new(HResult::FAIL).with_extra(vec![1, 0, 0, 0, 0, 0])
        } else {
            ServerError::new(HResult::FAIL).with_detail(log)
        };
        let reply = encode_server_error(&error).unwrap_or_else(|_| encode_error(HResult::FAIL));
        self.reply(reply)
    }
}

/// Writes a file, replacing an older one as `createdump` does. Other kinds of files are refused: opening a
/// pipe may block.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(text.as_bytes())
}
