//! Recordings for an export: the hash of their content, their date and their labels.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use nettrace::Reader;
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::id::Id;
use crate::survey::start_ns;

/// Labels of a recording: facts that it does not contain itself. `service` names its partition; `version`,
/// `pod` and `host` have columns of their own.
///
/// ```
/// use nettrace_tables::Labels;
///
/// let mut labels = Labels::from_json(r#"{"service": "shop", "replicas": 3}"#)?;
/// let mut of_machine = Labels::default();
/// of_machine.insert("host", "web-1");
/// of_machine.insert("service", "unused");
/// labels.add_missing(&of_machine);
/// assert_eq!((labels.service(), labels.get("replicas")), ("shop", Some("3")));
/// assert_eq!(labels.get("host"), Some("web-1"));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Sets a label.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds labels that are not set yet.
    pub fn add_missing(&mut self, other: &Self) {
        for (name, value) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Returns a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Reads labels from a JSON object of strings, numbers and booleans.
    ///
    /// # Errors
    /// If the text is not such an object.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let object: BTreeMap<String, serde_json::Value> =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        let mut labels = Self::default();
        for (name, value) in object {
            match value {
                serde_json::Value::Null => {}
                serde_json::Value::String(text) => labels.insert(name, text),
                serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
                    labels.insert(name, value.to_string());
                }
                _ => return Err(format!("the value of '{name}' is a list or an object")),
            }
        }
        Ok(labels)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    /// The service, by which files are partitioned; `unknown` without one.
    pub fn service(&self) -> &str {
        self.get("service").filter(|service| !service.is_empty()).unwrap_or("unknown")
    }

    pub(crate) fn version(&self) -> Option<&str> {
        self.get("version")
    }

    pub(crate) fn pod(&self) -> Option<&str> {
        self.get("pod")
    }

    pub(crate) fn host(&self) -> Option<&str> {
        self.get("host")
    }
}

/// A recording for an export.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// The place that rows name: the path as given, or an address of a store.
    pub uri: String,
    /// The labels.
    pub labels: Labels,
    /// The identity of the content: 32 hexadecimal digits of the file's SHA-256.
    pub recording: String,
    /// The size of the file.
    pub bytes: u64,
    /// The UTC date of the recording's start, `2026-11-23`; `1970-01-01` without a valid date.
    pub date: String,
}

impl Input {
    /// Reads a recording's header and hashes its content.
    ///
    /// ```
    /// # use nettrace::{Ticks, TraceInfo};
    /// # use nettrace_writer::{EventKind, EventWriter};
    /// # let folder = tempfile::tempdir()?;
    /// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
    /// # let mut source = EventWriter::new(&info)?;
    /// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[]))?;
    /// # let thread = source.thread(7, 8, Some("main"))?;
    /// # source.event(tick, Ticks(5), thread, None, &[], &[])?;
    /// # source.finish()?;
    /// # let recording = folder.path().join("app.nettrace");
    /// # std::fs::write(&recording, source.bytes())?;
    /// use nettrace_tables::{Input, Labels};
    ///
    /// let input = Input::open(&recording, Labels::default())?;
    /// assert_eq!((input.date.as_str(), input.recording.len()), ("2026-11-21", 32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If it cannot be read, or is not a recording.
    pub fn open(path: &Path, labels: Labels) -> Result<Self, Error> {
        let file = File::open(path).map_err(Error::file(path))?;
        let mut source = Counted::new(file);
        let reader = Reader::new(&mut source);
        let header = reader.map(|reader| start_ns(reader.info()));
        let start_ns = header.map_err(|error| recording_error(path, error, source.count))?;
        let mut file = File::open(path).map_err(Error::file(path))?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 18];
        let mut bytes = 0u64;
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    hash.update(buffer.get(..count).unwrap_or_default());
                    bytes = bytes.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::file(path)(error)),
            }
        }
        Ok(Self {
            path: path.to_owned(),
            uri: path.to_string_lossy().into_owned(),
            labels,
            recording: Id::first(&hash.finalize()).to_hex(),
            bytes,
            date: date(start_ns.div_euclid(86_400_000_000_000)),
        })
    }

    /// Opens the recording again.
    pub(crate) fn reader(&self) -> Result<Reader<Counted<File>>, Error> {
        let file = File::open(&self.path).map_err(Error::file(&self.path))?;
        let size = file.metadata().map_err(Error::file(&self.path))?.len();
        if size != self.bytes {
            return Err(Error::Changed { path: self.path.clone() });
        }
        Reader::new(Counted::new(file)).map_err(|error| recording_error(&self.path, error, u64::MAX))
    }
}

/// Returns the error for a recording after `count` bytes were read.
fn recording_error(path: &Path, error: nettrace::Error, count: u64) -> Error {
    match error {
        nettrace::Error::BadHeader { offset, .. } if offset == count => {
            Error::CutHeader { path: path.to_owned() }
        }
        error => Error::Recording { path: path.to_owned(), error },
    }
}

/// A source that counts the bytes read from it.
#[derive(Debug)]
pub(crate) struct Counted<R> {
    source: R,
    count: u64,
}

impl<R> Counted<R> {
    const fn new(source: R) -> Self {
        Self { source, count: 0 }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.count = self.count.saturating_add(count as u64);
        Ok(count)
    }
}

/// Returns the date of a day since 1970. Years are counted from March, so that a leap day ends one.
fn date(days: i64) -> String {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        // Computed by `date -u -d @…`.
        for (days, expected) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (20_780, "2026-11-23"),
            (-134_774, "1601-01-01"),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn labels_are_an_object_of_plain_values() {
        let labels = Labels::from_json(r#"{"service": "shop", "version": 14, "canary": true, "pod": null}"#);
        let labels = labels.unwrap();
        assert_eq!((labels.service(), labels.version(), labels.pod()), ("shop", Some("14"), None));
        assert_eq!(labels.to_json(), r#"{"canary":"true","service":"shop","version":"14"}"#);
        assert!(Labels::from_json(r#"{"a": []}"#).unwrap_err().contains("'a'"));
        assert!(Labels::from_json("[]").is_err());
        assert_eq!(Labels::default().service(), "unknown");
    }
}
