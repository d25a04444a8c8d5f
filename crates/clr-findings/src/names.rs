//! Names of types and methods in sentences.

use clr_events::csharp::RuntimeName;
use clr_events::escape_controls;
use nettrace_export::method_name;

/// The mark of the body of an `async` method.
const ASYNC: &str = " [async]";

/// The short C# name of a method as the runtime names it, without parameters.
pub(crate) fn short_name(namespace: &str, name: &str, signature: &str) -> String {
    let name = RuntimeName { namespace, name, signature }.display_name();
    in_words(method_name::csharp_without_parameters(name.short()))
}

/// The name of a method in a sentence, by its C# name without parameters: the body of an `async` method is
/// the method.
pub(crate) fn in_words(name: &str) -> String {
    escape_controls(name.strip_suffix(ASYNC).unwrap_or(name)).into_owned()
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
    fn bodies_of_async_methods_have_the_names_of_the_methods() {
        assert_eq!(short_name("Shop.Cart+<PayAsync>d__3", "MoveNext", "instance void  ()"), "Cart.PayAsync");
        assert_eq!(in_words("Cart.PayAsync [async]"), "Cart.PayAsync");
    }

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
