use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A handle that ends a pending `read`, `write_all`, `accept` or [`Hub::next`](crate::Hub::next) from another
/// thread, and every later one.
///
/// ```
/// use dipc_transport::{Deadline, Listener};
///
/// let mut listener = Listener::bind("127.0.0.1:0".parse::<dipc_transport::Address>()?)?;
/// let canceller = listener.canceller();
/// let ctrl_c = std::thread::spawn(move || canceller.cancel());
/// // Without the other thread it would wait forever.
/// let error = listener.accept(Deadline::never()).expect_err("cancelled");
/// assert!(error.is_cancelled());
/// # ctrl_c.join().expect("a thread that ends");
/// # Ok::<(), dipc_transport::Error>(())
/// ```
#[derive(Clone)]
pub struct Canceller(Arc<Cancel>);

struct Cancel {
    cancelled: AtomicBool,
    waker: Arc<dyn Wake>,
}

/// A way to wake a waiting thread, so that it checks its conditions again.
pub(crate) trait Wake: Send + Sync {
    fn wake(&self);
}

struct WakeFn<F>(F);

impl<F: Fn() + Send + Sync> Wake for WakeFn<F> {
    fn wake(&self) {
        (self.0)();
    }
}

impl Canceller {
    pub(crate) fn new(waker: Arc<dyn Wake>) -> Self {
        Self(Arc::new(Cancel { cancelled: AtomicBool::new(false), waker }))
    }

    /// Returns a canceller for a wait of the caller's own: the wait has to check
    /// [`is_cancelled`](Self::is_cancelled) each time that `wake` is called.
    ///
    /// ```
    /// use std::sync::{Arc, Condvar, Mutex};
    ///
    /// let wait = Arc::new((Mutex::new(()), Condvar::new()));
    /// let woken = Arc::clone(&wait);
    /// let canceller = dipc_transport::Canceller::waking(move || {
    ///     let _held = woken.0.lock();
    ///     woken.1.notify_all();
    /// });
    /// canceller.cancel();
    /// assert!(canceller.is_cancelled());
    /// ```
    pub fn waking(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self::new(Arc::new(WakeFn(wake)))
    }

    /// Returns an unused canceller with the same waker. Spurious wakes do no harm.
    pub(crate) fn renewed(&self) -> Self {
        Self::new(Arc::clone(&self.0.waker))
    }

    /// Returns whether [`Canceller::cancel`] was called since the last call of `take`.
    pub(crate) fn take(&self) -> bool {
        self.0.cancelled.swap(false, Ordering::AcqRel)
    }

    /// Makes the pending operation and all later ones fail with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.waker.wake();
    }

    /// Returns whether [`Canceller::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Canceller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Canceller").field("cancelled", &self.is_cancelled()).finish()
    }
}

/// The reason why an operation did not complete.
#[derive(Debug)]
pub(crate) enum Interruption {
    Cancelled,
    TimedOut(Duration),
    Failed(io::Error),
}
