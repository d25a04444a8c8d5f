//! Companion recordings: files with what a recording lacks, found by their names.

use std::path::{Path, PathBuf};

use dipc_transport::open_regular;
use nettrace::{Reader, TraceInfo};

/// Maximum number of seconds between the beginnings of a recording and of its names. Beyond it, the files
/// belong to different runs.
const MAX_START_DIFFERENCE: u64 = 60;

/// Returns the path of the companion recording of this kind.
///
/// ```
/// use dipc_collect::names::companion_path;
/// use std::path::Path;
///
/// let path = |recording: &str| companion_path(recording.as_ref(), "names");
/// assert_eq!(path("out/app.nettrace"), Path::new("out/app.names.nettrace"));
/// // Distinct from the path for app.2.
/// assert_eq!(path("out/app.1"), Path::new("out/app.1.names.nettrace"));
/// ```
pub fn companion_path(recording: &Path, kind: &str) -> PathBuf {
    let is_usual = recording.extension().is_some_and(|extension| extension == "nettrace");
    let name = if is_usual { recording.file_stem() } else { recording.file_name() };
    let mut name = name.unwrap_or_default().to_owned();
    name.push(format!(".{kind}.nettrace"));
    recording.with_file_name(name)
}

/// Returns the path of a recording's names.
pub fn names_path(recording: &Path) -> PathBuf {
    companion_path(recording, "names")
}

/// Returns true if names belong to the recorded process, judged by the headers.
pub fn are_of_recording(names: &TraceInfo, recorded: &TraceInfo) -> bool {
    let apart = names.start_ticks.0.abs_diff(recorded.start_ticks.0);
    (names.process_id, names.pointer_size, names.frequency)
        == (recorded.process_id, recorded.pointer_size, recorded.frequency)
        && apart <= recorded.frequency.saturating_mul(MAX_START_DIFFERENCE)
}

/// Returns true if the names at a path belong to a recording other than `recording` that has the same path
/// for its names: `app` and `app.nettrace` share one.
pub(super) fn are_of_another(names: &Path, recording: &Path) -> bool {
    let Some(name) = names.file_name().and_then(|name| name.to_str()) else { return false };
    let Some(stem) = name.strip_suffix(".names.nettrace") else { return false };
    let own = recording.file_name();
    let others = [stem.to_owned(), format!("{stem}.nettrace")];
    let others = others.iter().filter(|other| own != Some(other.as_ref()));
    let mut others = others.map(|other| names.with_file_name(other)).filter(|other| other.is_file());
    others.any(|other| {
        header(names).zip(header(&other)).is_some_and(|(names, other)| are_of_recording(&names, &other))
    })
}

fn header(recording: &Path) -> Option<TraceInfo> {
    Reader::new(open_regular(recording).ok()?).ok()?.info().cloned()
}

#[cfg(test)]
mod tests {
    use nettrace_synth::TraceHeader;
    use nettrace_synth::nettrace::Trace;

    use super::*;

    #[test]
    fn names_of_another_recording_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let names = at("x.names.nettrace");
        let of_process = |process_id| {
            let header = TraceHeader { process_id, ..TraceHeader::default() };
            Trace::new(&header).finish()
        };
        for (file, process) in [(names.clone(), 7), (at("x"), 8), (at("x.nettrace"), 7)] {
            std::fs::write(file, of_process(process)).unwrap();
        }
        assert!(are_of_another(&names, &at("x")));
        assert!(!are_of_another(&names, &at("x.nettrace")), "x is of another process");
    }
}
