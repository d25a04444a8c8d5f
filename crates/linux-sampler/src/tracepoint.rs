//! The kernel's tracepoints: their formats in tracefs, and `user_events`, the tracepoints that programs write
//! to.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;

use crate::error::Error;
use crate::sys::RegisteredEvent;

/// The folders at which tracefs is mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Maximum length of a format file: the kernel writes a line for each field, and has limits for these.
const MAX_FORMAT: usize = 1 << 16;

/// The system of the tracepoints that programs register.
pub const USER_EVENTS: &str = "user_events";

/// Opens `user_events_data`, to which programs register their tracepoints and write their events. A runtime
/// of .NET 10 takes its descriptor with the session.
///
/// # Errors
/// [`Error::UserEvents`] says which of these is missing: a kernel with `CONFIG_USER_EVENTS` (Linux 6.4 and
/// later; distributions often leave it out), tracefs, or the right to use it, which root has.
pub fn open_user_events_data() -> Result<File, Error> {
    let folder = tracefs()?;
    let path = folder.join("user_events_data");
    OpenOptions::new().read(true).write(true).open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::UserEvents("this kernel was built without CONFIG_USER_EVENTS"),
        io::ErrorKind::PermissionDenied => Error::UserEvents("only root may open user_events_data"),
        _ => Error::io(path.display().to_string())(error),
    })
}

/// A tracepoint of [`USER_EVENTS`] that this program has registered. It exists while a program has it, or
/// reads it.
///
/// A reader that registers a tracepoint before the program that writes to it misses none of its events.
#[derive(Debug)]
pub struct UserEvent {
    tracepoint: Tracepoint,
    _registered: RegisteredEvent,
}

impl UserEvent {
    /// Registers a tracepoint in the file of [`open_user_events_data`]. Programs that register the same name
    /// with the same `fields`, such as `u16 event_id; __rel_loc u8[] payload`, have the same tracepoint.
    ///
    /// # Errors
    /// If the kernel refuses the declaration, or tracefs cannot be read.
    pub fn register(data: &File, name: &str, fields: &str) -> Result<Self, Error> {
        let declaration = CString::new(format!("{name} {fields}"));
        let declaration = declaration.map_err(|_| Error::Settings("the name of a tracepoint has a NUL"))?;
        let registered = RegisteredEvent::new(data.as_fd(), &declaration)
            .map_err(Error::io(format!("register the tracepoint {name}")))?;
        Ok(Self { tracepoint: Tracepoint::open(USER_EVENTS, name)?, _registered: registered })
    }

    /// The tracepoint.
    pub const fn tracepoint(&self) -> &Tracepoint {
        &self.tracepoint
    }
}

/// Returns the folder of tracefs.
fn tracefs() -> Result<&'static Path, Error> {
    let mut reason = "tracefs is not mounted at /sys/kernel/tracing";
    for folder in TRACEFS.map(Path::new) {
        match fs::read_dir(folder).map(|mut entries| entries.next()) {
            Ok(Some(_)) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                reason = "only root may read tracefs";
            }
            _ => {}
        }
    }
    Err(Error::UserEvents(reason))
}

/// A tracepoint: its number, and the places of its fields in the bytes of an event.
///
/// ```
/// use linux_sampler::{FieldPlace, Tracepoint};
///
/// let format = "name: demo\nID: 1700\nformat:\n\
///     \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
///     \tfield:u16 event_id;\toffset:9;\tsize:2;\tsigned:0;\n\
///     \tfield:__rel_loc u8 payload[];\toffset:11;\tsize:4;\tsigned:1;\n";
/// let demo = Tracepoint::parse(format).ok_or("a format")?;
/// assert_eq!(demo.id(), 1700);
/// assert_eq!(demo.field("event_id"), Some(FieldPlace { offset: 9, size: 2, is_relative: false }));
/// let event = [0, 0, 0, 0, 0, 0, 0, 0, 1, 42, 0, 0, 0, 2, 0, b'h', b'i'];
/// assert_eq!(demo.value("payload", &event), Some(&b"hi"[..]));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    id: u32,
    fields: Vec<(String, FieldPlace)>,
}

/// The place of a field in the bytes of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "the kernel's description")]
pub struct FieldPlace {
    /// The first byte.
    pub offset: usize,
    /// The number of bytes.
    pub size: usize,
    /// True for `__rel_loc`: the four bytes have the length of the data in their upper half, and in their
    /// lower half its distance from the end of the field.
    pub is_relative: bool,
}

