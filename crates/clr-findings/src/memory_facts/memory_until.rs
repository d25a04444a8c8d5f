//! Memory for a limited time.

use std::time::Instant;

use clr_dump::{Memory, MemoryResult, Missing};

/// Memory that is missing from a time on.
pub(super) struct MemoryUntil<'m> {
    memory: &'m dyn Memory,
    end: Option<Instant>,
}

impl<'m> MemoryUntil<'m> {
    pub(super) const fn new(memory: &'m dyn Memory, end: Option<Instant>) -> Self {
        Self { memory, end }
    }
}

impl Memory for MemoryUntil<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return Err(Missing { address });
        }
        self.memory.read(address, buffer)
    }
}
