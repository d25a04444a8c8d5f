//! A watch over a process that stops it when a signal is about to end it.
//!
//! # Source
//! ptrace(2), signal(7), proc(5).

use std::time::{Duration, Instant};

use linux_proc_stat::{Status, process_folder};

use crate::error::Error;
use crate::stopped::StoppedProcess;
use crate::sys;
use crate::tracer::Tracer;
use crate::tracing::{REPORTS, Stop, StoppedThread, Tracing};

/// A watch over a process. The process runs on when this is dropped, and when this program ends in whatever
/// way. Its trace belongs to a thread of its own, so any thread can hold it and wait.
///
/// Each signal that the process receives, and each thread that it starts, takes a few microseconds more.
///
/// ```no_run
/// use linux_sampler::{CrashWatch, WatchEnd};
/// use std::time::Duration;
///
/// match CrashWatch::attach(4711)?.wait(Duration::from_secs(10))? {
///     WatchEnd::Crash(stopped) => println!("{} threads are stopped", stopped.threads().len()),
///     WatchEnd::Ended { signal } => println!("it has ended, by signal {signal:?}"),
///     other => println!("{other:?}"),
/// }
/// # Ok::<(), linux_sampler::Error>(())
/// ```
#[derive(Debug)]
pub struct CrashWatch {
    pid: i32,
    tracer: Tracer,
}

/// The end of a watched process.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEnd {
    /// A signal is about to end the process, which is stopped.
    Crash(StoppedProcess),
    /// The process has ended.
    Ended {
        /// The signal that killed it; `None` if it ended by itself, or if the kernel does not state it.
        signal: Option<i32>,
    },
}

impl CrashWatch {
    /// Begins to watch a process.
    ///
    /// # Errors
    /// If the process may not be traced, is traced already, or has ended.
    pub fn attach(pid: i32) -> Result<Self, Error> {
        let tracer = Tracer::start()?;
        tracer.run(move |tracing| {
            // Traced threads report the threads that they start; other threads can start some meanwhile.
            while tracing.seize_all(pid, libc::PTRACE_O_TRACECLONE, false)? > 0 {}
            if tracing.stopped.is_empty() { Err(Error::NoProcess { pid }) } else { Ok(()) }
        })?;
        Ok(Self { pid, tracer })
    }

    /// Waits until a signal is about to end the process, and returns the stopped process with that signal, or
    /// until it has ended in another way: by itself, or killed.
    ///
    /// A crash is a signal that has a core dump as its default action, if it has that action, and `SIGABRT`
    /// also if the process handles it: runtimes send it to themselves to end.
    ///
    /// # Errors
    /// If a call fails, or the threads do not stop within `limit`.
    pub fn wait(self, limit: Duration) -> Result<WatchEnd, Error> {
        let pid = self.pid;
        let end = self.tracer.run(move |tracing| Watch { pid, tracing }.wait(limit))?;
        Ok(match end {
            TracedEnd::Crash(threads, since) => {
                WatchEnd::Crash(StoppedProcess::new(threads, since, self.tracer))
            }
            TracedEnd::Ended { signal } => WatchEnd::Ended { signal },
        })
    }
}

/// The end of a watched process, for the thread that traces it.
enum TracedEnd {
    Crash(Vec<StoppedThread>, Instant),
    Ended { signal: Option<i32> },
}

/// A watch on the thread that traces.
struct Watch<'t> {
    pid: i32,
    tracing: &'t mut Tracing,
}

impl Watch<'_> {
    fn wait(&mut self, limit: Duration) -> Result<TracedEnd, Error> {
        let mut signal = None;
        loop {
            // Only threads traced by this thread, not the child processes of others.
            let report = match sys::report(None, REPORTS | libc::__WNOTHREAD) {
                Ok(Some(report)) => report,
                Ok(None) => continue,
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::ECHILD) => return Ok(TracedEnd::Ended { signal }),
                    _ => return Err(Error::io("waitid")(error)),
                },
            };
            let tid = report.tid;
            signal = report.killed_by().or(signal);
            let Some(stop) = Stop::of(report) else {
                // The first thread is reported last, and its report is its parent's, too.
                if tid == self.pid {
                    return Ok(TracedEnd::Ended { signal });
                }
                self.tracing.stopped.remove(&tid);
                reap(tid)?;
                continue;
            };
            if stop.signal != 0 && self.is_fatal(stop.signal) {
                self.tracing.stopped.insert(tid, Some(stop));
                return self.stop(limit);
            }
            // A thread that is new to this watch reports its first stop.
            self.tracing.stopped.entry(tid).or_insert(None);
            let is_stopped = stop.event == libc::PTRACE_EVENT_STOP && stop.cause != libc::SIGTRAP;
            let resumed = if is_stopped { sys::listen(tid) } else { sys::resume(tid, stop.signal) };
            match resumed {
                // The thread was killed meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                resumed => resumed.map_err(Error::io(format!("ptrace of thread {tid}")))?,
            }
        }
    }

    /// Returns true if a signal ends the process.
    fn is_fatal(&self, signal: i32) -> bool {
        const DUMPING: [i32; 10] = [
            libc::SIGQUIT,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGABRT,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGSEGV,
            libc::SIGXCPU,
            libc::SIGXFSZ,
            libc::SIGSYS,
        ];
        if signal == libc::SIGABRT {
            return true;
        }
        DUMPING.contains(&signal) && handled_signals(self.pid).is_none_or(|mask| mask & bit(signal) == 0)
    }

    fn stop(&mut self, limit: Duration) -> Result<TracedEnd, Error> {
        let since = Instant::now();
        loop {
            let running = self.tracing.stopped.iter().filter(|(_, stop)| stop.is_none());
            for (&tid, _) in running {
                // Interrupting fails for threads that have ended, which the wait below notices.
                let _ = sys::interrupt(tid);
            }
            self.tracing.wait(since, limit)?;
            // Threads that were started meanwhile and have not reported yet are traced by now.
            let all = crate::threads::threads(self.pid)?;
            let mut new = all.into_iter().filter(|tid| !self.tracing.stopped.contains_key(tid)).peekable();
            if new.peek().is_none() {
                return Ok(TracedEnd::Crash(self.tracing.stopped_threads(self.pid)?, since));
            }
            let new: Vec<i32> = new.collect();
            for tid in new {
                self.tracing.stopped.insert(tid, None);
            }
        }
    }
}

