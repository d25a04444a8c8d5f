//! Objects that people write as one text.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Fields, KnownContent};
use crate::heap::object::Value;
use crate::heap::{Heap, utf16};
use crate::memory::address::{Address, TypeHandle};

/// Maximum number of parts of a `StringBuilder`.
const MAX_CHUNKS: usize = 1 << 16;
/// The types that have a text, other than exceptions.
const TYPES: [&str; 4] =
    ["System.Text.StringBuilder", "System.Uri", "System.Version", "System.Net.IPAddress"];

impl Heap<'_> {
    /// Returns the text of an object of a known type; `None` for other objects. `own` is the name of the type
    /// without type arguments.
    pub(super) fn known_text(
        self,
        object: Address,
        type_handle: TypeHandle,
        own: &str,
        most: u32,
    ) -> Option<KnownContent> {
        let is_known = TYPES.contains(&own);
        if !is_known && !self.dump.types().derives_from_exception(type_handle).unwrap_or_default() {
            return None;
        }
        let fields = Fields::read(self, object)?;
        let (text, is_cut) = match own {
            "System.Text.StringBuilder" => self.string_builder(object, most)?,
            // The name was changed after .NET Core 3.1.
            "System.Uri" => {
                self.text_of(fields.reference("_string").or_else(|| fields.reference("m_String"))?, most)?
            }
            "System.Version" => (version(&fields)?, false),
            "System.Net.IPAddress" => (self.ip_address(&fields)?, false),
            _ => self.text_of(fields.reference("_message")?, most)?,
        };
        Some(KnownContent::Text { text, is_cut })
    }

    /// The first characters of a string, and true if it is longer.
    fn text_of(self, string: Address, most: u32) -> Option<(String, bool)> {
        let object =
            self.object_at(string).filter(|object| self.dump.types().is_string(object.type_handle))?;
        Some((self.string(&object, most).ok()?, object.length() > most))
    }

    /// The text of a `StringBuilder`: a list of parts, the last one first.
    fn string_builder(self, object: Address, most: u32) -> Option<(String, bool)> {
        let most = usize::try_from(most).ok()?;
        let mut chunks = Vec::new();
        let mut next = Some(object);
        while let Some(of) = next.filter(|_| chunks.len() < MAX_CHUNKS) {
            let fields = Fields::read(self, of)?;
            next = fields.reference("m_ChunkPrevious");
            chunks.push((fields.reference("m_ChunkChars")?, fields.count("m_ChunkLength")?));
        }
        let mut bytes = Vec::new();
        let mut is_cut = next.is_some();
        for (array, length) in chunks.into_iter().rev() {
            let room = most.saturating_sub(bytes.len() / 2);
            let length = usize::try_from(length.min(self.array_at(array)?.length)).ok()?;
            is_cut |= length > room;
            bytes.extend(self.memory().bytes(array.at(16), length.min(room).saturating_mul(2)).ok()?);
        }
        Some((utf16::decode(&bytes), is_cut))
    }

    fn ip_address(self, fields: &Fields) -> Option<String> {
        let number = u32::try_from(fields.number("_addressOrScopeId")?).ok()?;
        let Some(numbers) = fields.reference("_numbers") else {
            return Some(Ipv4Addr::from(number.to_le_bytes()).to_string());
        };
        let array = self.array_at(numbers)?;
        let mut parts = [0_u16; 8];
        for (index, part) in (0_u32..).zip(&mut parts) {
            let Value::Unsigned(number) = array.element(index, &mut 1) else { return None };
            *part = u16::try_from(number).ok()?;
        }
        let text = Ipv6Addr::from(parts).to_string();
        Some(if number == 0 { text } else { format!("{text}%{number}") })
    }
}

/// The numbers of a `Version` that are set.
fn version(fields: &Fields) -> Option<String> {
    let number = |name: &str| fields.number(name);
    let parts = [number("_Major")?, number("_Minor")?, number("_Build")?, number("_Revision")?];
    let parts = parts.into_iter().take_while(|part| *part >= 0).map(|part| part.to_string());
    Some(parts.collect::<Vec<_>>().join("."))
}
