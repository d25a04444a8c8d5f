//! Names of methods beside a recording: what `dipc trace` leaves of one that ended without a rundown.

use std::path::{Path, PathBuf};

use clr_events::CodeMap;
use nettrace::TraceInfo;

use crate::exit::Failure;
use crate::inspect::recording::Recording;
use crate::render::messages;

/// Seconds between the beginnings of a recording and of its names, at most. Beyond it the files are of different runs.
const MOST_APART: u64 = 60;

/// Returns the path of a recording's names: `app.names.nettrace` for `app.nettrace`.
pub(crate) fn names_path(recording: &Path) -> PathBuf {
    recording.with_extension("names.nettrace")
}

/// The names beside a recording: a recording of its own, in which the runtime lists the methods that were there soon after the
/// other began.
#[derive(Debug)]
pub(crate) struct Names(PathBuf);

impl Names {
    /// Returns the names of a recording, and notes that they are used; `None` where there are none, or those of another process.
    pub(crate) fn find(recording: &Path) -> Option<Self> {
        let names = Self::of(recording)?;
        messages::note(format_args!(
            "Names          : {}, of methods that were there when the recording began",
            names.0.display()
        ));
        Some(names)
    }

    fn of(recording: &Path) -> Option<Self> {
        let path = names_path(recording);
        if !path.is_file() || !recording.is_file() {
            return None;
        }
        let info = |path: &Path| Recording::open(path).ok()?.events.info().cloned();
        let (names, recorded) = (info(&path)?, info(recording)?);
        if !is_of(&names, &recorded) {
            messages::warning(format_args!(
                "{} is not used: it is of another process or time than {}",
                path.display(),
                recording.display()
            ));
            return None;
        }
        Some(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Warns that the names of a recording do not go into one that is made of it.
    pub(crate) fn warn_if_left_behind(recording: &Path) {
        if let Some(Self(path)) = Self::of(recording) {
            messages::warning(format_args!(
                "the names of methods in {} do not go into the new recording",
                path.display()
            ));
            if !messages::is_quiet() {
                messages::help(format_args!(
                    "dipc repair {} -o NEW makes a recording that has them; edit or merge that one",
                    recording.display()
                ));
            }
        }
    }

    /// Adds what is known of code, before anything that the recording says.
    pub(crate) fn add_to(&self, code: &mut CodeMap) -> Result<(), Failure> {
        add_code(&self.0, code)
    }
}

/// Adds all that a recording says of code.
pub(crate) fn add_code(recording: &Path, code: &mut CodeMap) -> Result<(), Failure> {
    let (mut events, origin) = Recording::open(recording)?.into_parts();
    events.for_each(|event| code.add(&event)).map_err(|error| origin.failed(&error))
}

/// Returns what adds the code that is known beside a recording, if there is any, and warns where that cannot be read.
pub(crate) fn code_beside(recording: &Path) -> impl FnMut(&mut CodeMap) + use<> {
    let names = Names::find(recording);
    move |code| {
        if let Some(Err(failure)) = names.as_ref().map(|names| names.add_to(code)) {
            messages::warning(failure);
        }
    }
}

/// Whether names are of the recorded process, by their headers.
fn is_of(names: &TraceInfo, recorded: &TraceInfo) -> bool {
    let apart = names.start_ticks.0.abs_diff(recorded.start_ticks.0);
    (names.process_id, names.pointer_size, names.frequency)
        == (recorded.process_id, recorded.pointer_size, recorded.frequency)
        && apart <= recorded.frequency.saturating_mul(MOST_APART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lie_beside_the_recording() {
        for (recording, names) in
            [("out/a.b.nettrace", "out/a.b.names.nettrace"), ("out", "out.names.nettrace")]
        {
            assert_eq!(names_path(Path::new(recording)), Path::new(names));
        }
    }
}
