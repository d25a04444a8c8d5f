//! What blocks hold, one file for each kind.

pub(crate) mod event;
pub(crate) mod label_list;
pub(crate) mod metadata;
pub(crate) mod sequence_point;
pub(crate) mod stack;
pub(crate) mod thread;
pub(crate) mod trace;

use crate::cursor::ReadError;

/// Why a block could not be read to its end: where in its content, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockError {
    pub(crate) at: usize,
    pub(crate) error: ReadError,
}
