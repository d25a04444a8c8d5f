//! Test of the places at which files are opened by path. A name from outside, such as one in a core dump, and
//! one in a folder to which others can write can lead to a pipe, a device or another's file:
//! `dipc_transport::{open_untrusted, open_regular, open_own}` refuse those.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::task::workspace;

/// The folders with code that has such names.
const FOLDERS: [&str; 6] = [
    "crates/clr-dump/src",
    "crates/dipc-cli/src/inspect",
    "crates/dipc-doctor/src/facts",
    "crates/dipc-monitor/src",
    "crates/linux-sampler/src",
    "crates/portable-pdb/src",
];

/// The calls that open whatever a path leads to.
const CALLS: [&str; 9] = [
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
];

/// The lines with such calls outside tests, by file, and the reason why others cannot choose their names. A
/// new line here needs such a reason.
const PERMITTED: [(&str, usize, &str); 30] = [
    ("clr-dump/src/copy/pieces.rs", 1, "/proc"),
    ("clr-dump/src/memory/page_map.rs", 1, "/proc"),
    ("clr-dump/src/memory/process.rs", 3, "/proc"),
    ("dipc-cli/src/inspect/heap.rs", 1, "named by the user"),
    ("dipc-cli/src/inspect/recording.rs", 2, "named by the user"),
    ("dipc-cli/src/inspect/run.rs", 2, "named by the user"),
    ("dipc-cli/src/inspect/thread_times.rs", 1, "created, which follows no link"),
    ("dipc-cli/src/inspect/unpacked_core.rs", 1, "a pipe that the user gave"),
    ("dipc-doctor/src/facts/environment.rs", 1, "/proc"),
    ("dipc-doctor/src/facts/image.rs", 1, "/proc"),
    ("dipc-doctor/src/facts/mounts.rs", 1, "/proc"),
    ("dipc-doctor/src/facts/unix_sockets.rs", 1, "/proc"),
    ("dipc-monitor/src/artifact/dump.rs", 1, "/proc"),
    ("dipc-monitor/src/black_box/overview.rs", 2, "in a new directory of the monitor"),
    ("dipc-monitor/src/egress/catalog.rs", 3, "options of open_own"),
    ("dipc-monitor/src/egress/delivery.rs", 1, "compared where files have no numbers"),
    ("dipc-monitor/src/egress/job.rs", 1, "options of open_own"),
    ("dipc-monitor/src/egress/queue.rs", 1, "options of open_own"),
    ("linux-sampler/src/access.rs", 1, "/proc"),
    ("linux-sampler/src/image.rs", 1, "the descriptor of a file that was checked"),
    ("linux-sampler/src/kernel.rs", 2, "/proc"),
    ("linux-sampler/src/maps.rs", 1, "/proc"),
    ("linux-sampler/src/native_allocations.rs", 1, "sysfs"),
    ("linux-sampler/src/obstacle.rs", 1, "/proc"),
    ("linux-sampler/src/recording/existing_waits.rs", 1, "/proc"),
    ("linux-sampler/src/sampler.rs", 1, "the folder of a control group, from the caller"),
    ("linux-sampler/src/stack_base.rs", 1, "/proc"),
    ("linux-sampler/src/threads.rs", 2, "/proc"),
    ("linux-sampler/src/tracepoint.rs", 2, "tracefs"),
    ("linux-sampler/src/waiting.rs", 2, "/proc"),
];

/// Counts the lines with such calls before the tests of a file.
fn count(text: &str) -> usize {
    let code = text.split("mod tests {").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    // `CoreFile::open` is another one.
    let has = |line: &str, call| {
        line.match_indices(call).any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric))
    };
    lines.filter(|line| CALLS.iter().any(|call| has(line, call))).count()
}

fn visit(folder: &Path, found: &mut BTreeMap<String, usize>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            visit(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && name != "tests.rs" {
            let count = count(&fs::read_to_string(&path).unwrap());
            let crates = workspace::root().join("crates");
            let name = path.strip_prefix(crates).unwrap().to_string_lossy().replace('\\', "/");
            if count > 0 {
                found.insert(name, count);
            }
        }
    }
}

#[test]
fn files_at_names_of_others_are_opened_by_the_functions_that_check_them() {
    let mut found = BTreeMap::new();
    for folder in FOLDERS {
        visit(&workspace::root().join(folder), &mut found);
    }
    let permitted = PERMITTED.map(|(file, count, _)| (file.to_owned(), count));
    assert_eq!(found, BTreeMap::from(permitted), "use dipc_transport::open_regular and its like");
}
