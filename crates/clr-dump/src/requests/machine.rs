//! State machines of `async` methods, with the values of their fields.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::awaits::async_roles::Roles;
use crate::awaits::async_type::{AsyncRole, StateMachine};
use crate::awaits::graph::AwaitNode;
use crate::dump::Dump;
use crate::heap::object::{FieldValue, Value};
use crate::memory::address::{Address, TypeHandle};
use crate::memory::offset;
use crate::types::field::{Field, ValueKind};

/// The value of `<>1__state` while a method runs, or is about to.
pub(super) const RUNNING: i32 = -1;

/// The state machine of a method.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    /// The type of the state machine.
    pub(super) type_handle: TypeHandle,
    /// The address of the first field.
    first: u64,
}

/// The reader of state machines.
pub(super) struct Machines<'n, 'm> {
    dump: &'n Dump<'m>,
    roles: Roles<'n, 'm>,
    fields: HashMap<TypeHandle, Arc<[Field]>>,
}

impl<'n, 'm> Machines<'n, 'm> {
    pub(super) fn new(dump: &'n Dump<'m>) -> Self {
        Self { dump, roles: Roles::new(dump), fields: HashMap::new() }
    }

    /// The state machine in a box.
    pub(super) fn of(&mut self, node: &AwaitNode) -> Option<Machine> {
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
    pub(super) fn references(&mut self, machine: &Machine) -> Vec<(String, Address)> {
        let fields = self.fields(machine.type_handle);
        let target = |field: &Field| {
            let at = offset(machine.first, field.offset.into());
            Some(self.dump.memory().pointer(at).ok()?).filter(|target| !target.is_null())
        };
        let references = fields.iter().filter(|field| field.kind == ValueKind::REFERENCE);
        references.filter_map(|field| Some((field.name.clone(), target(field)?))).collect()
    }
}

/// Returns the value of a field or of a property that the compiler has made a field for.
fn value(dump: &Dump<'_>, object: Address, name: &str) -> Option<Value> {
    let heap = dump.heap();
    heap.field_value(object, name).or_else(|| heap.field_value(object, &format!("<{name}>k__BackingField")))
}

/// Returns a field or property of an object that is a reference.
pub(super) fn reference(dump: &Dump<'_>, object: Address, name: &str) -> Option<Address> {
    match value(dump, object, name)? {
        Value::Reference { address, .. } => Some(address),
        _ => None,
    }
}

/// Returns the fields of a structure in a field or property of an object.
pub(super) fn structure(dump: &Dump<'_>, object: Address, name: &str) -> Option<Vec<FieldValue>> {
    match value(dump, object, name)? {
        Value::Structure { fields, .. } => Some(fields),
        _ => None,
    }
}

/// Returns the first characters of a field or property of an object that is a string, with a mark if it is
/// longer.
pub(super) fn text(dump: &Dump<'_>, object: Address, name: &str) -> Option<String> {
    match value(dump, object, name)? {
        Value::Reference { text: Some((text, is_cut)), .. } => known(text, is_cut),
        _ => None,
    }
}

/// Returns a text with a mark if it is longer; `None` of a copy of the memory without texts.
pub(super) fn known(text: String, is_cut: bool) -> Option<String> {
    let is_removed = !text.is_empty() && text.chars().all(|character| character == '\0');
    (!is_removed).then(|| if is_cut { text + "…" } else { text })
}

/// Returns the name of the constant that a field or property of an object has.
pub(super) fn constant(dump: &Dump<'_>, object: Address, name: &str) -> Option<String> {
    match value(dump, object, name)? {
        Value::Enumeration { name, .. } => name,
        _ => None,
    }
}

/// Returns a number of a field or property of an object.
pub(super) fn number(dump: &Dump<'_>, object: Address, name: &str) -> Option<u64> {
    match value(dump, object, name)? {
        Value::Signed(number) => u64::try_from(number).ok(),
        Value::Unsigned(number) => Some(number),
        _ => None,
    }
}

/// Returns the truth value of a field or property of an object.
pub(super) fn flag(dump: &Dump<'_>, object: Address, name: &str) -> Option<bool> {
    match value(dump, object, name)? {
        Value::Bool(flag) => Some(flag),
        _ => None,
    }
}
