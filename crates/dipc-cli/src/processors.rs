//! The number of threads for parallel work.

use std::num::NonZero;
use std::{env, io, thread};

use crate::exit::{Exit, Failure};

/// The environment variable that sets it.
const VARIABLE: &str = "DIPC_THREADS";

/// Returns the number of threads to use: the value of the variable, or the number of processors that this
/// process may use.
pub(crate) fn count() -> usize {
    let wanted = env::var(VARIABLE).ok().and_then(|text| text.trim().parse::<NonZero<usize>>().ok());
    wanted.or_else(|| thread::available_parallelism().ok()).map_or(1, NonZero::get)
}

/// Returns the failure for a thread that could not be started.
pub(crate) fn no_thread(error: &io::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("read: no thread to read with: {error}"))
        .with_help(format_args!("{VARIABLE}=1 reads without other threads"))
}
