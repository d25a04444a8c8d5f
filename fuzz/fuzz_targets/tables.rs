//! Any bytes as a recording, written as tables: each event is a row or is counted, and no file is outside of
//! the data set.
//!
//! The recording chooses the columns that are promoted and the labels, and some of its payloads are replaced
//! or cannot be read.

#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use clr_events::{event_fields, event_name};
use libfuzzer_sys::fuzz_target;
use nettrace::{Event, SliceReader};
use nettrace_tables::{
    Dataset, Input, Labels, Options, PayloadRewriter, PromotedColumn, Rewritten, ShardSummary,
};

/// A directory of this process, in memory where the system has one.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    parent.join(format!("dipc-fuzz-tables-{}", std::process::id()))
});

/// Bytes that the writers of seven files hold for their columns.
const WRITERS: usize = 32 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, choice, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let options = Options::default().with_rundown(flags & 1 != 0).with_drop_fields(flags & 2 != 0);
    let labels = labels(&String::from_utf8_lossy(bytes.get(..40).unwrap_or_default()));
    let columns = if flags & 4 != 0 { columns(bytes) } else { Vec::new() };
    let mut rewriter = Rewriter { choice, number: 0 };
    let rewriter = if flags & 8 != 0 { Some(&mut rewriter) } else { None };
    let one = dipc_fuzz::bounded_beyond(WRITERS, bytes.len(), || {
        export(bytes, options, labels, &columns, rewriter)
    });
    let Some(one) = one else { return };
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

/// Returns the labels of a JSON object with this text.
fn labels(text: &str) -> Labels {
    // Any text may be in the file.
    let _ = Labels::from_json(text);
    let object = serde_json::json!({"service": text, "version": 3, "pod": null, "canary": true, text: text});
    let labels = Labels::from_json(&object.to_string()).expect("an object of plain values");
    assert_eq!(labels.get("service"), Some(text));
    labels
}

/// Returns columns for the first fields of the first events, of each type.
fn columns(bytes: &[u8]) -> Vec<PromotedColumn> {
    let mut columns: Vec<PromotedColumn> = Vec::new();
    let Ok(mut reader) = SliceReader::new(bytes) else { return columns };
    while let (true, Ok(Some(event))) = (columns.len() < 8, reader.next()) {
        let fields = event_fields(&event).into_iter().flat_map(|fields| fields.map_while(Result::ok)).take(3);
        for ((name, _), kind) in
            fields.zip(["text", "long", "double", "bool"].iter().cycle().skip(columns.len()))
        {
            let text = format!("{}/{}.{name}:{kind}", event.provider(), event_name(&event));
            let Ok(column) = text.parse::<PromotedColumn>() else { continue };
            assert_eq!(column.to_string().parse().as_ref(), Ok(&column));
            if !columns.iter().any(|known| known.name() == column.name()) {
                columns.push(column);
            }
        }
    }
    columns
}

/// Replaces payloads, and fails to read some.
struct Rewriter {
    choice: u8,
    number: u8,
}

impl PayloadRewriter for Rewriter {
    fn rewrite(&mut self, event: &Event<'_>, payload: &mut Vec<u8>) -> Rewritten {
        self.number = self.number.wrapping_add(1);
        assert!(payload.is_empty());
        match self.number.wrapping_mul(self.choice) % 4 {
            0 => Rewritten::Kept,
            1 => Rewritten::Unreadable,
            2 => {
                payload.extend(event.payload().iter().map(|byte| byte ^ self.choice));
                Rewritten::Replaced
            }
            _ => {
                payload.extend(event.payload().iter().skip(usize::from(self.choice % 8)));
                Rewritten::Replaced
            }
        }
    }
}

fn export(
    bytes: &[u8],
    options: Options,
    labels: Labels,
    columns: &[PromotedColumn],
    rewriter: Option<&mut Rewriter>,
) -> Option<ShardSummary> {
    fs::create_dir_all(&*FOLDER).expect("a folder");
    let path = FOLDER.join("input");
    fs::write(&path, bytes).expect("a file");
    let summary = Input::open(&path, labels).ok().map(|input| {
        let dataset = Dataset::new(FOLDER.join("data"), options);
        dataset.promote(columns).expect("columns of different names");
        assert_eq!(dataset.promoted().expect("the folder of columns").len(), columns.len());
        let plan = dataset.plan(vec![input]).expect("an empty data set");
        let rewriter = rewriter.map(|rewriter| rewriter as &mut (dyn PayloadRewriter + 'static));
        let summary = dataset.export_rewritten(&plan.shards[0], rewriter);
        summary.expect("a recording that is whole as far as it goes")
    });
    let names: Vec<_> =
        fs::read_dir(&*FOLDER).expect("a folder").flatten().map(|entry| entry.file_name()).collect();
    assert!(names.iter().all(|name| name == "input" || name == "data"), "{names:?}");
    let _ = fs::remove_dir_all(&*FOLDER);
    summary
}
