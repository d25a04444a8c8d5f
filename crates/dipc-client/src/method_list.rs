//! The methods of a process, which the runtime lists at the end of a session.

use std::ops::ControlFlow;
use std::time::Duration;

use dipc_wire::{Keywords, Level, ProviderConfig};

use crate::{Deadline, Error, OptionalFeature, RUNTIME_PROVIDER, Rundown, Session, SessionConfig, Target};

/// The keywords of [`RUNTIME_PROVIDER`] that make a session report methods and modules from its start:
/// Loader, JIT and NGEN.
pub const NAME_KEYWORDS: Keywords = Keywords::LOADER.union(Keywords::METHODS);

/// Maximum wait of one read: the caller may cancel meanwhile.
const STEP: Duration = Duration::from_millis(100);
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

impl Target {
    /// Starts a session that only lists all methods: it requests no events and is stopped at once, so that
    /// its stream is the rundown. The stream is a recording. A NativeAOT process does not list methods.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().replay(b"Nettrace".to_vec()).start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use std::{ops::ControlFlow, time::Duration};
    /// use dipc_client::Deadline;
    ///
    /// let mut recording = Vec::new();
    /// let is_whole = target.list_methods()?.read(
    ///     Deadline::after(Duration::from_secs(60)),
    ///     || false,
    ///     |piece| {
    ///         recording.extend_from_slice(piece);
    ///         ControlFlow::Continue(())
    ///     },
    /// )?;
    /// assert!(is_whole && recording.starts_with(b"Nettrace"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Errors of [`start_session`](Self::start_session) and [`Session::request_stop`].
    pub fn list_methods(&self) -> Result<MethodList, Error> {
        let mut session = self.start_session(&SessionConfig::without_events())?;
        session.request_stop()?;
        Ok(MethodList { session })
    }

    /// Starts a session that makes the runtime report each method that it compiles to every session with
    /// [`NAME_KEYWORDS`], at any level. The runtime does so only while some session requests the verbose
    /// level. The session's own stream must be read, and is otherwise useless.
    ///
    /// # Errors
    /// Errors of [`start_session`](Self::start_session).
    pub fn report_compiled_methods(&self) -> Result<Session, Error> {
        self.start_session(&names_session(Keywords::METHODS, Level::VERBOSE).with_rundown(Rundown::Off))
    }
}

impl SessionConfig {
    /// A session that requests no events: its stream is what the runtime lists at its end, and ends with the
    /// process.
    pub fn without_events() -> Self {
        names_session(Keywords::NONE, Level::CRITICAL)
    }
}

fn names_session(keywords: Keywords, level: Level) -> SessionConfig {
    let name = RUNTIME_PROVIDER.to_owned();
    SessionConfig::new([ProviderConfig { keywords, level, name, arguments: String::new() }])
        .with_stackwalk(false)
        .with_optional(vec![OptionalFeature::NoStacks])
}

/// A list of methods that is being received: [`Target::list_methods`].
#[derive(Debug)]
pub struct MethodList {
    session: Session,
}

impl MethodList {
    /// Reads the list up to the deadline, and passes it to `each` in pieces. Returns whether the list is
    /// complete: it is not if `each` breaks off, or if `is_cancelled`, which is called ten times a second,
    /// returns true while nothing arrives.
    ///
    /// # Errors
    /// Errors of [`Session::read`], including the deadline error.
    pub fn read(
        mut self,
        deadline: Deadline,
        is_cancelled: impl Fn() -> bool,
        mut each: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<bool, Error> {
        let mut buffer = vec![0; PIECE];
        loop {
            match self.session.read(&mut buffer, Deadline::after(STEP).min(deadline)) {
                Ok(0) => return Ok(true),
                Ok(count) => {
                    let piece = buffer.get(..count).unwrap_or_default();
                    if each(piece).is_break() {
                        return Ok(false);
                    }
                }
                Err(error) if error.is_deadline() && !deadline.is_over() => {
                    if is_cancelled() {
                        return Ok(false);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }
}
