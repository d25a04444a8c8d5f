//! Replacement of strings in events: command lines, paths and the like.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::str::FromStr;

use clr_events::{Glob, event_fields, event_name};
use nettrace::{Event, Fields, TypeCode, Value};

/// The event of `dipc profile` with what it read of the process, a part of one text with strings of all
/// classes.
const READINGS: &str = "Dipc-Readings/Part";

/// A class of strings, identified by the names of fields.
///
/// ```
/// use nettrace_edit::RedactionClass;
///
/// // For the help of a program.
/// let names = RedactionClass::ALL.map(RedactionClass::name);
/// assert!(names.contains(&"command-lines") && names.contains(&"paths"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedactionClass {
    /// Command lines and arguments.
    CommandLines,
    /// Paths of files and folders.
    Paths,
    /// Names and ids of users.
    UserNames,
    /// Messages of exceptions.
    ExceptionMessages,
    /// SQL commands and queries.
    Sql,
    /// Addresses of the network, and their parts.
    Urls,
}

/// The strings to replace: a class, or the fields that match the pattern `Provider/Event.field`.
///
/// Parsed from a class such as `paths`, or from `Provider/Event.field` with `*` for any characters.
///
/// ```
/// use nettrace_edit::{Redaction, RedactionClass};
///
/// assert_eq!("paths".parse(), Ok(Redaction::Class(RedactionClass::Paths)));
/// assert!(matches!("Shop/*.Customer".parse(), Ok(Redaction::Fields(_))));
/// assert!("customers".parse::<Redaction>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Redaction {
    /// A class of strings.
    Class(RedactionClass),
    /// The fields of this pattern.
    Fields(Glob),
}

/// A text that is neither a class nor a pattern of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a class (command-lines, paths, user-names, exception-messages, sql, urls) or Provider/Event.field")]
pub struct InvalidRedaction;

impl FromStr for Redaction {
    type Err = InvalidRedaction;

    fn from_str(text: &str) -> Result<Self, InvalidRedaction> {
        let class = RedactionClass::ALL.iter().find(|class| class.name().eq_ignore_ascii_case(text));
        match class {
            Some(class) => Ok(Self::Class(*class)),
            None if text.contains('.') => Ok(Self::Fields(Glob::new(text))),
            None => Err(InvalidRedaction),
        }
    }
}

impl Redaction {
    fn admits(&self, event: &str, field: &str) -> bool {
        match self {
            Self::Class(class) => event == READINGS || class.has(event, &field.to_ascii_lowercase()),
            Self::Fields(glob) => glob.matches(&format!("{event}.{field}")),
        }
    }
}

impl RedactionClass {
    /// All classes.
    pub const ALL: [Self; 6] =
        [Self::CommandLines, Self::Paths, Self::UserNames, Self::ExceptionMessages, Self::Sql, Self::Urls];

    /// The name from which a [`Redaction`] is parsed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CommandLines => "command-lines",
            Self::Paths => "paths",
            Self::UserNames => "user-names",
            Self::ExceptionMessages => "exception-messages",
            Self::Sql => "sql",
            Self::Urls => "urls",
        }
    }

    /// Returns true if a field belongs to the class; `field` is in lower case.
    fn has(self, event: &str, field: &str) -> bool {
        let has_any = |parts: &[&str]| parts.iter().any(|part| field.contains(part));
        match self {
            Self::CommandLines => has_any(&["commandline", "arguments", "argv"]),
            Self::Paths => has_any(&["path", "filename", "directory", "folder"]),
            Self::UserNames => has_any(&["username", "userid", "account", "login"]) || field == "user",
            Self::ExceptionMessages => {
                has_any(&["exceptionmessage"])
                    || field.contains("message") && event.to_ascii_lowercase().contains("exception")
            }
            Self::Sql => has_any(&["commandtext", "sql", "statement", "query"]),
            Self::Urls => {
                has_any(&["url", "uri", "host", "query", "path", "address"]) && !field.ends_with("ilpath")
            }
        }
    }
}

/// The letters that replace strings, one for each code unit.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RedactionLetters {
    /// Letters from a keyed hash of the string: equal strings become equal letters. The key exists only in
    /// this run, and another key gives other letters.
    ByText(RandomState),
    /// The same letter in all runs: only the length of a string is left.
    Same,
}

