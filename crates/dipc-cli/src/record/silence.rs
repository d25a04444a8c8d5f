//! Events that have fallen silent, in words.

use dipc_collect::silence::Silence;

use crate::render::messages;

/// Warns of events of a running session that have fallen silent, and are requested again. `process` is the
/// title of their process, if there may be several.
pub(crate) fn warn_of_silence(command: &str, process: Option<&str>, silence: Silence) {
    let of_process = process.map(|title| format!(" of {title}")).unwrap_or_default();
    match silence {
        Silence::Requests => messages::warning(format_args!(
            "{command}: the statuses of requests{of_process} have stopped coming: another session of them has ended; asking for them again"
        )),
        Silence::Counters { source, time } => messages::warning(format_args!(
            "{command}: the {source}{of_process} have been silent for {} s, while the session runs: asking for them again",
            time.as_secs()
        )),
        _ => {}
    }
}
