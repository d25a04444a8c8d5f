//! Names of types, methods and fields by token, from a program's metadata.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::error::Result;
use crate::image;
use crate::stream::{ProgramStreams, Streams};
use crate::type_definition::{
    CUSTOM_ATTRIBUTE_TYPE, Column, FIELD, HAS_CONSTANT, HAS_CUSTOM_ATTRIBUTE, MEMBER_REF_PARENT,
    NESTED_CLASS, RESOLUTION_SCOPE, TYPE_DEF, TYPE_DEF_OR_REF, TYPE_OR_METHOD_DEF, Tables,
};

/// Maximum number of bytes of one name, without the names of its enclosing types.
const MAX_LENGTH: usize = 1024;
/// Maximum number of enclosing types of a type.
const MAX_DEPTH: usize = 16;

/// Maximum number of attributes of a type to inspect.
const MAX_ATTRIBUTES: u32 = 1024;

/// Maximum number of parameters of a method.
const MAX_PARAMETERS: usize = 1 << 12;

/// Maximum number of type parameters of a type or a method.
const MAX_TYPE_PARAMETERS: u32 = 256;

/// Maximum number of rows to search linearly.
const MAX_ROWS: u32 = 1 << 16;

const MODULE: usize = 0x00;
const TYPE_REF: usize = 0x01;
const FIELD_POINTER: usize = 0x03;
const METHOD_POINTER: usize = 0x05;
const METHOD: usize = 0x06;
const PARAMETER_POINTER: usize = 0x07;
const PARAMETER: usize = 0x08;
const MEMBER_REF: usize = 0x0a;
const CONSTANT: usize = 0x0b;
const CUSTOM_ATTRIBUTE: usize = 0x0c;
const CLASS_LAYOUT: usize = 0x0f;
const SIGNATURE: usize = 0x11;
const GENERIC_PARAMETER: usize = 0x2a;

/// The metadata of a program: the bytes that begin with `BSJB`, which a running process has in its memory.
///
/// Rows count from 1: they are the low 24 bits of tokens. Each name is read when it is asked for, in time
/// proportional to its length and to the logarithm of the number of types.
///
/// ```
/// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
/// use portable_pdb::ProgramMetadata;
///
/// let metadata = ProgramMetadata::of_program(program)?;
/// // The name that the compiler gave it.
/// assert_eq!(metadata.module_name()?, "Lines.exe");
/// let main = metadata.method(1)?;
/// assert_eq!((metadata.type_name(main.type_row)?.as_str(), main.name.as_str()), ("Lines", "Main"));
/// # Ok::<(), portable_pdb::Error>(())
/// ```
#[derive(Debug)]
pub struct ProgramMetadata<'a> {
    streams: ProgramStreams<'a>,
    tables: Tables<'a>,
}

/// A method that a program defines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodDefinition<'a> {
    /// The name of the method.
    pub name: String,
    /// The row of the type that defines it.
    pub type_row: u32,
    /// The address of its instructions (ECMA-335 II.25.4), from the beginning of the image; zero without
    /// any.
    pub body: u32,
    /// The signature of the method (ECMA-335 II.23.2.1).
    pub signature: &'a [u8],
}

/// A field that a program defines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldDefinition<'a> {
    /// The name of the field; for a property as the compiler writes it (`<Name>k__BackingField`).
    pub name: String,
    /// The flags of the field (ECMA-335 II.23.1.5).
    pub flags: u16,
    /// The signature of the field (ECMA-335 II.23.2.4).
    pub signature: &'a [u8],
}

impl FieldDefinition<'_> {
    /// Returns true if it is a constant, without storage.
    pub const fn is_constant(&self) -> bool {
        self.flags & 0x40 != 0
    }
}

impl<'a> ProgramMetadata<'a> {
    /// Reads the sizes of the tables.
    ///
    /// # Errors
    /// The bytes are not the metadata of a program.
    pub fn parse(metadata: &'a [u8]) -> Result<Self> {
        let streams = Streams::of_program(metadata)?;
        Ok(Self { tables: Tables::parse(streams.tables)?, streams })
    }

