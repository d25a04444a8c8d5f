//! Payloads that are changed before they become rows.

use nettrace::{Event, Value};
use nettrace_tables::{Dataset, Options, PayloadRewriter, Rewritten};
use parquet::record::Field;

use crate::recording;
use crate::tables::{Written, field, inputs};

/// Replaces all letters of exception strings and of the process's command line with `x`, and cannot read
/// other events of the runtime.
struct Letters;

impl PayloadRewriter for Letters {
    fn rewrite(&mut self, event: &Event<'_>, payload: &mut Vec<u8>) -> Rewritten {
        let metadata = event.metadata();
        let is_process = metadata.name() == "ProcessInfo";
        if metadata.provider() == "Microsoft-Windows-DotNETRuntime" && metadata.event_id() != 80 {
            return Rewritten::Unreadable;
        }
        if !is_process && metadata.event_id() != 80 {
            return Rewritten::Kept;
        }
        payload.extend_from_slice(event.payload());
        for field in clr_events::event_fields(event).unwrap() {
            if let Ok((_, Value::String(text))) = field {
                let start = text.as_bytes().as_ptr().addr() - event.payload().as_ptr().addr();
                for unit in payload[start..start + text.as_bytes().len()].chunks_exact_mut(2) {
                    unit.copy_from_slice(b"x\0");
                }
            }
        }
        Rewritten::Replaced
    }
}

fn export(name: &str) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let bytes = recording(name);
    let dataset = Dataset::new(folder.path().join("data"), Options::default());
    let plan = dataset.plan(inputs(folder.path(), &[(name, &bytes)])).unwrap();
    dataset.export_rewritten(&plan.shards[0], Some(&mut Letters)).unwrap();
    Written { folder, plan }
}

#[test]
fn rows_match_the_rewritten_recording() {
    let written = export("net10-exceptions.nettrace");
    let is_blank = |field: &Field| {
        let Field::Str(text) = field else { panic!("{field}") };
        text.chars().all(|letter| letter == 'x')
    };
    let (mut thrown, mut unreadable) = (0, 0);
    for row in written.rows("events") {
        assert_eq!(field(&row, "payload"), Field::Null);
        if field(&row, "event_id") == Field::Int(80) {
            assert!(is_blank(&field(&row, "exception_type")) && is_blank(&field(&row, "exception_message")));
            assert!(field(&row, "stack_id") != Field::Null);
            thrown += 1;
        } else if field(&row, "provider") == Field::Str("Microsoft-Windows-DotNETRuntime".to_owned()) {
            assert_eq!(field(&row, "fields"), Field::Null);
            unreadable += 1;
        }
    }
    assert!(thrown > 0 && unreadable > 0, "{thrown} {unreadable}");
    assert!(is_blank(&written.column("recordings", "command_line")[0]));
}
