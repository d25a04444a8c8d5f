//! Thread and RemoveThread blocks (V6).
//!
//! ```text
//! thread-block  = (size:u16 index:varuint64 entry*)*
//! entry         = 1 name:string | 2 process:varuint64 | 3 thread:varuint64 | 4 key:string value:string
//! remove-block  = (index:varuint64 last-sequence:varuint32)*
//! ```

use alloc::string::String;

use super::BlockError;
use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::thread::{Thread, ThreadId, ThreadTable};

/// Adds the threads that are whole; the offset of the first that is not is an error.
pub(crate) fn read(content: &[u8], threads: &mut ThreadTable) -> Result<(), BlockError> {
    let mut cursor = Cursor::new(content);
    while !cursor.is_empty() {
        let at = content.len().saturating_sub(cursor.left());
        let thread = row(&mut cursor).map_err(|error| BlockError { at, error })?;
        threads.describe(thread);
    }
    Ok(())
}

fn row(cursor: &mut Cursor<'_>) -> ReadResult<Thread> {
    let size = usize::from(cursor.u16()?);
    let mut row = Cursor::new(cursor.bytes(size)?);
    let mut thread = Thread::default();
    let inside = |bad| {
        if bad == ReadError::UnexpectedEnd {
            ReadError::Invalid("thread row smaller than its entries")
        } else {
            bad
        }
    };
    (|| {
        thread.index = row.varuint64()?;
        thread.id = ThreadId(thread.index);
        while !row.is_empty() {
            match row.u8()? {
                1 => thread.name = Some(text(row.string8()?)),
                2 => thread.process_id = Some(row.varuint64()?),
                3 => thread.id = ThreadId(row.varuint64()?),
                4 => thread.key_values.push((text(row.string8()?), text(row.string8()?))),
                // A kind from a later minor version: its size is unknown, so the rest of the row is too.
                _ => break,
            }
        }
        Ok(thread)
    })()
    .map_err(inside)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Invalidates the threads, and counts what they lost.
pub(crate) fn remove(content: &[u8], threads: &mut ThreadTable) -> Result<(), BlockError> {
    let mut cursor = Cursor::new(content);
    while !cursor.is_empty() {
        let at = content.len().saturating_sub(cursor.left());
        let (index, last_sequence) = (|| Ok((cursor.varuint64()?, cursor.varuint32()?)))()
            .map_err(|error| BlockError { at, error })?;
        threads.remove(index, last_sequence);
    }
    Ok(())
}
