//! Label list blocks (V6).
//!
//! ```text
//! block = first-id:u32 count:u32 list*
//! list  = label* last-label         (the last one has the high bit of its kind set)
//! ```

use super::BlockError;
use crate::cursor::{Cursor, ReadError, ReadResult};
use crate::interned::InternedTable;
use crate::label::label_list;

/// Adds the lists that are whole; the offset of the first that is not is an error.
pub(crate) fn read(content: &[u8], labels: &mut InternedTable) -> Result<(), BlockError> {
    let mut cursor = Cursor::new(content);
    let mut at = 0;
    let outcome: ReadResult<()> = (|| {
        let first_id = cursor.u32()?;
        let count = cursor.u32()?;
        if first_id == 0 {
            return Err(ReadError::Invalid("label lists are counted from 1"));
        }
        labels.begin(first_id);
        for _ in 0..count {
            at = content.len().saturating_sub(cursor.left());
            labels.push(label_list(&mut cursor)?);
        }
        Ok(())
    })();
    outcome.map_err(|error| BlockError { at, error })
}
