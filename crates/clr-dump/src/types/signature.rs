//! Signatures of methods in the runtime's own notation: `instance void  (int32,class System.String)`.
//!
//! # Source
//! ECMA-335 II.23.2; dotnet/runtime `src/coreclr/inc/formattype.cpp` for the notation.

use portable_pdb::ProgramMetadata;

/// Maximum nesting depth of types.
const MAX_DEPTH: u32 = 16;
/// Maximum number of bytes of a printed signature or type.
const MAX_LENGTH: usize = 4096;
/// Maximum number of parameters of a method.
const MAX_PARAMETERS: u32 = 1 << 12;
/// Maximum number of local variables of a method.
const MAX_LOCALS: u32 = 1 << 16;

/// Writes a method's signature; `None` if it is damaged, or too long or deep.
pub(crate) fn method(metadata: &ProgramMetadata<'_>, signature: &[u8]) -> Option<String> {
    let mut printer = Printer { metadata, rest: Bytes(signature), text: String::new(), parameters: None };
    let convention = printer.byte()?;
    if convention & HAS_THIS != 0 {
        printer.push("instance ")?;
    }
    if convention & GENERIC != 0 {
        printer.number()?;
    }
    let count = printer.number()?;
    printer.element(MAX_DEPTH)?;
    printer.push("  (")?;
    printer.list(count, MAX_DEPTH)?;
    printer.push(")")?;
    Some(printer.text)
}

/// Writes the type of a field; `None` if its signature is damaged, or too long or deep.
pub(crate) fn field(metadata: &ProgramMetadata<'_>, signature: &[u8]) -> Option<String> {
    let mut printer = Printer { metadata, rest: Bytes(signature), text: String::new(), parameters: None };
    if printer.byte()? != FIELD {
        return None;
    }
    printer.element(MAX_DEPTH)?;
    Some(printer.text)
}

/// The names of the type parameters of a type and of its method.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypeParameters {
    pub(crate) of_type: Vec<String>,
    pub(crate) of_method: Vec<String>,
}

/// Writes the type of a variable as [`field`] does, with the names of type parameters for their numbers.
pub(crate) fn variable(
    metadata: &ProgramMetadata<'_>,
    signature: &[u8],
    parameters: &TypeParameters,
) -> Option<String> {
    let parameters = Some(parameters);
    let mut printer = Printer { metadata, rest: Bytes(signature), text: String::new(), parameters };
    printer.element(MAX_DEPTH)?;
    Some(printer.text)
}

/// Returns the types of a method's local variables, without modifiers; `None` if their signature is damaged.
pub(crate) fn locals(signature: &[u8]) -> Option<Vec<&[u8]>> {
    let mut bytes = Bytes(signature);
    if bytes.byte()? != LOCALS {
        return None;
    }
    let count = bytes.number().filter(|count| *count <= MAX_LOCALS)?;
    let mut types = Vec::new();
    for _ in 0..count {
        while let Some(prefix @ (0x1f | 0x20 | PINNED)) = bytes.0.first().copied() {
            bytes.byte()?;
            if prefix != PINNED {
                bytes.number()?;
            }
        }
        let before = bytes.0;
        bytes.skip_type(MAX_DEPTH)?;
        types.push(before.get(..before.len().saturating_sub(bytes.0.len()))?);
    }
    Some(types)
}

/// Returns true if a method has `this`, and the types of its parameters; `None` if its signature is damaged.
pub(crate) fn parameters(signature: &[u8]) -> Option<(bool, Vec<&[u8]>)> {
    let mut bytes = Bytes(signature);
    let convention = bytes.byte()?;
    if convention & GENERIC != 0 {
        bytes.number()?;
    }
    let count = bytes.number().filter(|count| *count <= MAX_PARAMETERS)?;
    bytes.skip_type(MAX_DEPTH)?;
    let mut types = Vec::new();
    for _ in 0..count {
        let before = bytes.0;
        bytes.skip_type(MAX_DEPTH)?;
        types.push(before.get(..before.len().saturating_sub(bytes.0.len()))?);
    }
    Some((convention & HAS_THIS != 0 && convention & EXPLICIT_THIS == 0, types))
}

/// The type of a field that is neither primitive nor a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// A row of the types that the module defines.
    Defined(u32),
    /// A row of the types that it refers to.
    Referenced(u32),
    /// An argument of the declaring type.
    Argument(u32),
    /// An instance of a generic structure, which [`instance_name`] names.
    Instance,
}

