//! Await roles of types, keyed by MethodTable, and the states of their objects.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::awaits::async_type::{AsyncRole, COMPLETED, MethodBox, StateMachine, TaskFields};
use crate::dump::Dump;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};

/// The roles of types, which are read once.
pub(crate) struct Roles<'n, 'm> {
    pub(crate) dump: &'n Dump<'m>,
    by_type: HashMap<TypeHandle, Arc<AsyncRole>>,
    states: HashMap<TypeHandle, Option<u64>>,
}

impl<'n, 'm> Roles<'n, 'm> {
    pub(crate) fn new(dump: &'n Dump<'m>) -> Self {
        Self { dump, by_type: HashMap::new(), states: HashMap::new() }
    }

    pub(crate) fn of(&mut self, type_handle: TypeHandle) -> Arc<AsyncRole> {
        let dump = self.dump;
        Arc::clone(
            self.by_type.entry(type_handle).or_insert_with(|| Arc::new(dump.awaits().role(type_handle))),
        )
    }

    /// The type of an object.
    pub(crate) fn type_of(&self, object: Address) -> MemoryResult<TypeHandle> {
        self.dump.memory().object_type(object)
    }

    pub(crate) fn of_object(&mut self, object: Address) -> Arc<AsyncRole> {
        match self.type_of(object) {
            Ok(type_handle) if !object.is_null() => self.of(type_handle),
            _ => Arc::new(AsyncRole::Other),
        }
    }

    pub(crate) fn is_completed(&self, task: Address, fields: &TaskFields) -> bool {
        self.dump.memory().u32(task.at(fields.flags)).is_ok_and(|flags| flags & COMPLETED != 0)
    }

    /// The type of a method's state machine, and the number of the `await` at which it is.
    pub(crate) fn state(&mut self, object: Address, of: &MethodBox) -> (Option<TypeHandle>, Option<i32>) {
        let memory = self.dump.memory();
        let (type_handle, first) = match of.state_machine {
            Some(StateMachine::Inline { at, type_handle }) => (type_handle, object.at(at)),
            Some(StateMachine::Reference { at }) => {
                let Some(machine) = memory.pointer(object.at(at)).ok().filter(|machine| !machine.is_null())
                else {
                    return (None, None);
                };
                let Ok(type_handle) = self.type_of(machine) else { return (None, None) };
                (type_handle, machine.at(8))
            }
            None => return (None, None),
        };
        let dump = self.dump;
        let place = *self.states.entry(type_handle).or_insert_with(|| dump.types().state_offset(type_handle));
        let state = place.and_then(|place| memory.i32(offset(first, place)).ok());
        (Some(type_handle), state)
    }
}