const fn bit(signal: i32) -> u64 {
    match signal {
        1..=64 => 1 << (signal - 1),
        _ => 0,
    }
}

/// Returns the signals that a process handles or ignores.
fn handled_signals(pid: i32) -> Option<u64> {
    let status = linux_proc_stat::read(&process_folder(pid.unsigned_abs()).join("status")).ok()?;
    let status = Status::new(&status);
    Some(status.mask("SigCgt")? | status.mask("SigIgn")?)
}

/// Takes the report of a thread that has ended.
fn reap(tid: i32) -> Result<(), Error> {
    match sys::report(Some(tid), libc::WEXITED | libc::WNOHANG | libc::__WALL) {
        Err(error) if error.raw_os_error() != Some(libc::ECHILD) => {
            Err(Error::io(format!("waitid of thread {tid}"))(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufRead as _, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    struct Shell(Child);

    impl Drop for Shell {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Watches a shell that runs the script once it reads a line. Returns the signal that stopped it, the
    /// signal that killed it, and its output and status.
    fn watch(script: &str) -> (Option<i32>, Option<i32>, String) {
        let mut command = Command::new("bash");
        let script = format!("echo ready; read -r line; {script}");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        // The shell is the child of another thread than the tracer, as programs that are watched are.
        let mut shell = Shell(command.spawn().unwrap());
        let mut output = BufReader::new(shell.0.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let pid = shell.0.id().cast_signed();
        let (sender, attached) = std::sync::mpsc::channel();
        let watch = std::thread::spawn(move || {
            let watch = CrashWatch::attach(pid).unwrap();
            sender.send(()).unwrap();
            match watch.wait(LIMIT).unwrap() {
                WatchEnd::Crash(stopped) => {
                    let thread = stopped.threads().iter().find(|thread| thread.signal != 0).unwrap();
                    assert!(thread.signal_info.is_some());
                    (Some(thread.signal), None)
                }
                WatchEnd::Ended { signal } => (None, signal),
            }
        });
        attached.recv().unwrap();
        io::Write::write_all(&mut shell.0.stdin.take().unwrap(), b"go\n").unwrap();
        let mut rest = String::new();
        io::Read::read_to_string(&mut output, &mut rest).unwrap();
        let (crash, killed) = watch.join().unwrap();
        let status = shell.0.wait().unwrap();
        (crash, killed, format!("{rest}{status}"))
    }

    fn is_traced(pid: i32) -> bool {
        let status = linux_proc_stat::read(&process_folder(pid.unsigned_abs()).join("status")).unwrap();
        Status::new(&status).tracer().is_some()
    }

    /// A thread started by a traced thread is already traced when the watch reaches it.
    #[test]
    fn a_process_that_starts_threads_is_watched() {
        const STARTS_THREADS: &str = "LINUX_SAMPLER_TEST_STARTS_THREADS";
        if std::env::var_os(STARTS_THREADS).is_some() {
            let start = || loop {
                std::thread::spawn(std::thread::yield_now).join().unwrap();
            };
            let _ = std::thread::spawn(start);
            let _ = io::stdin().read_line(&mut String::new());
            std::process::exit(0);
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["a_process_that_starts_threads_is_watched", "--nocapture"]).env(STARTS_THREADS, "1");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let child = Shell(command.spawn().unwrap());
        let pid = child.0.id().cast_signed();
        // The tests begin a thread of their own.
        let deadline = Instant::now() + LIMIT;
        while crate::threads::threads(pid).unwrap().len() < 3 {
            assert!(Instant::now() < deadline);
        }
        for _ in 0..200 {
            std::thread::spawn(move || CrashWatch::attach(pid).map(drop)).join().unwrap().unwrap();
            // A trace ends with its thread, and the kernel ends a thread a moment after it has been joined.
            let deadline = Instant::now() + LIMIT;
            while is_traced(pid) {
                assert!(Instant::now() < deadline);
            }
        }
    }

    #[test]
    fn a_signal_that_ends_the_process_stops_it_first() {
        assert_eq!(watch("kill -SEGV $$").0, Some(libc::SIGSEGV));
        assert_eq!(watch("kill -ABRT $$").0, Some(libc::SIGABRT));
        let (signal, killed, end) =
            watch("trap 'echo handled' SEGV RTMIN; kill -SEGV $$; kill -RTMIN $$; (exit 3); exit 7");
        assert_eq!((signal, killed, &*end), (None, None, "handled\nhandled\nexit status: 7"));
        for (script, signal) in [("kill -KILL $$", libc::SIGKILL), ("kill -TERM $$", libc::SIGTERM)] {
            let (crash, killed, _) = watch(script);
            assert_eq!((crash, killed), (None, Some(signal)), "{script}");
        }
    }
}