/// Returns the type of a field that is a structure, an enumeration or an argument of the declaring type;
/// `None` for others.
pub(crate) fn value_type(signature: &[u8]) -> Option<ValueType> {
    let mut bytes = Bytes(signature);
    if bytes.byte()? != FIELD {
        return None;
    }
    loop {
        return match bytes.byte()? {
            // Modifiers precede the type.
            0x1f | 0x20 => {
                bytes.number()?;
                continue;
            }
            0x11 => {
                let coded = bytes.number()?;
                match coded & 3 {
                    0 => Some(ValueType::Defined(coded >> 2)),
                    1 => Some(ValueType::Referenced(coded >> 2)),
                    _ => None,
                }
            }
            0x13 => Some(ValueType::Argument(bytes.number()?)),
            0x15 if bytes.byte()? == 0x11 => Some(ValueType::Instance),
            _ => None,
        };
    }
}

/// An argument of the declaring type of a field.
#[derive(Debug, Clone)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) is_reference: bool,
}

/// Returns the name of the type of a field that is an instance of a generic structure, in the notation of
/// [`Types::name`](crate::Types::name). `is_shared` names the instance that all references share, in which
/// arguments that are references are `System.__Canon`.
pub(crate) fn instance_name(
    metadata: &ProgramMetadata<'_>,
    signature: &[u8],
    arguments: &[Argument],
    is_shared: bool,
) -> Option<String> {
    let mut namer = Namer { metadata, rest: Bytes(signature), arguments, is_shared };
    if namer.rest.byte()? != FIELD {
        return None;
    }
    loop {
        match namer.rest.byte()? {
            0x1f | 0x20 => {
                namer.rest.number()?;
            }
            kind => return namer.name(kind, MAX_DEPTH).filter(|name| name.len() <= MAX_LENGTH),
        }
    }
}

/// Names types of a signature as the runtime names types.
struct Namer<'a> {
    metadata: &'a ProgramMetadata<'a>,
    rest: Bytes<'a>,
    arguments: &'a [Argument],
    is_shared: bool,
}

impl Namer<'_> {
    /// The name of a type of a kind.
    fn name(&mut self, kind: u8, depth: u32) -> Option<String> {
        let depth = depth.checked_sub(1)?;
        Some(match kind {
            0x11 | 0x12 => self.named()?,
            0x13 => {
                let number = usize::try_from(self.rest.number()?).ok()?;
                self.arguments.get(number)?.name.clone()
            }
            0x14 => {
                let of = self.element(depth)?;
                let rank = self.rest.number()?.min(32);
                for _ in 0..2 {
                    for _ in 0..self.rest.number()? {
                        self.rest.number()?;
                    }
                }
                let commas = ",".repeat(usize::try_from(rank.saturating_sub(1)).ok()?);
                [&*of, "[", &commas, "]"].concat()
            }
            0x15 => {
                self.rest.byte()?;
                let name = self.named()?;
                let count = self.rest.number()?;
                let mut arguments = Vec::new();
                for _ in 0..count {
                    arguments.push(self.argument(depth)?);
                }
                [&*name, "[", &arguments.join(","), "]"].concat()
            }
            0x1d => self.element(depth)? + "[]",
            _ => ["System.", primitive_name(kind)?].concat(),
        })
    }

    fn element(&mut self, depth: u32) -> Option<String> {
        let kind = self.rest.byte()?;
        self.name(kind, depth)
    }

    /// The name of an argument of a type.
    fn argument(&mut self, depth: u32) -> Option<String> {
        let kind = self.rest.byte()?;
        let argument = || self.arguments.get(usize::from(*self.rest.0.first()?));
        let is_reference = match kind {
            0x0e | 0x12 | 0x14 | 0x1c | 0x1d => true,
            0x13 => argument().is_some_and(|of| of.is_reference),
            0x15 => self.rest.0.first() == Some(&0x12),
            _ => false,
        };
        let name = self.name(kind, depth)?;
        Some(if is_reference && self.is_shared { "System.__Canon".to_owned() } else { name })
    }

    /// The name of a type, given its token.
    fn named(&mut self) -> Option<String> {
        let coded = self.rest.number()?;
        let table = match coded & 3 {
            0 => 0x0200_0000,
            1 => 0x0100_0000,
            _ => return None,
        };
        self.metadata.whole_type_name(table | coded >> 2).ok()?
    }
}

/// The name of a primitive type of a kind, in the namespace `System`.
fn primitive_name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x02 => "Boolean",
        0x03 => "Char",
        0x04 => "SByte",
        0x05 => "Byte",
        0x06 => "Int16",
        0x07 => "UInt16",
        0x08 => "Int32",
        0x09 => "UInt32",
        0x0a => "Int64",
        0x0b => "UInt64",
        0x0c => "Single",
        0x0d => "Double",
        0x0e => "String",
        0x18 => "IntPtr",
        0x19 => "UIntPtr",
        0x1c => "Object",
        _ => return None,
    })
}

