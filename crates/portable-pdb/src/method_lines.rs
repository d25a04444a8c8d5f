//! The lines of a method.

use crate::document::DocumentId;
use crate::sequence_point::SequencePoints;

/// A line of a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The file.
    pub document: DocumentId,
    /// The line, from 1 on.
    pub line: u32,
}

/// The source lines of a method by IL offset.
#[derive(Debug, Clone, Default)]
pub struct MethodLines {
    /// The points with a line, in ascending order of offset.
    lines: Vec<(u32, Line)>,
    /// The number of decoded bytes.
    byte_count: usize,
    /// The offset of the last point before a damaged one.
    damaged_from: Option<u32>,
}

impl MethodLines {
    pub(crate) fn new(points: SequencePoints<'_>) -> Self {
        let mut lines = Self { byte_count: points.byte_count(), ..Self::default() };
        let mut last = 0;
        for point in points {
            let Ok(point) = point else {
                lines.damaged_from = Some(last);
                break;
            };
            last = point.il_offset;
            if let Some(span) = point.span {
                let line = Line { document: point.document, line: span.start_line };
                lines.lines.push((point.il_offset, line));
            }
        }
        lines
    }

    /// Returns the line of an IL offset, as [`Pdb::line`](crate::Pdb::line) does; `None` if that fails.
    pub fn line(&self, il_offset: u32) -> Option<Line> {
        if self.damaged_from.is_some_and(|from| il_offset >= from) {
            return None;
        }
        let after = self.lines.partition_point(|(offset, _)| *offset <= il_offset);
        self.lines.get(after.checked_sub(1)?).map(|(_, line)| *line)
    }

    /// Returns the number of bytes of the PDB that the lines were decoded from.
    pub const fn byte_count(&self) -> usize {
        self.byte_count
    }
}