    /// Finds the metadata in the file of a program (`App.dll`), and reads the sizes of its tables.
    ///
    /// # Errors
    /// The bytes are not a PE image with metadata, or the metadata is damaged.
    pub fn of_program(program: &'a [u8]) -> Result<Self> {
        Self::parse(image::metadata(program)?)
    }

    /// Returns the name of the program's file when it was compiled.
    ///
    /// # Errors
    /// If the name is missing, or the metadata is damaged.
    pub fn module_name(&self) -> Result<String> {
        let mut at = self.row(MODULE, 1)?;
        at.u16("generation of a module")?;
        self.text(self.tables.string(&mut at)?)
    }

    /// The number of types that the program defines.
    pub fn type_count(&self) -> u32 {
        self.tables.count(TYPE_DEF)
    }

    /// The number of methods that the program defines.
    pub fn method_count(&self) -> u32 {
        self.tables.count(METHOD)
    }

    /// Returns the name of a type as the runtime writes it: with its namespace and its enclosing types,
    /// ``System.Collections.Generic.Dictionary`2+Entry``.
    ///
    /// # Errors
    /// The row does not exist, or the metadata is damaged.
    pub fn type_name(&self, row: u32) -> Result<String> {
        let mut name = self.own_type_name(row)?;
        let mut nested = row;
        for _ in 0..MAX_DEPTH {
            let Some(outer) = self.enclosing_type(nested)? else { break };
            name = [self.own_type_name(outer)?, name].join("+");
            nested = outer;
        }
        Ok(name)
    }

    /// Returns the name of a defined or referenced type by the token that a signature has for it, without
    /// its enclosing types. `None` for other tokens.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn referenced_type_name(&self, token: u32) -> Result<Option<String>> {
        let row = token & 0x00ff_ffff;
        match usize::try_from(token >> 24).unwrap_or_default() {
            TYPE_DEF => self.own_type_name(row).map(Some),
            TYPE_REF => {
                let mut at = self.row(TYPE_REF, row)?;
                at.index(self.tables.is_wide(Column::Coded(RESOLUTION_SCOPE)), "scope of a type")?;
                self.full_name(&mut at).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns a method.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn method(&self, row: u32) -> Result<MethodDefinition<'a>> {
        let mut at = self.row(METHOD, row)?;
        let body = at.u32("address of a method")?;
        at.u32("flags of a method")?;
        let name = self.text(self.tables.string(&mut at)?)?;
        let signature = at.index(self.tables.is_wide(Column::Blob), "signature of a method")?;
        Ok(MethodDefinition {
            name,
            body,
            type_row: self.type_of_method(row)?,
            signature: self.streams.blob(signature)?,
        })
    }

    /// Returns the names of the parameters of a method by row, with their numbers: they count from 1, and 0
    /// is the return value. Parameters without a name can be missing.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// use portable_pdb::ProgramMetadata;
    ///
    /// let metadata = ProgramMetadata::of_program(program)?;
    /// let rows = 1..=metadata.method_count();
    /// let names = rows.map(|row| metadata.parameters(row)).collect::<Result<Vec<_>, _>>()?;
    /// assert!(names.iter().flatten().all(|(number, name)| *number > 0 && !name.is_empty()));
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn parameters(&self, row: u32) -> Result<Vec<(u16, String)>> {
        if self.tables.count(PARAMETER_POINTER) != 0 {
            return Ok(Vec::new());
        }
        let all = self.tables.count(PARAMETER).saturating_add(1);
        let first = self.first_parameter(row)?;
        let end = if row < self.method_count() { self.first_parameter(row.saturating_add(1))? } else { all };
        let parameter = |row: u32| {
            let mut at = self.row(PARAMETER, row)?;
            at.u16("flags of a parameter")?;
            let number = at.u16("number of a parameter")?;
            Ok((number, self.text(self.tables.string(&mut at)?)?))
        };
        (first..end.min(all)).take(MAX_PARAMETERS).map(parameter).collect()
    }

    /// Returns a signature by the row that the body of a method states for its local variables (ECMA-335
    /// II.23.2.6).
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn stand_alone_signature(&self, row: u32) -> Result<&'a [u8]> {
        let mut at = self.row(SIGNATURE, row)?;
        let signature = at.index(self.tables.is_wide(Column::Blob), "signature of local variables")?;
        self.streams.blob(signature)
    }

