//! The types that a program defines: their names and static fields, from its metadata.

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::image;
use crate::stream::{Streams, index_size};

/// Maximum number of bytes of one name, without the names of its enclosing types.
const MAX_LENGTH: usize = 512;
/// Maximum number of enclosing types of a type.
const MAX_DEPTH: usize = 16;
/// Maximum number of bytes of all names: a few bytes of a file can repeat a long name.
const MAX_TOTAL_BYTES: usize = 64 << 20;

/// A static field.
const STATIC: u16 = 0x10;
/// A constant, without storage.
const LITERAL: u16 = 0x40;

/// A type that a program defines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeDefinition {
    /// The name as the runtime writes it: ``System.Collections.Generic.Dictionary`2+Entry``.
    pub name: String,
    /// The names of the static fields, in the order of the metadata; for properties as the compiler writes
    /// them (`<Name>k__BackingField`).
    pub static_fields: Vec<String>,
}

/// Reads the types that a program (`App.dll`) defines, in the order of their tokens. The first is
/// `0x0200_0001`.
///
/// ```
/// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
/// let types = portable_pdb::type_definitions(program)?;
/// for of in types.iter().filter(|of| !of.static_fields.is_empty()) {
///     println!("{} has {:?}", of.name, of.static_fields);
/// }
/// assert!(types.iter().any(|of| of.name == "Lines"));
/// # Ok::<(), portable_pdb::Error>(())
/// ```
///
/// # Errors
/// The bytes are not a PE image with metadata, the metadata is damaged, or its names are longer than 64 MB
/// together.
pub fn type_definitions(program: &[u8]) -> Result<Vec<TypeDefinition>> {
    let streams = Streams::of_program(image::metadata(program)?)?;
    let tables = Tables::parse(streams.tables)?;
    let mut budget = MAX_TOTAL_BYTES;
    let mut text = |index: u32| -> Result<String> {
        let text = streams.string(index)?;
        budget = budget.checked_sub(text.len()).ok_or(Error::TooLarge {
            what: "the names of types",
            bytes: MAX_TOTAL_BYTES as u64,
            limit: MAX_TOTAL_BYTES as u64,
        })?;
        Ok(String::from_utf8_lossy(text.get(..MAX_LENGTH).unwrap_or(text)).into_owned())
    };
    let mut types = Vec::new();
    let mut first_fields = Vec::new();
    for number in 1..=tables.count(TYPE_DEF) {
        let mut row = tables.row(TYPE_DEF, number)?;
        row.u32("flags of a type")?;
        let name = text(tables.string(&mut row)?)?;
        let namespace = text(tables.string(&mut row)?)?;
        row.index(tables.is_wide(Column::Coded(TYPE_DEF_OR_REF)), "base of a type")?;
        first_fields.push(row.index(tables.is_wide(Column::Row(FIELD)), "fields of a type")?);
        let name = if namespace.is_empty() { name } else { [namespace, name].join(".") };
        types.push(TypeDefinition { name, static_fields: Vec::new() });
    }
    let mut field_types = first_fields.iter().enumerate().peekable();
    let mut of = None;
    for number in 1..=tables.count(FIELD) {
        while let Some((index, _)) = field_types.next_if(|(_, first)| **first <= number) {
            of = Some(index);
        }
        let mut row = tables.row(FIELD, number)?;
        let flags = row.u16("flags of a field")?;
        let name = tables.string(&mut row)?;
        if flags & (STATIC | LITERAL) == STATIC
            && let Some(of) = of.and_then(|of| types.get_mut(of))
        {
            of.static_fields.push(text(name)?);
        }
    }
    let own: Vec<String> = types.iter().map(|of| of.name.clone()).collect();
    let around = enclosing_types(&tables)?;
    for (index, of) in types.iter_mut().enumerate() {
        let mut outer = around.get(index).copied().flatten();
        for _ in 0..MAX_DEPTH {
            let Some(name) = outer.and_then(|outer| own.get(outer)) else { break };
            budget = budget.saturating_sub(name.len());
            if budget == 0 {
                break;
            }
            of.name = [name, &*of.name].join("+");
            outer = outer.and_then(|outer| around.get(outer).copied().flatten());
        }
    }
    Ok(types)
}

