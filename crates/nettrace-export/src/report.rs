//! What a recording says, as tables: a file each.

mod top;

pub use top::{TopRow, top};
