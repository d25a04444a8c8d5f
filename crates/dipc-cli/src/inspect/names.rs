//! Names of methods next to a recording, which `dipc trace` keeps if the recording ended without a rundown.

use std::path::{Path, PathBuf};

use clr_events::CodeMap;
use dipc_collect::names::are_of_recording;
use nettrace::TraceInfo;

use crate::exit::Failure;
use crate::inspect::recording::Recording;
use crate::render::{messages, shell};

pub(crate) use dipc_collect::names::{companion_path, names_path};

/// The kinds of companion recordings.
const KINDS: [&str; 2] = ["names", "threads"];

/// Refuses a name that would make a recording look like the companion of another one.
pub(crate) fn refuse_beside(output: &Path) -> Result<(), Failure> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    for kind in KINDS {
        let ending = format!(".{kind}.nettrace");
        if let Some(stem) = name.strip_suffix(&ending).filter(|stem| !stem.is_empty()) {
            return Err(Failure::usage(format_args!(
                "{}: it would be taken for the {kind} of {stem}.nettrace",
                output.display()
            ))
            .with_help(format_args!("choose a name that does not end with {ending}")));
        }
    }
    Ok(())
}

fn header(recording: &Path) -> Option<TraceInfo> {
    Recording::open_beside(recording).ok()?.events.info().cloned()
}

/// The names next to a recording: a recording of its own, in which the runtime lists the methods that existed
/// soon after the other began.
#[derive(Debug)]
pub(crate) struct Names(PathBuf);

impl Names {
    /// Returns the names of a recording, and prints a note that they are used; `None` if they are missing or
    /// of another process.
    pub(crate) fn find(recording: &Path) -> Option<Self> {
        let names = Self::of(recording)?;
        messages::note(format_args!(
            "Names          : {}, of the methods present when the recording began",
            names.0.display()
        ));
        Some(names)
    }

    fn of(recording: &Path) -> Option<Self> {
        let path = names_path(recording);
        if !path.is_file() || !recording.is_file() {
            return None;
        }
        let (names, recorded) = (header(&path)?, header(recording)?);
        if !are_of_recording(&names, &recorded) {
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

    /// Warns that the names of a recording are not copied into one made from it.
    pub(crate) fn warn_if_left_behind(recording: &Path) {
        if let Some(Self(path)) = Self::of(recording) {
            messages::warning(format_args!(
                "the names of methods in {} do not go into the new recording",
                path.display()
            ));
            if !messages::is_quiet() {
                messages::help(format_args!(
                    "dipc repair {} -o NEW makes a recording that has them; edit or merge that one",
                    shell::path(recording)
                ));
            }
        }
    }

    /// Adds the known code, before any events of the recording.
    pub(crate) fn add_to(&self, code: &mut CodeMap) -> Result<(), Failure> {
        add_code_of(Recording::open_beside(&self.0)?, code)
    }
}

/// Adds all code events of a recording.
pub(crate) fn add_code(recording: &Path, code: &mut CodeMap) -> Result<(), Failure> {
    add_code_of(Recording::open(recording)?, code)
}

fn add_code_of(recording: Recording, code: &mut CodeMap) -> Result<(), Failure> {
    let (mut events, origin) = recording.into_parts();
    events.for_each(|event| code.add(&event)).map_err(|error| origin.failed(&error))
}

/// Returns a function that adds the code known from a companion recording, if any. It warns if that cannot be
/// read.
pub(crate) fn code_beside(recording: &Path) -> impl FnMut(&mut CodeMap) + use<> {
    let names = Names::find(recording);
    move |code| {
        if let Some(Err(failure)) = names.as_ref().map(|names| names.add_to(code)) {
            messages::warning(failure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_file_is_next_to_the_recording() {
        for (recording, names) in [
            ("out/a.b.nettrace", "out/a.b.names.nettrace"),
            ("out", "out.names.nettrace"),
            ("out/x.1", "out/x.1.names.nettrace"),
            ("x.2", "x.2.names.nettrace"),
        ] {
            assert_eq!(names_path(Path::new(recording)), Path::new(names));
            refuse_beside(Path::new(names)).unwrap_err();
            refuse_beside(Path::new(recording)).unwrap();
        }
        refuse_beside(Path::new("names.nettrace")).unwrap();
    }
}
