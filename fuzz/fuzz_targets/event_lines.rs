//! Any bytes as a recording, event by event as JSON and as columns: each object has what the event says, and
//! no text steers a terminal or begins a line.

#![no_main]

use std::cell::RefCell;

use clr_events::is_control;
use clr_events::json::{push_fields, push_fields_member, push_str};
use libfuzzer_sys::fuzz_target;
use nettrace::{Event, SliceReader};
use nettrace_export::events::{JsonLines, LineContent, StackSymbols, TableLines};
use serde_json::Value;

fuzz_target!(|input: &[u8]| {
    let Some((&[flags, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    // The lines are bounded. What is parsed again takes many times their size.
    let longest = dipc_fuzz::bounded(bytes.len(), || check(bytes, flags, &|_, _| ()));
    if longest.is_some_and(|longest| longest < 1 << 20) {
        check(bytes, flags, &check_object);
    }
});

/// Checks all lines, and returns the length of the longest object; `None` if the bytes are no recording.
fn check(bytes: &[u8], flags: u8, check_json: &dyn Fn(&Event<'_>, &[u8])) -> Option<usize> {
    let mut events = SliceReader::new(bytes).ok()?;
    let (mut of_json, mut of_table) = (ProviderNames, ProviderNames);
    let mut json = JsonLines::new(content(flags, &mut of_json));
    let mut table = TableLines::new(content(flags, &mut of_table));
    let line = RefCell::new(Vec::new());
    let mut longest = 0;
    let _ = events.for_each(|event| {
        let mut line = line.borrow_mut();
        line.clear();
        json.push(&mut line, &event);
        longest = longest.max(line.len());
        let text = std::str::from_utf8(&line).expect("a line is text");
        assert!(!text.contains(is_control), "{text:?}");
        check_json(&event, &line);
        line.clear();
        table.push(&mut line, &event);
        let text = std::str::from_utf8(&line).expect("a line is text");
        let mut lines = text.split('\n');
        assert!(lines.all(|line| !line.contains(is_control)), "{text:?}");
        let frames = if flags & 3 == 0 { 0 } else { event.stack().len() };
        assert_eq!(text.split('\n').count(), 1 + frames.min(MAX_FRAMES + 1));
    });
    Some(longest)
}

/// Frames of a stack that are shown.
const MAX_FRAMES: usize = 8192;

fn content(flags: u8, names: &mut ProviderNames) -> LineContent<'_> {
    let mut content = LineContent::default();
    content.stacks = flags & 1 != 0;
    content.payload = flags & 4 != 0;
    content.symbols = if flags & 2 == 0 { None } else { Some(names) };
    content
}

/// Names of addresses that the recording chooses: that of the event's provider.
struct ProviderNames;

impl StackSymbols for ProviderNames {
    fn push_text(&mut self, out: &mut Vec<u8>, event: &Event<'_>, _: u64) {
        out.extend_from_slice(name(event).as_bytes());
    }

    fn push_json(&mut self, out: &mut Vec<u8>, event: &Event<'_>, _: u64) {
        push_str(out, name(event));
    }
}

/// A name of a bounded length, as whoever gives names has to keep them.
fn name<'e>(event: &Event<'e>) -> &'e str {
    let provider = event.provider();
    let end = provider.char_indices().nth(20).map_or(provider.len(), |(end, _)| end);
    &provider[..end]
}

/// Checks that an object reads back as the event.
fn check_object(event: &Event<'_>, json: &[u8]) {
    let object: Value = serde_json::from_slice(json).expect("a line is an object");
    assert_eq!(object["provider"].as_str(), Some(event.provider()));
    assert_eq!(object["id"].as_u64(), Some(event.id().into()));
    assert_eq!(object["tid"].as_u64(), Some(event.thread_id().0));
    assert_eq!(object["time_ns"].as_i64(), Some(event.relative_time().as_nanos()));
    assert_eq!(object["payload_len"].as_u64(), Some(event.payload().len() as u64));
    assert_eq!(object["fields"], fields_value(event));
    let mut fields = Vec::new();
    let is_complete = push_fields(&mut fields, event);
    assert!(object["payload"].is_string() || is_complete, "what has no name is in the payload");
    if let Some(stack) = object["stack"].as_array() {
        assert_eq!(stack.len(), event.stack().len().min(MAX_FRAMES));
    }
}

/// Returns the fields of an event; null if they are not known.
fn fields_value(event: &Event<'_>) -> Value {
    let mut out = b"{\"name\":null".to_vec();
    push_fields_member(&mut out, event);
    out.push(b'}');
    let object: Value = serde_json::from_slice(&out).expect("members are valid JSON");
    object.get("fields").cloned().unwrap_or_default()
}
