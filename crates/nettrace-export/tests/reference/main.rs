//! This crate's results for recordings, compared with other programs' results.
//!
//! `testdata/reference/net10-sample.topn.tsv.xz` was computed by a program that shares nothing with this
//! crate, from another reader's events and stacks. Where `DIPC_SHARED` names the directory of the larger
//! collection, that program is run on its recordings, and the profiles of the existing tool and the
//! collections of the other reader are compared too.

mod collections;
mod everything;
#[path = "../../../nettrace/tests/reference/files.rs"]
mod files;
mod joined;
mod report_kinds;
mod requests;
mod timelines;
mod top;
mod waiting;

use nettrace::SliceReader;
use nettrace_export::{Options, Profile, ProfileBuilder};

use files::{bytes_of, shared, testdata};

/// The profile of a recording.
fn profile_of(recording: &[u8], options: Options) -> Profile {
    let mut builder = ProfileBuilder::new(options);
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| builder.add(&event)).expect("bytes in memory");
    builder.finish(events.events().info()).expect("time order").0
}

/// A name as it is compared: TraceEvent writes some modules in lower case.
fn comparable(name: &str) -> String {
    match name.split_once('!') {
        Some((module, method)) => format!("{}!{method}", module.to_lowercase()),
        None => name.to_owned(),
    }
}
