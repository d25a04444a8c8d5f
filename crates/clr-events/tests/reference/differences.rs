//! Where the two readings differ, and why ours is the right one.

use clr_events::{Provider, Schema, event_name, event_opcode};
use nettrace::Event;

/// Event 39 of the runtime wraps events that the collector defines as it goes: the other reader gives known
/// ones numbers of its own. It keeps event ids as 16 bits.
pub(crate) fn their_id(event: &Event<'_>) -> u32 {
    match event_name(event).to_string().as_str() {
        "GC/CommittedUsage" => 65_524,
        _ => event.id() & 0xffff,
    }
}

/// The opcode that the other reader shows. It takes samples for the start of something. `PinPlugAtGCTime` is
/// 44 in the runtime's manifest.
pub(crate) fn their_opcode(event: &Event<'_>) -> u8 {
    if event.provider() == "Microsoft-DotNETCore-SampleProfiler" {
        1
    } else if event_name(event).to_string() == "GC/PinPlugAtGCTime" {
        45
    } else {
        event_opcode(event).unwrap_or(0)
    }
}

/// Events that the other reader has other names for.
///
/// * The other reader does not know some of the runtime's own events: ours have the names of the manifest.
/// * Of tasks it has names that are not in the recording.
/// * Where a label gives an event another opcode than its kind has, it appends that opcode to the name.
pub(crate) fn is_named_otherwise(event: &Event<'_>) -> bool {
    Schema::of(event).is_some_and(|schema| schema.name.is_empty())
        || event.provider() == "System.Threading.Tasks.TplEventSource"
        || event.opcode() != event.metadata().opcode()
}

/// The other reader's name of a field.
pub(crate) fn their_name<'a>(schema: &Schema, field: &'a str) -> &'a str {
    match (schema.name, field) {
        ("GC/MarkWithType", "Bytes") => "Promoted",
        _ => field,
    }
}

/// Values that the other reader shows otherwise.
///
/// * Names from tables of its own, which the runtime's manifest does not have: ours is the number.
/// * `Universal.System`: it takes the length of a string for a string of one character, and the rest for the
///   next field.
/// * Bucket kinds and kinds of segments: its names differ from the manifest in part.
/// * `MethodDetails`: it takes its last three fields for one another.
/// * `JitInstrumentationDataVerbose`: its value for the method's token is not a token; ours is a method's in
///   all events.
pub(crate) fn is_misread(schema: &Schema, field: &str) -> bool {
    matches!(
        (schema.name, field),
        ("GC/GlobalHeapHistory", "GlobalMechanisms" | "PauseMode" | "Reason")
            | ("GC/PerHeapHistory", "CompactMechanisms" | "ExpandMechanisms")
            | ("GC/SettingsRundown", "BitSettings")
            | ("GC/CreateSegment", "Type")
            | ("GC/FitBucketInfo", "BucketKind")
            | ("JitInstrumentationDataVerbose/InstrumentationData", "MethodToken" | "MethodNamespace")
            | ("Method/MethodDetails", "TypeParameterCount" | "LoaderModuleID" | "TypeParameters")
    ) || schema.provider == Provider::UniversalSystem
}

/// Fields that the other reader does not print.
///
/// The other reader does not know events without a name, and does not show lists or reserved fields.
pub(crate) fn is_not_shown(schema: &Schema, field: &str) -> bool {
    schema.name.is_empty()
        || matches!(
            field,
            "Values" | "Reserved1" | "Unused1" | "Unused2" | "ILOffsets" | "NativeOffsets" | "ILVersionID"
        )
        || schema.name == "JitInstrumentationDataVerbose/InstrumentationData" && field == "Data"
        || (schema.name.starts_with("Loader/Module") || schema.name == "GC/CommittedUsage")
            && field == "ClrInstanceID"
}

/// Fields that are not in the payload.
///
/// * Sums and parts of other fields; the tier is in the high bits of the flags.
/// * Fields of newer versions, shown as empty.
/// * Names of types that other events reported.
pub(crate) fn is_computed(schema: &Schema, field: &str) -> bool {
    let newer = Schema::versions(schema.provider, schema.id.into())
        .iter()
        .filter(|newer| newer.version > schema.version);
    if newer.flat_map(|newer| newer.fields).any(|newer| newer.name() == field) {
        return true;
    }
    match schema.name {
        "GC/HeapStats" => matches!(field, "TotalHeapSize" | "TotalPromoted" | "Depth"),
        "GC/PerHeapHistory" => matches!(field, "ConcurrentCompactMechanisms" | "MemoryPressure"),
        "GC/FinalizeObject" => field == "TypeName",
        "Type/BulkType" => field == "TypeID_0" || field == "TypeName_0",
        name if name.starts_with("Loader/Module") => field == "ModuleILFileName",
        name if name.starts_with("Method/") => field == "OptimizationTier",
        _ => false,
    }
}

/// Payloads with more than their fields. Recorders write two more strings into `ProcessMapping` than they
/// describe.
pub(crate) fn has_more(schema: &Schema) -> bool {
    schema.name == "ProcessMapping"
}

/// The other reader writes the names of modules that it met in a module's event in lower case.
pub(crate) fn is_same_module(ours: &str, theirs: &str) -> bool {
    ours == theirs || ours.to_lowercase() == theirs
}
