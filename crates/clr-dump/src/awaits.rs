//! Methods that `await`, and what they wait for.

pub(crate) mod async_roles;
pub(crate) mod async_type;
pub(crate) mod await_place;
pub(crate) mod chain;
pub(crate) mod channels;
pub(crate) mod graph;
pub(crate) mod machine;
pub(crate) mod tasks;

use crate::dump::view;

view! {
    /// The `async` methods and tasks of a dump.
    Awaits, awaits
}
