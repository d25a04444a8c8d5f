//! Recordings that no runtime writes, each with its exact outcome: the whole events, and the damage by name.
//! Every row is read in all forms and at several splits, in bounded memory.

#[path = "../reading/mod.rs"]
mod reading;

mod container;
mod early;
mod events;
mod fields;
mod metadata;
mod tables;
mod v6;

use std::panic::{AssertUnwindSafe, catch_unwind};

use nettrace::raw::{BlockContent, Blocks};
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, nettrace as v4};

/// The required outcome of a recording.
enum Expect {
    /// An error that says this.
    Refused(&'static str),
    /// A reading.
    Read(Expected),
}

#[derive(Default)]
struct Expected {
    /// The first byte of each event's payload.
    events: Vec<u8>,
    /// The message of each damage, in order; unchecked where the bytes are noise.
    damage: Option<Vec<&'static str>>,
    truncated: bool,
    /// The first event's fields, where they matter.
    fields: Option<Vec<(&'static str, &'static str)>>,
    lost: Option<u64>,
}

/// These events, and nothing wrong.
fn events(events: &[u8]) -> Expected {
    Expected { events: events.to_vec(), damage: Some(Vec::new()), ..Expected::default() }
}

impl Expected {
    fn damage(mut self, says: &'static str) -> Self {
        self.damage.get_or_insert_default().push(says);
        self
    }

    fn any_damage(self) -> Self {
        Self { damage: None, ..self }
    }

    fn truncated(self) -> Self {
        Self { truncated: true, ..self }
    }

    fn fields(self, fields: &[(&'static str, &'static str)]) -> Self {
        Self { fields: Some(fields.to_vec()), ..self }
    }

