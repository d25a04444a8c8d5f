//! Methods and their names.

use std::sync::Arc;

use crate::runtime::module::Module;

/// A method, as the runtime names it in its events.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MethodName {
    /// The type with its namespace and type arguments.
    pub type_name: String,
    /// The method's own name.
    pub name: String,
    /// The signature, return type first; empty if it is damaged.
    pub signature: String,
}

/// A method of managed code. Parts that the memory lacks are `None`.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Method {
    /// The module that defines it; `None` if the method was made in memory.
    pub module: Option<Arc<Module>>,
    /// The method's metadata token; `None` if the method was made in memory, or was compiled ahead of time
    /// with the program.
    pub token: Option<u32>,
    /// The names of the method and its type.
    pub name: Option<MethodName>,
}