/// The index of the enclosing type of each type.
fn enclosing_types(tables: &Tables<'_>) -> Result<Vec<Option<usize>>> {
    let mut around = vec![None; usize::try_from(tables.count(TYPE_DEF)).unwrap_or_default()];
    let is_wide = tables.is_wide(Column::Row(TYPE_DEF));
    for number in 1..=tables.count(NESTED_CLASS) {
        let mut row = tables.row(NESTED_CLASS, number)?;
        let nested = row.index(is_wide, "nested type")?.checked_sub(1);
        let outer = row.index(is_wide, "type around a nested one")?.checked_sub(1);
        let place = nested.and_then(|nested| around.get_mut(usize::try_from(nested).ok()?));
        if let (Some(place), Some(outer)) = (place, outer) {
            *place = usize::try_from(outer).ok();
        }
    }
    Ok(around)
}

pub(crate) const TYPE_DEF: usize = 0x02;
pub(crate) const FIELD: usize = 0x04;
pub(crate) const NESTED_CLASS: usize = 0x29;
/// The number of tables that a program can have. Their rows follow each other.
const TABLES: usize = 0x2d;

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// Bytes of a number.
    Number(usize),
    String,
    Guid,
    Blob,
    /// A row number in a table.
    Row(usize),
    /// A row number in one of several tables.
    Coded(Coded),
}

/// The tables that an index can refer to, and the bits that select one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Coded {
    bits: u32,
    tables: &'static [usize],
}

const fn coded(bits: u32, tables: &'static [usize]) -> Coded {
    Coded { bits, tables }
}

pub(crate) const TYPE_DEF_OR_REF: Coded = coded(2, &[0x02, 0x01, 0x1b]);
pub(crate) const HAS_CONSTANT: Coded = coded(2, &[0x04, 0x08, 0x17]);
pub(crate) const HAS_CUSTOM_ATTRIBUTE: Coded = coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26,
        0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
);
const HAS_FIELD_MARSHAL: Coded = coded(1, &[0x04, 0x08]);
const HAS_DECL_SECURITY: Coded = coded(2, &[0x02, 0x06, 0x20]);
pub(crate) const MEMBER_REF_PARENT: Coded = coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Coded = coded(1, &[0x14, 0x17]);
const METHOD_DEF_OR_REF: Coded = coded(1, &[0x06, 0x0a]);
const MEMBER_FORWARDED: Coded = coded(1, &[0x04, 0x06]);
const IMPLEMENTATION: Coded = coded(2, &[0x26, 0x23, 0x27]);
pub(crate) const CUSTOM_ATTRIBUTE_TYPE: Coded = coded(3, &[0x06, 0x0a]);
pub(crate) const TYPE_OR_METHOD_DEF: Coded = coded(1, &[0x02, 0x06]);
pub(crate) const RESOLUTION_SCOPE: Coded = coded(2, &[0x00, 0x1a, 0x23, 0x01]);

/// The columns of the tables up to the one of type parameters, by table number (ECMA-335 II.22).
const COLUMNS: [&[Column]; NESTED_CLASS + 2] = {
    use Column::{Blob, Coded, Guid, Number, Row, String};
    [
        &[Number(2), String, Guid, Guid, Guid],
        &[Coded(RESOLUTION_SCOPE), String, String],
        &[Number(4), String, String, Coded(TYPE_DEF_OR_REF), Row(FIELD), Row(0x06)],
        &[Row(FIELD)],
        &[Number(2), String, Blob],
        &[Row(0x06)],
        &[Number(4), Number(2), Number(2), String, Blob, Row(0x08)],
        &[Row(0x08)],
        &[Number(2), Number(2), String],
        &[Row(TYPE_DEF), Coded(TYPE_DEF_OR_REF)],
        &[Coded(MEMBER_REF_PARENT), String, Blob],
        &[Number(2), Coded(HAS_CONSTANT), Blob],
        &[Coded(HAS_CUSTOM_ATTRIBUTE), Coded(CUSTOM_ATTRIBUTE_TYPE), Blob],
        &[Coded(HAS_FIELD_MARSHAL), Blob],
        &[Number(2), Coded(HAS_DECL_SECURITY), Blob],
        &[Number(2), Number(4), Row(TYPE_DEF)],
        &[Number(4), Row(FIELD)],
        &[Blob],
        &[Row(TYPE_DEF), Row(0x14)],
        &[Row(0x14)],
        &[Number(2), String, Coded(TYPE_DEF_OR_REF)],
        &[Row(TYPE_DEF), Row(0x17)],
        &[Row(0x17)],
        &[Number(2), String, Blob],
        &[Number(2), Row(0x06), Coded(HAS_SEMANTICS)],
        &[Row(TYPE_DEF), Coded(METHOD_DEF_OR_REF), Coded(METHOD_DEF_OR_REF)],
        &[String],
        &[Blob],
        &[Number(2), Coded(MEMBER_FORWARDED), String, Row(0x1a)],
        &[Number(4), Row(FIELD)],
        &[Number(8)],
        &[Number(4)],
        &[Number(16), Blob, String, String],
        &[Number(4)],
        &[Number(12)],
        &[Number(12), Blob, String, String, Blob],
        &[Number(4), Row(0x23)],
        &[Number(12), Row(0x23)],
        &[Number(4), String, Blob],
        &[Number(8), String, String, Coded(IMPLEMENTATION)],
        &[Number(8), String, Coded(IMPLEMENTATION)],
        &[Row(TYPE_DEF), Row(TYPE_DEF)],
        &[Number(4), Coded(TYPE_OR_METHOD_DEF), String],
    ]
};

