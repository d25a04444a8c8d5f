//! Activity ids that are paths.

use uuid::Uuid;

/// The difference between the sum of a path's first three words and its fourth.
const CHECK: u32 = 0x599D_99AD;

/// The path of an activity that an EventSource started: the numbers of its ancestors and its own.
///
/// EventSource makes the ids of activities that begin with a `Start` event out of such paths. Prints as
/// TraceEvent does: `//1/2/3/`, or `/#4711/1/2/3/` if the id belongs to process 4711.
///
/// ```
/// use clr_events::ActivityPath;
/// use nettrace::Uuid;
///
/// let id = Uuid::parse_str("00000011-0000-0000-0000-0000be999d59")?;
/// let path = ActivityPath::new(id, Some(4711)).ok_or("not a path")?;
/// assert_eq!(path.to_string(), "//1/1/");
/// let parent = path.ancestors().next().and_then(|id| ActivityPath::new(id, None));
/// assert_eq!(parent.map(|path| path.to_string()).as_deref(), Some("//1/"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// `ActivityTracker.cs` of dotnet/runtime: half bytes, high one first. 1 to 10 are numbers; 12 to 15 begin a
/// number of 1 to 4 bytes, little-endian, with a left-over low half byte as its highest bits; 11 marks a
/// number that did not fit its place; 0 ends the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ActivityPath {
    bytes: [u8; 12],
    process_id: Option<u32>,
}

/// One number of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PathSegment {
    /// The number: activities that one activity started are counted from 1.
    pub number: u64,
    /// The path was too long for the id, and this number replaces the rest.
    pub is_overflow: bool,
}

impl ActivityPath {
    /// The path of an id; `None` if the id is not a path. Most ids have the process mixed in, and are
    /// recognized as paths only with the right `process_id`.
    pub fn new(id: Uuid, process_id: Option<u64>) -> Option<Self> {
        let bytes = id.to_bytes_le();
        let (words, _) = bytes.as_chunks::<4>();
        let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
        let sum = words.by_ref().take(3).fold(CHECK, u32::wrapping_add);
        let process_id = match words.next()? ^ sum {
            0 => None,
            difference if process_id == Some(difference.into()) => Some(difference),
            _ => return None,
        };
        let path = Self { bytes: *bytes.first_chunk()?, process_id };
        path.segments().next().map(|_| path)
    }

    /// The process, if the id states it.
    pub const fn process_id(&self) -> Option<u32> {
        self.process_id
    }

    /// The ids of the enclosing activities, nearest first: the prefixes of its path. The last is the id of
    /// the process's own number, which does not belong to any activity.
    pub fn ancestors(&self) -> Ancestors {
        let mut starts = [0_u8; MAX_LENGTH];
        let mut segments = self.segments();
        let mut left = 0;
        loop {
            let start = segments.at;
            if segments.next().is_none() {
                break;
            }
            if let (Some(place), Ok(start)) = (starts.get_mut(left), u8::try_from(start)) {
                *place = start;
                left = left.saturating_add(1);
            }
        }
        Ancestors { path: *self, starts, left }
    }

    /// The id that has this path.
    fn id(&self) -> Uuid {
        let mut bytes = [0; 16];
        let (path, check) = bytes.split_at_mut(12);
        path.copy_from_slice(&self.bytes);
        let (words, _) = self.bytes.as_chunks::<4>();
        let sum = words.iter().fold(CHECK, |sum, word| sum.wrapping_add(u32::from_le_bytes(*word)));
        check.copy_from_slice(&(sum ^ self.process_id.unwrap_or(0)).to_le_bytes());
        Uuid::from_bytes_le(bytes)
    }

    /// The numbers, first activity first.
    pub const fn segments(&self) -> PathSegments {
        PathSegments { bytes: self.bytes, at: 0 }
    }
}

/// Maximum number of numbers in a path: each takes at least half a byte.
const MAX_LENGTH: usize = 24;

/// The ids of the activities that one lies within, nearest first: an iterator.
#[derive(Debug, Clone)]
pub struct Ancestors {
    path: ActivityPath,
    /// The half bytes at which the numbers that are left begin.
    starts: [u8; MAX_LENGTH],
    left: usize,
}

impl Iterator for Ancestors {
    type Item = Uuid;

    fn next(&mut self) -> Option<Uuid> {
        self.left = self.left.checked_sub(1)?;
        let end = *self.starts.get(self.left)?;
        if end == 0 {
            return None;
        }
        let mut rest = self.path.bytes.iter_mut().skip(usize::from(end >> 1));
        if end & 1 == 1
            && let Some(byte) = rest.next()
        {
            *byte &= 0xf0;
        }
        rest.for_each(|byte| *byte = 0);
        Some(self.path.id())
    }
}

/// The numbers of a path: an iterator.
#[derive(Debug, Clone)]
pub struct PathSegments {
    bytes: [u8; 12],
    /// Half bytes that have been read.
    at: usize,
}

