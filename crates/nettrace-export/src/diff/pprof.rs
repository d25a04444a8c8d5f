//! Profiles in pprof's format as runs.
//!
//! # Source
//! `profile.proto` of google/pprof; the encoding of protocol buffers.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use hashbrown::{HashMap, HashSet};
use prost::Message;

use crate::diff::call_tree::CallTree;
use crate::diff::run::Run;
use crate::diff::series::{Entry, SeriesTable};
use crate::diff::subject::{Kind, Subject};
use crate::format::protobuf::pprof::{Function, Label, Location, Sample, ValueType};
use crate::profile::measure::Unit;
use crate::profile::pseudo_frames;

/// Maximum number of bytes of a profile, after decompression.
const MAX_BYTES: u64 = 256 << 20;
/// Maximum number of strings, functions, locations and types of values, each.
const MAX_ENTRIES: usize = 1 << 21;
/// Maximum number of nodes of the tree of its stacks.
const MAX_NODES: usize = 1 << 17;
/// The duration of a profile without one: its amounts then are for each profile.
const NO_DURATION: Duration = Duration::from_secs(1);

/// The error of a profile that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PprofError {
    /// The file cannot be decompressed.
    Gzip,
    /// The message at this offset, after decompression, is not part of a valid profile.
    Malformed {
        /// The offset of the message's field.
        offset: usize,
    },
    /// The profile exceeds the limits for bytes, strings, functions or locations.
    TooLarge,
    /// The profile lacks types of values, or a number in it refers to nothing.
    NoValues,
}

impl fmt::Display for PprofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gzip => f.write_str("not a whole gzip file"),
            Self::Malformed { offset } => write!(f, "not a profile of pprof: offset {offset}"),
            Self::TooLarge => f.write_str("more than 256 MB or 2 million names"),
            Self::NoValues => f.write_str("it does not say what its values are"),
        }
    }
}

impl std::error::Error for PprofError {}

/// Returns true if a file that begins with these bytes is a profile of pprof, or compressed as one.
/// Recordings begin with other bytes.
pub fn is_pprof(beginning: &[u8]) -> bool {
    // The first field: the types of values, or any other message.
    beginning.starts_with(&[0x1f, 0x8b]) || beginning.starts_with(&[0x0a])
}

impl Run {
    /// Reads a profile of pprof, compressed or not. Its amounts are of one moment: noise is measurable only
    /// with several profiles a side.
    ///
    /// The values of `default_sample_type` count, or else the last ones: nanoseconds and counts as
    /// profile as blocked time. Samples with the label `kind` that this crate gives to blocked threads are
    /// not CPU time.
    ///
    /// # Errors
    /// Fails if the file is not a profile, or is larger than 256 MB after decompression.
    pub fn of_pprof(bytes: &[u8]) -> Result<Self, PprofError> {
        let mut decompressed = Vec::new();
        let bytes = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut decoder = MultiGzDecoder::new(bytes).take(MAX_BYTES + 1);
            decoder.read_to_end(&mut decompressed).map_err(|_| PprofError::Gzip)?;
            &decompressed
        } else {
            bytes
        };
        if bytes.len() as u64 > MAX_BYTES {
            return Err(PprofError::TooLarge);
        }
        Tables::read(bytes)?.run(bytes)
    }
}

/// A field of the profile.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    Other,
}

/// The fields of a message, one after the other.
struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take(&mut self, length: u64) -> Option<&'b [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn field(&mut self) -> Option<(u64, Field<'b>)> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.take(8).map(|_| Field::Other)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Field::Other)?,
            _ => return None,
        };
        Some((key >> 3, field))
    }

    /// Passes each field with its offset.
    fn each(
        bytes: &'b [u8],
        mut each: impl FnMut(u64, Field<'b>, usize) -> Result<(), PprofError>,
    ) -> Result<(), PprofError> {
        let mut fields = Fields { bytes, at: 0 };
        while fields.at < bytes.len() {
            let offset = fields.at;
            let (number, field) = fields.field().ok_or(PprofError::Malformed { offset })?;
            each(number, field, offset)?;
        }
        Ok(())
    }
}