/// The tables of a program.
#[derive(Debug)]
pub(crate) struct Tables<'a> {
    heaps: u8,
    counts: [u32; TABLES],
    /// Tables with sorted rows, a bit for each.
    sorted: u64,
    /// The rows of all tables.
    rows: Cursor<'a>,
}

impl<'a> Tables<'a> {
    pub(crate) fn parse(mut at: Cursor<'a>) -> Result<Self> {
        // Reserved, major and minor version.
        at.bytes(6, "header of the tables")?;
        let heaps = at.u8("sizes of heaps")?;
        at.u8("header of the tables")?;
        let present = at.u64("list of tables")?;
        let sorted = at.u64("list of sorted tables")?;
        let mut counts = [0; TABLES];
        for table in (0..u64::BITS).filter(|table| present >> table & 1 != 0) {
            let count = at.u32("number of rows")?;
            if let Some(place) = usize::try_from(table).ok().and_then(|table| counts.get_mut(table)) {
                *place = count;
            }
        }
        // A number that other tools write there.
        if heaps & 0x40 != 0 {
            at.u32("extra data of the tables")?;
        }
        Ok(Self { heaps, counts, sorted, rows: at })
    }

    /// Returns true if the rows of a table are sorted.
    pub(crate) fn is_sorted(&self, table: usize) -> bool {
        u32::try_from(table)
            .ok()
            .and_then(|table| self.sorted.checked_shr(table))
            .is_some_and(|bits| bits & 1 != 0)
    }

    pub(crate) fn count(&self, table: usize) -> u32 {
        self.counts.get(table).copied().unwrap_or_default()
    }

    /// Returns true if indexes of a column have four bytes.
    pub(crate) fn is_wide(&self, column: Column) -> bool {
        match column {
            Column::Number(_) => false,
            Column::String => self.heaps & 1 != 0,
            Column::Guid => self.heaps & 2 != 0,
            Column::Blob => self.heaps & 4 != 0,
            Column::Row(table) => self.count(table) > 0xffff,
            Column::Coded(Coded { bits, tables }) => {
                tables.iter().any(|table| self.count(*table) > 0xffff_u32 >> bits)
            }
        }
    }

    fn size(&self, table: usize) -> usize {
        let size = |column: &Column| match column {
            Column::Number(bytes) => *bytes,
            other => index_size(self.is_wide(*other)),
        };
        COLUMNS.get(table).map_or(0, |columns| columns.iter().map(size).fold(0, usize::saturating_add))
    }

    /// Returns a row; rows count from 1.
    pub(crate) fn row(&self, table: usize, number: u32) -> Result<Cursor<'a>> {
        let bytes = |table: usize, rows: u32| {
            self.size(table).saturating_mul(usize::try_from(rows).unwrap_or(usize::MAX))
        };
        let before = (0..table).map(|table| bytes(table, self.count(table))).fold(0, usize::saturating_add);
        let from = before.saturating_add(bytes(table, number.saturating_sub(1)));
        self.rows.part(from, self.size(table), "row of a table")
    }

    /// Reads an index into the heap of strings.
    pub(crate) fn string(&self, row: &mut Cursor<'a>) -> Result<u32> {
        row.index(self.is_wide(Column::String), "name")
    }
}
