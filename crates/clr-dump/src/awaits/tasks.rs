//! The tasks of the heap by their states and what they run.
//!
//! # Source
//! As in `async_type`: the bits of `Task.m_stateFlags`, and the order in which `Task.Status` looks at them.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::awaits::Awaits;
use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::{AsyncRole, TaskFields};
use crate::heap::{HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};

/// Maximum number of groups of tasks.
const MAX_GROUPS: usize = 1 << 16;

/// The state of a task, as `Task.Status` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// It was not started.
    Created,
    /// Another object ends it: an `async` method, a timer, a `TaskCompletionSource`.
    WaitingForActivation,
    /// It waits for a thread.
    WaitingToRun,
    /// Its delegate is called.
    Running,
    /// Its delegate has ended, and tasks attached to it have not.
    WaitingForChildrenToComplete,
    /// It has ended.
    RanToCompletion,
    /// It was canceled.
    Canceled,
    /// It ended with an exception.
    Faulted,
}

impl TaskStatus {
    /// The state by the bits of a task.
    const fn of_flags(flags: u32) -> Self {
        match flags {
            _ if flags & 0x20_0000 != 0 => Self::Faulted,
            _ if flags & 0x40_0000 != 0 => Self::Canceled,
            _ if flags & 0x100_0000 != 0 => Self::RanToCompletion,
            _ if flags & 0x80_0000 != 0 => Self::WaitingForChildrenToComplete,
            _ if flags & 0x2_0000 != 0 => Self::Running,
            _ if flags & 0x1_0000 != 0 => Self::WaitingToRun,
            _ if flags & 0x200_0000 != 0 => Self::WaitingForActivation,
            _ => Self::Created,
        }
    }

    /// The name of the state in .NET.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "Created",
            Self::WaitingForActivation => "WaitingForActivation",
            Self::WaitingToRun => "WaitingToRun",
            Self::Running => "Running",
            Self::WaitingForChildrenToComplete => "WaitingForChildrenToComplete",
            Self::RanToCompletion => "RanToCompletion",
            Self::Canceled => "Canceled",
            Self::Faulted => "Faulted",
        }
    }

    /// Returns true if the task has ended.
    pub const fn is_completed(self) -> bool {
        matches!(self, Self::RanToCompletion | Self::Canceled | Self::Faulted)
    }
}

/// The work of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskWork {
    /// An `async` method, by the type of its state machine.
    Method(TypeHandle),
    /// A delegate. Tasks that have ended do not have it anymore.
    Delegate(Address),
    /// Nothing of its own: another object ends it.
    Nothing,
}

/// Tasks in the same state that run the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskGroup {
    /// The state.
    pub status: TaskStatus,
    /// The type of the tasks.
    pub type_handle: TypeHandle,
    /// The work of the first of them.
    pub work: TaskWork,
    /// The number of tasks.
    pub count: u64,
    /// The first of them, by address.
    pub first: Address,
}

/// The tasks of a heap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TaskGroups {
    /// The groups, the largest first.
    pub groups: Vec<TaskGroup>,
    /// True if a limit cut off groups.
    pub is_truncated: bool,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

impl Awaits<'_> {
    /// Counts the tasks of the heap by state and by what they run. Tasks that nothing refers to are counted,
    /// too, until a collection removes them.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for group in dump.awaits().tasks()?.groups {
    ///     println!("{} tasks are {}: {:?}", group.count, group.status.name(), group.work);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn tasks(self) -> MemoryResult<TaskGroups> {
        let mut found = Found { roles: Roles::new(self.dump), groups: HashMap::new(), is_truncated: false };
        let walk = self.dump.heap().walk(&mut found)?;
        let mut groups: Vec<_> = found.groups.into_values().collect();
        groups.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.first.cmp(&b.first)));
        Ok(TaskGroups { groups, is_truncated: found.is_truncated, walk })
    }
}

struct Found<'n, 'm> {
    roles: Roles<'n, 'm>,
    /// The groups by state, type and the address of what is run.
    groups: HashMap<(TaskStatus, TypeHandle, u64), TaskGroup>,
    is_truncated: bool,
}

impl Found<'_, '_> {
    /// The work of a task, with an address that equal work has.
    fn work(&mut self, object: Address, role: &AsyncRole, fields: &TaskFields) -> (TaskWork, u64) {
        if let AsyncRole::Method(of) = role {
            return match self.roles.state(object, of).0 {
                Some(machine) => (TaskWork::Method(machine), machine.get()),
                None => (TaskWork::Nothing, 0),
            };
        }
        let dump = self.roles.dump;
        match dump.memory().pointer(object.at(fields.action)) {
            Ok(delegate) if !delegate.is_null() => {
                let entry = dump.heap().delegate_entry(delegate).unwrap_or_default();
                (TaskWork::Delegate(delegate), entry.get())
            }
            _ => (TaskWork::Nothing, 0),
        }
    }
}

impl HeapVisitor for Found<'_, '_> {
    fn object(&mut self, object: &HeapObject) {
        let role: Arc<AsyncRole> = self.roles.of(object.type_handle);
        let fields = match &*role {
            AsyncRole::Task(fields) => *fields,
            AsyncRole::Method(of) => match of.task {
                Some(fields) => fields,
                None => return,
            },
            _ => return,
        };
        let Ok(flags) = self.roles.dump.memory().u32(object.address.at(fields.flags)) else { return };
        let status = TaskStatus::of_flags(flags);
        let (work, key) = self.work(object.address, &role, &fields);
        let key = (status, object.type_handle, key);
        if self.groups.len() >= MAX_GROUPS && !self.groups.contains_key(&key) {
            self.is_truncated = true;
            return;
        }
        let (type_handle, first) = (object.type_handle, object.address);
        let group =
            self.groups.entry(key).or_insert(TaskGroup { status, type_handle, work, count: 0, first });
        group.count = group.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_that_of_the_runtime() {
        for (flags, status) in [
            (0, TaskStatus::Created),
            (0x1_2000, TaskStatus::WaitingToRun),
            (0x3_2000, TaskStatus::Running),
            (0x83_0000, TaskStatus::WaitingForChildrenToComplete),
            (0x103_0000, TaskStatus::RanToCompletion),
            (0x200_0400, TaskStatus::WaitingForActivation),
            (0x620_0000, TaskStatus::Faulted),
            (0x640_0000, TaskStatus::Canceled),
        ] {
            assert_eq!(TaskStatus::of_flags(flags), status, "{flags:#x}");
        }
    }
}
