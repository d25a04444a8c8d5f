//! State machines of `async` methods, with the objects that their fields refer to.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::{AsyncRole, StateMachine};
use crate::awaits::graph::AwaitNode;
use crate::dump::Dump;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::offset;
use crate::types::field::{Field, ValueKind};

/// The value of `<>1__state` while a method runs, or is about to.
pub(crate) const RUNNING: i32 = -1;

/// The state machine of a method.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// The type of the state machine.
    pub(crate) type_handle: TypeHandle,
    /// The address of the first field.
    first: u64,
}

/// The reader of state machines.
pub(crate) struct Machines<'n, 'm> {
    dump: &'n Dump<'m>,
    roles: Roles<'n, 'm>,
    fields: HashMap<TypeHandle, Arc<[Field]>>,
}

impl<'n, 'm> Machines<'n, 'm> {
    pub(crate) fn new(dump: &'n Dump<'m>) -> Self {
        Self { dump, roles: Roles::new(dump), fields: HashMap::new() }
    }

    /// The state machine in a box.
    pub(crate) fn of(&mut self, node: &AwaitNode) -> Option<Machine> {
        let AsyncRole::Method(of) = &*self.roles.of(node.type_handle) else { return None };
        match of.state_machine? {
            StateMachine::Inline { at, type_handle } => {
                Some(Machine { type_handle, first: node.address.at(at) })
            }
            StateMachine::Reference { at } => {
                let machine = self.dump.memory().pointer(node.address.at(at)).ok()?;
                let type_handle = self.dump.heap().type_of(machine).filter(|_| !machine.is_null())?;
                Some(Machine { type_handle, first: machine.at(8) })
            }
        }
    }

    fn fields(&mut self, type_handle: TypeHandle) -> Arc<[Field]> {
        let dump = self.dump;
        let fields = self.fields.entry(type_handle);
        Arc::clone(fields.or_insert_with(|| dump.types().fields(type_handle).into()))
    }

    /// The objects that the fields refer to, with the names of the fields.
    pub(crate) fn references(&mut self, machine: &Machine) -> Vec<(String, Address)> {
        let fields = self.fields(machine.type_handle);
        let target = |field: &Field| {
            let at = offset(machine.first, field.offset.into());
            Some(self.dump.memory().pointer(at).ok()?).filter(|target| !target.is_null())
        };
        let references = fields.iter().filter(|field| field.kind == ValueKind::REFERENCE);
        references.filter_map(|field| Some((field.name.clone(), target(field)?))).collect()
    }

    /// The object that a field refers to, by its name.
    pub(crate) fn reference(&mut self, machine: &Machine, name: &str) -> Option<Address> {
        self.references(machine).into_iter().find(|(field, _)| field == name).map(|(_, object)| object)
    }
}
