//! SIGINT, SIGTERM and SIGHUP as requests to end, and the distinction between new requests and repeated
//! signals.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dipc_collect::StopSignal;

use crate::exit::{Exit, Failure};

/// The time after a request within which a further signal belongs to the same user action: a closed terminal
/// sends SIGHUP from the kernel and from the shell, `timeout` signals its child and its process group, and
/// keys bounce.
const ONE_ACTION: Duration = Duration::from_secs(1);
/// The request at which the program ends at once: even the second failed, so it is stuck, perhaps in a write.
const LAST_REQUEST: usize = 3;
/// Maximum wait between checks for a request.
const TICK: Duration = Duration::from_millis(50);

/// The user's requests to end, since this was created.
#[derive(Clone, Default)]
pub(crate) struct Interrupts(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified of each signal.
    signalled: Condvar,
}

struct State {
    requests: Requests,
    /// The requests as a signal for collections.
    stop: StopSignal,
    /// The request at which the program ends at once.
    last_request: usize,
    /// Requests for a snapshot.
    snapshots: usize,
    /// Ends the program that was started to be recorded, before this one exits at once.
    on_exit: Option<Box<dyn FnMut() + Send>>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            requests: Requests::default(),
            stop: StopSignal::new(),
            last_request: LAST_REQUEST,
            snapshots: 0,
            on_exit: None,
        }
    }
}

/// A signal by which users, shells and service managers end programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndSignal {
    /// SIGINT or SIGTERM.
    Interrupt,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

/// The requests among the signals received.
#[derive(Debug, Default)]
struct Requests {
    count: usize,
    last: Option<Instant>,
    hung_up: bool,
}

impl Requests {
    /// Records a signal, and returns true if it is a new request. The first of any kind is a request; a later
    /// one only if it is an interrupt and not part of the previous action. SIGHUP never repeats a request:
    /// the user has left.
    fn record(&mut self, signal: EndSignal, now: Instant) -> bool {
        let hangs_up = signal == EndSignal::HangUp;
        self.hung_up |= hangs_up;
        let is_new_action =
            self.last.is_none_or(|last| !hangs_up && now.saturating_duration_since(last) >= ONE_ACTION);
        if is_new_action {
            self.count += 1;
            self.last = Some(now);
        }
        is_new_action
    }
}