/// The tables that samples refer to.
#[derive(Default)]
struct Tables<'b> {
    types: Vec<ValueType>,
    strings: Vec<&'b [u8]>,
    /// Function names, by function id.
    functions: HashMap<u64, i64>,
    /// The functions of each location, the innermost first.
    locations: HashMap<u64, Vec<u64>>,
    default_type: i64,
    duration: u64,
}

fn decoded<M: Message + Default>(bytes: &[u8], offset: usize) -> Result<M, PprofError> {
    M::decode(bytes).map_err(|_| PprofError::Malformed { offset })
}

impl<'b> Tables<'b> {
    fn read(bytes: &'b [u8]) -> Result<Self, PprofError> {
        let mut tables = Self::default();
        let mut functions = Vec::new();
        Fields::each(bytes, |number, field, offset| {
            match (number, field) {
                (1, Field::Bytes(bytes)) => tables.types.push(decoded(bytes, offset)?),
                (4, Field::Bytes(bytes)) => {
                    let Location { id, line, .. } = decoded(bytes, offset)?;
                    tables.locations.insert(id, line.iter().map(|line| line.function_id).collect());
                }
                (5, Field::Bytes(bytes)) => functions.push(decoded::<Function>(bytes, offset)?),
                (6, Field::Bytes(bytes)) => tables.strings.push(bytes),
                (10, Field::Number(nanoseconds)) => tables.duration = nanoseconds,
                (14, Field::Number(name)) => tables.default_type = name.cast_signed(),
                _ => {}
            }
            let lengths = [tables.types.len(), tables.strings.len(), tables.locations.len(), functions.len()];
            if lengths.into_iter().any(|length| length > MAX_ENTRIES) {
                return Err(PprofError::TooLarge);
            }
            Ok(())
        })?;
        for function in functions {
            // The whole name has the module, where this crate wrote the profile.
            let system = tables.string(function.system_name);
            let has_module = system.contains(&b'!');
            let name = if has_module { function.system_name } else { function.name };
            tables.functions.insert(function.id, name);
        }
        Ok(tables)
    }

    fn string(&self, number: i64) -> &'b [u8] {
        usize::try_from(number).ok().and_then(|number| self.strings.get(number)).copied().unwrap_or_default()
    }

    /// Returns the index of the values that count, their kind, and the factor that makes them nanoseconds,
    /// bytes or a number.
    fn values(&self) -> Result<(usize, Kind, Unit, f64), PprofError> {
        let is_default = |it: &ValueType| self.default_type != 0 && it.kind == self.default_type;
        let last = self.types.len().checked_sub(1).ok_or(PprofError::NoValues)?;
        let index = self.types.iter().position(is_default).unwrap_or(last);
        let of = self.types.get(index).ok_or(PprofError::NoValues)?;
        let (name, unit) = (self.string(of.kind), self.string(of.unit));
        let (unit, factor) = match unit {
            b"nanoseconds" => (Unit::Nanoseconds, 1.0),
            b"microseconds" => (Unit::Nanoseconds, 1e3),
            b"milliseconds" => (Unit::Nanoseconds, 1e6),
            b"seconds" => (Unit::Nanoseconds, 1e9),
            b"bytes" => (Unit::Bytes, 1.0),
            b"kilobytes" => (Unit::Bytes, 1024.0),
            b"megabytes" => (Unit::Bytes, 1024.0 * 1024.0),
            _ => (Unit::Count, 1.0),
        };
        let kind = match (unit, name) {
            (Unit::Bytes, _) => Kind::Allocations,
            (Unit::Nanoseconds, b"delay") => Kind::Blocked,
            (Unit::Count, b"exceptions") => Kind::Exceptions,
            _ => Kind::Cpu,
        };
        Ok((index, kind, unit, factor))
    }

    fn run(&self, bytes: &'b [u8]) -> Result<Run, PprofError> {
        let (index, kind, unit, factor) = self.values()?;
        let of_count = self.types.iter().position(|it| self.string(it.unit) == b"count");
        let mut tree = CallTree::with_most(MAX_NODES);
        let mut sums = Sums::default();
        let mut names: HashMap<u64, Box<str>> = HashMap::new();
        Fields::each(bytes, |number, field, offset| {
            let (2, Field::Bytes(bytes)) = (number, field) else { return Ok(()) };
            let sample: Sample = decoded(bytes, offset)?;
            let value = |index: usize| sample.value.get(index).map_or(0.0, |value| float(*value));
            let (amount, count) = (value(index) * factor, of_count.map_or(1.0, value));
            // Differences of two profiles have negative values.
            if amount <= 0.0 || (kind == Kind::Cpu && self.is_blocked(&sample.label)) {
                return Ok(());
            }
            sums.amount += amount;
            sums.count += count.max(0.0);
            let mut node = 0;
            for location in sample.location_id.iter().rev() {
                for function in self.locations.get(location).into_iter().flatten().rev() {
                    let name = names.entry(*function).or_insert_with(|| self.name(*function));
                    node = tree.child(node, name);
                }
            }
            tree.add(node, 0, amount);
            Ok(())
        })?;
        tree.typical = if sums.count > 0.0 { (sums.amount / sums.count).max(1e-9) } else { 1.0 };
        let duration = if self.duration > 0 { Duration::from_nanos(self.duration) } else { NO_DURATION };
        let mut series = SeriesTable::new(nettrace::RelativeTime::START);
        add_functions(&tree, kind, &mut series);
        Ok(Run {
            duration,
            cpu_unit: if kind == Kind::Cpu { unit } else { Unit::Nanoseconds },
            queued: None,
            seconds: vec![duration.as_secs_f64()],
            cells: series.into_cells(),
            stacks: tree,
            stack_kind: kind,
            csharp: BTreeMap::new(),
        })
    }

    /// The name of a function, cut at [`MAX_NAME_LENGTH`](crate::MAX_NAME_LENGTH).
    fn name(&self, function: u64) -> Box<str> {
        let name = self.functions.get(&function).map_or(&b""[..], |name| self.string(*name));
        let mut cut = String::new();
        crate::push_name(
            &mut cut,
            String::from_utf8_lossy(name.get(..MAX_NAME_SIZE.min(name.len())).unwrap_or(name)),
        );
        if cut.is_empty() { "?".into() } else { cut.into() }
    }

    fn is_blocked(&self, labels: &[Label]) -> bool {
        let is_kind = |label: &Label| {
            self.string(label.key) == b"kind" && self.string(label.text) == pseudo_frames::BLOCKED.as_bytes()
        };
        labels.iter().any(is_kind)
    }
}

