//! Semaphores: their counts, and the tasks that wait for them.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Private.CoreLib/src/System/Threading/SemaphoreSlim.cs`.

use crate::heap::{Heap, HeapObject, HeapVisitor};
use crate::memory::MemoryResult;
use crate::memory::address::Address;

const SEMAPHORE_SLIM: &str = "System.Threading.SemaphoreSlim";
/// The maximum of a semaphore that was made without one: that of an `int`.
const NO_MAXIMUM: u64 = 0x7fff_ffff;
/// Maximum number of semaphores of a heap.
const MAX_SEMAPHORES: usize = 1 << 16;
/// Maximum number of tasks that wait for a semaphore.
const MAX_TASKS: usize = 1 << 16;

/// A `SemaphoreSlim`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Semaphore {
    /// The address of the object.
    pub address: Address,
    /// The number of times that it can be entered now.
    pub count: u64,
    /// The maximum of the count; `None` if it was made without one.
    pub maximum: Option<u64>,
    /// The tasks of `WaitAsync` that wait for it, the oldest first.
    pub tasks: Vec<Address>,
}

impl Heap<'_> {
    /// Reads a semaphore; `None` for other objects.
    pub fn semaphore(self, object: Address) -> Option<Semaphore> {
        (self.type_name(object)?.as_ref() == SEMAPHORE_SLIM).then_some(())?;
        let mut tasks = Vec::new();
        let mut next = self.reference_field(object, "m_asyncHead");
        while let Some(task) = next.filter(|_| tasks.len() < MAX_TASKS) {
            tasks.push(task);
            next = self.reference_field(task, "Next");
        }
        Some(Semaphore {
            address: object,
            count: self.number_field(object, "m_currentCount")?,
            maximum: Some(self.number_field(object, "m_maxCount")?).filter(|maximum| *maximum != NO_MAXIMUM),
            tasks,
        })
    }

    /// Reads the semaphores of the heap that tasks of `WaitAsync` wait for.
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn awaited_semaphores(self) -> MemoryResult<Vec<Semaphore>> {
        let mut found = Found { heap: self, semaphores: Vec::new() };
        self.walk(&mut found)?;
        let semaphores = found.semaphores.into_iter().filter_map(|object| self.semaphore(object));
        Ok(semaphores.filter(|semaphore| !semaphore.tasks.is_empty()).collect())
    }
}

struct Found<'d> {
    heap: Heap<'d>,
    semaphores: Vec<Address>,
}

impl HeapVisitor for Found<'_> {
    fn object(&mut self, object: &HeapObject) {
        if self.semaphores.len() < MAX_SEMAPHORES
            && self.heap.dump.types().name(object.type_handle).as_deref() == Some(SEMAPHORE_SLIM)
        {
            self.semaphores.push(object.address);
        }
    }
}
