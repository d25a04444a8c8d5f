//! Random recordings of every version, written by `nettrace-synth`, and written again by this crate: the
//! events are the same. Of recordings that were cut or damaged too, where the new recording is whole.
//!
//! The plans of recordings are shared with nettrace's own tests.

mod appending;
#[path = "../recordings/equal.rs"]
mod equal;
mod merging;
#[path = "../../../nettrace/tests/synth/plan.rs"]
mod plan;
#[expect(
    dead_code,
    unexpected_cfgs,
    reason = "the forms of reading are nettrace's own test, and a feature of it"
)]
#[path = "../../../nettrace/tests/reading/mod.rs"]
mod reading;
mod shared_ids;
mod skipping;
#[path = "../../../nettrace/tests/synth/values.rs"]
mod values;
#[expect(dead_code, reason = "what nettrace's own test compares with")]
#[path = "../../../nettrace/tests/synth/writing.rs"]
mod writing;

use equal::{Expected, assert_equal, has_shared_ids};
use nettrace::SliceReader;
use nettrace_writer::{Error, Version, transcode};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 64 };
    ProptestConfig { cases, ..default }
}

fn written(bytes: &[u8], version: Version) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let events = SliceReader::new(bytes).ok()?;
    events.info()?;
    transcode(events, version, |part| {
        out.extend_from_slice(part);
        Ok::<_, Error>(())
    })
    .expect("a recording that can be written");
    Some(out)
}

/// Writes a recording in both versions, and compares the results with it.
fn check(bytes: &[u8], from: plan::Version, is_damaged: bool) {
    let from_netperf = from < plan::Version::V4;
    let is_v6 = from == plan::Version::V6;
    let (own, other) = if is_v6 { (Version::V6, Version::V4) } else { (Version::V4, Version::V6) };
    let Some(out) = written(bytes, own) else { return };
    assert_equal("own version", bytes, &out, Expected { from_netperf, is_damaged, ..Expected::default() });
    assert!(is_damaged || written(&out, own).as_ref() == Some(&out), "written again it differs");
    let there = written(bytes, other).expect("a header");
    let expected = Expected {
        from_netperf,
        other_kinds: true,
        to_v4: is_v6,
        is_damaged,
        other_labels: true,
        // Damage can give two threads the same id, and end a thread before its last event.
        shared_ids: is_v6 && is_damaged && has_shared_ids(bytes, |_| true),
    };
    assert_equal("other version", bytes, &there, expected);
    let back = written(&there, own).expect("a header");
    let expected = Expected { from_netperf: false, ..expected };
    assert_equal("there and back", &out, &back, expected);
    // Netperf before V3 does not say the process, which V4 can only say as 0.
    let may_differ = is_damaged || from < plan::Version::V3;
    assert!(may_differ || written(&back, other).as_ref() == Some(&there), "there again it differs");
}

fn place(at: u32, length: usize) -> usize {
    usize::try_from((u64::from(at) * length as u64) >> 32).expect("it is below the length")
}

macro_rules! properties {
    ($($module:ident: $version:expr;)*) => { $(
        mod $module {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn whole(plan in plan::plans($version)) {
                    check(&writing::write(&plan).bytes, $version, false);
                }

                #[test]
                fn split_and_merged(plan in plan::plans($version), cuts in any::<[u32; 3]>()) {
                    let bytes = writing::write(&plan).bytes;
                    let version = if $version == plan::Version::V6 { Version::V6 } else { Version::V4 };
                    // Netperf has no sequence points; the V4 recording made from it has.
                    let bytes = written(&bytes, version).unwrap_or(bytes);
                    merging::check(&bytes, version, cuts);
                }

                #[test]
                fn cut(plan in plan::plans($version), at in any::<u32>()) {
                    let bytes = writing::write(&plan).bytes;
                    check(&bytes[..place(at, bytes.len())], $version, true);
                }

                #[test]
                fn damaged(plan in plan::plans($version), harms in prop::collection::vec((any::<u32>(), any::<u8>()), 1..5)) {
                    let mut bytes = writing::write(&plan).bytes;
                    for (at, byte) in harms {
                        let at = place(at, bytes.len());
                        bytes[at] = byte;
                    }
                    check(&bytes, $version, true);
                }
            }
        }
    )* };
}

mod random {
    use super::*;

    properties! {
        v1: plan::Version::V1;
        v2: plan::Version::V2;
        v3: plan::Version::V3;
        v4: plan::Version::V4;
        v5: plan::Version::V5;
        v6: plan::Version::V6;
    }
}

#[test]
fn a_stack_may_be_defined_after_an_event_that_uses_it() {
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace::Trace, stack_bytes};
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    for sequence in [1, 2] {
        let mut block = EventBlock::v4();
        block.event(&Event { metadata_id: 1, sequence, timestamp: 1_000, stack_id: 1, ..Event::default() });
        trace.event_block(&block);
        trace.stack_block(1, &[stack_bytes(&[0x1234], 8)]);
    }
    check(&trace.finish(), plan::Version::V4, false);
}

#[test]
fn a_block_may_give_a_stack_the_number_of_none() {
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace::Trace, stack_bytes};
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.stack_block(0, &[stack_bytes(&[0x1234], 8)]);
    let mut block = EventBlock::v4();
    block.event(&Event { metadata_id: 1, sequence: 1, timestamp: 1_000, ..Event::default() });
    trace.event_block(&block);
    let bytes = trace.finish();
    let mut events = SliceReader::new(&bytes).expect("a header");
    let event = events.next().expect("no error").expect("an event");
    assert_eq!(event.stack().collect::<Vec<_>>(), [0x1234]);
    check(&bytes, plan::Version::V4, false);
}

#[test]
fn labels_together_may_be_larger_than_a_block() {
    use nettrace_synth::v6::{Label, ThreadEntry, ThreadRow, Trace};
    use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader};
    let mut trace = Trace::new(&TraceHeader::default());
    trace.metadata_block(&[Metadata { id: 1, provider: "Demo".into(), event_id: 7, ..Metadata::default() }]);
    trace.thread_block(&[ThreadRow { index: 1, entries: vec![ThreadEntry::ThreadId(100)] }]);
    // Twelve of 1.5 MB each: a block has 16 MB at most.
    let text = "x".repeat(1_500_000);
    for number in 1..=12 {
        trace.label_list_block(number, &[vec![Label::Text("key".into(), format!("{text}{number}"))]]);
        let mut block = EventBlock::v6();
        block.event(&Event {
            metadata_id: 1,
            sequence: number,
            thread: 1,
            capture_thread: 1,
            label_list: number,
            timestamp: number.into(),
            ..Event::default()
        });
        trace.event_block(&block);
    }
    let bytes = trace.finish();
    check(&bytes, plan::Version::V6, false);
    merging::check(&bytes, Version::V6, [1 << 30; 3]);
}