impl RedactionLetters {
    /// The letters of one run.
    pub fn by_text() -> Self {
        Self::ByText(RandomState::new())
    }
}

/// A redactor, which replaces strings with letters, one for each code unit.
///
/// ```
/// # use nettrace::{Ticks, TraceInfo};
/// # use nettrace_writer::{EventKind, EventWriter, FieldKind};
/// # let info = TraceInfo::new_v6(1_795_251_731_123, Ticks(0), vec![("ProcessId".into(), "7".into())]);
/// # let mut source = EventWriter::new(&info)?;
/// # let tick = source.define(&EventKind::new("Demo", 1, "Tick", &[("Path", FieldKind::Text)]))?;
/// # let thread = source.thread(7, 8, Some("main"))?;
/// # for second in 0..10 {
/// #     source.event(tick, Ticks(second * 1_000_000_000), thread, None, &[], &[2, 0, b'h', b'i'])?;
/// # }
/// # source.finish()?;
/// # let recording = source.bytes().to_vec();
/// use nettrace_edit::{RedactionLetters, Redactor};
///
/// let mut redactor = Redactor::new(vec!["paths".parse()?], RedactionLetters::Same);
/// let mut events = nettrace::SliceReader::new(&recording)?;
/// let event = events.next()?.ok_or("an event")?;
/// // Two letters in place of "hi", after the length.
/// let payload = redactor.payload(&event).to_vec();
/// assert_eq!((payload.len(), &payload[..2]), (4, &[2, 0][..]));
/// assert!(!payload.ends_with(b"hi") && redactor.unread().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Redactor {
    redactions: Vec<Redaction>,
    /// The key of the hash; `None` if all letters are the same.
    hasher: Option<RandomState>,
    payload: Vec<u8>,
    /// The number of replaced strings, by field.
    replaced: BTreeMap<String, u64>,
    /// The number of payloads, by event, that are undescribed and therefore unchanged.
    unread: BTreeMap<String, u64>,
}

/// Maximum number of fields and events to count individually.
const MAX_COUNTED: usize = 10_000;
/// Maximum depth of nested objects.
const MAX_NESTING: usize = 8;

impl Redactor {
    /// Creates a redactor of these strings.
    pub fn new(redactions: Vec<Redaction>, letters: RedactionLetters) -> Self {
        Self {
            redactions,
            hasher: match letters {
                RedactionLetters::ByText(hasher) => Some(hasher),
                RedactionLetters::Same => None,
            },
            payload: Vec::new(),
            replaced: BTreeMap::new(),
            unread: BTreeMap::new(),
        }
    }

    /// Returns the payload of an event with its strings replaced.
    pub fn payload<'a>(&'a mut self, event: &Event<'a>) -> &'a [u8] {
        match self.redact(event) {
            Redacted::Kept => event.payload(),
            Redacted::Replaced(payload) | Redacted::InPart(payload) => payload,
        }
    }