/// The first byte of the signature of a field.
pub(crate) const FIELD: u8 = 6;
/// The first byte of the signature of local variables, and the prefix of one that pins its object.
const LOCALS: u8 = 7;
const PINNED: u8 = 0x45;
/// Bits of the calling convention.
const HAS_THIS: u8 = 0x20;
const EXPLICIT_THIS: u8 = 0x40;
const GENERIC: u8 = 0x10;

/// The bytes of a signature.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    /// Skips a type.
    fn skip_type(&mut self, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match self.byte()? {
            // Modifiers precede the type.
            0x1f | 0x20 => {
                self.number()?;
                self.skip_type(depth)
            }
            0x0f | 0x10 | 0x1d | 0x45 => self.skip_type(depth),
            0x11 | 0x12 | 0x13 | 0x1e => self.number().map(|_| ()),
            0x14 => {
                self.skip_type(depth)?;
                self.number()?;
                for _ in 0..2 {
                    for _ in 0..self.number()? {
                        self.number()?;
                    }
                }
                Some(())
            }
            0x15 => {
                self.byte()?;
                self.number()?;
                (0..self.number()?).try_for_each(|_| self.skip_type(depth))
            }
            0x1b => {
                if self.byte()? & GENERIC != 0 {
                    self.number()?;
                }
                let count = self.number()?.checked_add(1)?;
                (0..count).try_for_each(|_| self.skip_type(depth))
            }
            0x01..=0x0e | 0x16 | 0x18 | 0x19 | 0x1c => Some(()),
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// Reads a compressed unsigned number.
    fn number(&mut self) -> Option<u32> {
        let first = self.byte()?;
        let mut number = u32::from(first);
        let more = match first {
            0..0x80 => 0,
            0x80..0xc0 => 1,
            0xc0..0xe0 => 3,
            _ => return None,
        };
        for _ in 0..more {
            number = number << 8 | u32::from(self.byte()?);
        }
        Some(match more {
            0 => number,
            1 => number & 0x3fff,
            _ => number & 0x1fff_ffff,
        })
    }
}

struct Printer<'a> {
    metadata: &'a ProgramMetadata<'a>,
    rest: Bytes<'a>,
    text: String,
    /// The names of type parameters; `None` writes their numbers.
    parameters: Option<&'a TypeParameters>,
}

impl Printer<'_> {
    fn push(&mut self, text: &str) -> Option<()> {
        self.text.push_str(text);
        (self.text.len() <= MAX_LENGTH).then_some(())
    }

    fn byte(&mut self) -> Option<u8> {
        self.rest.byte()
    }

    fn number(&mut self) -> Option<u32> {
        self.rest.number()
    }

    /// Writes types with commas between.
    fn list(&mut self, count: u32, depth: u32) -> Option<()> {
        for index in 0..count {
            if index > 0 {
                self.push(",")?;
            }
            self.element(depth)?;
        }
        Some(())
    }

    /// Writes a type.
    fn element(&mut self, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let kind = self.byte()?;
        if let Some(name) = primitive(kind) {
            return self.push(name);
        }
        match kind {
            0x0f => {
                self.element(depth)?;
                self.push("*")
            }
            0x10 => {
                self.element(depth)?;
                self.push("&")
            }
            0x11 => self.named("value class "),
            0x12 => self.named("class "),
            0x13 | 0x1e => {
                let number = self.number()?;
                let names = self.parameters.map(|of| if kind == 0x13 { &of.of_type } else { &of.of_method });
                let name = names.and_then(|names| names.get(usize::try_from(number).ok()?));
                if let Some(name) = name {
                    return self.push(name);
                }
                self.push(if kind == 0x13 { "!" } else { "!!" })?;
                self.push(&number.to_string())
            }
            0x14 => self.array(depth),
            0x15 => {
                let prefix = if self.byte()? == 0x11 { "value class " } else { "class " };
                self.named(prefix)?;
                let count = self.number()?;
                self.push("<")?;
                self.list(count, depth)?;
                self.push(">")
            }
            0x1b => self.function(depth),
            0x1d => {
                self.element(depth)?;
                self.push("[]")
            }
            // Modifiers, in the notation of the runtime.
            0x1f | 0x20 => {
                self.push(if kind == 0x1f { "required_modifier " } else { "optional_modifier " })?;
                self.named("")?;
                self.push(" ")?;
                self.element(depth)
            }
            // The rest are the arguments of one call.
            0x41 => self.element(depth),
            0x45 => {
                self.element(depth)?;
                self.push(" pinned")
            }
            _ => None,
        }
    }

    /// Writes the type with a token.
    fn named(&mut self, prefix: &str) -> Option<()> {
        let coded = self.number()?;
        let table = match coded & 3 {
            0 => 0x0200_0000,
            1 => 0x0100_0000,
            _ => return None,
        };
        let name = self.metadata.referenced_type_name(table | coded >> 2).ok()??;
        self.push(prefix)?;
        self.push(&name)
    }

    fn array(&mut self, depth: u32) -> Option<()> {
        self.element(depth)?;
        let rank = self.number()?;
        if !(1..=32).contains(&rank) {
            return None;
        }
        // Sizes and lower bounds are not shown.
        for _ in 0..2 {
            for _ in 0..self.number()? {
                self.number()?;
            }
        }
        let commas = ",".repeat(usize::try_from(rank.saturating_sub(1)).ok()?);
        self.push("[")?;
        self.push(&commas)?;
        self.push("]")
    }

    fn function(&mut self, depth: u32) -> Option<()> {
        let convention = self.byte()?;
        let count = self.number()?;
        self.push("fnptr ")?;
        self.push(match convention & 15 {
            0 => "",
            1 => "unmanaged cdecl ",
            2 => "unmanaged stdcall ",
            3 => "unmanaged thiscall ",
            4 => "unmanaged fastcall ",
            9 => "unmanaged ",
            _ => return None,
        })?;
        self.element(depth)?;
        self.push("(")?;
        self.list(count, depth)?;
        self.push(")")
    }
}

