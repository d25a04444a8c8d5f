//! The native format: the metadata of a NativeAOT program, and its hash tables.
//!
//! Records are addressed by offset. A handle is a kind of record with an offset.
//!
//! # Source
//! dotnet/runtime `src/coreclr/tools/Common/Internal/NativeFormat` and
//! `Internal/Metadata/NativeFormat` (`SchemaDef.cs` for the fields of records, in their order).

use crate::types::signature::primitive_of_type;

/// Maximum nesting depth of types, and of namespaces.
const MAX_DEPTH: u32 = 16;
/// Maximum number of bytes of a name or a signature.
const MAX_LENGTH: usize = 4096;
/// Maximum number of elements of a list.
const MAX_ELEMENTS: u32 = 1024;
/// The first word of metadata.
const SIGNATURE: [u8; 4] = 0xdead_dffd_u32.to_le_bytes();

/// Bytes in the native format.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes<'b> {
    bytes: &'b [u8],
    pub(crate) at: usize,
}

impl<'b> Bytes<'b> {
    pub(crate) const fn new(bytes: &'b [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    pub(crate) const fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let array = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at = self.at.checked_add(N)?;
        Some(array)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    /// Reads a number of one to five bytes; the lowest bits of the first byte give the number of further
    /// bytes.
    pub(crate) fn unsigned(&mut self) -> Option<u32> {
        let length = self.length()?;
        if length == 5 {
            self.byte()?;
            return self.u32();
        }
        let raw = self.raw(length)?;
        Some(raw >> length)
    }

    /// Reads a signed number.
    pub(crate) fn signed(&mut self) -> Option<i32> {
        let length = self.length()?;
        if length == 5 {
            self.byte()?;
            return self.i32();
        }
        let unused = 32_u32.checked_sub(length.checked_mul(8)?)?;
        let raw = self.raw(length)?;
        // The highest bit is moved up, and back as a sign.
        Some((raw << unused).cast_signed() >> unused.checked_add(length)?)
    }

    /// The number of bytes of the next number.
    fn length(&self) -> Option<u32> {
        let length = self.bytes.get(self.at)?.trailing_ones().checked_add(1)?;
        (length <= 5).then_some(length)
    }

    fn raw(&mut self, length: u32) -> Option<u32> {
        let mut raw = 0;
        for index in 0..length {
            raw |= u32::from(self.byte()?) << index.checked_mul(8)?;
        }
        Some(raw)
    }

    /// Reads the place that the next number leads to, relative to its own.
    fn relative(&mut self) -> Option<Self> {
        let from = self.at;
        let by = isize::try_from(self.signed()?).ok()?;
        Some(Self::new(self.bytes, from.checked_add_signed(by)?))
    }

    /// Reads a handle.
    fn handle(&mut self, bits: KindBits) -> Option<Handle> {
        let raw = self.unsigned()?;
        let [kind, ..] = raw.to_le_bytes();
        Some(Handle { kind: kind & bits.mask(), offset: raw >> bits.count() })
    }

    /// Reads a handle of a known kind.
    fn handle_of(&mut self, kind: u8) -> Option<Handle> {
        Some(Handle { kind, offset: self.unsigned()? })
    }
}

/// Passes the entries of a hash table on.
pub(crate) fn each_entry<'b>(table: &'b [u8], mut visit: impl FnMut(Bytes<'b>) -> Option<()>) -> Option<()> {
    let header = *table.first()?;
    let size = 1_usize.checked_shl(u32::from(header & 3)).filter(|size| *size <= 4)?;
    let buckets = 1_usize.checked_shl(u32::from(header >> 2))?;
    let start = |bucket: usize| -> Option<usize> {
        let at = bucket.checked_mul(size)?.checked_add(1)?;
        let mut word = [0; 4];
        word.get_mut(..size)?.copy_from_slice(table.get(at..at.checked_add(size)?)?);
        usize::try_from(u32::from_le_bytes(word)).ok()?.checked_add(1)
    };
    for bucket in 0..buckets {
        let end = start(bucket.checked_add(1)?)?;
        let mut entries = Bytes::new(table, start(bucket)?);
        while entries.at < end {
            // The low byte of the hash code.
            entries.byte()?;
            visit(entries.relative()?)?;
        }
    }
    Some(())
}

/// The width of the kind of a record in a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum KindBits {
    /// Up to .NET 9.
    #[default]
    Eight,
    /// .NET 10 and later.
    Seven,
}

