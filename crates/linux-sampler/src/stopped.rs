//! Processes with briefly stopped threads, and the threads' registers.
//!
//! # Source
//! ptrace(2).

use std::collections::BTreeMap;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use linux_proc_stat::Status;

use crate::error::Error;
use crate::sys::{self, Report};
use crate::threads::{folder, state, threads};
use crate::tracer::Tracer;

/// The time between looks at threads that have not stopped yet.
const TICK: Duration = Duration::from_micros(200);

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

/// A stopped thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoppedThread {
    /// The id of the thread.
    pub tid: i32,
    /// The general registers: `user_regs_struct` of the processor.
    pub registers: Vec<u8>,
    /// The floating-point registers: `user_fpregs_struct` of the processor. Empty if they could not be read.
    pub floating_registers: Vec<u8>,
    /// The signal that it is about to receive; zero if none.
    pub signal: i32,
    /// The `siginfo_t` of that signal.
    pub signal_info: Option<[u8; 128]>,
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

/// Threads that are traced; their trace ends with this value.
#[derive(Debug, Default)]
pub(crate) struct Tracing {
    /// `None` until the thread has stopped.
    pub(crate) stopped: BTreeMap<i32, Option<Stop>>,
}

/// The stop of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// The signal that it will receive; zero if it stopped for another reason.
    pub(crate) signal: i32,
    /// The event of the trace (`PTRACE_EVENT_STOP` and others); zero for a signal.
    pub(crate) event: i32,
    /// The signal of a stop of the whole process, or `SIGTRAP`.
    pub(crate) cause: i32,
}

impl Tracing {
    /// Seizes the threads that are not traced yet, and stops them if `stops`. Returns their number; threads
    /// that the kernel traces because a traced one started them are not counted.
    pub(crate) fn seize_all(&mut self, pid: i32, options: i32, stops: bool) -> Result<usize, Error> {
        let mut new = 0;
        for tid in threads(pid)? {
            if self.stopped.contains_key(&tid) {
                continue;
            }
            let seized = sys::seize(tid, options);
            match seized.and_then(|()| if stops { sys::interrupt(tid) } else { Ok(()) }) {
                Ok(()) => {
                    self.stopped.insert(tid, None);
                    new += 1;
                }
                // The thread has ended.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                // A traced thread has started it since the list was made.
                Err(_) if is_traced_here(pid, tid) => {
                    self.stopped.insert(tid, None);
                }
                // A thread that has ended while its process lives on cannot be traced.
                Err(_) if is_dead(pid, tid) => {}
                Err(error) => return Err(Error::io(format!("ptrace of thread {tid}"))(error)),
            }
        }
        Ok(new)
    }

    /// Reads the registers of the threads. All of them have stopped.
    pub(crate) fn stopped_threads(&self, pid: i32) -> Result<Vec<StoppedThread>, Error> {
        let mut threads = Vec::new();
        for (&tid, stop) in &self.stopped {
            let Some(Stop { signal, .. }) = *stop else { continue };
            let registers = sys::register_set(tid, sys::GENERAL_REGISTERS)
                .map_err(Error::io(format!("registers of thread {tid}")))?;
            threads.push(StoppedThread {
                tid,
                registers,
                floating_registers: sys::register_set(tid, sys::FLOATING_REGISTERS).unwrap_or_default(),
                signal,
                signal_info: (signal != 0).then(|| sys::signal_info(tid).ok()).flatten(),
            });
        }
        if threads.is_empty() {
            return Err(Error::NoProcess { pid });
        }
        Ok(threads)
    }

    /// Waits until all threads have stopped or ended.
    pub(crate) fn wait(&mut self, since: Instant, limit: Duration) -> Result<(), Error> {
        loop {
            let waiting: Vec<i32> =
                self.stopped.iter().filter(|(_, stop)| stop.is_none()).map(|(&tid, _)| tid).collect();
            let mut is_any_left = false;
            for tid in waiting {
                match look(tid) {
                    Ok(Some(stop)) => {
                        self.stopped.insert(tid, Some(stop));
                    }
                    Ok(None) => is_any_left = true,
                    // The thread has ended.
                    Err(_) => {
                        self.stopped.remove(&tid);
                    }
                }
            }
            if !is_any_left {
                return Ok(());
            }
            if since.elapsed() >= limit {
                let error = io::Error::from(io::ErrorKind::TimedOut);
                return Err(Error::io("stopping the threads of the process")(error));
            }
            thread::sleep(TICK);
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        for (&tid, stop) in &self.stopped {
            let stop = stop.or_else(|| look(tid).ok().flatten());
            // Detaching fails if the thread was killed meanwhile, or has not stopped yet: the kernel ends its
            // trace with the tracer's thread.
            let _ = sys::detach(tid, stop.map_or(0, |stop| stop.signal));
        }
    }
}

/// Returns the stop of a traced thread; `None` while it runs. Its report stays with the kernel, which then
/// delivers the signal even if this program is killed.
fn look(tid: i32) -> io::Result<Option<Stop>> {
    let Some(report) = sys::report(Some(tid), REPORTS | libc::WNOHANG)? else { return Ok(None) };
    let stop = Stop::of(report).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(Some(stop))
}

impl Stop {
    /// The stop that a report states; `None` if the thread has ended.
    pub(crate) const fn of(report: Report) -> Option<Self> {
        if !matches!(report.code, libc::CLD_STOPPED | libc::CLD_TRAPPED) {
            return None;
        }
        // Stops of the trace itself, and of a process that is stopped, have an event above the signal.
        let (event, cause) = (report.status >> 8, report.status & 0xff);
        Some(Self { signal: if event == 0 { cause } else { 0 }, event, cause })
    }
}

/// Reports of stops and ends of threads of any process, which stay with the kernel.
pub(crate) const REPORTS: i32 = libc::WSTOPPED | libc::WEXITED | libc::WNOWAIT | libc::__WALL;

/// Returns true if this thread is the tracer of another.
fn is_traced_here(pid: i32, tid: i32) -> bool {
    let Ok(status) = linux_proc_stat::read(&folder(pid, tid).join("status")) else { return false };
    Status::new(&status).tracer() == Some(rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs())
}

/// Returns true if a thread has ended according to `/proc`.
fn is_dead(pid: i32, tid: i32) -> bool {
    state(pid, tid).map_or(true, |state| matches!(state, Some('Z' | 'X')))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

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
        super::state(pid, pid).unwrap().unwrap()
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
