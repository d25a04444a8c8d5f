//! Names of values and of bits.

/// The kind of a [`ValueNames`]'s numbers: values or bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueNamesKind {
    /// One number, one name.
    Values,
    /// Each name is a bit, or bits, of the number.
    Bits,
}

/// The names that the runtime has for the values of a field.
#[derive(Debug, PartialEq, Eq)]
pub struct ValueNames {
    /// The runtime's name for it, such as `GCReasonMap`.
    pub name: &'static str,
    /// The kind of the numbers.
    pub kind: ValueNamesKind,
    /// Numbers and their names, ascending.
    pub entries: &'static [(u32, &'static str)],
}

impl ValueNames {
    /// The name of exactly this number.
    pub fn name_of(&self, number: u32) -> Option<&'static str> {
        let found = self.entries.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.entries.get(found).map(|(_, name)| *name)
    }
}

/// A number that may have a name.
///
/// Prints as the name, bits as `A|B`. What has no name prints as a number, in hexadecimal where it stands beside names of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedValue {
    /// The number.
    pub number: u32,
    /// The names of the values.
    pub names: &'static ValueNames,
}

impl NamedValue {
    /// Whether anything of it has a name.
    pub fn has_name(&self) -> bool {
        match self.names.kind {
            ValueNamesKind::Values => self.names.name_of(self.number).is_some(),
            ValueNamesKind::Bits if self.number == 0 => self.names.name_of(0).is_some(),
            ValueNamesKind::Bits => self.bits().next().is_some(),
        }
    }

    /// Names of the bits that are set, lowest first; none for names of values.
    pub fn bits(self) -> impl Iterator<Item = &'static str> {
        let entries = if self.names.kind == ValueNamesKind::Bits { self.names.entries } else { &[] };
        entries.iter().filter(move |(bit, _)| *bit != 0 && self.number & bit == *bit).map(|(_, name)| *name)
    }

    /// The bits that have no name.
    pub fn unnamed_bits(self) -> u32 {
        match self.names.kind {
            ValueNamesKind::Values => 0,
            ValueNamesKind::Bits => self.names.entries.iter().fold(self.number, |left, (bit, _)| left & !bit),
        }
    }
}

impl core::fmt::Display for NamedValue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        if let (true, Some(name)) =
            (self.names.kind == ValueNamesKind::Values || self.number == 0, self.names.name_of(self.number))
        {
            return f.write_str(name);
        }
        let mut between = "";
        for name in self.bits() {
            write!(f, "{between}{name}")?;
            between = "|";
        }
        match self.unnamed_bits() {
            _ if between.is_empty() => write!(f, "{}", self.number),
            0 => Ok(()),
            bits => write!(f, "|{bits:#x}"),
        }
    }
}

/// A type for the values of a field, with a constant for each name, and the names themselves.
macro_rules! value_names {
    ($what:literal, $type:ident, $names:ident, $name:literal, $kind:ident; $($constant:ident = $number:literal, $entry:literal;)*) => {
        #[doc = $what]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $type(pub u32);

        #[allow(missing_docs, reason = "the runtime's names say what is known of them")]
        impl $type {
            $(pub const $constant: Self = Self($number);)*
        }

        impl $type {
            /// Whether all bits of `other` are set.
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Number and names.
            pub const fn named(self) -> $crate::value_names::NamedValue {
                $crate::value_names::NamedValue { number: self.0, names: &$names }
            }
        }

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.named().fmt(f)
            }
        }

        pub(crate) static $names: $crate::value_names::ValueNames = $crate::value_names::ValueNames {
            name: $name,
            kind: $crate::value_names::ValueNamesKind::$kind,
            entries: &[$(($number, $entry)),*],
        };
    };
}

pub(crate) use value_names;

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use crate::generated::enums::{GcReason, MethodFlags, TieredCompilationSettingsFlags, TypeFlags};

    #[test]
    fn numbers_print_as_their_names() {
        assert_eq!(GcReason::ALLOC_LARGE.to_string(), "AllocLarge");
        assert_eq!(GcReason(77).to_string(), "77");
        assert!(!GcReason(77).named().has_name());
        assert_eq!(MethodFlags(0x9).to_string(), "Dynamic|Jitted");
        assert_eq!(MethodFlags(0x88).to_string(), "Jitted|0x80");
        assert_eq!(MethodFlags(0x80).to_string(), "128");
        assert_eq!(MethodFlags(0).to_string(), "0");
        assert_eq!(TieredCompilationSettingsFlags(0).to_string(), "None");
        assert_eq!(TypeFlags(0x108).to_string(), "Array|ArrayRankBit0");
        assert!(
            MethodFlags(0x9).contains(MethodFlags::JITTED) && !MethodFlags(0x9).contains(MethodFlags(0x18))
        );
    }
}
