//! `.xdata` records: the codes of a function, and those that hold at an instruction of it.

use super::code::{instructions, skip};
use crate::memory::{Memory, offset};
use crate::unwind::UnwindError;

/// The header and the codes of an `.xdata` record.
pub(super) struct Record {
    /// The number of instructions of the function.
    length: u64,
    epilogs: Epilogs,
    codes: Vec<u8>,
}

/// The epilogs of a function.
#[derive(Debug, Clone, Copy)]
enum Epilogs {
    /// One, at the end of the function, with the index of its first code.
    Last(usize),
    /// A list at an address.
    List { at: u64, count: u32 },
}

impl Record {
    pub(super) fn read(memory: &dyn Memory, at: u64) -> Result<Self, UnwindError> {
        // The low bits of an entry mark a form without a record, which no compiler of .NET writes.
        if !at.is_multiple_of(4) {
            return Err(UnwindError::Unsupported((at & 3) as u8));
        }
        let header = memory.u32(at)?;
        let version = (header >> 18 & 3) as u8;
        if version != 0 {
            return Err(UnwindError::Unsupported(version));
        }
        let length = u64::from(header & 0x3_ffff);
        let is_last = header >> 21 & 1 != 0;
        let (mut epilogs, mut words) = (header >> 22 & 0x1f, header >> 27);
        let mut next = offset(at, 4);
        if epilogs == 0 && words == 0 {
            let extension = memory.u32(next)?;
            (epilogs, words) = (extension & 0xffff, extension >> 16 & 0xff);
            next = offset(next, 4);
        }
        let epilogs = if is_last {
            Epilogs::Last(usize::try_from(epilogs).unwrap_or(usize::MAX))
        } else {
            let list = Epilogs::List { at: next, count: epilogs };
            next = offset(next, u64::from(epilogs).wrapping_mul(4));
            list
        };
        let size = usize::try_from(words).unwrap_or_default().saturating_mul(4);
        Ok(Self { length, epilogs, codes: memory.bytes(next, size)? })
    }

    /// Returns the codes to apply at an instruction.
    pub(super) fn codes_at(&self, memory: &dyn Memory, at: u64) -> Result<&[u8], UnwindError> {
        let prolog = instructions(&self.codes)?;
        // Instructions of the prolog that are not executed yet.
        if let Some(left) = prolog.checked_sub(at).filter(|left| *left > 0) {
            return skip(&self.codes, left);
        }
        match self.epilogs {
            Epilogs::Last(index) => {
                let codes = self.codes.get(index..).unwrap_or_default();
                // Without codes of its own there is none.
                if codes.is_empty() {
                    return Ok(&self.codes);
                }
                // The return follows.
                let size = instructions(codes)?.saturating_add(1);
                match at.checked_sub(self.length.saturating_sub(size)) {
                    Some(done) if done < size => skip(codes, done),
                    _ => Ok(&self.codes),
                }
            }
            Epilogs::List { at: list, count } => {
                let scope = |index: u32| memory.u32(offset(list, u64::from(index).wrapping_mul(4)));
                let start = |scope: u32| u64::from(scope & 0x3_ffff);
                // They are sorted: the last that begins at or before the instruction.
                let (mut low, mut high) = (0, count);
                while low < high {
                    let middle = low.midpoint(high);
                    if start(scope(middle)?) <= at {
                        low = middle.saturating_add(1);
                    } else {
                        high = middle;
                    }
                }
                if let Some(index) = low.checked_sub(1) {
                    let scope = scope(index)?;
                    let first = usize::try_from(scope >> 22).unwrap_or(usize::MAX);
                    let codes = self.codes.get(first..).unwrap_or_default();
                    let done = at.saturating_sub(start(scope));
                    // The return follows.
                    if done < instructions(codes)?.saturating_add(1) {
                        return skip(codes, done);
                    }
                }
                Ok(&self.codes)
            }
        }
    }
}
