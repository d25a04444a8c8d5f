//! Random recordings: their contents, independent of the version that writes them.

use nettrace_synth::v6::Label;
use nettrace_synth::{Field, Headers, Type};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

/// The versions of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    V1,
    V2,
    V3,
    V4,
    V5,
    V6,
}

/// How many threads a recording has.
pub(crate) const THREADS: usize = 3;

/// The contents of a recording.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) version: Version,
    pub(crate) wide_pointers: bool,
    pub(crate) sync_ticks: u32,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) segments: Vec<Segment>,
}

/// A kind of event.
#[derive(Debug, Clone)]
pub(crate) struct Kind {
    pub(crate) provider: String,
    pub(crate) name: String,
    pub(crate) event_id: u16,
    pub(crate) keywords: u64,
    pub(crate) version: u8,
    pub(crate) level: u8,
    pub(crate) opcode: Option<u8>,
    pub(crate) described: Option<String>,
    pub(crate) fields: Vec<Field>,
}

/// The contents between two sequence points.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) stacks: Vec<Vec<u64>>,
    pub(crate) labels: Vec<Vec<Label>>,
    pub(crate) blocks: Vec<Block>,
    /// Events that each thread loses after its last one.
    pub(crate) lost: [u8; THREADS],
    /// V6: whether the sequence point after the segment invalidates threads, metadata.
    pub(crate) forgets: (bool, bool),
    /// V6: the threads end before the sequence point does.
    pub(crate) removes_threads: bool,
}

/// An event block.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) headers: Headers,
    /// Header groups that are written although nothing in them has changed.
    pub(crate) spare_groups: u8,
    pub(crate) reserved: u8,
    /// A block of an unknown type precedes it.
    pub(crate) unknown_before: bool,
    pub(crate) events: Vec<EventPlan>,
}

/// An event. Indexes are taken modulo what there is.
#[derive(Debug, Clone)]
pub(crate) struct EventPlan {
    pub(crate) kind: u8,
    pub(crate) thread: u8,
    pub(crate) capture_thread: u8,
    /// Events that the thread lost before this one.
    pub(crate) lost: u8,
    pub(crate) processor: u32,
    pub(crate) stack: u8,
    pub(crate) labels: u8,
    /// Ticks since the thread's event before.
    pub(crate) ticks: u16,
    pub(crate) activity: Option<u8>,
    pub(crate) related: Option<u8>,
    /// Marked as sorted, if that is true.
    pub(crate) may_be_sorted: bool,
    /// The source of its values.
    pub(crate) seed: u64,
}

pub(crate) fn plans(version: Version) -> impl Strategy<Value = Plan> {
    (any::<bool>(), any::<u32>(), vec(kind(version), 1..4), vec(segment(), 1..4)).prop_map(
        move |(wide_pointers, sync_ticks, kinds, segments)| Plan {
            version,
            wide_pointers,
            sync_ticks,
            kinds,
            segments,
        },
    )
}

fn text() -> impl Strategy<Value = String> {
    "[A-Za-zäß𝄞.]{0,6}"
}

fn kind(version: Version) -> impl Strategy<Value = Kind> {
    let head = ("[A-Z][a-z-]{0,4}", text(), any::<u16>(), any::<u64>(), any::<u8>(), any::<u8>());
    (head, option::of(any::<u8>()), option::of(text()), vec((text(), field_type(version)), 0..4)).prop_map(
        |((provider, name, event_id, keywords, version, level), opcode, described, fields)| Kind {
            provider,
            name,
            event_id,
            keywords,
            version,
            level,
            opcode,
            described,
            fields: fields.into_iter().map(|(name, ty)| Field { name, ty }).collect(),
        },
    )
}

const PLAIN: [Type; 16] = [
    Type::Boolean32,
    Type::Utf16CodeUnit,
    Type::SByte,
    Type::Byte,
    Type::Int16,
    Type::UInt16,
    Type::Int32,
    Type::UInt32,
    Type::Int64,
    Type::UInt64,
    Type::Single,
    Type::Double,
    Type::Decimal,
    Type::DateTime,
    Type::Guid,
    Type::String16,
];

