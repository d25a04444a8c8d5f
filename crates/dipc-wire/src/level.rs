//! The level of events.

use crate::codec::open_enum;

open_enum! {
    /// The level of a provider's events: the provider sends the events of this level and of all lower levels.
    /// An unknown level is kept as its number; runtimes refuse levels above [`VERBOSE`](Self::VERBOSE). On
    /// the wire a u32.
    ///
    /// # Source
    /// `System.Diagnostics.Tracing.EventLevel`, and `ep_event_is_enabled` of the runtime.
    pub struct Level(u32) = "level" {
        /// The events of all levels.
        LOG_ALWAYS = 0 "LogAlways";
        /// Critical errors.
        CRITICAL = 1 "Critical";
        /// Errors.
        ERROR = 2 "Error";
        /// Warnings.
        WARNING = 3 "Warning";
        /// Information, the level of most events of the runtime.
        INFORMATIONAL = 4 "Informational";
        /// Everything: the highest level that runtimes accept.
        VERBOSE = 5 "Verbose";
    }
}

impl Level {
    /// Returns whether a session of this level has the events of level `event`. A session of
    /// [`LOG_ALWAYS`](Self::LOG_ALWAYS) has all events, and events of `LOG_ALWAYS` are in all sessions.
    ///
    /// ```
    /// use dipc_wire::Level;
    ///
    /// assert!(Level::WARNING.includes(Level::ERROR) && !Level::WARNING.includes(Level::VERBOSE));
    /// assert!(Level::LOG_ALWAYS.includes(Level::VERBOSE) && Level::CRITICAL.includes(Level::LOG_ALWAYS));
    /// ```
    pub fn includes(self, event: Self) -> bool {
        self == Self::LOG_ALWAYS || event <= self
    }

    /// Returns the level of a session that needs the events of both: [`LOG_ALWAYS`](Self::LOG_ALWAYS) has the
    /// events of all levels, and is the lowest number.
    ///
    /// ```
    /// use dipc_wire::Level;
    ///
    /// assert_eq!(Level::WARNING.widest(Level::VERBOSE), Level::VERBOSE);
    /// assert_eq!(Level::WARNING.widest(Level::LOG_ALWAYS), Level::LOG_ALWAYS);
    /// ```
    #[must_use]
    pub fn widest(self, other: Self) -> Self {
        if self == Self::LOG_ALWAYS || other == Self::LOG_ALWAYS { Self::LOG_ALWAYS } else { self.max(other) }
    }
}

/// All levels.
impl Default for Level {
    fn default() -> Self {
        Self::LOG_ALWAYS
    }
}

impl From<u32> for Level {
    fn from(level: u32) -> Self {
        Self(level)
    }
}
