//! The properties that every recording has. The fuzz target `synthetic` holds them for recordings of its own.

use nettrace::{Decoder, Format, Ticks};
use proptest::prelude::{TestCaseError, prop_assert, prop_assert_eq};
use proptest::test_runner::TestCaseResult;

use crate::plan::{Plan, Version};
use crate::reading::{self, Reading};
use crate::writing::{Written, write};

/// A place in a list of any length: a fraction of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(pub(crate) u32);

impl Place {
    /// An index below `length`, or 0.
    fn index(self, length: usize) -> usize {
        usize::try_from((u64::from(self.0) * length as u64) >> 32).expect("it is below the length")
    }
}

fn at(places: &[Place], bytes: &[u8]) -> Vec<usize> {
    let mut splits: Vec<_> = places.iter().map(|place| place.index(bytes.len())).collect();
    splits.sort_unstable();
    splits
}

fn assert_read_as_written(reading: &Reading, written: &Written, version: Version) -> TestCaseResult {
    for (number, (read, expected)) in reading.events.iter().zip(&written.events).enumerate() {
        prop_assert_eq!(read, expected, "event {}", number);
    }
    prop_assert_eq!(reading.events.len(), written.events.len());
    prop_assert_eq!(&reading.lost, &written.lost);
    prop_assert_eq!(reading.total_lost, written.lost.iter().map(|(_, lost)| lost).sum::<u64>());
    prop_assert_eq!(&reading.damage, &[]);
    prop_assert_eq!(reading.truncated, None);

    let (info, header) = (&reading.info, &written.header);
    let number = match version {
        Version::V1 => 1,
        Version::V2 => 2,
        Version::V3 => 3,
        Version::V4 | Version::V5 => 4,
        Version::V6 => 6,
    };
    prop_assert_eq!(
        (info.format, info.version),
        (if number < 4 { Format::Netperf } else { Format::Nettrace }, number)
    );
    prop_assert_eq!(info.minor_version, if number == 6 { 7 } else { 0 });
    prop_assert_eq!((info.start.year, info.start.month, info.start.day_of_week), (2022, 1, 6));
    prop_assert_eq!(info.start_ticks, Ticks(header.sync_ticks.cast_unsigned()));
    prop_assert_eq!(info.frequency, 10_000_000);
    prop_assert_eq!(i32::from(info.pointer_size), header.pointer_size);
    let (process, processors, sampling_rate) = match version {
        Version::V1 | Version::V2 => (None, None, None),
        Version::V6 => (Some(77), Some(12), None),
        _ => (Some(4242), Some(2), Some(1_000_000)),
    };
    prop_assert_eq!(info.process_id, process);
    prop_assert_eq!(info.processors, processors);
    prop_assert_eq!(info.sampling_rate, sampling_rate);
    prop_assert_eq!(&info.key_values[..], if number == 6 { &header.key_values[..] } else { &[] });
    Ok(())
}

/// Written recordings are read back, in every form and at random splits.
pub(crate) fn round_trip(plan: &Plan, places: &[Place]) -> TestCaseResult {
    let written = write(plan);
    let splits = at(places, &written.bytes);
    let reading = reading::in_all_forms(&written.bytes, &[vec![], splits]).map_err(TestCaseError::fail)?;
    assert_read_as_written(&reading, &written, plan.version)
}

/// Time order is file order, sorted by time and otherwise left as it is, in every form.
pub(crate) fn time_order(plan: &Plan, places: &[Place]) -> TestCaseResult {
    let written = write(plan);
    let mut expected = written.events;
    expected.sort_by_key(|event| event.time);
    let bytes = &written.bytes;
    let slice = reading::in_time_order(bytes);
    prop_assert_eq!(slice.map_err(|e| TestCaseError::fail(e.to_string()))?, &expected[..]);

    let mut events = Decoder::new().in_time_order();
    let mut list = Vec::new();
    let mut from = 0;
    for to in at(places, bytes).into_iter().chain([bytes.len()]) {
        events.feed(&bytes[from..to]);
        from = to;
        if to == bytes.len() {
            events.end_of_input();
        }
        while let Some(event) = events.next().map_err(|e| TestCaseError::fail(e.to_string()))? {
            list.push(event.time().0);
        }
    }
    prop_assert_eq!(list, expected.iter().map(|event| event.time).collect::<Vec<_>>());
    Ok(())
}

/// However a recording is cut, its events are the first of the whole, no fewer than of a shorter piece, and
/// the cut is reported unless it leaves a whole recording.
pub(crate) fn cut_anywhere(plan: &Plan) -> TestCaseResult {
    let written = write(plan);
    let mut before = 0;
    for length in 0..written.bytes.len() {
        let piece = &written.bytes[..length];
        match reading::slice(piece) {
            Err(error) => prop_assert_eq!(before, 0, "cut at {}: {}", length, error),
            Ok(reading) => {
                let count = reading.events.len();
                prop_assert!(count >= before, "cut at {}: fewer events than of a shorter piece", length);
                prop_assert_eq!(
                    &reading.events[..],
                    &written.events[..count.min(written.events.len())],
                    "cut at {}",
                    length
                );
                prop_assert_eq!(&reading.damage, &[], "cut at {}", length);
                prop_assert!(
                    reading.truncated.is_some_and(|offset| offset <= length as u64),
                    "cut at {}",
                    length
                );
                before = count;
            }
        }
    }
    Ok(())
}

/// Pushed byte by byte, an event is there as soon as its block is.
pub(crate) fn byte_by_byte(plan: &Plan) -> TestCaseResult {
    let written = write(plan);
    let splits: Vec<_> = (0..written.bytes.len()).collect();
    reading::in_all_forms(&written.bytes, &[splits]).map_err(TestCaseError::fail)?;
    Ok(())
}

/// A change to a recording's bytes.
#[derive(Debug, Clone)]
pub(crate) enum Harm {
    Set(Place, u8),
    Remove(Place, Place),
    Insert(Place, Vec<u8>),
}

fn harm(bytes: &mut Vec<u8>, harm: &Harm) {
    match harm {
        Harm::Set(at, byte) if !bytes.is_empty() => {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        Harm::Set(..) => {}
        Harm::Remove(from, to) => {
            let (from, to) = (from.index(bytes.len() + 1), to.index(bytes.len() + 1));
            bytes.drain(from.min(to)..from.max(to));
        }
        Harm::Insert(at, inserted) => {
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, inserted.iter().copied());
        }
    }
}

/// Whatever happened to a recording, all forms read the same of it, and time order has the same events.
pub(crate) fn read_alike(plan: &Plan, harms: &[Harm], places: &[Place]) -> TestCaseResult {
    let mut bytes = write(plan).bytes;
    for one in harms {
        harm(&mut bytes, one);
    }
    let splits = at(places, &bytes);
    let Ok(reading) = reading::in_all_forms(&bytes, &[splits]) else { return Ok(()) };
    let ordered = reading::in_time_order(&bytes).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(ordered.len(), reading.events.len());
    Ok(())
}
