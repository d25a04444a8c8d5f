//! Sequence points: everything older is before them, and stacks are forgotten.
//!
//! ```text
//! block = time:i64 count:i32 (thread:i64 sequence:u32)*                       (V4)
//! block = time:u64 flags:u32 count:u32 (thread:varuint64 sequence:varuint32)*   (V6)
//! flags = 1: threads are forgotten, 2: metadata is forgotten                    (V6)
//! ```

use super::BlockError;
use crate::cursor::{Cursor, ReadResult};
use crate::thread::ThreadTable;
use crate::time::Ticks;

/// What must be forgotten once every event before the point has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Invalidation {
    pub(crate) threads: bool,
    pub(crate) metadata: bool,
}

/// Counts what the threads lost up to the point.
pub(crate) fn read(
    content: &[u8],
    v6: bool,
    threads: &mut ThreadTable,
) -> Result<Invalidation, (BlockError, Invalidation)> {
    let mut cursor = Cursor::new(content);
    let mut forget = Invalidation::default();
    let mut at = 0;
    let outcome: ReadResult<()> = (|| {
        let time = Ticks(cursor.u64()?);
        if v6 {
            let flags = cursor.u32()?;
            forget = Invalidation { threads: flags & 1 != 0, metadata: flags & 2 != 0 };
        }
        let count = cursor.u32()?;
        for _ in 0..count {
            at = content.len().saturating_sub(cursor.left());
            let (index, sequence) =
                if v6 { (cursor.varuint64()?, cursor.varuint32()?) } else { (cursor.u64()?, cursor.u32()?) };
            let slot = threads.slot(index);
            threads.captured_up_to(slot, sequence, Some(time));
            if !v6 {
                threads.restart_behind(slot, sequence);
            }
        }
        Ok(())
    })();
    match outcome {
        Ok(()) => Ok(forget),
        Err(error) => Err((BlockError { at, error }, forget)),
    }
}
