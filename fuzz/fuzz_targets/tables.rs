//! Any bytes as a recording, written as tables: each event is a row or is counted, and the same bytes are the same files.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_tables::{Dataset, Input, Labels, Options, ShardSummary};

/// A directory of this process, in memory where the system has one.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    parent.join(format!("dipc-fuzz-tables-{}", std::process::id()))
});

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let options = Options::default().with_rundown(flags & 1 != 0).with_drop_fields(flags & 2 != 0);
    let Some(one) = export(bytes, options) else { return };
    let mut events = 0;
    let mut reader = SliceReader::new(bytes).expect("a recording");
    reader.for_each(|_| events += 1).expect("a recording");
    let counts = &one.recordings[0];
    assert_eq!(counts.events + counts.samples + counts.left_out, events);
    assert_eq!(counts.lost, reader.loss().total());
    let rows = |table| one.files.iter().find(|(name, ..)| *name == table).map(|(_, rows, _)| *rows);
    assert_eq!(rows("events"), Some(counts.events));
    assert_eq!(rows("samples"), Some(counts.samples));
});

fn export(bytes: &[u8], options: Options) -> Option<ShardSummary> {
    fs::create_dir_all(&*FOLDER).expect("a folder");
    let path = FOLDER.join("input");
    fs::write(&path, bytes).expect("a file");
    let summary = Input::open(&path, Labels::default()).ok().map(|input| {
        let dataset = Dataset::new(FOLDER.join("data"), options);
        let plan = dataset.plan(vec![input]).expect("an empty data set");
        dataset.export(&plan.shards[0]).expect("a recording that is whole as far as it goes")
    });
    let _ = fs::remove_dir_all(&*FOLDER);
    summary
}
