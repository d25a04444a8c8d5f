//! Events that several parts of one recording have.

use alloc::vec::Vec;

use hashbrown::HashMap;
use nettrace::Ticks;

use crate::bytes::u64;
use crate::event_block::RowHeader;

/// Maximum size of held events with the same time, in bytes.
const MAX_BYTES: usize = 16 << 20;

/// The events of the newest time, of recordings that are parts of one: the same event may be in several
/// parts, as the names of methods are.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    time: Ticks,
    bytes: usize,
    counts: HashMap<Vec<u8>, Counts>,
}

/// The numbers of equal events: written, and in each part.
#[derive(Debug, Default)]
struct Counts {
    written: u32,
    read: Vec<(usize, u32)>,
}

impl Repeated {
    /// Returns true if the event repeats an event of another part. `row` has the numbers of the new
    /// recording.
    pub(crate) fn has(&mut self, (group, part): (usize, usize), row: &RowHeader, payload: &[u8]) -> bool {
        if row.time != self.time {
            self.time = row.time;
            self.bytes = 0;
            self.counts.clear();
        }
        if self.bytes > MAX_BYTES {
            return false;
        }
        let mut key = Vec::with_capacity(payload.len().saturating_add(48));
        for number in [group as u64, row.metadata_id.into(), row.thread, row.capture_thread] {
            u64(&mut key, number);
        }
        u64(&mut key, u64::from(row.stack_id) << 32 | u64::from(row.label_list));
        key.extend_from_slice(payload);
        self.bytes = self.bytes.saturating_add(key.len());
        let counts = self.counts.entry(key).or_default();
        let read = if let Some((_, count)) = counts.read.iter_mut().find(|(of, _)| *of == part) {
            *count = count.saturating_add(1);
            *count
        } else {
            counts.read.push((part, 1));
            1
        };
        let repeats = read <= counts.written;
        counts.written = counts.written.max(read);
        repeats
    }

    /// Forgets the events: their stack and label list numbers are no longer valid.
    pub(crate) fn clear(&mut self) {
        self.bytes = 0;
        self.counts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_remain_as_one_part_has() {
        let mut repeated = Repeated::default();
        let row = RowHeader { metadata_id: 1, time: Ticks(5), ..RowHeader::default() };
        let found = [0, 0, 1, 1, 1].map(|part| repeated.has((0, part), &row, b"x"));
        assert_eq!(found, [false, false, true, true, false]);
        assert!(!repeated.has((1, 1), &row, b"x") && !repeated.has((0, 1), &row, b"y"));
        let later = RowHeader { time: Ticks(6), ..row };
        assert!(!repeated.has((0, 1), &later, b"x"));
    }
}
