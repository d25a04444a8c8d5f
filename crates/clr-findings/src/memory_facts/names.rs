//! Names of methods in sentences.

use clr_events::csharp::RuntimeName;
use clr_events::escape_controls;
use nettrace_export::method_name;

/// The short C# name of a method as the runtime names it, without parameters.
pub(super) fn short_name(namespace: &str, name: &str, signature: &str) -> String {
    let name = RuntimeName { namespace, name, signature }.display_name();
    escape_controls(method_name::csharp_without_parameters(name.short())).into_owned()
}
