//! The start of a program that is sampled from its first instruction.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command};
use std::thread;

use crate::sys;

/// Starts a program once `prepare` has returned, which gets the number of the process. At that time the
/// process exists, and does not run the program yet: its [`Sampler`](crate::Sampler) has everything from the
/// first instruction on.
///
/// ```no_run
/// use std::process::Command;
/// use linux_sampler::{Sampler, SamplerConfig, spawn_prepared};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (child, sampler) =
///     spawn_prepared(Command::new("ls"), |pid| Sampler::open(&SamplerConfig::of_process(pid)))?;
/// let sampler = sampler?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`Command::spawn`].
pub fn spawn_prepared<T: Send>(
    mut command: Command,
    prepare: impl FnOnce(i32) -> T + Send,
) -> io::Result<(Child, T)> {
    let (mut pids, pid_writer) = io::pipe()?;
    let (permission_reader, mut permission) = io::pipe()?;
    sys::wait_before_exec(
        &mut command,
        pid_writer.as_raw_fd(),
        permission_reader.as_raw_fd(),
        permission.as_raw_fd(),
    );
    thread::scope(|scope| {
        let prepared = scope.spawn(move || {
            let mut pid = [0; 4];
            // Fails after the process has ended.
            pids.read_exact(&mut pid).ok()?;
            let prepared = prepare(i32::from_ne_bytes(pid));
            // Fails if the process has been killed meanwhile.
            let _ = permission.write_all(&[1]);
            Some(prepared)
        });
        // Returns when the program runs.
        let child = command.spawn();
        drop((pid_writer, permission_reader));
        let prepared = prepared.join().ok().flatten();
        Ok((child?, prepared.ok_or(io::ErrorKind::Interrupted)?))
    })
}