impl Interrupts {
    /// Counts SIGINT, SIGTERM and SIGHUP from now on, instead of ending at them.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let interrupts = Self::default();
        let heard = interrupts.clone();
        watch(move |signal| heard.record(signal)).map_err(unwatched)?;
        Ok(interrupts)
    }

    /// Counts SIGINT and SIGTERM from now on. SIGHUP, by which service managers ask for the settings to be
    /// read again, sets `reload`.
    #[cfg(unix)]
    pub(crate) fn watch_with_reload(reload: &Arc<AtomicBool>) -> Result<Self, Failure> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

        let interrupts = Self::default();
        let heard = interrupts.clone();
        signal_hook::flag::register(SIGHUP, Arc::clone(reload)).map_err(unwatched)?;
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).map_err(unwatched)?;
        thread::spawn(move || {
            for _ in signals.forever() {
                heard.record(EndSignal::Interrupt);
            }
        });
        Ok(interrupts)
    }

    #[cfg(not(unix))]
    pub(crate) fn watch_with_reload(_: &Arc<AtomicBool>) -> Result<Self, Failure> {
        Self::watch()
    }

    /// Counts SIGQUIT (Ctrl-\) and SIGUSR1 as requests for a snapshot from now on, instead of ending at them.
    /// Other systems have neither.
    #[cfg(unix)]
    pub(crate) fn watch_snapshots(&self) -> Result<(), Failure> {
        use signal_hook::consts::{SIGQUIT, SIGUSR1};

        let mut signals = signal_hook::iterator::Signals::new([SIGQUIT, SIGUSR1]).map_err(unwatched)?;
        let heard = self.clone();
        thread::spawn(move || {
            for _ in signals.forever() {
                heard.with(|state| state.snapshots += 1);
            }
        });
        Ok(())
    }

    #[cfg(not(unix))]
    #[allow(clippy::unused_self, clippy::unnecessary_wraps, reason = "as on Unix")]
    pub(crate) fn watch_snapshots(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Counts Enter at the terminal as a request to end from now on, as dotnet-trace does. Other standard
    /// input is not read, nor is the terminal while another program has it.
    #[cfg(unix)]
    pub(crate) fn watch_enter(&self) {
        use std::io::{IsTerminal as _, Read as _};

        if !io::stdin().is_terminal() {
            return;
        }
        let heard = self.clone();
        thread::spawn(move || {
            let mut line = [0; 4096];
            loop {
                // A read in the background would stop this program.
                if !is_readable_in_foreground() {
                    thread::sleep(TICK);
                    continue;
                }
                match io::stdin().lock().read(&mut line) {
                    Ok(count @ 1..) if line.iter().take(count).any(|byte| *byte == b'\n') => {
                        heard.record(EndSignal::Interrupt);
                    }
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return,
                }
            }
        });
    }

    #[cfg(not(unix))]
    #[allow(clippy::unused_self, reason = "as on Unix")]
    pub(crate) fn watch_enter(&self) {}

    /// The number of requests for a snapshot.
    pub(crate) fn snapshots(&self) -> usize {
        self.with(|state| state.snapshots)
    }

    /// Registers `end` to be called before a third request ends this program at once.
    pub(crate) fn before_exit(&self, end: impl FnMut() + Send + 'static) {
        self.with(|state| state.on_exit = Some(Box::new(end)));
    }

    /// Runs a computation with a useless partial result: the next request ends the program at once.
    pub(crate) fn while_computing<T>(&self, compute: impl FnOnce() -> T) -> T {
        self.ending_at(1, compute)
    }

    /// Runs the last computation of a round: the next request ends the rounds after it, the second one the
    /// program at once.
    pub(crate) fn while_finishing<T>(&self, compute: impl FnOnce() -> T) -> T {
        self.ending_at(2, compute)
    }

    /// Runs a computation during which the program ends at once at the `n`th further request.
    fn ending_at<T>(&self, n: usize, compute: impl FnOnce() -> T) -> T {
        self.with(|state| state.last_request = LAST_REQUEST.min(state.requests.count + n));
        let computed = compute();
        self.with(|state| state.last_request = LAST_REQUEST);
        computed
    }

    /// Returns the requests as a signal: the first one stops a collection, and the second one cancels it.
    pub(crate) fn stop_signal(&self) -> StopSignal {
        self.with(|state| state.stop.clone())
    }

    /// The number of requests to end.
    pub(crate) fn count(&self) -> usize {
        self.with(|state| state.requests.count)
    }

    /// Waits for this time, or until a request to end arrives. Returns true if one has arrived.
    pub(crate) fn wait(&self, time: Duration) -> bool {
        let is_running = |state: &mut State| state.requests.count == 0;
        let waited = self.0.signalled.wait_timeout_while(self.state(), time, is_running);
        waited.unwrap_or_else(PoisonError::into_inner).0.requests.count > 0
    }

    /// Returns true if the terminal is gone: it cannot send further requests.
    pub(crate) fn hung_up(&self) -> bool {
        self.with(|state| state.requests.hung_up)
    }

    fn record(&self, signal: EndSignal) {
        self.with(|state| {
            if state.requests.record(signal, Instant::now()) {
                state.stop.request();
            }
            if state.requests.count >= state.last_request {
                if let Some(end) = &mut state.on_exit {
                    end();
                }
                std::process::exit(i32::from(Exit::Failed.code()));
            }
        });
        self.0.signalled.notify_all();
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with(|state| f.debug_tuple("Interrupts").field(&state.requests).finish())
    }
}

/// The cancellation of a view, if a prompt watches for it.
static CANCELLED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Sets a flag at SIGINT from now on, instead of ending at it. A further SIGINT before the flag is cleared
/// ends the program.
pub(crate) fn watch_cancellation() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::SIGINT;

    const ENDED_BY_SIGINT: i32 = 130;
    let cancelled = Arc::clone(CANCELLED.get_or_init(Arc::default));
    signal_hook::flag::register_conditional_shutdown(SIGINT, ENDED_BY_SIGINT, Arc::clone(&cancelled))
        .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&cancelled)))
        .map_err(unwatched)?;
    Ok(cancelled)
}

/// Returns true if the view that runs was cancelled: its result is incomplete.
pub(crate) fn is_cancelled() -> bool {
    CANCELLED.get().is_some_and(|cancelled| cancelled.load(Ordering::Relaxed))
}

