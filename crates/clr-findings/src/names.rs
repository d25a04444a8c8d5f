//! Names of types and methods in sentences.

use clr_events::csharp::RuntimeName;
use clr_events::escape_controls;
use nettrace_export::method_name;

/// The short C# name of a method as the runtime names it, without parameters.
pub(crate) fn short_name(namespace: &str, name: &str, signature: &str) -> String {
    let name = RuntimeName { namespace, name, signature }.display_name();
    escape_controls(method_name::csharp_without_parameters(name.short())).into_owned()
}

/// Returns a type's name in C# without namespaces, those of its arguments included.
pub(crate) fn short_names(name: &str) -> String {
    let is_separator = |character: char| !(character.is_alphanumeric() || matches!(character, '_' | '.'));
    let parts = name.split_inclusive(is_separator);
    parts.map(|part| part.rsplit('.').next().unwrap_or(part)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_left_out_everywhere() {
        for (name, short) in [
            (
                "System.Collections.Generic.Dictionary<string, Shop.Session[]>",
                "Dictionary<string, Session[]>",
            ),
            ("byte[]", "byte[]"),
            ("Shop.Sessions", "Sessions"),
        ] {
            assert_eq!(short_names(name), short);
        }
    }
}