    /// Replaces the strings in the payload of an event.
    pub fn redact(&mut self, event: &Event<'_>) -> Redacted<'_> {
        if event.payload().is_empty() {
            return Redacted::Kept;
        }
        self.payload.clear();
        self.payload.extend_from_slice(event.payload());
        let name = format!("{}/{}", event.provider(), event_name(event));
        let Some(mut fields) = event_fields(event) else {
            count(&mut self.unread, name, 1);
            return Redacted::InPart(&self.payload);
        };
        let mut is_changed = false;
        let is_read = self.redact_fields(&name, &mut fields, event.payload(), 0, &mut is_changed);
        if !is_read {
            count(&mut self.unread, name, 1);
            return Redacted::InPart(&self.payload);
        }
        if is_changed { Redacted::Replaced(&self.payload) } else { Redacted::Kept }
    }

    /// Adds the counts of another redactor.
    pub fn add_counts(&mut self, other: Self) {
        for (all, more) in [(&mut self.replaced, other.replaced), (&mut self.unread, other.unread)] {
            for (name, number) in more {
                count(all, name, number);
            }
        }
    }

    /// Replaces the strings of fields. Returns whether all fields could be read.
    fn redact_fields(
        &mut self,
        event: &str,
        fields: &mut Fields<'_>,
        payload: &[u8],
        depth: usize,
        is_changed: &mut bool,
    ) -> bool {
        // An object {Key, Value} counts as a field with the name of the key.
        let mut key = None;
        let mut is_read = true;
        for field in fields {
            let Ok((name, value)) = field else {
                is_read = false;
                continue;
            };
            if let (true, Value::String(text)) = (depth > 0 && name == "Key", value) {
                key = Some(text.to_string());
                continue;
            }
            let name = key.as_deref().filter(|_| name == "Value").unwrap_or(name).to_owned();
            is_read &= self.redact_value(event, &name, value, payload, depth, is_changed);
        }
        is_read
    }

    fn redact_value(
        &mut self,
        event: &str,
        field: &str,
        value: Value<'_>,
        payload: &[u8],
        depth: usize,
        is_changed: &mut bool,
    ) -> bool {
        let (bytes, unit) = match value {
            Value::String(text) => (text.as_bytes(), 2),
            Value::Utf8(text) => (text, 1),
            Value::Object(mut fields) if depth < MAX_NESTING => {
                return self.redact_fields(event, &mut fields, payload, depth.saturating_add(1), is_changed);
            }
            Value::Array(array) => {
                if let Some(text) = array.as_utf16() {
                    (text.as_bytes(), 2)
                } else if let Some(bytes) = array.as_bytes() {
                    if array.element_code() != Some(TypeCode::UTF8_CODE_UNIT) {
                        return true;
                    }
                    (bytes, 1)
                } else {
                    let mut is_read = depth < MAX_NESTING;
                    if is_read {
                        let depth = depth.saturating_add(1);
                        for value in array {
                            is_read &= self.redact_value(event, field, value, payload, depth, is_changed);
                        }
                    }
                    return is_read;
                }
            }
            Value::Object(_) => return false,
            _ => return true,
        };
        if bytes.is_empty() || !self.redactions.iter().any(|redaction| redaction.admits(event, field)) {
            return true;
        }
        // The text is a slice of the payload.
        let start = bytes.as_ptr().addr().wrapping_sub(payload.as_ptr().addr());
        let Some(place) = self.payload.get_mut(start..start.saturating_add(bytes.len())) else {
            return false;
        };
        fill(place, unit, self.hasher.as_ref());
        *is_changed = true;
        count(&mut self.replaced, format!("{event}.{field}"), 1);
        true
    }

    /// The fields, with the number of strings replaced in each.
    pub const fn replaced(&self) -> &BTreeMap<String, u64> {
        &self.replaced
    }

    /// The events, with the number of payloads that are undescribed and therefore unchanged.
    pub const fn unread(&self) -> &BTreeMap<String, u64> {
        &self.unread
    }
}

/// The payload of an event after its redaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller handles each, or texts would be left")]
pub enum Redacted<'r> {
    /// Nothing had to be replaced.
    Kept,
    /// The payload with its strings replaced.
    Replaced(&'r [u8]),
    /// Some fields could not be read. The strings of the others are replaced in this payload.
    InPart(&'r [u8]),
}

/// Number of letters derived from one hash.
const LETTERS_PER_HASH: u32 = 12;

/// Fills a string of 1-byte or 2-byte code units with letters.
fn fill(text: &mut [u8], unit: usize, hasher: Option<&RandomState>) {
    let mut letters = hasher.map(|hasher| (hasher, hasher.hash_one(&*text), LETTERS_PER_HASH));
    for unit in text.chunks_exact_mut(unit) {
        let letter = letters.as_mut().map_or(b'x', |(hasher, hash, left)| {
            *left = left.saturating_sub(1);
            if *left == 0 {
                *hash = hasher.hash_one(*hash);
                *left = LETTERS_PER_HASH;
            }
            let letter = b"abcdefghijklmnopqrstuvwxyz".get((*hash % 26) as usize).copied().unwrap_or(b'x');
            *hash /= 26;
            letter
        });
        unit.fill(0);
        if let Some(first) = unit.first_mut() {
            *first = letter;
        }
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: String, number: u64) {
    if counts.len() < MAX_COUNTED || counts.contains_key(&name) {
        let count = counts.entry(name).or_default();
        *count = count.saturating_add(number);
    }
}
