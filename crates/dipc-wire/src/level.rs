//! Levels of events: a provider sends those of its level and of all lower ones.
//!
//! # Source
//! `System.Diagnostics.Tracing.EventLevel`, and `ep_event_is_enabled` of the runtime.

/// All levels.
pub const LOG_ALWAYS: u32 = 0;
/// Critical errors.
pub const CRITICAL: u32 = 1;
/// Errors.
pub const ERROR: u32 = 2;
/// Warnings.
pub const WARNING: u32 = 3;
/// Information, the level of most events of the runtime.
pub const INFORMATIONAL: u32 = 4;
/// Everything: the highest level that runtimes accept.
pub const VERBOSE: u32 = 5;

/// The names of the levels, each at its number.
pub const NAMES: [&str; 6] = ["LogAlways", "Critical", "Error", "Warning", "Informational", "Verbose"];