    /// Returns the names of the type parameters of a type or a method by its token, in the order of their
    /// numbers; none for other tokens.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// use portable_pdb::ProgramMetadata;
    ///
    /// let metadata = ProgramMetadata::of_program(program)?;
    /// let rows = 1..=metadata.type_count();
    /// let generic = rows.map(|row| 0x0200_0000 | row).find(|of| metadata.type_parameters(*of).is_ok_and(|of| of == ["T"]));
    /// assert_eq!(metadata.type_name(generic.expect("a generic type") & 0xff_ffff)?, "Lines+Generic`1");
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn type_parameters(&self, token: u32) -> Result<Vec<String>> {
        let owner = match usize::try_from(token >> 24).unwrap_or_default() {
            TYPE_DEF => (token & 0x00ff_ffff) << 1,
            METHOD => (token & 0x00ff_ffff) << 1 | 1,
            _ => return Ok(Vec::new()),
        };
        let is_wide = self.tables.is_wide(Column::Coded(TYPE_OR_METHOD_DEF));
        let key = |at: &mut Cursor<'a>| {
            at.u32("number and flags of a type parameter")?;
            at.index(is_wide, "owner of a type parameter")
        };
        let Some(mut row) = self.find(GENERIC_PARAMETER, owner, key)? else { return Ok(Vec::new()) };
        let least = row.saturating_sub(MAX_TYPE_PARAMETERS).max(1);
        while row > least && key(&mut self.row(GENERIC_PARAMETER, row.saturating_sub(1))?)? == owner {
            row = row.saturating_sub(1);
        }
        let mut names = Vec::new();
        let end = self.tables.count(GENERIC_PARAMETER).min(row.saturating_add(MAX_TYPE_PARAMETERS));
        for row in row..=end {
            let mut at = self.row(GENERIC_PARAMETER, row)?;
            if key(&mut at)? != owner {
                break;
            }
            names.push(self.text(self.tables.string(&mut at)?)?);
        }
        Ok(names)
    }

    /// Returns the row of the first parameter of a method.
    fn first_parameter(&self, row: u32) -> Result<u32> {
        let mut at = self.row(METHOD, row)?;
        at.u32("address of a method")?;
        at.u32("flags of a method")?;
        self.tables.string(&mut at)?;
        at.index(self.tables.is_wide(Column::Blob), "signature of a method")?;
        at.index(self.tables.is_wide(Column::Row(PARAMETER)), "parameters of a method")
    }

    /// Returns the rows of the methods of a type.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn methods_of_type(&self, row: u32) -> Result<Range<u32>> {
        let all = self.method_count().saturating_add(1);
        let first = self.first_method(row)?;
        let end = if row < self.type_count() { self.first_method(row.saturating_add(1))? } else { all };
        Ok(first..end.min(all))
    }

    /// Returns the type and the name of a method of another program or of an instantiated type, without its
    /// arguments, by the token of a call. `None` for other tokens.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn referenced_method(&self, token: u32) -> Result<Option<(String, String)>> {
        if usize::try_from(token >> 24).unwrap_or_default() != MEMBER_REF {
            return Ok(None);
        }
        let mut at = self.row(MEMBER_REF, token & 0x00ff_ffff)?;
        let parent = at.index(self.tables.is_wide(Column::Coded(MEMBER_REF_PARENT)), "type of a method")?;
        let name = self.text(self.tables.string(&mut at)?)?;
        Ok(self.type_of_member(parent)?.map(|type_name| (type_name, name)))
    }

    /// Returns the name of a method or a field of another type, or of an instance of a generic type, given
    /// the token of the reference; `None` for other tokens.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn referenced_name(&self, token: u32) -> Result<Option<String>> {
        if usize::try_from(token >> 24).unwrap_or_default() != MEMBER_REF {
            return Ok(None);
        }
        let mut at = self.row(MEMBER_REF, token & 0x00ff_ffff)?;
        at.index(self.tables.is_wide(Column::Coded(MEMBER_REF_PARENT)), "type of a method")?;
        self.text(self.tables.string(&mut at)?).map(Some)
    }

    /// Returns the numbers of the fields of a type; [`field_row`](Self::field_row) returns their rows.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn fields_of_type(&self, row: u32) -> Result<Range<u32>> {
        let all = match self.tables.count(FIELD_POINTER) {
            0 => self.tables.count(FIELD),
            pointers => pointers,
        };
        let all = all.saturating_add(1);
        let first = self.first_field(row)?;
        let end = if row < self.type_count() { self.first_field(row.saturating_add(1))? } else { all };
        Ok(first..end.min(all))
    }

    /// Returns the row of a field by its number in the order of the types. Row and number differ only in
    /// metadata generated by a program.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn field_row(&self, number: u32) -> Result<u32> {
        if self.tables.count(FIELD_POINTER) == 0 {
            return Ok(number);
        }
        let is_wide = self.tables.is_wide(Column::Row(FIELD));
        self.row(FIELD_POINTER, number)?.index(is_wide, "pointer to a field")
    }

    /// Returns the number of a method in the order of the types.
    fn method_number(&self, row: u32) -> Result<u32> {
        let count = self.tables.count(METHOD_POINTER);
        if count == 0 {
            return Ok(row);
        }
        let is_wide = self.tables.is_wide(Column::Row(METHOD));
        for number in 1..=count.min(MAX_ROWS) {
            if self.row(METHOD_POINTER, number)?.index(is_wide, "pointer to a method")? == row {
                return Ok(number);
            }
        }
        Err(self.tables.row(METHOD, row)?.damaged("method that a type defines"))
    }

    /// Returns a field.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// use portable_pdb::ProgramMetadata;
    ///
    /// let metadata = ProgramMetadata::of_program(program)?;
    /// for row in 1..=metadata.type_count() {
    ///     for number in metadata.fields_of_type(row)? {
    ///         let field = metadata.field(metadata.field_row(number)?)?;
    ///         println!("{}.{} constant: {}", metadata.type_name(row)?, field.name, field.is_constant());
    ///     }
    /// }
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn field(&self, row: u32) -> Result<FieldDefinition<'a>> {
        let mut at = self.row(FIELD, row)?;
        let flags = at.u16("flags of a field")?;
        let name = self.text(self.tables.string(&mut at)?)?;
        let signature = at.index(self.tables.is_wide(Column::Blob), "signature of a field")?;
        Ok(FieldDefinition { name, flags, signature: self.streams.blob(signature)? })
    }

    /// Returns the value of a constant field by row, as the bytes of a number (ECMA-335 II.22.9); `None` for
    /// other fields.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn constant(&self, field: u32) -> Result<Option<&'a [u8]>> {
        let parent = Column::Coded(HAS_CONSTANT);
        let key = |at: &mut Cursor<'a>| {
            at.u16("type of a constant")?;
            at.index(self.tables.is_wide(parent), "owner of a constant")
        };
        // The two low bits of an owner are zero for fields.
        let Some(row) = self.find(CONSTANT, field << 2, key)? else { return Ok(None) };
        let mut at = self.row(CONSTANT, row)?;
        key(&mut at)?;
        let value = at.index(self.tables.is_wide(Column::Blob), "value of a constant")?;
        self.streams.blob(value).map(Some)
    }

    /// Returns the number of bytes that a type states for its values, by row; `None` if not stated.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn stated_size(&self, row: u32) -> Result<Option<u32>> {
        let is_wide = self.tables.is_wide(Column::Row(TYPE_DEF));
        let size_and_type = |at: &mut Cursor<'a>| -> Result<(u32, u32)> {
            at.u16("packing of a type")?;
            Ok((at.u32("size of a type")?, at.index(is_wide, "type with a stated size")?))
        };
        let found = self.find(CLASS_LAYOUT, row, |at| Ok(size_and_type(at)?.1))?;
        let Some(row) = found else { return Ok(None) };
        Ok(Some(size_and_type(&mut self.row(CLASS_LAYOUT, row)?)?.0))
    }

    /// Returns the value of an attribute of a type by the type's row and the attribute's name (ECMA-335
    /// II.23.3); `None` if the type does not have it.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn type_attribute(&self, row: u32, name: &str) -> Result<Option<&'a [u8]>> {
        let owner = row << 5 | 3;
        let parent = self.tables.is_wide(Column::Coded(HAS_CUSTOM_ATTRIBUTE));
        let key = |at: &mut Cursor<'a>| at.index(parent, "owner of an attribute");
        let Some(mut row) = self.find(CUSTOM_ATTRIBUTE, owner, key)? else { return Ok(None) };
        // A type can have several, in rows that follow each other.
        let least = row.saturating_sub(MAX_ATTRIBUTES).max(1);
        while row > least && key(&mut self.row(CUSTOM_ATTRIBUTE, row.saturating_sub(1))?)? == owner {
            row = row.saturating_sub(1);
        }
        let end = self.tables.count(CUSTOM_ATTRIBUTE).min(row.saturating_add(MAX_ATTRIBUTES));
        for row in row..=end {
            let mut at = self.row(CUSTOM_ATTRIBUTE, row)?;
            if key(&mut at)? != owner {
                break;
            }
            let is_wide = self.tables.is_wide(Column::Coded(CUSTOM_ATTRIBUTE_TYPE));
            let constructor = at.index(is_wide, "constructor of an attribute")?;
            let value = at.index(self.tables.is_wide(Column::Blob), "value of an attribute")?;
            if self.type_of_constructor(constructor)?.as_deref() == Some(name) {
                return self.streams.blob(value).map(Some);
            }
        }
        Ok(None)
    }

    /// Returns the name of the type of an attribute by its constructor, a method or a reference to one.
    fn type_of_constructor(&self, constructor: u32) -> Result<Option<String>> {
        let row = constructor >> 3;
        match constructor & 7 {
            2 => self.own_type_name(self.type_of_method(row)?).map(Some),
            3 => {
                let is_wide = self.tables.is_wide(Column::Coded(MEMBER_REF_PARENT));
                let parent = self.row(MEMBER_REF, row)?.index(is_wide, "type of a constructor")?;
                self.type_of_member(parent)
            }
            _ => Ok(None),
        }
    }

    /// Returns the name of the type of a referenced member, by its coded index.
    fn type_of_member(&self, parent: u32) -> Result<Option<String>> {
        const TYPE_SPEC: usize = 0x1b;
        const TYPE_SPEC_PARENT: u32 = 4;
        const INSTANTIATED: u8 = 0x15;
        let mut parent = parent;
        if parent & 7 == TYPE_SPEC_PARENT {
            let mut at = self.row(TYPE_SPEC, parent >> 3)?;
            let signature = at.index(self.tables.is_wide(Column::Blob), "signature of a type")?;
            let mut signature = Cursor::new(self.streams.blob(signature)?);
            if signature.u8("kind of a type")? != INSTANTIATED {
                return Ok(None);
            }
            signature.u8("kind of an instantiated type")?;
            // Two bits for the table instead of three.
            let token = signature.compressed_u32("instantiated type")?;
            parent = token >> 2 << 3 | token & 3;
        }
        let table = [TYPE_DEF, TYPE_REF].get(usize::try_from(parent & 7).unwrap_or(usize::MAX)).copied();
        let token = table.and_then(|table| Some(u32::try_from(table).ok()? << 24 | parent >> 3));
        token.map_or(Ok(None), |token| self.referenced_type_name(token))
    }

    /// Returns the name of a type by the token that a signature has for it, as
    /// [`type_name`](Self::type_name) does. `None` for other tokens.
    ///
    /// # Errors
    /// As [`type_name`](Self::type_name).
    pub fn whole_type_name(&self, token: u32) -> Result<Option<String>> {
        let mut row = token & 0x00ff_ffff;
        match usize::try_from(token >> 24).unwrap_or_default() {
            TYPE_DEF => return self.type_name(row).map(Some),
            TYPE_REF => {}
            _ => return Ok(None),
        }
        let mut names = Vec::new();
        for _ in 0..MAX_DEPTH {
            let mut at = self.row(TYPE_REF, row)?;
            let scope = at.index(self.tables.is_wide(Column::Coded(RESOLUTION_SCOPE)), "scope of a type")?;
            names.push(self.full_name(&mut at)?);
            // The scope of a nested type is the type around it.
            if scope & 3 != 3 {
                break;
            }
            row = scope >> 2;
        }
        names.reverse();
        Ok(Some(names.join("+")))
    }

    /// Returns a row that exists: the rows of other tables follow.
    fn row(&self, table: usize, row: u32) -> Result<Cursor<'a>> {
        let at = self.tables.row(table, row)?;
        if row == 0 || row > self.tables.count(table) {
            return Err(at.damaged("row of a table"));
        }
        Ok(at)
    }

    /// Returns the name of a defined type without its enclosing types.
    fn own_type_name(&self, row: u32) -> Result<String> {
        let mut at = self.row(TYPE_DEF, row)?;
        at.u32("flags of a type")?;
        self.full_name(&mut at)
    }

    /// Returns the row of the first field of a type, or of a later type if it does not have fields.
    fn first_field(&self, row: u32) -> Result<u32> {
        Ok(self.first_members(row)?.0)
    }

    /// Returns the row of the first method of a type, or of a later type if it does not have methods.
    fn first_method(&self, row: u32) -> Result<u32> {
        Ok(self.first_members(row)?.1)
    }

    /// Returns the rows of the first field and the first method of a type.
    fn first_members(&self, row: u32) -> Result<(u32, u32)> {
        let mut at = self.row(TYPE_DEF, row)?;
        at.u32("flags of a type")?;
        self.tables.string(&mut at)?;
        self.tables.string(&mut at)?;
        at.index(self.tables.is_wide(Column::Coded(TYPE_DEF_OR_REF)), "base of a type")?;
        let field = at.index(self.tables.is_wide(Column::Row(FIELD)), "fields of a type")?;
        let method = at.index(self.tables.is_wide(Column::Row(METHOD)), "methods of a type")?;
        Ok((field, method))
    }

    /// Reads a name and a namespace.
    fn full_name(&self, at: &mut Cursor<'a>) -> Result<String> {
        let name = self.text(self.tables.string(at)?)?;
        let namespace = self.text(self.tables.string(at)?)?;
        Ok(if namespace.is_empty() { name } else { [namespace, name].join(".") })
    }

    fn text(&self, index: u32) -> Result<String> {
        let text = self.streams.string(index)?;
        Ok(String::from_utf8_lossy(text.get(..MAX_LENGTH).unwrap_or(text)).into_owned())
    }

    /// Searches for the last type with a first method not after `method`.
    fn type_of_method(&self, method: u32) -> Result<u32> {
        let method = self.method_number(method)?;
        let (mut low, mut high) = (1, self.type_count());
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            if self.first_method(middle)? <= method {
                low = middle;
            } else {
                high = middle.saturating_sub(1);
            }
        }
        Ok(low)
    }

    /// Returns the row of the type around a nested one; `None` if it is not nested.
    fn enclosing_type(&self, nested: u32) -> Result<Option<u32>> {
        let is_wide = self.tables.is_wide(Column::Row(TYPE_DEF));
        let found = self.find(NESTED_CLASS, nested, |at| at.index(is_wide, "nested type"))?;
        let Some(row) = found else { return Ok(None) };
        let mut at = self.row(NESTED_CLASS, row)?;
        at.index(is_wide, "nested type")?;
        at.index(is_wide, "type around a nested one").map(Some)
    }

    /// Returns the row with the wanted key in a table that is sorted by it.
    fn find(
        &self,
        table: usize,
        wanted: u32,
        key: impl Fn(&mut Cursor<'a>) -> Result<u32>,
    ) -> Result<Option<u32>> {
        let (mut low, mut high) = (1, self.tables.count(table));
        if !self.tables.is_sorted(table) {
            for row in 1..=high.min(MAX_ROWS) {
                if key(&mut self.row(table, row)?)? == wanted {
                    return Ok(Some(row));
                }
            }
            return Ok(None);
        }
        while low <= high {
            let middle = low.midpoint(high);
            match key(&mut self.row(table, middle)?)?.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Ok(Some(middle)),
                std::cmp::Ordering::Less => low = middle.saturating_add(1),
                std::cmp::Ordering::Greater => high = middle.saturating_sub(1),
            }
        }
        Ok(None)
    }
}
