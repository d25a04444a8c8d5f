//! Lists of labels of V6.

use alloc::vec::Vec;

use nettrace::{Label, Labels, Uuid};

use crate::bytes::{string8, u64, varint};

/// The bit in the kind of the last label of a list.
const LAST: u8 = 0x80;

/// Returns a list that is not empty as bytes.
pub(crate) fn list(labels: Labels<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = 0;
    for label in labels {
        last = out.len();
        match label {
            Label::Activity(id) => guid(&mut out, 1, &id),
            Label::RelatedActivity(id) => guid(&mut out, 2, &id),
            Label::TraceId(id) => {
                out.push(3);
                out.extend_from_slice(&id);
            }
            Label::SpanId(id) => {
                out.push(4);
                u64(&mut out, id);
            }
            Label::Text(key, value) => {
                out.push(5);
                string8(&mut out, key);
                string8(&mut out, value);
            }
            Label::Number(key, value) => {
                out.push(6);
                string8(&mut out, key);
                varint(&mut out, value);
            }
            Label::Opcode(opcode) => out.extend_from_slice(&[7, opcode]),
            Label::Keywords(keywords) => {
                out.push(8);
                u64(&mut out, keywords);
            }
            Label::Level(level) => out.extend_from_slice(&[9, level]),
            Label::Version(version) => out.extend_from_slice(&[10, version]),
            _ => {}
        }
    }
    mark_last(&mut out, last);
    out
}

/// Returns the list of a V4 event with these activities in its header; empty without any.
pub(crate) fn of_activities(activity: Option<Uuid>, related: Option<Uuid>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut last = 0;
    for (kind, id) in [(1, activity), (2, related)] {
        if let Some(id) = id {
            last = out.len();
            guid(&mut out, kind, &id);
        }
    }
    mark_last(&mut out, last);
    out
}

/// Returns true if V4 can say the label.
pub(crate) const fn is_in_v4(label: &Label<'_>) -> bool {
    matches!(
        label,
        Label::Activity(_)
            | Label::RelatedActivity(_)
            | Label::Opcode(_)
            | Label::Keywords(_)
            | Label::Level(_)
            | Label::Version(_)
    )
}

fn guid(out: &mut Vec<u8>, kind: u8, id: &Uuid) {
    out.push(kind);
    out.extend_from_slice(&id.to_bytes_le());
}

fn mark_last(out: &mut [u8], last: usize) {
    if let Some(kind) = out.get_mut(last) {
        *kind |= LAST;
    }
}
