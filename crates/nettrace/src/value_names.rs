//! Names of values and of bits.

/// The kind of a [`ValueNames`]'s numbers: values or bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueNamesKind {
    /// One number, one name.
    Values,
    /// Each name is a bit, or bits, of the number.
    Bits,
}

/// The names of the values of a field.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ValueNames {
    /// The name of the list, such as `GCReasonMap`.
    pub name: &'static str,
    /// The kind of the numbers.
    pub kind: ValueNamesKind,
    /// Numbers and their names, ascending.
    pub entries: &'static [(u32, &'static str)],
}

impl ValueNames {
    /// Creates the names of values. `entries` must be in ascending order.
    pub const fn new(
        name: &'static str,
        kind: ValueNamesKind,
        entries: &'static [(u32, &'static str)],
    ) -> Self {
        Self { name, kind, entries }
    }

    /// The name of exactly this number.
    pub fn name_of(&self, number: u32) -> Option<&'static str> {
        let found = self.entries.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        self.entries.get(found).map(|(_, name)| *name)
    }
}

/// A number that may have a name.
///
/// Prints as the name, bits as `A|B`. A value without a name prints as a number, in hexadecimal next to names
/// of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedValue {
    /// The number.
    pub number: u32,
    /// The names of the values.
    pub names: &'static ValueNames,
}

impl NamedValue {
    /// Creates a number with the names of its values.
    pub const fn new(number: u32, names: &'static ValueNames) -> Self {
        Self { number, names }
    }

    /// Returns true if anything of it has a name.
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

    /// The bits without a name.
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