    fn lost(self, lost: u64) -> Self {
        Self { lost: Some(lost), ..self }
    }
}

impl From<Expected> for Expect {
    fn from(expected: Expected) -> Self {
        Self::Read(expected)
    }
}

/// A named recording.
struct Row {
    name: &'static str,
    bytes: Vec<u8>,
    expect: Expect,
}

fn row(name: &'static str, bytes: Vec<u8>, expect: impl Into<Expect>) -> Row {
    Row { name, bytes, expect: expect.into() }
}

/// Metadata 1, without fields.
fn plain() -> Metadata {
    Metadata { id: 1, provider: "P".into(), event_id: 5, name: "E".into(), ..Metadata::default() }
}

/// The event of metadata 1 with this number, which is also its payload.
fn event(number: u8) -> Event {
    Event {
        metadata_id: 1,
        sequence: number.into(),
        thread: 7,
        capture_thread: 7,
        timestamp: 100 + u64::from(number),
        payload: vec![number],
        ..Event::default()
    }
}

/// A block of these events.
fn block(numbers: &[u8]) -> EventBlock {
    let mut block = EventBlock::v4();
    for number in numbers {
        block.event(&event(*number));
    }
    block
}

/// A V4 recording that has metadata 1.
fn trace() -> v4::Trace {
    let mut trace = v4::Trace::new(&TraceHeader::default());
    trace.metadata_block(&[plain()]);
    trace
}

#[test]
fn every_row_has_the_expected_outcome() {
    let rows = [
        container::rows(),
        early::rows(),
        events::rows(),
        fields::rows(),
        metadata::rows(),
        tables::rows(),
        v6::rows(),
    ];
    // The threads that read at the same time have memory of their own.
    let mut warm = trace();
    (0..1000).for_each(|_| _ = warm.event_block(&block(&[1])));
    reading::in_all_forms(&warm.finish(), &[]).expect("a recording");
    let mut failed = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for row in rows.into_iter().flatten() {
        assert!(names.insert(row.name), "two rows are called {}", row.name);
        let (name, before) = (row.name, largest_memory());
        let allowed = 64 * row.bytes.len() as u64 + (64 << 20);
        if catch_unwind(AssertUnwindSafe(|| check(row))).is_err() {
            failed.push(name);
        } else if largest_memory() > before + allowed {
            println!("{name}: took more memory than {allowed} bytes");
            failed.push(name);
        }
    }
    assert!(names.len() > 100, "{} rows", names.len());
    assert!(failed.is_empty(), "{} of {} rows failed: {failed:#?}", failed.len(), names.len());
}

/// The peak address space of this process, in bytes, where the system reports it: requested memory counts,
/// used or not.
fn largest_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn check(row: Row) {
    let Row { name, bytes, expect } = row;
    println!("{name}");
    let third = bytes.len() / 3;
    let mut splits = vec![vec![], vec![third, 2 * third]];
    if bytes.len() < 20_000 {
        splits.push((0..bytes.len()).step_by(7).collect());
        splits.push((0..bytes.len()).collect());
    }
    let reading = reading::in_all_forms(&bytes, &splits);
    let raw = raw_events(&bytes);
    match (expect, reading) {
        (Expect::Refused(says), Err(error)) => {
            assert!(error.contains(says), "{name}: refused because {error}");
        }
        (Expect::Refused(_), Ok(reading)) => panic!("{name}: read as {reading:#?}"),
        (Expect::Read(_), Err(error)) => panic!("{name}: refused because {error}"),
        (Expect::Read(expected), Ok(reading)) => {
            compare(name, &expected, &reading);
            assert_time_order_has_all(name, &bytes, &reading);
            if reading.damage.is_empty() && reading.truncated.is_none() {
                assert_eq!(raw, Some(reading.events.len()), "{name}: events of the raw layer");
            }
        }
    }
}

fn compare(name: &str, expected: &Expected, reading: &reading::Reading) {
    let numbers: Vec<u8> =
        reading.events.iter().map(|event| event.payload.first().copied().unwrap_or(0)).collect();
    assert_eq!(numbers, expected.events, "{name}: {:#?}", reading.damage);
    let damage: Vec<&str> = reading.damage.iter().map(|damage| &*damage.what).collect();
    if let Some(expected) = &expected.damage {
        assert_eq!(damage.len(), expected.len(), "{name}: {damage:#?}");
        for (says, expected) in damage.iter().zip(expected) {
            assert!(says.contains(expected), "{name}: {says:?} does not say {expected:?}");
        }
    }
    assert_eq!(
        reading.truncated.is_some(),
        expected.truncated,
        "{name}: truncated at {:?}",
        reading.truncated
    );
    if let Some(lost) = expected.lost {
        assert_eq!(reading.total_lost, lost, "{name}: lost");
    }
    if let Some(fields) = &expected.fields {
        let read = reading.events.first().map(|event| event.fields.clone()).unwrap_or_default();
        assert_eq!(read.len(), fields.len(), "{name}: {read:?}");
        for ((read_name, read), (field_name, says)) in read.iter().zip(fields) {
            assert!(
                read_name == field_name && read.contains(says),
                "{name}: {read_name}: {read}, not {says}"
            );
        }
    }
}

/// The number of event rows that the raw layer has; `None` if it meets an error.
fn raw_events(bytes: &[u8]) -> Option<usize> {
    let mut count = 0;
    for block in Blocks::new(bytes).ok()? {
        match block.ok()?.parse().ok()? {
            BlockContent::Event(block) => {
                for row in block.rows() {
                    count += usize::from(row.ok()?.metadata_row().is_none());
                }
            }
            BlockContent::Metadata(mut rows) => rows.try_for_each(|row| row.ok()?.parse().map(drop))?,
            BlockContent::Stack(block) => block.rows().try_for_each(|row| row.ok().map(drop))?,
            BlockContent::LabelList(block) => block.rows().try_for_each(|row| row.ok().map(drop))?,
            BlockContent::SequencePoint(point) => point.threads().try_for_each(|row| row.ok().map(drop))?,
            BlockContent::Thread(mut rows) => {
                rows.try_for_each(|row| row.ok()?.entries().try_for_each(|entry| entry.ok().map(drop)))?;
            }
            BlockContent::RemoveThread(mut rows) => rows.try_for_each(|row| row.ok().map(drop))?,
            _ => {}
        }
    }
    Some(count)
}

/// However the recording lies about its order, time order gives each event once.
fn assert_time_order_has_all(name: &str, bytes: &[u8], reading: &reading::Reading) {
    let mut ordered = reading::in_time_order(bytes).expect("was read before");
    let mut plain = reading.events.clone();
    let by_content = |a: &reading::Seen, b: &reading::Seen| {
        (a.time, a.sequence, &a.payload).cmp(&(b.time, b.sequence, &b.payload))
    };
    ordered.sort_by(by_content);
    plain.sort_by(by_content);
    assert_eq!(ordered, plain, "{name}: in time order");
}
