//! The samples of one thread, in the order of time.

use nettrace::RelativeTime;

use crate::profile::index::TotalIndex;

/// A range of time, or a point for weights other than time, with its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// Start of the span.
    pub start: RelativeTime,
    /// The weight; the duration where weights are time.
    pub weight: u64,
    /// The number of samples in it.
    pub samples: u64,
    /// The stack's total.
    pub total: TotalIndex,
}

impl Span {
    /// Returns the end of the span.
    pub(crate) const fn end(&self, is_time: bool) -> RelativeTime {
        let weight = if is_time { self.weight } else { 0 };
        RelativeTime::from_nanos(self.start.as_nanos().saturating_add_unsigned(weight))
    }
}

/// Spans, packed: some five bytes for each. Neighbours of one stack that touch are one span.
#[derive(Debug)]
pub struct Track {
    bytes: Vec<u8>,
    /// The last span, which may still grow.
    open: Option<Span>,
    /// The end and the total of the span before it.
    before: (RelativeTime, TotalIndex),
    is_time: bool,
}

impl Track {
    /// An empty one; `is_time` says whether spans last as long as they weigh.
    pub const fn new(is_time: bool) -> Self {
        Self { bytes: Vec::new(), open: None, before: (RelativeTime::START, TotalIndex(0)), is_time }
    }

    /// Appends a span. A span that begins before the last one ended is moved after it.
    pub fn push(&mut self, span: Span) {
        if let Some(open) = &mut self.open {
            let end = open.end(self.is_time);
            if self.is_time && open.total == span.total && span.start <= end {
                open.weight = open.weight.saturating_add(span.weight);
                open.samples = open.samples.saturating_add(span.samples);
                return;
            }
            let closed = *open;
            *open = Span { start: span.start.max(end), ..span };
            self.write(closed);
        } else {
            self.open = Some(span);
        }
    }

    fn write(&mut self, span: Span) {
        let (end, total) = self.before;
        varint(
            &mut self.bytes,
            span.start.as_nanos().abs_diff(end.as_nanos()) << 1 | u64::from(span.samples != 1),
        );
        varint(&mut self.bytes, span.weight);
        if span.samples != 1 {
            varint(&mut self.bytes, span.samples);
        }
        let difference = i64::from(span.total.0) - i64::from(total.0);
        varint(&mut self.bytes, (difference << 1 ^ difference >> 63).cast_unsigned());
        self.before = (span.end(self.is_time), span.total);
    }

    /// Returns true if the track is empty.
    pub const fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    /// The last span.
    #[cfg(feature = "flamegraph")]
    pub(crate) const fn last(&self) -> Option<Span> {
        self.open
    }

    /// Bytes that are held.
    pub const fn bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The spans, in the order of time.
    pub fn iter(&self) -> impl Iterator<Item = Span> {
        let mut rest = self.bytes.as_slice();
        let mut before = (RelativeTime::START, TotalIndex(0));
        let packed = std::iter::from_fn(move || {
            let gap = read(&mut rest)?;
            let weight = read(&mut rest)?;
            let samples = if gap & 1 == 1 { read(&mut rest)? } else { 1 };
            let zigzag = read(&mut rest)?;
            let difference = (zigzag >> 1).cast_signed() ^ -((zigzag & 1).cast_signed());
            let total = u32::try_from(i64::from(before.1.0).wrapping_add(difference)).map(TotalIndex).ok()?;
            let start = RelativeTime::from_nanos(before.0.as_nanos().saturating_add_unsigned(gap >> 1));
            let span = Span { start, weight, samples, total };
            before = (span.end(self.is_time), total);
            Some(span)
        });
        packed.chain(self.open)
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
}

fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, weight: u64, total: u32) -> Span {
        Span { start: RelativeTime::from_nanos(start), weight, samples: 1, total: TotalIndex(total) }
    }

    #[test]
    fn a_track_returns_its_spans() {
        let spans = [
            span(0, 1_000_000, 7),
            span(1_000_000, 0, 3),
            span(2_500_000, 1_090_000, u32::MAX),
            span(9_000_000_000_000, u64::from(u32::MAX) << 20, 0),
        ];
        for is_time in [true, false] {
            let mut track = Track::new(is_time);
            for span in spans {
                track.push(span);
            }
            assert_eq!(track.iter().collect::<Vec<_>>(), spans);
        }
    }

    #[test]
    fn touching_spans_of_a_stack_are_one() {
        let mut track = Track::new(true);
        for number in 0..1000 {
            track.push(span(number * 10, 10, 4));
        }
        track.push(span(10_020, 5, 4));
        track.push(span(10_022, 5, 5));
        assert_eq!(
            track.iter().collect::<Vec<_>>(),
            [
                Span { start: RelativeTime::START, weight: 10_000, samples: 1000, total: TotalIndex(4) },
                span(10_020, 5, 4),
                // Reported to begin before the other ended.
                span(10_025, 5, 5),
            ]
        );
        let mut points = Track::new(false);
        points.push(span(5, 100, 4));
        points.push(span(5, 100, 4));
        assert_eq!(points.iter().count(), 2);
    }
}
