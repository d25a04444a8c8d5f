//! Any bytes as a recording that is shown on a page. The page is the same for all recordings but for its
//! data, which are one JSON object: no text of a recording, a title or a note gets out of them.

#![no_main]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::sync::OnceLock;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use clr_events::is_control;
use flate2::read::GzDecoder;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_export::page::{Page, PageReports};
use nettrace_export::{
    Metric, NameForm, Options, Pattern, Profile, ProfileBuilder, ProfileSum, StackFilter, WriteOptions,
};
use serde_json::{Map, Value};

const WEIGHTS: [Metric; 4] = [Metric::Wall, Metric::Alloc, Metric::Exception, Metric::Wait];

/// The beginning and the end of the data in a page.
const DATA: &str = "<script type=\"application/gzip\" id=\"data\">";
const DATA_END: &str = "</script>";

/// The room for data beside what a page always has: small, so that bins get wider and stacks are left out.
const BUDGET: u64 = 200_000;

fuzz_target!(|input: &[u8]| {
    let Some((&[choice, flags, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    // A line of the recording's own bytes: a name, markup, or anything.
    let text = String::from_utf8_lossy(bytes.rsplit(|byte| *byte == b'\n').next().unwrap_or_default());
    let filter = StackFilter::default()
        .with_roots(if flags & 1 == 0 { Vec::new() } else { vec![Pattern::new(&text)] })
        .with_hidden(if flags & 2 == 0 { Vec::new() } else { vec![Pattern::new("^System*(")] })
        .with_fold_recursion(flags & 4 != 0);
    let options = Options::new(WEIGHTS[usize::from(choice) % WEIGHTS.len()])
        .with_tracks(flags & 8 == 0)
        .with_idle_stacks(flags & 16 != 0)
        .with_names(if flags & 32 == 0 { NameForm::Full } else { NameForm::CSharp })
        .with_filter(filter);
    let read = dipc_fuzz::bounded(bytes.len(), || read(bytes, options));
    let Some((profile, reports)) = read else { return };
    // The title and the note are no part of what was recorded.
    own_parts();
    let page = dipc_fuzz::bounded(2 * bytes.len(), || page(&profile, reports, &text));
    // Fails where what cannot be left out takes more than the budget.
    if let Some(page) = page {
        check(&page, &text);
    }
});

/// Returns the profile of a recording, and what else happened.
fn read(bytes: &[u8], options: Options) -> Option<(Profile, PageReports)> {
    let mut events = SliceReader::new(bytes).ok()?.in_time_order();
    let (mut builder, mut reports) = (ProfileBuilder::new(options), PageReports::default());
    let _ = events.for_each(|event| {
        builder.add(&event);
        reports.add(&event);
    });
    Some((builder.finish(events.events().info()).expect("time order").0, reports))
}

fn page(profile: &Profile, reports: PageReports, text: &str) -> Option<String> {
    let mut out = Vec::new();
    let page = Page::new(profile, WriteOptions::new(text, "e")).with_budget(own_parts().len() + BUDGET);
    let written = page.with_reports(reports).with_notes(vec![text.to_owned()]).write(&mut out);
    written.is_ok().then(|| String::from_utf8(out).expect("a page is text"))
}

/// The parts of a page that do not come from the recording.
struct OwnParts {
    before_data: String,
    behind_data: String,
    /// The names of the data's members.
    members: BTreeSet<String>,
}

impl OwnParts {
    fn len(&self) -> u64 {
        (self.before_data.len() + self.behind_data.len()) as u64
    }
}

/// Returns those of the page of an empty profile.
fn own_parts() -> &'static OwnParts {
    static PARTS: OnceLock<OwnParts> = OnceLock::new();
    PARTS.get_or_init(|| {
        let mut out = Vec::new();
        let profile = ProfileSum::new(Metric::Wall, 1).into_profile();
        let page = Page::new(&profile, WriteOptions::new("", "")).with_reports(PageReports::default());
        page.write(&mut out).expect("a Vec takes all");
        let page = String::from_utf8(out).expect("a page is text");
        let (before, data, behind) = parts(&page);
        let mut members: BTreeSet<String> = object(data).keys().cloned().collect();
        // An empty profile has no beginning.
        members.insert("startUnixMs".to_owned());
        OwnParts { before_data: before.to_owned(), behind_data: behind.to_owned(), members }
    })
}

fn parts(page: &str) -> (&str, &str, &str) {
    let (before, rest) = page.split_once(DATA).expect("a page has data");
    let (data, behind) = rest.split_once(DATA_END).expect("data have an end");
    (before, data, behind)
}

/// Unpacks the data of a page.
fn object(data: &str) -> Map<String, Value> {
    let packed = BASE64_STANDARD.decode(data).expect("base64, which has letters of its own only");
    let mut json = Vec::new();
    GzDecoder::new(&*packed).read_to_end(&mut json).expect("the data are compressed");
    let Ok(Value::Object(object)) = serde_json::from_slice(&json) else { panic!("the data are no object") };
    object
}

/// Checks a page with this title and note.
fn check(page: &str, text: &str) {
    let (before, data, behind) = parts(page);
    let own = own_parts();
    assert!(before == own.before_data && behind == own.behind_data, "what is recorded is in the data alone");
    assert!(page.len() as u64 <= own.len() + BUDGET + 100);
    let object = object(data);
    assert!(object.keys().all(|member| own.members.contains(member)), "{:?}", object.keys());
    check_texts(&object);
    // A text without controls is there as it is.
    if !text.contains(is_control) {
        assert_eq!((object["title"].as_str(), object["notes"][0].as_str()), (Some(text), Some(text)));
    }
    let count = |name: &str| object[name].as_array().map_or(0, Vec::len);
    assert_eq!((count("kinds"), count("folded")), (count("frames"), count("frames")));
    assert_eq!(count("notes"), 1);
}

/// Checks that no text steers a display.
fn check_texts(object: &Map<String, Value>) {
    let mut values: Vec<&Value> = object.values().collect();
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => assert!(!text.contains(is_control), "{text:?}"),
            Value::Array(elements) => values.extend(elements),
            Value::Object(members) => values.extend(members.values()),
            _ => {}
        }
    }
}
