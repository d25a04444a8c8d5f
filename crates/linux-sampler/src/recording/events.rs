//! The kinds of events, and their payloads.

use std::fmt::Write as _;

use nettrace::TypeCode;
use nettrace_writer::{Error, EventKind, EventKindId, EventWriter, FieldKind};

use crate::image::Image;

const NUMBER: FieldKind = FieldKind::Scalar(TypeCode::VARUINT);
/// A text as declared by other writers of these events: readers know the format from the provider.
const TEXT: FieldKind = FieldKind::Scalar(TypeCode::UTF8_CODE_UNIT);

/// The kinds of events of a recording.
#[derive(Debug)]
pub(super) struct Kinds {
    pub(super) existing: EventKindId,
    pub(super) created: EventKindId,
    pub(super) ended: EventKindId,
    pub(super) metadata: EventKindId,
    pub(super) mapping: EventKindId,
    pub(super) symbol: EventKindId,
    pub(super) cpu: EventKindId,
    pub(super) switch: EventKindId,
    pub(super) allocated: EventKindId,
    pub(super) freed: EventKindId,
    pub(super) probes_end: EventKindId,
}

/// Appends an unsigned integer of variable length.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push((value & 0x7f) as u8);
}

/// Appends a string after its length; strings longer than 65,535 bytes are cut.
pub(super) fn text(out: &mut Vec<u8>, text: &[u8]) {
    let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(text.get(..usize::from(len)).unwrap_or_default());
}

/// Encodes the metadata of an image's mapping as a payload: its build id and the name of the file with its
/// symbols.
pub(super) fn mapping_metadata(id: u64, image: &Image) -> Vec<u8> {
    let mut build_id = String::new();
    for byte in image.build_id() {
        let _ = write!(build_id, "{byte:02x}");
    }
    // The file name is put into JSON unescaped, without the characters that would need escaping.
    let link = image.debug_link().unwrap_or_default();
    let link: String = link.chars().filter(|c| !c.is_control() && !matches!(c, '"' | '\\')).collect();
    let json = format!("{{\"type\": \"ELF\",\"debug_link\": \"{link}\",\"build_id\": \"{build_id}\"}}");
    let mut payload = Vec::new();
    number(&mut payload, id);
    text(&mut payload, json.as_bytes());
    text(&mut payload, b"");
    payload
}

impl Kinds {
    pub(super) fn define(writer: &mut EventWriter) -> Result<Self, Error> {
        let mut system = |id, name, fields: &[(&str, FieldKind)]| {
            writer.define(&EventKind::new("Universal.System", id, name, fields))
        };
        let process = [("NamespaceId", NUMBER), ("Name", TEXT), ("NamespaceName", TEXT)];
        let existing = system(0, "ExistingProcess", &process)?;
        let created = system(1, "ProcessCreate", &process)?;
        let ended = system(2, "ProcessExit", &[])?;
        let range = [("StartAddress", NUMBER), ("EndAddress", NUMBER)];
        let mapping = [
            ("Id", NUMBER),
            range[0],
            range[1],
            ("FileOffset", NUMBER),
            ("FileName", TEXT),
            ("MetadataId", NUMBER),
        ];
        let mapping = system(3, "ProcessMapping", &mapping)?;
        let symbol = [("Id", NUMBER), ("MappingId", NUMBER), range[0], range[1], ("Name", TEXT)];
        let symbol = system(4, "ProcessSymbol", &symbol)?;
        let metadata = [("Id", NUMBER), ("SymbolMetadata", TEXT), ("VersionMetadata", TEXT)];
        let metadata = system(5, "ProcessMappingMetadata", &metadata)?;
        let mut events = |id, name, fields: &[(&str, FieldKind)]| {
            writer.define(&EventKind::new("Universal.Events", id, name, fields))
        };
        let cpu = events(1, "cpu", &[("Value", NUMBER)])?;
        // Readers of other programs take the first field.
        let switch =
            events(2, "cswitch", &[("Value", NUMBER), ("Preempted", NUMBER), ("StackValue", NUMBER)])?;
        let allocated = [("Value", NUMBER), ("Size", NUMBER), ("Address", NUMBER), ("Function", TEXT)];
        let allocated = events(3, "native_alloc", &allocated)?;
        let freed = events(4, "native_free", &[("Address", NUMBER), ("Size", NUMBER)])?;
        let numbers = [
            "Interval",
            "Hits",
            "CostNs",
            "CpuNs",
            "DurationNs",
            "LostAllocations",
            "LostFrees",
            "LeftOut",
            "IsBeyondLimit",
        ];
        let probes_end = events(5, "native_alloc_end", &numbers.map(|name| (name, NUMBER)))?;
        Ok(Self {
            existing,
            created,
            ended,
            metadata,
            mapping,
            symbol,
            cpu,
            switch,
            allocated,
            freed,
            probes_end,
        })
    }
}
