//! A descriptor: its header, its JSON, and the addresses that the JSON refers to.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::error::ContractsError;
use super::json::{Json, JsonError, JsonResult, Scalar};
use super::{ByteOrder, Global};
use crate::memory::address::Address;
use crate::memory::{Memory, MemoryResult, Missing, offset};

/// The first word, `DNCCDAC` in the order of the bytes.
const MAGIC: u64 = 0x0043_4144_4343_4e44;
/// The flag of pointers of 32 bits.
const SHORT_POINTERS: u32 = 2;
/// Maximum number of bytes of the JSON of all descriptors of a runtime. .NET 10 has 10,563.
pub(super) const MAX_JSON: u32 = 1 << 18;
/// Maximum number of addresses of a descriptor. .NET 10 has 24.
const MAX_POINTERS: u32 = 4096;
/// Maximum offset of a field and size of a type.
const MAX_OFFSET: u64 = 1 << 24;

/// A descriptor of the runtime or of a part of it, such as its collector.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Descriptor {
    /// The name that the descriptor before it has for it; empty for the runtime's own.
    pub name: String,
    /// The address of its header.
    pub address: Address,
    /// The version of its format: 0 in .NET 9 and 10, 2 in .NET 11.
    pub version: u64,
    /// The set of facts that its own add to: `empty` in all known versions.
    pub baseline: String,
    /// The bytes of a pointer of the process: 4 or 8.
    pub pointer_size: u8,
    /// The order of the bytes of its numbers.
    pub byte_order: ByteOrder,
    pub(super) types: HashMap<String, TypeFacts>,
    pub(super) globals: HashMap<String, Global>,
    pub(super) contracts: BTreeMap<String, String>,
}

/// A structure of the runtime.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TypeFacts {
    pub(super) size: Option<u64>,
    pub(super) fields: HashMap<String, u64>,
}

/// Names of sub-descriptors, and the addresses of variables with their addresses.
type Parts = Vec<(String, u64)>;

/// Numbers and pointers in the process's own form.
#[derive(Clone, Copy)]
pub(super) struct Words<'m> {
    memory: &'m dyn Memory,
    order: ByteOrder,
    pointer_size: u8,
}

impl Words<'_> {
    fn u32(&self, at: u64) -> MemoryResult<u32> {
        let bytes = self.memory.array(at)?;
        Ok(match self.order {
            ByteOrder::Little => u32::from_le_bytes(bytes),
            ByteOrder::Big => u32::from_be_bytes(bytes),
        })
    }

    pub(super) fn pointer(&self, at: u64) -> MemoryResult<u64> {
        if self.pointer_size == 4 {
            return self.u32(at).map(u64::from);
        }
        let bytes = self.memory.array(at)?;
        Ok(match self.order {
            ByteOrder::Little => u64::from_le_bytes(bytes),
            ByteOrder::Big => u64::from_be_bytes(bytes),
        })
    }
}

impl Descriptor {
    pub(super) fn words<'m>(&self, memory: &'m dyn Memory) -> Words<'m> {
        Words { memory, order: self.byte_order, pointer_size: self.pointer_size }
    }

    /// Reads the descriptor at an address. `json_left` is the number of bytes of JSON that may be read.
    /// Returns its sub-descriptors, too: their names, and the addresses of variables with their addresses.
    pub(super) fn read(
        memory: &dyn Memory,
        name: &str,
        address: u64,
        json_left: &mut u32,
    ) -> Result<(Self, Parts), ContractsError> {
        let error = |field: &str, at: u64, problem: String| ContractsError {
            field: if name.is_empty() { field.to_owned() } else { format!("{name}: {field}") },
            address: Address::new(at),
            problem,
        };
        let missing =
            |field: &'static str, at: u64| move |missing: Missing| error(field, at, missing.to_string());
        let magic: [u8; 8] = memory.array(address).map_err(missing("magic", address))?;
        let order = match magic {
            _ if u64::from_le_bytes(magic) == MAGIC => ByteOrder::Little,
            _ if u64::from_be_bytes(magic) == MAGIC => ByteOrder::Big,
            _ => {
                let found = u64::from_le_bytes(magic);
                return Err(error("magic", address, format!("{found:#x} is not {MAGIC:#x}")));
            }
        };
        let mut words = Words { memory, order, pointer_size: 8 };
        let at = |distance: u64| offset(address, distance);
        let number = |field: &'static str, place: u64| words.u32(place).map_err(missing(field, place));
        let (flags, size) = (number("flags", at(8))?, number("JSON size", at(12))?);
        words.pointer_size = if flags & SHORT_POINTERS == 0 { 8 } else { 4 };
        let width = u64::from(words.pointer_size);
        let pointer = |field: &'static str, place: u64| words.pointer(place).map_err(missing(field, place));
        let json_at = pointer("JSON", at(16))?;
        let count_at = offset(at(16), width);
        let count = words.u32(count_at).map_err(missing("pointer data count", count_at))?;
        let pointers_at = pointer("pointer data", offset(count_at, 8))?;
        if size > *json_left {
            let problem = format!("{size} bytes are more than {json_left}, the rest of {MAX_JSON}");
            return Err(error("JSON size", at(12), problem));
        }
        if count > MAX_POINTERS {
            let problem = format!("{count} entries are more than {MAX_POINTERS}");
            return Err(error("pointer data count", count_at, problem));
        }
        *json_left = json_left.saturating_sub(size);
        let json = memory.bytes(json_at, usize::try_from(size).unwrap_or_default());
        let json = json.map_err(missing("JSON", json_at))?;
        let mut pointers = Vec::new();
        for index in 0..u64::from(count) {
            let place = offset(pointers_at, index.wrapping_mul(width));
            let value = words.pointer(place);
            let missing =
                |missing: Missing| error(&format!("pointer data [{index}]"), place, missing.to_string());
            pointers.push(value.map_err(missing)?);
        }
        let mut descriptor = Self {
            name: name.to_owned(),
            address: Address::new(address),
            version: 0,
            baseline: String::new(),
            pointer_size: words.pointer_size,
            byte_order: order,
            types: HashMap::new(),
            globals: HashMap::new(),
            contracts: BTreeMap::new(),
        };
        let read = descriptor.read_json(&mut Json::new(&json), &pointers);
        let parts = read.map_err(|JsonError { at, path, problem }| {
            let field = if path.is_empty() { "JSON" } else { &path };
            error(field, offset(json_at, u64::try_from(at).unwrap_or_default()), problem)
        })?;
        Ok((descriptor, parts))
    }

    fn read_json(&mut self, json: &mut Json<'_>, pointers: &[u64]) -> JsonResult<Parts> {
        let mut parts = Parts::new();
        json.object(|json, name| match name.as_str() {
            "version" => {
                self.version = number(json, u64::MAX)?;
                Ok(())
            }
            "baseline" => {
                self.baseline = json.string()?;
                Ok(())
            }
            "types" => json.object(|json, name| {
                let facts = read_type(json)?;
                self.types.insert(name, facts);
                Ok(())
            }),
            "globals" => json.object(|json, name| {
                let global = read_global(json, pointers)?;
                self.globals.insert(name, global);
                Ok(())
            }),
            "subDescriptors" => json.object(|json, name| {
                match read_global(json, pointers)? {
                    Global::Pointer(address) => parts.push((name, address.get())),
                    _ => return Err(json.error("not an entry of the pointer data")),
                }
                Ok(())
            }),
            "contracts" => json.object(|json, name| {
                let version = match json.scalar()? {
                    Scalar::Number(version) => version.to_string(),
                    Scalar::Text(version) => version,
                };
                self.contracts.insert(name, version);
                Ok(())
            }),
            _ => json.skip(),
        })?;
        json.end().map(|()| parts)
    }
}

