//! The flight recorder: a ring of the last events in memory, with snapshots of it as files. Also recording
//! with file rotation.

mod condition_watch;
mod crash;
mod crash_cause;
mod crash_core;
mod file_series;
mod method_lists;
mod rotation;
mod session;
mod snapshot;
#[cfg(test)]
mod test_stream;
mod trigger;

pub(crate) use crash::CrashSources;
pub(crate) use crash_core::{CrashDump, dump_variables};
pub(crate) use file_series::FileNames;
pub(crate) use rotation::RotatingRecorder;
pub(crate) use session::{FlightRecorder, FlightSettings, FlightSummary};
pub(crate) use snapshot::check_output;
pub(crate) use trigger::TriggerSettings;
