//! Names that would be markup or scripts, or would turn the text around them.

use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, payload, stack_bytes};

use crate::browser::Browser;
use crate::dipc;

const NAME: &str = "</script><script>globalThis.wasRun=1</script><img src=x onerror=wasRun=1>\u{202e}\u{1b}[2J\u{2028}&quot;\"'`${wasRun=1}";

/// A thread with two samples in a method of that name, which throws an exception of that type and with that
/// message.
fn recording() -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader { frequency: 1_000_000_000, ..TraceHeader::default() });
    let kind = |id, provider: &str, event_id, version| Metadata {
        id,
        provider: provider.into(),
        event_id,
        version,
        ..Metadata::default()
    };
    trace.metadata_block(&[
        kind(1, "Microsoft-Windows-DotNETRuntime", 143, 1),
        kind(2, "Microsoft-DotNETCore-SampleProfiler", 0, 0),
        kind(3, "Microsoft-Windows-DotNETRuntime", 80, 1),
    ]);
    trace.stack_block(1, &[stack_bytes(&[0x1008], 8)]);
    let method = [
        Value::UInt64(1),
        Value::UInt64(1),
        Value::UInt64(0x1000),
        Value::UInt32(16),
        Value::UInt32(0x0600_0001),
        Value::UInt32(1),
        Value::string16(NAME),
        Value::string16(NAME),
        Value::string16(""),
        Value::UInt16(0),
    ];
    let thrown = [
        Value::string16(NAME),
        Value::string16(NAME),
        Value::UInt64(0),
        Value::UInt32(0),
        Value::UInt16(0),
        Value::UInt16(0),
    ];
    let mut block = EventBlock::v4();
    for (number, metadata_id, values) in
        [(1, 1, &method[..]), (2, 2, &[Value::UInt32(2)]), (3, 3, &thrown), (4, 2, &[Value::UInt32(2)])]
    {
        block.event(&Event {
            metadata_id,
            sequence: number,
            thread: 7,
            capture_thread: 7,
            stack_id: 1,
            timestamp: u64::from(number) * 5_000_000,
            payload: payload(values),
            ..Event::default()
        });
    }
    trace.event_block(&block);
    trace.finish()
}

#[test]
fn no_name_is_markup_or_turns_text_around() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("app.nettrace"), recording()).expect("a file");
    dipc(folder.path(), &["convert", "app.nettrace", "-f", "html"]);
    let page = folder.path().join("app.html");
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(!text.contains("wasRun") && !text.contains('\u{202e}'));
    let seen = browser.drive(
        &page,
        "const shown = [];
         for (const tab of ['flame', 'callers', 'top', 'threads', 'exceptions']) { at('tab-' + tab).click(); shown.push(document.body.innerText); }
         at('tab-flame').click();
         const parsed = new DOMParser().parseFromString(page.flame.svg(), 'image/svg+xml');
         return { wasRun: globalThis.wasRun ?? null, images: document.images.length, shown: shown.join(' '), scripts: parsed.querySelectorAll('script, img, parsererror').length };",
    );
    assert_eq!((&seen["wasRun"], &seen["images"], &seen["scripts"]), (&().into(), &0.into(), &0.into()));
    let shown = seen["shown"].as_str().unwrap();
    assert!(shown.contains("<img src=x") && shown.contains(r"\u202e\u001b[2J\u2028"), "{shown}");
    assert!(!shown.contains(|c| clr_events::is_control(c) && !c.is_whitespace()), "{shown}");
}
