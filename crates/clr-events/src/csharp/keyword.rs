//! Keywords for types.

/// The C# keyword of a type of a signature.
pub(super) fn primitive(word: &str) -> Option<&'static str> {
    Some(match word {
        "void" => "void",
        "bool" => "bool",
        "wchar" | "char" => "char",
        "int8" => "sbyte",
        "int16" => "short",
        "int32" => "int",
        "int64" => "long",
        "int" => "nint",
        "uint8" => "byte",
        "uint16" => "ushort",
        "uint32" => "uint",
        "uint64" => "ulong",
        "uint" => "nuint",
        "float32" => "float",
        "float64" => "double",
        "string" => "string",
        "object" => "object",
        "refany" | "typedref" => "TypedReference",
        _ => return None,
    })
}

pub(super) fn unsigned(word: &str) -> Option<&'static str> {
    Some(match word {
        "int8" => "byte",
        "int16" => "ushort",
        "int32" => "uint",
        "int64" => "ulong",
        "int" => "nuint",
        _ => return None,
    })
}

/// The C# keyword of a type.
pub(super) fn keyword(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("System.")? {
        "Void" => "void",
        "Boolean" => "bool",
        "Char" => "char",
        "SByte" => "sbyte",
        "Byte" => "byte",
        "Int16" => "short",
        "UInt16" => "ushort",
        "Int32" => "int",
        "UInt32" => "uint",
        "Int64" => "long",
        "UInt64" => "ulong",
        "IntPtr" => "nint",
        "UIntPtr" => "nuint",
        "Single" => "float",
        "Double" => "double",
        "Decimal" => "decimal",
        "String" => "string",
        "Object" => "object",
        _ => return None,
    })
}