/// The notation of a type that has an element type of its own in signatures; `None` for other types.
pub(crate) fn primitive_of_type(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("System.")? {
        "Void" => "void",
        "Boolean" => "bool",
        "Char" => "wchar",
        "SByte" => "int8",
        "Byte" => "unsigned int8",
        "Int16" => "int16",
        "UInt16" => "unsigned int16",
        "Int32" => "int32",
        "UInt32" => "unsigned int32",
        "Int64" => "int64",
        "UInt64" => "unsigned int64",
        "Single" => "float32",
        "Double" => "float64",
        "IntPtr" => "native int",
        "UIntPtr" => "native uint",
        _ => return None,
    })
}

fn primitive(kind: u8) -> Option<&'static str> {
    Some(match kind {
        0x01 => "void",
        0x02 => "bool",
        0x03 => "wchar",
        0x04 => "int8",
        0x05 => "unsigned int8",
        0x06 => "int16",
        0x07 => "unsigned int16",
        0x08 => "int32",
        0x09 => "unsigned int32",
        0x0a => "int64",
        0x0b => "unsigned int64",
        0x0c => "float32",
        0x0d => "float64",
        0x0e => "class System.String",
        0x16 => "refany",
        0x18 => "native int",
        0x19 => "native uint",
        0x1c => "class System.Object",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_variables_have_types_without_their_modifiers() {
        // int32, a pinned reference to a byte, an array of structures with a modifier, and a typed reference.
        let signature = [7, 4, 0x08, 0x45, 0x10, 0x05, 0x20, 0x09, 0x1d, 0x11, 0x05, 0x16];
        let types = [&[0x08][..], &[0x10, 0x05], &[0x1d, 0x11, 0x05], &[0x16]];
        assert_eq!(locals(&signature), Some(types.map(<[u8]>::to_vec).iter().map(Vec::as_slice).collect()));
        for length in 0..signature.len() {
            assert_eq!(locals(&signature[..length]), None, "{length}");
        }
        // That of a method, and more than a method can have.
        assert_eq!(locals(&[0, 0, 1]), None);
        assert_eq!(locals(&[7, 0xc0, 1, 0, 1, 8]), None);
        assert_eq!(locals(&[7, 0]), Some(Vec::new()));
    }

    #[test]
    fn parameters_have_a_limit() {
        // An instance method without result whose parameters are numbers.
        let of = |count: u32| {
            let [.., high, low] = count.to_be_bytes();
            let numbers = vec![0x08; usize::try_from(count).unwrap()];
            parameters(&[&[HAS_THIS, 0x80 | high, low, 0x01][..], &numbers].concat())
                .map(|(has_this, types)| (has_this, types.len()))
        };
        assert_eq!(of(3), Some((true, 3)));
        assert_eq!(of(MAX_PARAMETERS), Some((true, 4096)));
        assert_eq!(of(MAX_PARAMETERS + 1), None);
    }
}
