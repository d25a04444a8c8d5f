//! Stack blocks.
//!
//! ```text
//! block = first-id:u32 count:u32 (size:u32 addresses)*
//! ```

use super::BadBlock;
use crate::cursor::{Cursor, Parsed};
use crate::interned::Interned;

/// Adds the stacks that are whole; the offset of the first that is not is an error.
pub(crate) fn read(content: &[u8], stacks: &mut Interned) -> Result<(), BadBlock> {
    let mut cursor = Cursor::new(content);
    let mut at = 0;
    let outcome: Parsed<()> = (|| {
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
    outcome.map_err(|bad| BadBlock { at, bad })
}