fn field_type(version: Version) -> BoxedStrategy<Type> {
    let mut plain = PLAIN.to_vec();
    if version == Version::V6 {
        plain.extend([Type::VarInt, Type::VarUInt, Type::Utf8CodeUnit, Type::Boolean8]);
    }
    let plain = prop::sample::select(plain);
    // Netperf V1 and V2 know no objects: TraceEvent never read any there, and no runtime wrote one.
    if version <= Version::V2 {
        return plain.boxed();
    }
    let located = prop::sample::select(PLAIN[..12].to_vec()).prop_map(Box::new);
    plain
        .prop_recursive(3, 8, 3, move |inner| {
            let object = vec((text(), inner.clone()), 1..4)
                .prop_map(|fields| {
                    Type::Object(fields.into_iter().map(|(name, ty)| Field { name, ty }).collect())
                })
                .boxed();
            let array = inner.clone().prop_map(|element| Type::Array(Box::new(element))).boxed();
            let fixed = (inner, 1u16..4)
                .prop_map(|(element, count)| Type::FixedArray(Box::new(element), count))
                .boxed();
            let rel_loc = located.clone().prop_map(Type::RelLoc).boxed();
            let data_loc = located.clone().prop_map(Type::DataLoc).boxed();
            match version {
                Version::V6 => prop_oneof![object, array, fixed, rel_loc, data_loc].boxed(),
                Version::V5 => prop_oneof![object, array].boxed(),
                _ => object,
            }
        })
        .boxed()
}

fn segment() -> impl Strategy<Value = Segment> {
    let lost = [0u8..3, 0u8..3, 0u8..3];
    (
        vec(vec(any::<u64>(), 0..5), 0..4),
        vec(vec(label(), 1..5), 0..4),
        vec(block(), 0..4),
        lost,
        any::<(bool, bool)>(),
        any::<bool>(),
    )
        .prop_map(|(stacks, labels, blocks, lost, forgets, removes_threads)| Segment {
            stacks,
            labels,
            blocks,
            lost,
            forgets,
            removes_threads,
        })
}

fn label() -> impl Strategy<Value = Label> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(Label::Activity),
        any::<[u8; 16]>().prop_map(Label::RelatedActivity),
        any::<[u8; 16]>().prop_map(Label::TraceId),
        any::<u64>().prop_map(Label::SpanId),
        (text(), text()).prop_map(|(key, value)| Label::Text(key, value)),
        (text(), any::<i64>()).prop_map(|(key, value)| Label::Number(key, value)),
        any::<u8>().prop_map(Label::Opcode),
        any::<u64>().prop_map(Label::Keywords),
        any::<u8>().prop_map(Label::Level),
        any::<u8>().prop_map(Label::Version),
    ]
}

fn block() -> impl Strategy<Value = Block> {
    let headers =
        prop::sample::select(&[Headers::Compressed, Headers::CompressedInFull, Headers::Uncompressed][..]);
    (headers, any::<u8>(), 0u8..5, prop::bool::weighted(0.2), vec(event(), 1..8)).prop_map(
        |(headers, spare_groups, reserved, unknown_before, events)| Block {
            headers,
            spare_groups,
            reserved,
            unknown_before,
            events,
        },
    )
}

fn event() -> impl Strategy<Value = EventPlan> {
    let threads = (0u8..3, 0u8..3, prop::bool::weighted(0.8));
    let counts = (prop_oneof![9 => Just(0u8), 1 => 1u8..4], any::<u32>(), any::<u8>(), any::<u8>());
    (
        any::<u8>(),
        threads,
        counts,
        0u16..50,
        option::of(1u8..5),
        option::of(1u8..5),
        any::<bool>(),
        any::<u64>(),
    )
        .prop_map(
            |(
                kind,
                (thread, capture, same),
                (lost, processor, stack, labels),
                ticks,
                activity,
                related,
                sorted,
                seed,
            )| {
                EventPlan {
                    kind,
                    thread: if same { capture } else { thread },
                    capture_thread: capture,
                    lost,
                    processor,
                    stack,
                    labels,
                    ticks,
                    activity,
                    related,
                    may_be_sorted: sorted,
                    seed,
                }
            },
        )
}
