//! Work items of the pool: the method that each runs.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Threading/ThreadPoolWorkQueue.cs`
//! (`QueueUserWorkItemCallback`), `Threading/Timer.cs`, `Threading/Tasks/Task.cs`,
//! `Tasks/TaskContinuation.cs`; the same names in dotnet/coreclr.

use hashbrown::HashMap;

use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::AsyncRole;
use crate::dump::Dump;
use crate::memory::address::{Address, TypeHandle};

/// Fields of work items that are no tasks with the delegate that they call.
const DELEGATES: [&str; 3] = ["_callback", "m_action", "_timerCallback"];

/// The work of a work item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// An `async` method that goes on.
    Method {
        /// The type of its state machine.
        state_machine: TypeHandle,
    },
    /// A call of a delegate.
    Delegate(Address),
    /// An object that runs itself.
    Object,
}

/// The works of items, with facts about their types.
pub(super) struct Works<'n, 'm> {
    roles: Roles<'n, 'm>,
    /// The offset of the delegate in objects of a type; `None` without one.
    delegates: HashMap<TypeHandle, Option<u64>>,
}

impl<'n, 'm> Works<'n, 'm> {
    pub(super) fn new(dump: &'n Dump<'m>) -> Self {
        Self { roles: Roles::new(dump), delegates: HashMap::new() }
    }

    /// Returns the work of an object of a type.
    pub(super) fn of(&mut self, object: Address, type_handle: TypeHandle) -> Work {
        let dump = self.roles.dump;
        let at = match &*self.roles.of(type_handle) {
            AsyncRole::Method(of) => {
                let (state_machine, _) = self.roles.state(object, of);
                return state_machine.map_or(Work::Object, |state_machine| Work::Method { state_machine });
            }
            AsyncRole::Task(fields) => Some(fields.action),
            _ => *self.delegates.entry(type_handle).or_insert_with(|| {
                DELEGATES.iter().find_map(|name| dump.types().field_offset(type_handle, name))
            }),
        };
        let delegate = at.and_then(|at| dump.memory().pointer(object.at(at)).ok());
        delegate.filter(|delegate| !delegate.is_null()).map_or(Work::Object, Work::Delegate)
    }
}
