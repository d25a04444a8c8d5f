//! Traced threads: their stops, and their registers.
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

/// The time between looks at threads that have not stopped yet.
const TICK: Duration = Duration::from_micros(200);

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
pub(crate) fn is_dead(pid: i32, tid: i32) -> bool {
    state(pid, tid).map_or(true, |state| matches!(state, Some('Z' | 'X')))
}
