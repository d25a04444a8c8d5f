//! Names of methods: next to recordings that may end without them, and for streams that are read while they
//! arrive.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use dipc_client::{Deadline, LiveNames, LiveNamesOptions, Target};
use dipc_collect::names::{KeptNames, NamesError, NamesRecorder, NamesRequest};
use dipc_wire::Level;
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure};
use crate::process::info::timeouts;
use crate::record::selection::Selection;
use crate::render::messages;

pub(crate) use dipc_collect::names::for_each_method;

/// The time limit for each answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);
/// The time limit for the list of methods.
const LIST: Duration = Duration::from_secs(30);

/// Starts the sessions for a recording with names to be kept next to it. A program that `is_starting` has
/// nothing to list yet.
pub(crate) fn record_names(
    target: &Target,
    selection: &Selection,
    recording: &Path,
    is_starting: bool,
) -> NamesRecorder {
    // A verbose recording needs no help, and one without the keyword gets no such events, whatever other
    // sessions request.
    let needs_help = selection.level_of_methods() == Some(Level::INFORMATIONAL);
    let request =
        NamesRequest::new(recording).with_compiled_methods(needs_help).with_starting_program(is_starting);
    let target = target.clone().with_timeouts(timeouts(ANSWER));
    NamesRecorder::start(&target, request, |error| match error {
        NamesError::Session(error) => messages::detail(error),
        error => messages::warning(format_args!("names: {error}")),
    })
}

/// Prints what names a recording has.
pub(crate) fn report_names(names: KeptNames) {
    match names {
        KeptNames::File(path) => messages::note(format_args!(
            "Names          : {} has the names of the methods present when the recording began; commands that read the recording find it",
            path.display()
        )),
        KeptNames::Missing(error) => {
            error.into_iter().for_each(messages::detail);
            messages::warning(
                "the recording ended before the runtime had listed its methods: the methods present when it began have no names",
            );
        }
        _ => {}
    }
}

/// Starts the sessions for names of a stream that is read while it arrives.
pub(crate) fn live_names(target: &Target, needs_help: bool, is_starting: bool) -> LiveNames {
    let target = target.clone().with_timeouts(timeouts(ANSWER));
    let options =
        LiveNamesOptions::default().with_compiled_methods(needs_help).with_starting_program(is_starting);
    LiveNames::start(&target, options, messages::detail)
}

/// Makes a process list its methods into a temporary file, which is a recording.
pub(crate) fn record_list(target: &Target) -> Result<NamedTempFile, Failure> {
    let failed = |error: io::Error| {
        Failure::new(Exit::Failed, format_args!("list of methods: temporary file: {error}"))
    };
    let mut file = NamedTempFile::new().map_err(failed)?;
    let mut written = Ok(());
    target.list_methods()?.read(
        Deadline::after(LIST),
        || false,
        |piece| {
            written = file.write_all(piece);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        },
    )?;
    written.and_then(|()| file.flush()).map_err(failed)?;
    Ok(file)
}