impl PathSegments {
    fn half_byte(&mut self) -> Option<u8> {
        let byte = self.bytes.get(self.at >> 1)?;
        let half = if self.at & 1 == 0 { byte >> 4 } else { byte & 0xf };
        self.at = self.at.saturating_add(1);
        Some(half)
    }
}

impl Iterator for PathSegments {
    type Item = PathSegment;

    fn next(&mut self) -> Option<PathSegment> {
        let mut half = self.half_byte()?;
        let is_overflow = half == 11;
        if is_overflow {
            half = self.half_byte()?;
        }
        let number = match half {
            1..=10 if !is_overflow => u64::from(half),
            12..=15 => {
                let high = if self.at & 1 == 1 { self.half_byte()? } else { 0 };
                let from = self.at >> 1;
                let length = usize::from(half.saturating_sub(11));
                let bytes = self.bytes.get(from..from.saturating_add(length))?;
                self.at = self.at.saturating_add(length.saturating_mul(2));
                bytes.iter().rev().fold(u64::from(high), |value, byte| value << 8 | u64::from(*byte))
            }
            _ => {
                self.at = usize::MAX;
                return None;
            }
        };
        Some(PathSegment { number, is_overflow })
    }
}

impl core::fmt::Display for ActivityPath {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("/")?;
        if let Some(process_id) = self.process_id {
            write!(f, "#{process_id}")?;
        }
        for segment in self.segments() {
            write!(f, "{}{}", if segment.is_overflow { '$' } else { '/' }, segment.number)?;
        }
        f.write_str("/")
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString as _};
    use alloc::vec::Vec;

    use super::*;

    /// The id of a path in the half bytes of `path`.
    fn id(path: [u8; 12], process_id: u32) -> Uuid {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&path);
        let sum = bytes[..12]
            .as_chunks::<4>()
            .0
            .iter()
            .fold(CHECK, |sum, word| sum.wrapping_add(u32::from_le_bytes(*word)));
        bytes[12..].copy_from_slice(&(sum ^ process_id).to_le_bytes());
        Uuid::from_bytes_le(bytes)
    }

    fn text(path: [u8; 12]) -> Option<String> {
        ActivityPath::new(id(path, 0), None).map(|path| path.to_string())
    }

    #[test]
    fn paths_are_numbers() {
        assert_eq!(text([0x12, 0x3a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("//1/2/3/10/"));
        // A byte after a high half byte has four more bits, after a low one it has not.
        assert_eq!(text([0xc1, 0x24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("//292/"));
        assert_eq!(text([0x1c, 0x24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("//1/36/"));
        assert_eq!(text([0x1d, 0x34, 0x12, 0x20, 0, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("//1/4660/2/"));
        assert_eq!(text([0x1b, 0xd0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0]).as_deref(), Some("//1$4660/"));
        // Numbers that do not end before the path does.
        assert_eq!(
            text([0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1f]).map(|t| t.len()),
            Some(46 + 2)
        );
        assert_eq!(text([0xff; 12]).as_deref(), Some("//68719476735/68719476735/"));
        assert_eq!(text([0; 12]), None);
    }

    #[test]
    fn a_path_is_within_its_prefixes() {
        let ancestors = |path, process_id: u32| -> Vec<String> {
            let path = ActivityPath::new(id(path, process_id), Some(process_id.into())).unwrap();
            let ids = path.ancestors();
            ids.map(|id| ActivityPath::new(id, Some(process_id.into())).unwrap().to_string()).collect()
        };
        assert_eq!(
            ancestors([0x12, 0x3a, 0xc5, 0x24, 0x1d, 0x34, 0x12, 0, 0, 0, 0, 0], 18662),
            [
                "/#18662/1/2/3/10/1316/1/",
                "/#18662/1/2/3/10/1316/",
                "/#18662/1/2/3/10/",
                "/#18662/1/2/3/",
                "/#18662/1/2/",
                "/#18662/1/"
            ]
        );
        assert_eq!(ancestors([0x1b, 0xd0, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0, 0], 7), ["/#7/1/"]);
        assert_eq!(ancestors([0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 7), [""; 0]);
        // As long as paths become.
        let longest = ancestors([0x11; 12], 7);
        assert_eq!((longest.len(), longest.last().map(String::as_str)), (23, Some("/#7/1/")));
    }

    #[test]
    fn ids_of_processes_are_known_by_the_process() {
        let path = [0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let of = |process_id| ActivityPath::new(id(path, 18662), process_id).map(|path| path.to_string());
        assert_eq!(id(path, 18662).to_string(), "00000011-0000-0000-0000-000058d19d59");
        assert_eq!(of(Some(18662)).as_deref(), Some("/#18662/1/1/"));
        assert_eq!(of(Some(1)), None);
        assert_eq!(of(None), None);
        assert_eq!(ActivityPath::new(Uuid::from_u128(0x1234), Some(0)), None);
    }
}