/// Calls `heard` for each SIGINT, SIGTERM and SIGHUP from now on; they no longer end the program.
pub(crate) fn on_each_signal(mut heard: impl FnMut() + Send + 'static) -> Result<(), Failure> {
    watch(move |_| heard()).map_err(unwatched)
}

#[allow(clippy::needless_pass_by_value, reason = "what map_err hands over")]
fn unwatched(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("watch for signals: {error}"))
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error of that write instead of the end of
/// the program. The handler does nothing, and unlike SIG_IGN it is not passed on to programs that are
/// started.
#[cfg(unix)]
pub(crate) fn survive_file_size_limit() {
    // Without the handler, the program behaves as if this were not called.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Does nothing: only Unix has such a limit.
#[cfg(not(unix))]
pub(crate) fn survive_file_size_limit() {}

/// Reports each signal. SIGHUP stays ignored if it already was (`nohup`).
#[cfg(unix)]
fn watch(mut heard: impl FnMut(EndSignal) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    if !is_ignored(SIGHUP) {
        signals.add_signal(SIGHUP)?;
    }
    thread::spawn(move || {
        for signal in signals.forever() {
            heard(if signal == SIGHUP { EndSignal::HangUp } else { EndSignal::Interrupt });
        }
    });
    Ok(())
}

/// Waits a moment for input of the terminal. Returns whether there is some for this program.
#[cfg(unix)]
fn is_readable_in_foreground() -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let input = io::stdin();
    let time = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    let is_readable =
        poll(&mut [PollFd::new(&input, PollFlags::IN)], Some(&time)).is_ok_and(|count| count > 0);
    // An error means a terminal without job control.
    is_readable
        && rustix::termios::tcgetpgrp(&input).map_or(true, |group| group == rustix::process::getpgrp())
}

/// Returns true if this program was started with the signal ignored, as Linux reports it.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = linux_proc_stat::read(std::path::Path::new("/proc/self/status")).unwrap_or_default();
    linux_proc_stat::Status::new(&status).mask("SigIgn").unwrap_or_default() >> (signal - 1) & 1 == 1
}

/// Reports Ctrl-C and Ctrl-Break. Windows offers nothing that a thread could wait on.
#[cfg(windows)]
fn watch(mut heard: impl FnMut(EndSignal) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    const PAUSE: Duration = Duration::from_millis(50);
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&signalled))?;
    }
    thread::spawn(move || {
        loop {
            thread::sleep(PAUSE);
            if signalled.swap(false, Ordering::Relaxed) {
                heard(EndSignal::Interrupt);
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::EndSignal::{HangUp, Interrupt};
    use super::*;

    /// The number of requests among signals at times in milliseconds.
    fn requests(signals: &[(EndSignal, u64)]) -> usize {
        let start = Instant::now();
        let mut requests = Requests::default();
        for &(signal, milliseconds) in signals {
            requests.record(signal, start + Duration::from_millis(milliseconds));
        }
        requests.count
    }

    #[test]
    fn a_wait_ends_with_a_request() {
        let interrupts = Interrupts::default();
        assert!(!interrupts.wait(Duration::ZERO));
        let waiting = interrupts.clone();
        let waits = thread::spawn(move || waiting.wait(Duration::from_secs(3600)));
        interrupts.record(Interrupt);
        assert!(waits.join().unwrap() && interrupts.wait(Duration::from_secs(3600)));
    }

    #[test]
    fn one_action_of_the_user_is_one_request_however_many_signals_it_sends() {
        assert_eq!(requests(&[(HangUp, 0), (HangUp, 1)]), 1, "a closed terminal");
        assert_eq!(requests(&[(Interrupt, 0), (Interrupt, 3)]), 1, "timeout, or a key that bounces");
        assert_eq!(requests(&[(Interrupt, 0), (Interrupt, 400), (Interrupt, 999)]), 1);
    }

    #[test]
    fn another_interrupt_after_a_second_is_another_request_and_a_hang_up_never_is() {
        assert_eq!(requests(&[(Interrupt, 0), (Interrupt, 600), (Interrupt, 1200)]), 2);
        assert_eq!(requests(&[(Interrupt, 0), (Interrupt, 1000), (Interrupt, 2000)]), 3);
        assert_eq!(requests(&[(Interrupt, 0), (HangUp, 5000), (HangUp, 9000)]), 1);
        assert_eq!(requests(&[(HangUp, 0), (Interrupt, 5000)]), 2);
    }
}