impl Tracepoint {
    /// Reads the format of a tracepoint of a system, such as `sched` or [`USER_EVENTS`]. A tracepoint of the
    /// latter exists once a program has registered it.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a format.
    pub fn open(system: &str, name: &str) -> Result<Self, Error> {
        if [system, name].iter().any(|part| part.contains('/') || part.starts_with('.')) {
            return Err(Error::Settings("the name of a tracepoint is not a path"));
        }
        let path = tracefs()?.join("events").join(system).join(name).join("format");
        let text = fs::read_to_string(&path).map_err(Error::io(path.display().to_string()))?;
        Self::parse(&text).ok_or(Error::Settings("the format of a tracepoint has no number"))
    }

    /// Reads the text of a format file; `None` without a number.
    pub fn parse(format: &str) -> Option<Self> {
        if format.len() > MAX_FORMAT {
            return None;
        }
        let id = format.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()?;
        Some(Self { id, fields: format.lines().filter_map(field).collect() })
    }

    /// The number of the tracepoint, by which events of the kernel name it.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The place of a field.
    pub fn field(&self, name: &str) -> Option<FieldPlace> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, place)| *place)
    }

    /// The bytes of a field in an event: see [`FieldPlace::value`]. `None` without such a field, too.
    pub fn value<'e>(&self, name: &str, event: &'e [u8]) -> Option<&'e [u8]> {
        self.field(name)?.value(event)
    }
}

impl FieldPlace {
    /// The bytes of the field in an event; those that it refers to if it is relative. `None` if the event is
    /// too short.
    pub fn value(self, event: &[u8]) -> Option<&[u8]> {
        let end = self.offset.checked_add(self.size)?;
        let own = event.get(self.offset..end)?;
        if !self.is_relative {
            return Some(own);
        }
        let [near, far, low, high] = own.try_into().ok()?;
        let start = end.checked_add(u16::from_ne_bytes([near, far]).into())?;
        let length = usize::from(u16::from_ne_bytes([low, high]));
        event.get(start..start.checked_add(length)?)
    }
}

/// Reads a line of a field: `field:TYPE NAME;` and its place.
fn field(line: &str) -> Option<(String, FieldPlace)> {
    let line = line.trim().strip_prefix("field:")?;
    let mut parts = line.split(';').map(str::trim);
    let declaration = parts.next()?;
    let number = |key: &str| {
        line.split(';').find_map(|part| part.trim().strip_prefix(key)?.strip_prefix(':')?.parse().ok())
    };
    let (kind, name) = declaration.rsplit_once(' ')?;
    // Arrays have their length, or nothing, in brackets.
    let name = name.split('[').next()?;
    let is_relative = kind.starts_with("__rel_loc ");
    Some((name.to_owned(), FieldPlace { offset: number("offset")?, size: number("size")?, is_relative }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format of a tracepoint that .NET 10.0.5 registered, on Linux 6.12.
    const FORMAT: &str = include_str!("tracepoint/dotnet.format");

    #[test]
    fn reads_the_format_of_the_runtimes_tracepoints() {
        let tracepoint = Tracepoint::parse(FORMAT).unwrap();
        let place = |name| tracepoint.field(name).map(|place| (place.offset, place.size, place.is_relative));
        assert_eq!(place("common_pid"), Some((4, 4, false)));
        assert_eq!(place("version"), Some((8, 1, false)));
        assert_eq!(place("event_id"), Some((9, 2, false)));
        assert_eq!(place("extension"), Some((11, 4, true)));
        assert_eq!(place("payload"), Some((15, 4, true)));
        assert_eq!(place("nothing"), None);
    }

    #[test]
    fn values_beyond_the_event_are_none() {
        let tracepoint = Tracepoint::parse(FORMAT).unwrap();
        let mut event = vec![0; 8];
        event.extend([1, 42, 0]);
        // An extension of 3 bytes after the place of the payload, and 2 bytes of payload after it.
        event.extend([4, 0, 3, 0, 3, 0, 2, 0]);
        event.extend(b"extpl");
        let value = |name, length: usize| tracepoint.value(name, &event[..length]);
        let whole = event.len();
        assert_eq!(value("event_id", whole), Some(&[42, 0][..]));
        assert_eq!(value("extension", whole), Some(&b"ext"[..]));
        assert_eq!(value("payload", whole), Some(&b"pl"[..]));
        assert_eq!(value("payload", whole - 1), None);
        for length in 0..19 {
            assert_eq!(value("payload", length), None, "{length}");
        }
    }

    #[test]
    fn rejects_paths() {
        for (system, name) in [("..", "x"), ("sched", "../x"), ("sched/x", "y")] {
            assert!(matches!(Tracepoint::open(system, name), Err(Error::Settings(_))), "{system} {name}");
        }
    }

    #[test]
    fn rejects_text_without_a_number() {
        for text in ["", "ID: x", "ID: 99999999999", "format:\n\tfield:int a;\toffset:0;\tsize:4;"] {
            assert_eq!(Tracepoint::parse(text), None, "{text}");
        }
        assert_eq!(Tracepoint::parse(&"ID: 1\n".repeat(1 << 15)), None, "a long text");
    }
}
