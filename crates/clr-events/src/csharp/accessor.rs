//! Names of accessors and operators.

/// The accessor of a property or event, and its name: `get_Length` is `Length.get`.
pub(super) fn accessor(name: &str) -> Option<(&str, &'static str)> {
    [("get_", "get"), ("set_", "set"), ("add_", "add"), ("remove_", "remove")]
        .into_iter()
        .find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, kind)))
        .filter(|(property, _)| !property.is_empty())
}

/// The C# word of a conversion operator.
pub(super) fn conversion(name: &str) -> Option<&'static str> {
    Some(match name {
        "op_Implicit" => "implicit operator",
        "op_Explicit" => "explicit operator",
        "op_CheckedExplicit" => "explicit operator checked",
        _ => return None,
    })
}

/// The C# symbol of an operator, and whether it is the checked one.
pub(super) fn operator(name: &str) -> Option<(bool, &'static str)> {
    let name = name.strip_prefix("op_")?;
    let (is_checked, name) = match name.strip_prefix("Checked") {
        Some(name) => (true, name),
        None => (false, name),
    };
    Some((
        is_checked,
        match name {
            "Addition" | "UnaryPlus" => "+",
            "Subtraction" | "UnaryNegation" => "-",
            "Multiply" => "*",
            "Division" => "/",
            "Modulus" => "%",
            "BitwiseAnd" => "&",
            "BitwiseOr" => "|",
            "ExclusiveOr" => "^",
            "LeftShift" => "<<",
            "RightShift" => ">>",
            "UnsignedRightShift" => ">>>",
            "LogicalNot" => "!",
            "OnesComplement" => "~",
            "Increment" => "++",
            "Decrement" => "--",
            "True" => "true",
            "False" => "false",
            "Equality" => "==",
            "Inequality" => "!=",
            "LessThan" => "<",
            "LessThanOrEqual" => "<=",
            "GreaterThan" => ">",
            "GreaterThanOrEqual" => ">=",
            _ => return None,
        },
    ))
}