/// Bytes of a name that are looked at.
const MAX_NAME_SIZE: usize = 1 << 14;

#[derive(Default)]
struct Sums {
    amount: f64,
    count: f64,
}

#[allow(clippy::cast_precision_loss, reason = "values have fewer digits")]
const fn float(number: i64) -> f64 {
    number as f64
}

/// Adds the amounts of each function: by itself, and of CPU time also with all that it called.
fn add_functions(tree: &CallTree, kind: Kind, series: &mut SeriesTable) {
    let nodes = tree.nodes();
    let mut inclusive: Vec<f64> = nodes.iter().map(|node| node.own_in(&(0..1))).collect();
    let own = inclusive.clone();
    for (index, node) in nodes.iter().enumerate().skip(1).rev() {
        let amount = inclusive.get(index).copied().unwrap_or(0.0);
        if let Some(sum) = inclusive.get_mut(node.parent as usize) {
            *sum += amount;
        }
    }
    let mut add = |kind: Kind, name: &str, amount: f64| {
        if amount > 0.0 {
            let entry = Entry { amount, count: amount / tree.typical, kernel: 0.0, duration: None };
            series.add_in(Subject::new(kind, name.to_owned().into()), 0, entry);
        }
    };
    add(kind, "", inclusive.first().copied().unwrap_or(0.0));
    let mut callers = HashSet::new();
    for (index, node) in nodes.iter().enumerate().skip(1) {
        let name = tree.name(node);
        add(kind, name, own.get(index).copied().unwrap_or(0.0));
        if kind != Kind::Cpu {
            continue;
        }
        callers.clear();
        let mut at = node.parent;
        while let Some(caller) = nodes.get(at as usize).filter(|_| at != 0) {
            callers.insert(tree.name(caller));
            at = caller.parent;
        }
        // However often a function is on a stack, it counts once.
        if !callers.contains(name) {
            add(Kind::CpuInclusive, name, inclusive.get(index).copied().unwrap_or(0.0));
        }
    }
}