impl KindBits {
    const fn count(self) -> u32 {
        match self {
            Self::Eight => 8,
            Self::Seven => 7,
        }
    }

    const fn mask(self) -> u8 {
        match self {
            Self::Eight => 0xff,
            Self::Seven => 0x7f,
        }
    }
}

/// A kind of record, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Handle {
    pub(crate) kind: u8,
    pub(crate) offset: u32,
}

impl Handle {
    /// A handle in one word.
    pub(crate) const fn of_token(token: u32, bits: KindBits) -> Self {
        // The kind has the highest bits.
        let [kind, ..] = token.rotate_left(bits.count()).to_le_bytes();
        Self { kind: kind & bits.mask(), offset: token & (u32::MAX >> bits.count()) }
    }

    const fn is_null(self) -> bool {
        self.offset == 0
    }
}

/// Kinds of records.
mod kind {
    pub(super) const ARRAY: u8 = 0x01;
    pub(super) const BY_REFERENCE: u8 = 0x02;
    pub(super) const FUNCTION_POINTER: u8 = 0x25;
    pub(super) const METHOD_VARIABLE: u8 = 0x2c;
    pub(super) const MODIFIED: u8 = 0x2d;
    pub(super) const NAMESPACE: u8 = 0x2f;
    pub(super) const NAMESPACE_REFERENCE: u8 = 0x30;
    pub(super) const POINTER: u8 = 0x32;
    pub(super) const SINGLE_ARRAY: u8 = 0x37;
    pub(super) const SCOPE: u8 = 0x38;
    pub(super) const SCOPE_REFERENCE: u8 = 0x39;
    pub(super) const TYPE: u8 = 0x3a;
    pub(super) const INSTANTIATION: u8 = 0x3c;
    pub(super) const TYPE_REFERENCE: u8 = 0x3d;
    pub(super) const SPECIFICATION: u8 = 0x3e;
    pub(super) const TYPE_VARIABLE: u8 = 0x3f;
}

/// The metadata of a program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Metadata<'b> {
    bytes: &'b [u8],
    bits: KindBits,
}

/// The notation of types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// That of the names of types: ``System.Span`1[System.Char]``.
    Name,
    /// That of signatures: ``class System.Span`1<wchar>``.
    Signature,
}

impl<'b> Metadata<'b> {
    /// Uses metadata; `None` if it is something else.
    pub(crate) fn new(bytes: &'b [u8], bits: KindBits) -> Option<Self> {
        bytes.starts_with(&SIGNATURE).then_some(Self { bytes, bits })
    }

