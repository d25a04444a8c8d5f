//! Names of methods and objects in chains of awaits.

use clr_dump::{AwaitKind, AwaitNode, Dump, TypeHandle};
use clr_events::code::is_user_assembly;
use clr_events::csharp::async_method;

use crate::inspect::core_text::{method_text, type_text};

/// The name of a method, or of the type of an object.
pub(crate) fn await_name(dump: &Dump<'_>, node: &AwaitNode) -> String {
    if let Some(name) = dump.awaits().suspended_method(node).as_ref().and_then(method_text) {
        return name;
    }
    let of = state_machine(node).unwrap_or(node.type_handle);
    let name = dump.types().name(of);
    name.as_deref().and_then(async_method).unwrap_or_else(|| type_text(name.as_deref(), of.get()))
}

/// Returns true for a method of the program.
pub(crate) fn is_of_program(dump: &Dump<'_>, node: &AwaitNode) -> bool {
    let module = match state_machine(node) {
        Some(of) => dump.types().module(of),
        None => dump.awaits().suspended_method(node).and_then(|method| method.module),
    };
    module.is_some_and(|module| is_user_assembly(module.file_name(), &module.path))
}

const fn state_machine(node: &AwaitNode) -> Option<TypeHandle> {
    match node.kind {
        AwaitKind::Method { state_machine, .. } => state_machine,
        _ => None,
    }
}