/// Reads a number that is at most `limit`.
fn number(json: &mut Json<'_>, limit: u64) -> JsonResult<u64> {
    json.peek()?;
    let start = json.error("not a number");
    let number = json.scalar()?.number().ok_or_else(|| start.clone())?;
    if number > limit {
        return Err(JsonError { problem: format!("{number} is more than {limit}"), ..start });
    }
    Ok(number)
}

/// Reads fields, each an offset or `[offset, "type"]`, and the size, which has the name `!`.
fn read_type(json: &mut Json<'_>) -> JsonResult<TypeFacts> {
    let mut facts = TypeFacts::default();
    json.object(|json, name| {
        let mut value = None;
        if json.peek()? == b'[' {
            json.array(|json, index| match index {
                0 => number(json, MAX_OFFSET).map(|offset| value = Some(offset)),
                1 => json.string().map(drop),
                _ => Err(json.error("a field has an offset and a type")),
            })?;
        } else {
            value = Some(number(json, MAX_OFFSET)?);
        }
        let value = value.ok_or_else(|| json.error("the offset is missing"))?;
        match name.as_str() {
            "!" => facts.size = Some(value),
            _ => drop(facts.fields.insert(name, value)),
        }
        Ok(())
    })?;
    Ok(facts)
}

/// Reads a global value: `value`, `[value, "type"]`, or an entry of the pointer data as `[index]` or
/// `[[index], "type"]`.
fn read_global(json: &mut Json<'_>, pointers: &[u64]) -> JsonResult<Global> {
    if json.peek()? != b'[' {
        return Ok(direct(json.scalar()?, None));
    }
    let start = json.error("neither a value nor an entry of the pointer data");
    let (mut value, mut entry, mut type_name) = (None, None, None);
    json.array(|json, index| match index {
        0 if json.peek()? == b'[' => json.array(|json, index| match index {
            0 => number(json, u64::MAX).map(|index| entry = Some(index)),
            _ => Err(json.error("more than one entry of the pointer data")),
        }),
        0 => json.scalar().map(|scalar| value = Some(scalar)),
        1 => json.string().map(|name| type_name = Some(name)),
        _ => Err(json.error("a global value has a value and a type")),
    })?;
    let index = match (value, entry, &type_name) {
        (Some(value), None, Some(_)) => return Ok(direct(value, type_name.as_deref())),
        (Some(value), None, None) => value.number().ok_or_else(|| start.clone())?,
        (None, Some(index), _) => index,
        _ => return Err(start),
    };
    let address = usize::try_from(index).ok().and_then(|index| pointers.get(index));
    address.map(|address| Global::Pointer(Address::new(*address))).ok_or_else(|| JsonError {
        problem: format!("entry {index} of the pointer data, which has {}", pointers.len()),
        ..start
    })
}

/// A value that the JSON has: a number, unless its type says otherwise.
fn direct(value: Scalar, type_name: Option<&str>) -> Global {
    match value {
        Scalar::Number(number) => Global::Number(number),
        Scalar::Text(text) if type_name == Some("string") => Global::Text(text),
        Scalar::Text(text) => match Scalar::Text(text.clone()).number() {
            Some(number) => Global::Number(number),
            None => Global::Text(text),
        },
    }
}
