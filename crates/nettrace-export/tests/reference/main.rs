//! What this crate makes of recordings, held against what others make of them.
//!
//! `testdata/reference/net10-sample.topn.tsv.xz` was computed by a program that shares nothing with this crate, from another
//! reader's events and stacks. Where `DIPC_SHARED` names the directory of the larger collection, that program is run on its
//! recordings, and the profiles of the existing tool and the collections of the other reader are compared too.

mod collections;
mod everything;
mod timelines;
mod top;

use std::io::Read;
use std::path::{Path, PathBuf};

use nettrace::SliceReader;
use nettrace_export::{Gatherer, Options, Profile};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn shared() -> Option<PathBuf> {
    let shared = std::env::var_os("DIPC_SHARED").map(PathBuf::from);
    if shared.is_none() {
        println!("not run: DIPC_SHARED does not name the larger collection");
    }
    shared
}

/// The bytes of a file, unpacked if it is packed.
fn bytes_of(path: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_some_and(|extension| extension == "xz") {
        let mut unpacked = Vec::new();
        lzma_rust2::XzReader::new(&bytes[..], true).read_to_end(&mut unpacked).expect("a whole xz file");
        bytes = unpacked;
    }
    bytes
}

/// The profile of a recording.
fn profile_of(recording: &[u8], options: Options) -> Profile {
    let mut gatherer = Gatherer::new(options);
    let mut events = SliceReader::new(recording).expect("a recording").in_time_order();
    events.for_each(|event| gatherer.add(&event)).expect("bytes in memory");
    gatherer.finish(events.events().info()).expect("time order").0
}

/// A name as it is compared: TraceEvent writes some modules in lower case.
fn comparable(name: &str) -> String {
    match name.split_once('!') {
        Some((module, method)) => format!("{}!{method}", module.to_lowercase()),
        None => name.to_owned(),
    }
}
