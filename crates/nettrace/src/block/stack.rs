//! Stack blocks.
//!
//! ```text
//! block = first-id:u32 count:u32 (size:u32 addresses)*
//! ```

use super::BlockError;
use crate::cursor::{Cursor, ReadResult};
use crate::interned::InternedTable;

/// Adds the stacks that are whole; the offset of the first that is not is an error.
pub(crate) fn read(content: &[u8], stacks: &mut InternedTable) -> Result<(), BlockError> {
    let mut cursor = Cursor::new(content);
    let mut at = 0;
    let outcome: ReadResult<()> = (|| {
        let first_id = cursor.u32()?;
        let count = cursor.u32()?;
        stacks.begin(first_id);
        for _ in 0..count {
            at = content.len().saturating_sub(cursor.left());
            let size = cursor.length("stack of negative size")?;
            stacks.push(cursor.bytes(size)?);
        }
        Ok(())
    })();
    outcome.map_err(|error| BlockError { at, error })
}