    fn record(&self, handle: Handle) -> Option<Bytes<'b>> {
        // No record is in the place of the signature.
        let at = usize::try_from(handle.offset).ok().filter(|at| *at >= SIGNATURE.len())?;
        Some(Bytes::new(self.bytes, at))
    }

    /// Returns the string at an offset.
    pub(crate) fn text(&self, at: u32) -> Option<&'b str> {
        let mut bytes = Bytes::new(self.bytes, usize::try_from(at).ok()?);
        let length = usize::try_from(bytes.unsigned()?).ok().filter(|length| *length <= MAX_LENGTH)?;
        std::str::from_utf8(self.bytes.get(bytes.at..bytes.at.checked_add(length)?)?).ok()
    }

    /// Returns the name of a type, as the runtime writes it.
    pub(crate) fn type_name(&self, handle: Handle) -> Option<String> {
        let mut text = String::new();
        self.write(handle, Notation::Name, MAX_DEPTH, &mut text)?;
        Some(text)
    }

    /// Returns the places of the name and of the signature of a method by the offset of its record.
    pub(crate) fn method(&self, at: u32) -> Option<(u32, u32)> {
        let mut record = Bytes::new(self.bytes, usize::try_from(at).ok()?);
        // Flags of the method, and of its implementation.
        record.unsigned()?;
        record.unsigned()?;
        Some((record.unsigned()?, record.unsigned()?))
    }

    /// Returns the signature of a method, return type first, in the runtime's notation.
    pub(crate) fn signature(&self, at: u32) -> Option<String> {
        const HAS_THIS: u8 = 0x20;
        let mut record = Bytes::new(self.bytes, usize::try_from(at).ok()?);
        let mut text = if record.byte()? & HAS_THIS != 0 { "instance ".to_owned() } else { String::new() };
        // The number of the method's own type parameters.
        record.signed()?;
        self.write(record.handle(self.bits)?, Notation::Signature, MAX_DEPTH, &mut text)?;
        text.push_str("  (");
        self.write_list(&mut record, Notation::Signature, MAX_DEPTH, &mut text)?;
        text.push(')');
        Some(text)
    }

    /// Returns the assembly that defines a type: the offset of its record, and its name.
    pub(crate) fn assembly(&self, handle: Handle) -> Option<(u32, &'b str)> {
        let mut record = self.scope(handle)?;
        let at = u32::try_from(record.at).ok()?;
        // Flags.
        record.unsigned()?;
        Some((at, self.text(record.unsigned()?)?))
    }

    /// Returns the version of the assembly that defines a type: its first two numbers.
    pub(crate) fn assembly_version(&self, handle: Handle) -> Option<String> {
        let mut record = self.scope(handle)?;
        // Flags, the name, and the algorithm of hash codes.
        for _ in 0..3 {
            record.unsigned()?;
        }
        Some(format!("{}.{}", record.unsigned()?, record.unsigned()?))
    }

    /// The record of the assembly that defines a type.
    fn scope(&self, handle: Handle) -> Option<Bytes<'b>> {
        let mut of = handle;
        for _ in 0..MAX_DEPTH {
            let mut record = self.record(of)?;
            of = match of.kind {
                kind::TYPE => self.definition(of)?.owner(),
                kind::NAMESPACE
                | kind::NAMESPACE_REFERENCE
                | kind::TYPE_REFERENCE
                | kind::SPECIFICATION
                | kind::INSTANTIATION => record.handle(self.bits)?,
                kind::SCOPE | kind::SCOPE_REFERENCE => return Some(record),
                _ => return None,
            };
        }
        None
    }

    fn definition(&self, handle: Handle) -> Option<TypeDefinition> {
        let mut record = self.record(handle)?;
        record.unsigned()?;
        record.handle(self.bits)?;
        let namespace = record.handle_of(kind::NAMESPACE)?;
        let name = record.unsigned()?;
        // Size and alignment.
        record.unsigned()?;
        record.unsigned()?;
        Some(TypeDefinition { namespace, name, enclosing: record.handle_of(kind::TYPE)? })
    }

    fn push(text: &mut String, part: &str) -> Option<()> {
        text.push_str(part);
        (text.len() <= MAX_LENGTH).then_some(())
    }

    /// Writes a type or a namespace.
    fn write(&self, handle: Handle, notation: Notation, depth: u32, text: &mut String) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let mut record = self.record(handle)?;
        match handle.kind {
            kind::TYPE | kind::TYPE_REFERENCE => {
                let mut name = String::new();
                self.write_named(handle, depth, &mut name)?;
                if notation == Notation::Name {
                    return Self::push(text, &name);
                }
                match primitive_of_type(&name) {
                    Some(primitive) => Self::push(text, primitive),
                    None => Self::push(text, &["class ", &*name].concat()),
                }
            }
            kind::SPECIFICATION => self.write(record.handle(self.bits)?, notation, depth, text),
            kind::INSTANTIATION => {
                let (open, close) = if notation == Notation::Name { ("[", "]") } else { ("<", ">") };
                self.write(record.handle(self.bits)?, notation, depth, text)?;
                Self::push(text, open)?;
                self.write_list(&mut record, notation, depth, text)?;
                Self::push(text, close)
            }
            kind::SINGLE_ARRAY => self.write_with(record.handle(self.bits)?, notation, depth, text, "[]"),
            kind::POINTER => self.write_with(record.handle(self.bits)?, notation, depth, text, "*"),
            kind::BY_REFERENCE => self.write_with(record.handle(self.bits)?, notation, depth, text, "&"),
            kind::ARRAY => {
                let of = record.handle(self.bits)?;
                let rank = usize::try_from(record.signed()?).ok().filter(|rank| (1..=32).contains(rank))?;
                let suffix = ["[", &",".repeat(rank.saturating_sub(1)), "]"].concat();
                self.write_with(of, notation, depth, text, &suffix)
            }
            kind::TYPE_VARIABLE => Self::push(text, &format!("!{}", record.signed()?)),
            kind::METHOD_VARIABLE => Self::push(text, &format!("!!{}", record.signed()?)),
            kind::MODIFIED => {
                record.byte()?;
                record.handle(self.bits)?;
                self.write(record.handle(self.bits)?, notation, depth, text)
            }
            kind::FUNCTION_POINTER => Self::push(text, "native int"),
            _ => None,
        }
    }

    fn write_with(
        &self,
        handle: Handle,
        notation: Notation,
        depth: u32,
        text: &mut String,
        suffix: &str,
    ) -> Option<()> {
        self.write(handle, notation, depth, text)?;
        Self::push(text, suffix)
    }

    /// Writes types with commas between.
    fn write_list(
        &self,
        list: &mut Bytes<'b>,
        notation: Notation,
        depth: u32,
        text: &mut String,
    ) -> Option<()> {
        let count = list.unsigned().filter(|count| *count <= MAX_ELEMENTS)?;
        for index in 0..count {
            if index > 0 {
                Self::push(text, ",")?;
            }
            self.write(list.handle(self.bits)?, notation, depth, text)?;
        }
        Some(())
    }

    /// Writes the name of a type with its namespace, or the name of a namespace.
    fn write_named(&self, handle: Handle, depth: u32, text: &mut String) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        let (owner, name) = match handle.kind {
            kind::TYPE => {
                let definition = self.definition(handle)?;
                (definition.owner(), definition.name)
            }
            kind::TYPE_REFERENCE | kind::NAMESPACE | kind::NAMESPACE_REFERENCE => {
                let mut record = self.record(handle)?;
                (record.handle(self.bits)?, record.unsigned()?)
            }
            // An assembly, which is not a part of names.
            _ => return Some(()),
        };
        let before = text.len();
        if !owner.is_null() {
            self.write_named(owner, depth, text)?;
        }
        if text.len() > before {
            Self::push(
                text,
                if matches!(owner.kind, kind::TYPE | kind::TYPE_REFERENCE) { "+" } else { "." },
            )?;
        }
        // The outermost namespace is unnamed.
        match name {
            0 => Some(()),
            at => Self::push(text, self.text(at)?),
        }
    }
}

