//! Processes with briefly stopped threads.
//!
//! # Source
//! ptrace(2).

use std::time::{Duration, Instant};

use crate::error::Error;
use crate::tracer::Tracer;
use crate::tracing::StoppedThread;

/// A stopped process. Its threads run on when this is dropped, and when this program ends in whatever way:
/// the kernel ends a trace with its tracer. That is a thread of its own, so any thread can hold this value.
///
/// ```no_run
/// use linux_sampler::StoppedProcess;
/// use std::time::Duration;
///
/// let stopped = StoppedProcess::stop(4711, Duration::from_secs(5))?;
/// println!("{} threads", stopped.threads().len());
/// // Read the memory of the process, then let it run on.
/// println!("it stood for {:?}", stopped.resume());
/// # Ok::<(), linux_sampler::Error>(())
/// ```
#[derive(Debug)]
pub struct StoppedProcess {
    threads: Vec<StoppedThread>,
    since: Instant,
    /// Lets the process run on when it is dropped.
    _tracer: Tracer,
}

impl StoppedProcess {
    /// Stops all threads of a process, and reads their registers.
    ///
    /// Signals that arrive meanwhile are delivered afterwards, and a process that was stopped before stays
    /// so.
    ///
    /// # Errors
    /// If the process may not be traced, is traced already, has ended, or has not stopped within `limit`. Its
    /// threads then run on.
    pub fn stop(pid: i32, limit: Duration) -> Result<Self, Error> {
        let since = Instant::now();
        let tracer = Tracer::start()?;
        let threads = tracer.run(move |tracing| {
            // A thread that is not stopped yet may start another one.
            while tracing.seize_all(pid, 0, true)? > 0 {
                tracing.wait(since, limit)?;
            }
            tracing.stopped_threads(pid)
        })?;
        Ok(Self::new(threads, since, tracer))
    }

    pub(crate) const fn new(threads: Vec<StoppedThread>, since: Instant, tracer: Tracer) -> Self {
        Self { threads, since, _tracer: tracer }
    }

    /// The threads of the process, by id.
    pub fn threads(&self) -> &[StoppedThread] {
        &self.threads
    }

    /// The time since its first thread was stopped.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Lets it run on, and returns the time for which it was stopped.
    pub fn resume(self) -> Duration {
        let since = self.since;
        drop(self);
        since.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::thread;

    use super::*;
    use crate::threads::folder;
    use crate::tracing::is_dead;

    const LIMIT: Duration = Duration::from_secs(10);

    /// A shell, which is killed when the test ends.
    struct Shell(Child);

    impl Shell {
        fn start(script: &str) -> Self {
            let mut command = Command::new("bash");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
            Self(command.spawn().unwrap())
        }

        fn pid(&self) -> i32 {
            self.0.id().cast_signed()
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn state(pid: i32) -> char {
        crate::threads::state(pid, pid).unwrap().unwrap()
    }

    fn await_state(pid: i32, expected: char) {
        let deadline = Instant::now() + LIMIT;
        while state(pid) != expected {
            assert!(Instant::now() < deadline, "{}", state(pid));
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn a_signal_that_comes_during_the_stop_is_delivered() {
        let mut child = Shell::start("trap 'echo caught' RTMIN; echo ready; read -r line; echo $line");
        let mut lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        let pid = child.pid();
        await_state(pid, 'S');
        let stopped = StoppedProcess::stop(pid, LIMIT).unwrap();
        assert_eq!((state(pid), stopped.threads().len()), ('t', 1));
        let thread = &stopped.threads()[0];
        assert_eq!((thread.tid, thread.signal), (pid, 0));
        #[cfg(target_arch = "x86_64")]
        assert_eq!((thread.registers.len(), thread.floating_registers.len()), (27 * 8, 512));
        // Libraries do not name real-time signals: the shell sends one.
        let sent = Command::new("bash").args(["-c", &format!("kill -RTMIN {pid}")]).status().unwrap();
        assert!(sent.success());
        assert_eq!(state(pid), 't');
        assert!(stopped.resume() < LIMIT);
        assert_eq!(lines.next().unwrap().unwrap(), "caught");
    }

    #[test]
    fn a_process_that_was_stopped_stays_so() {
        let child = Shell::start("read -r line");
        let pid = child.pid();
        let signal = |name: &str| {
            assert!(Command::new("kill").args([name, &pid.to_string()]).status().unwrap().success());
        };
        signal("-STOP");
        await_state(pid, 'T');
        let stopped = StoppedProcess::stop(pid, LIMIT).unwrap();
        assert_eq!(state(pid), 't');
        drop(stopped);
        // The process is in transition between the two stops.
        await_state(pid, 'T');
        signal("-CONT");
        drop(child);
        assert!(matches!(StoppedProcess::stop(pid, LIMIT), Err(Error::NoProcess { .. })));
    }

    #[test]
    fn two_tracers_exclude_each_other() {
        let child = Shell::start("read -r line");
        let pid = child.pid();
        let stopped = StoppedProcess::stop(pid, LIMIT).unwrap();
        let other = thread::spawn(move || StoppedProcess::stop(pid, LIMIT).map(drop));
        assert!(matches!(other.join().unwrap(), Err(Error::Io { .. })));
        assert_eq!(state(pid), 't');
        drop(stopped);
    }

    #[test]
    fn a_thread_with_an_invalid_utf_8_name_is_alive() {
        // Linux keeps 15 bytes of a name: half of the last character.
        let named = thread::Builder::new().name("abcdefghijklmn\u{fc}".to_owned()).spawn(|| {
            let (pid, tid) = (rustix::process::getpid(), rustix::thread::gettid());
            let (pid, tid) = (pid.as_raw_nonzero().get(), tid.as_raw_nonzero().get());
            let name = linux_proc_stat::read(&folder(pid, tid).join("comm")).unwrap();
            (String::from_utf8(name).is_err(), is_dead(pid, tid), crate::innermost_id(pid, tid) == Some(tid))
        });
        assert_eq!(named.unwrap().join().unwrap(), (true, false, true));
    }
}
