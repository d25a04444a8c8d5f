//! The description of a crash next to a recording: `app.nettrace.crash.txt` for `app.nettrace`.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clr_findings::ProcessEnd;

use crate::render::escape::escape_controls;

/// The width of names.
const NAME: usize = 15;
/// Maximum number of bytes to read of a description.
const MAX_BYTES: u64 = 64 << 10;
/// The names of facts that readers look for.
const CAUSE: &str = "Cause";
const CORE: &str = "Core dump";

/// A description of a crash.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct CrashNote {
    /// The cause of death in one line.
    pub(crate) cause: String,
    /// The exception with its frames, or what else belongs to the cause, a line each.
    pub(crate) details: Vec<String>,
    /// The core dump, if it is there.
    pub(crate) core: Option<PathBuf>,
    /// The file of the description.
    pub(crate) path: PathBuf,
}

/// Returns the path of a file of a crash: the recording's, with an ending.
pub(crate) fn crash_path(recording: &Path, ending: &str) -> PathBuf {
    let mut name = recording.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    recording.with_file_name(name)
}

/// Adds a line with a fact to the text of a description.
pub(crate) fn add_fact(text: &mut String, name: &str, value: &str) {
    // Writing into a `String` does not fail.
    let _ = writeln!(text, "{name:<NAME$}: {}", escape_controls(value));
}

/// Adds the cause as the first line.
pub(crate) fn add_cause(text: &mut String, cause: &str, details: &[String]) {
    add_fact(text, CAUSE, cause);
    for line in details {
        let _ = writeln!(text, "{:NAME$}  {}", "", escape_controls(line));
    }
}

impl CrashNote {
    /// Reads the description next to a recording, if any.
    pub(crate) fn beside(recording: &Path) -> Option<Self> {
        let path = std::path::absolute(crash_path(recording, ".crash.txt")).ok()?;
        let mut text = String::new();
        let file = dipc_transport::open_untrusted(&path).ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        let note = Self::parse(&text)?;
        // The files may have been moved together since.
        let core = note.core.filter(|core| core.is_file());
        let core = core.or_else(|| Some(crash_path(recording, ".core")).filter(|core| core.is_file()));
        Some(Self { core, path: crash_path(recording, ".crash.txt"), ..note })
    }

    /// Returns the cause with the first detail, an exception with its message above all.
    pub(crate) fn summary(&self) -> String {
        match self.details.first() {
            Some(first) => format!("{}: {first}", self.cause),
            None => self.cause.clone(),
        }
    }

    /// The end of the process, as evidence.
    pub(crate) fn end(&self) -> ProcessEnd {
        let Self { cause, details, core, .. } = self;
        ProcessEnd::new(cause).with_details(details.clone()).with_core(core.clone())
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines().take_while(|line| !line.is_empty());
        let value = |line: &str, name: &str| {
            let (key, value) = line.split_once(": ")?;
            (key.trim_end() == name).then(|| value.to_owned())
        };
        let cause = value(lines.next()?, CAUSE)?;
        let mut note = Self { cause, ..Self::default() };
        let indent = " ".repeat(NAME + 2);
        for line in lines {
            if let Some(detail) = line.strip_prefix(&indent) {
                note.details.push(detail.to_owned());
            } else if let Some(core) = value(line, CORE) {
                note.core = Some(core.into());
            }
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("a.nettrace");
        assert_eq!(CrashNote::beside(&recording), None);
        let details = ["A: b: c".to_owned(), "    at A.B()\u{1b}".to_owned()];
        let mut text = String::new();
        add_cause(&mut text, "thread 7 died", &details);
        let core = folder.path().join("other.core");
        add_fact(&mut text, "Core dump", &core.display().to_string());
        text.push_str("\nThe end of its standard error:\nCore dump      : none\n");
        let path = crash_path(&recording, ".crash.txt");
        std::fs::write(&path, text).unwrap();
        let expected = CrashNote {
            cause: "thread 7 died".to_owned(),
            details: vec!["A: b: c".to_owned(), r"    at A.B()\u001b".to_owned()],
            core: None,
            path,
        };
        let note = CrashNote::beside(&recording).unwrap();
        assert_eq!((&note, &*note.summary()), (&expected, "thread 7 died: A: b: c"));
        let own = crash_path(&recording, ".core");
        std::fs::write(&own, "").unwrap();
        assert_eq!(CrashNote::beside(&recording).unwrap().core, Some(own));
        std::fs::write(&core, "").unwrap();
        assert_eq!(CrashNote::beside(&recording).unwrap().core, Some(core));
    }
}
