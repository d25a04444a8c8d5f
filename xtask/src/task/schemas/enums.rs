//! Named values and bits.

use std::fmt::Write as _;

use super::facts::Facts;
use super::{heading, names};

pub(super) fn code(facts: &Facts) -> String {
    let mut code = heading("Names of values and of bits.");
    code.push_str("use crate::macros::value_names;\n");
    for (name, map) in &facts.maps {
        let kind = if map.is_bits { "Bits" } else { "Values" };
        let what = if map.is_bits { "Bits" } else { "A value" };
        let type_name = names::type_name(name);
        let _ = writeln!(code, "\nvalue_names! {{");
        let _ = writeln!(code, "    \"{what} of `{name}`.\",");
        let _ = writeln!(code, "    {type_name}, {}, \"{name}\", {kind};", names::map(name));
        for (number, entry) in &map.entries {
            let number = if map.is_bits { format!("{number:#x}") } else { number.to_string() };
            let _ = writeln!(code, "    {} = {number}, \"{entry}\";", names::constant(entry));
        }
        code.push_str("}\n");
    }
    code
}
