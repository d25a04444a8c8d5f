//! Counts and sums by key and bin.

use std::io::{self, Write};

use hashbrown::HashMap;
use nettrace::RelativeTime;

use crate::page::bins::{BinWidth, MAX_BINS};

/// Maximum number of cells: bins get wider before it is exceeded.
const MAX_CELLS: usize = 1 << 18;

/// Counts and sums by key and bin. Bins begin narrow and get wider with the recording.
#[derive(Debug, Default)]
pub(super) struct Cells {
    width: BinWidth,
    cells: HashMap<(u32, u32), Cell>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    count: u64,
    sum: u64,
}

impl Cells {
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    pub(super) const fn width(&self) -> BinWidth {
        self.width
    }

    /// Adds to the cell of a key and a time.
    pub(super) fn add(&mut self, key: u32, time: RelativeTime, count: u64, sum: u64) {
        self.reach(time);
        self.add_to(key, self.width.bin(time), count, sum);
    }

    /// Adds the nanoseconds of an interval to the sums of the bins that it lies in.
    pub(super) fn add_interval(&mut self, key: u32, start: RelativeTime, end: RelativeTime) {
        self.reach(end);
        let nanoseconds = if end > start { end.as_nanos().abs_diff(start.as_nanos()) } else { 0 };
        let width = self.width;
        width.split(start, nanoseconds, |bin, part| self.add_to(key, bin, 0, part));
    }

    fn add_to(&mut self, key: u32, bin: u32, count: u64, sum: u64) {
        let cell = self.cells.entry((key, bin)).or_default();
        cell.count = cell.count.saturating_add(count);
        cell.sum = cell.sum.saturating_add(sum);
    }

    /// Makes bins so wide that they reach up to a time, and that there are not too many cells.
    fn reach(&mut self, time: RelativeTime) {
        let width = self.width.max(BinWidth::up_to(time));
        if width > self.width {
            self.widen(width);
        }
        // A single bin has as many cells as there are keys, which their owners bound.
        while self.cells.len() >= MAX_CELLS && self.width.bin(time) > 0 {
            self.widen(self.width.wider());
        }
    }

    fn widen(&mut self, width: BinWidth) {
        self.cells = self.in_bins(width);
        self.width = width;
    }

    fn in_bins(&self, width: BinWidth) -> HashMap<(u32, u32), Cell> {
        let factor = width.count_of(self.width);
        let mut cells = HashMap::<_, Cell>::new();
        for ((key, bin), cell) in &self.cells {
            let sum = cells.entry((*key, bin / factor)).or_default();
            sum.count = sum.count.saturating_add(cell.count);
            sum.sum = sum.sum.saturating_add(cell.sum);
        }
        cells
    }

    /// Writes four numbers for each cell in wider bins: the distance from the key before, the bin, or its
    /// distance if the key is the same, count and sum.
    pub(super) fn write(&self, name: &str, width: BinWidth, out: &mut dyn Write) -> io::Result<()> {
        debug_assert!(width >= self.width, "bins are only made wider");
        let mut cells: Vec<_> = self.in_bins(width).into_iter().collect();
        cells.sort_unstable_by_key(|(place, _)| *place);
        let mut before = (0, 0);
        crate::page::data::list(out, name, cells.into_iter(), |out, ((key, bin), cell)| {
            let start = if key == before.0 { before.1 } else { 0 };
            let (keys, bins) = (key - before.0, bin.saturating_sub(start));
            before = (key, bin);
            write!(out, "{keys},{bins},{},{}", cell.count, cell.sum)
        })
    }
}

const _: () = assert!(MAX_BINS as usize <= MAX_CELLS, "one key has room for all bins");

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cells: &Cells, width: BinWidth) -> String {
        let mut out = Vec::new();
        cells.write("x", width, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const fn at(microseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(microseconds * 1000)
    }

    #[test]
    fn cells_are_sums_by_key_and_bin() {
        let mut cells = Cells::default();
        cells.add(3, at(2_500), 1, 10);
        cells.add(3, at(2_999), 1, 5);
        cells.add(0, at(1_000), 7, 0);
        cells.add(3, at(4_000), 1, 0);
        assert_eq!(written(&cells, cells.width()), ",\"x\":[0,1,7,0,3,2,2,15,0,2,1,0]");
        assert_eq!(written(&cells, cells.width().wider()), ",\"x\":[0,0,7,0,3,1,2,15,0,1,1,0]");
    }

    #[test]
    fn intervals_are_divided_and_bins_widen_with_the_recording() {
        let mut cells = Cells::default();
        cells.add_interval(0, at(500), at(2_250));
        assert_eq!(written(&cells, cells.width()), ",\"x\":[0,0,0,500000,0,1,0,1000000,0,1,0,250000]");
        cells.add_interval(0, at(-5), RelativeTime::MAX);
        assert!(cells.cells.len() <= MAX_BINS as usize);
    }

    #[test]
    fn no_more_cells_are_kept_than_the_limit() {
        let mut cells = Cells::default();
        for number in 0..1_000_000u32 {
            cells.add(number % 400, at(i64::from(number)), 1, 2);
        }
        assert!(cells.cells.len() < MAX_CELLS + 400);
        let sums = cells.cells.values().fold((0, 0), |sum, cell| (sum.0 + cell.count, sum.1 + cell.sum));
        assert_eq!(sums, (1_000_000, 2_000_000));
    }
}
