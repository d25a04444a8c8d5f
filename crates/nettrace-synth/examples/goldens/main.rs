//! Writes the small recordings of `testdata/traces` that no runtime at hand writes:
//! `cargo run --example goldens [DIRECTORY]`.
//!
//! Each is as small as its subject allows, and distinguishes its events by a field `number` or by the
//! payload, so that the text file next to it can be checked by reading this.

mod netperf;
mod nettrace;
mod v6;

use std::path::{Path, PathBuf};

use nettrace_synth::{Field, Metadata, SystemTime, TraceHeader, Type};

/// Every recording, by the name of its file.
fn recordings() -> [(&'static str, Vec<u8>); 6] {
    [
        ("synth-v1.netperf", netperf::early(nettrace_synth::netperf::EarlyTrace::v1)),
        ("synth-v2.netperf", netperf::early(nettrace_synth::netperf::EarlyTrace::v2)),
        ("synth-v3.netperf", netperf::v3()),
        ("synth-v4.nettrace", nettrace::v4()),
        ("synth-v5.nettrace", nettrace::v5()),
        ("synth-v6.nettrace", v6::v6()),
    ]
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces")
}

fn main() -> std::io::Result<()> {
    let directory = std::env::args_os().nth(1).map_or_else(directory, PathBuf::from);
    for (name, bytes) in recordings() {
        std::fs::write(directory.join(name), &bytes)?;
    }
    Ok(())
}

/// A tick is 100 ns; the first is the millionth; the pointers are as told.
fn header(pointer_size: i32) -> TraceHeader {
    TraceHeader {
        start: SystemTime {
            year: 2017,
            month: 9,
            day_of_week: 5,
            day: 1,
            hour: 12,
            minute: 34,
            second: 56,
            millisecond: 789,
        },
        sync_ticks: 1_000_000,
        frequency: 10_000_000,
        pointer_size,
        ..TraceHeader::default()
    }
}

/// The tick that is a number of microseconds after the first.
const fn at(microseconds: u64) -> u64 {
    1_000_000 + 10 * microseconds
}

/// A kind of event with a number, and the caller's additions.
fn numbered(id: u32, provider: &str, event_id: u32, name: &str, mut fields: Vec<Field>) -> Metadata {
    fields.insert(0, Field::new("number", Type::Int32));
    Metadata {
        id,
        provider: provider.into(),
        event_id,
        name: name.into(),
        keywords: 0xf000_0000_0001 << id,
        version: 1,
        level: 4,
        fields,
        ..Metadata::default()
    }
}

#[cfg(test)]
mod tests {
    /// The committed files equal this program's output.
    #[test]
    fn the_committed_recordings_are_these() {
        for (name, bytes) in super::recordings() {
            let committed = std::fs::read(super::directory().join(name)).expect(name);
            assert!(
                committed == bytes,
                "{name} differs: cargo run -p nettrace-synth --example goldens writes it"
            );
        }
    }
}