/// The parts of a type definition that name it.
struct TypeDefinition {
    namespace: Handle,
    name: u32,
    enclosing: Handle,
}

impl TypeDefinition {
    /// The enclosing type, or else the namespace.
    const fn owner(&self) -> Handle {
        if self.enclosing.is_null() { self.namespace } else { self.enclosing }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsigned(number: u32) -> Vec<u8> {
        match number {
            0..0x80 => vec![u8::try_from(number << 1).unwrap()],
            0x80..0x4000 => (number << 2 | 1).to_le_bytes()[..2].to_vec(),
            0x4000..0x20_0000 => (number << 3 | 3).to_le_bytes()[..3].to_vec(),
            0x20_0000..0x1000_0000 => (number << 4 | 7).to_le_bytes().to_vec(),
            _ => [&[15][..], &number.to_le_bytes()].concat(),
        }
    }

    #[test]
    fn numbers_have_the_length_that_their_first_byte_says() {
        for number in [0, 42, 0x7f, 0x80, 300, 0x3fff, 0x4000, 0x1f_ffff, 0x20_0000, 0xfff_ffff, u32::MAX] {
            let bytes = unsigned(number);
            let mut read = Bytes::new(&bytes, 0);
            assert_eq!((read.unsigned(), read.is_at_end()), (Some(number), true), "{number:#x}");
            for length in 0..bytes.len() {
                assert_eq!(Bytes::new(&bytes[..length], 0).unsigned(), None, "{number:#x}");
            }
        }
        let signed = |bytes: &[u8]| Bytes::new(bytes, 0).signed();
        assert_eq!([signed(&[0xfe]), signed(&[0x51, 0xfb]), signed(&[84])], [Some(-1), Some(-300), Some(42)]);
        assert_eq!(signed(&[15, 0, 0, 0, 0x80]), Some(i32::MIN));
        assert_eq!([signed(&[0x1f; 8]), signed(&[0xff; 8])], [None, None]);
    }

    /// Metadata under construction, one record after the other.
    struct Records(Vec<u8>);

    impl Records {
        fn add(&mut self, kind: u8, parts: &[Vec<u8>]) -> Handle {
            let offset = u32::try_from(self.0.len()).unwrap();
            self.0.extend(parts.concat());
            Handle { kind, offset }
        }

        fn text(&mut self, text: &str) -> Vec<u8> {
            let parts = [unsigned(u32::try_from(text.len()).unwrap()), text.as_bytes().to_vec()];
            unsigned(self.add(0, &parts).offset)
        }
    }

    fn handle(of: Handle) -> Vec<u8> {
        unsigned(u32::from(of.kind) | of.offset << 8)
    }

    #[test]
    fn types_and_signatures_have_the_notation_of_the_runtime() {
        let mut records = Records(SIGNATURE.to_vec());
        let [assembly, system, list, inner, int] =
            ["Base", "System", "List`1", "Inner", "Int32"].map(|text| records.text(text));
        let scope = records.add(kind::SCOPE_REFERENCE, &[vec![0], assembly]);
        let namespace = records.add(kind::NAMESPACE_REFERENCE, &[handle(scope), system]);
        let list = records.add(kind::TYPE_REFERENCE, &[handle(namespace), list]);
        let inner = records.add(kind::TYPE_REFERENCE, &[handle(list), inner]);
        let int = records.add(kind::TYPE_REFERENCE, &[handle(namespace), int]);
        let array = records.add(kind::SINGLE_ARRAY, &[handle(int)]);
        let instance = records.add(kind::INSTANTIATION, &[handle(inner), vec![2], handle(array)]);
        let variable = records.add(kind::METHOD_VARIABLE, &[vec![2]]);
        let nothing = vec![0];
        let signature =
            [vec![0x20], nothing.clone(), handle(int), vec![4], handle(instance), handle(variable)];
        let signature = records.add(0x2b, &[&signature[..], &[nothing]].concat());
        // A recursive type.
        let at = u32::try_from(records.0.len()).unwrap();
        let circle = Handle { kind: kind::SINGLE_ARRAY, offset: at };
        records.add(kind::SINGLE_ARRAY, &[handle(circle)]);
        let bytes = records.0;
        let metadata = Metadata::new(&bytes, KindBits::Eight).unwrap();
        assert_eq!(metadata.type_name(instance).as_deref(), Some("System.List`1+Inner[System.Int32[]]"));
        assert_eq!(metadata.assembly(instance), Some((scope.offset, "Base")));
        assert_eq!(
            metadata.signature(signature.offset).as_deref(),
            Some("instance int32  (class System.List`1+Inner<int32[]>,!!1)")
        );
        assert_eq!(metadata.type_name(circle), None);
        assert_eq!(metadata.type_name(Handle { kind: 0x77, offset: 4 }), None);
        assert_eq!(metadata.type_name(Handle { kind: kind::TYPE, offset: u32::MAX }), None);
        assert!(Metadata::new(b"BSJB", KindBits::Eight).is_none());
    }

    #[test]
    fn a_hash_table_has_the_entries_of_all_buckets() {
        // Two buckets; an entry of the first, which has a number, leads past the table.
        let table = [1 << 2, 3, 5, 5, 0xaa, 4, 84, 200];
        let mut found = Vec::new();
        let whole = each_entry(&table, |mut entry| {
            found.push((entry.at, entry.unsigned()?));
            Some(())
        });
        assert_eq!((whole, &found[..]), (Some(()), &[(7, 100)][..]));
        assert_eq!(each_entry(&table[..5], |_| Some(())), None);
        // Buckets that the table does not have.
        assert_eq!(each_entry(&[31 << 2, 0, 0], |_| Some(())), None);
        assert_eq!(each_entry(&[3, 0, 0], |_| Some(())), None);
    }

    #[test]
    fn kinds_have_seven_or_eight_bits() {
        let token = |token, bits| {
            let Handle { kind, offset } = Handle::of_token(token, bits);
            (kind, offset)
        };
        assert_eq!(token(0x3a12_3456, KindBits::Eight), (kind::TYPE, 0x12_3456));
        assert_eq!(token(0x7500_2f39, KindBits::Seven), (kind::TYPE, 0x100_2f39));
        assert_eq!(token(u32::MAX, KindBits::Seven), (0x7f, 0x1ff_ffff));
        let raw = 0x2f0d << 7 | u32::from(kind::TYPE);
        assert_eq!(Bytes::new(&unsigned(raw), 0).handle(KindBits::Seven).unwrap().offset, 0x2f0d);
    }
}
