//! Reports built from the kinds of events that they need, compared with reports built from all events.

use std::collections::BTreeMap;

use clr_activity::Spans;
use nettrace::{Event, Interest, Metadata, Reader, RelativeTime};
use nettrace_export::page::{self, Page, PageContents, PageFinding, PageFindings, PageOptions};
use nettrace_export::report::{
    self, Allocations, Collections, Contention, Exceptions, Jit, Overview, Requests, RequestsOptions,
    Startup, StreamFacts, ThreadPool,
};
use nettrace_export::{
    Format, Metric, NameForm, Options, ProfileBuilder, ProfileReader, Selection, WriteOptions,
};

use crate::everything::recordings;
use crate::timelines::written;
use crate::{bytes_of, profile_of};

/// A report, made of events one by one.
struct Report<T> {
    name: &'static str,
    new: fn() -> T,
    interest: fn(&Metadata) -> Interest,
    add: fn(&mut T, &Event<'_>),
    /// Returns it as JSON.
    finish: fn(T) -> String,
}

impl<T> Report<T> {
    /// Builds the report from all events, and from the needed ones, and returns the number of the latter.
    fn check(&self, recording: &[u8], file: &str, end: impl Fn(&mut T, RelativeTime)) -> u64 {
        let reader = || Reader::new(recording).expect("a recording").with_lookahead();
        let mut of_all = (self.new)();
        let all = report::read(reader(), |event| (self.add)(&mut of_all, event)).expect("bytes in memory");
        let (mut of_kinds, mut count) = ((self.new)(), 0);
        let kinds = report::read_by(reader(), self.interest, |event| {
            count += 1;
            (self.add)(&mut of_kinds, event);
        });
        let kinds = kinds.expect("bytes in memory");
        if let Some(time) = kinds.last_time() {
            end(&mut of_kinds, time);
        }
        assert_eq!((self.finish)(of_kinds), (self.finish)(of_all), "{file}: {}", self.name);
        assert_eq!(kinds.loss().total(), all.loss().total(), "{file}");
        assert_eq!(
            (kinds.damage(), kinds.events().truncated_at()),
            (all.damage(), all.truncated_at()),
            "{file}"
        );
        count
    }
}

macro_rules! report {
    ($report:ident) => {
        Report::<$report> {
            name: stringify!($report),
            new: $report::default,
            interest: |kind| Interest::all_if($report::needs(kind)),
            add: $report::add,
            finish: |report| serde_json::to_string(&report.finish()).expect("JSON"),
        }
    };
}

/// The report of requests, with stacks of the slowest.
fn requests() -> Report<Requests> {
    fn options() -> RequestsOptions {
        RequestsOptions::default().with_slowest(5)
    }
    Report {
        name: "Requests",
        new: || Requests::new(options()),
        interest: |kind| Requests::interest(&options(), kind),
        add: Requests::add,
        finish: |report| serde_json::to_string(&report.finish()).expect("JSON"),
    }
}

#[test]
fn reports_of_the_kinds_that_they_need_are_the_same() {
    let mut counts = [0; 8];
    for path in recordings() {
        let bytes = bytes_of(&path);
        let file = path.display().to_string();
        // Whole, and cut in the midst of a block.
        for recording in [&bytes[..], &bytes[..bytes.len() / 2]] {
            let of_recording = [
                report!(Allocations).check(recording, &file, |_, _| {}),
                report!(Collections).check(recording, &file, Collections::extend_to),
                report!(Contention).check(recording, &file, |_, _| {}),
                report!(Exceptions).check(recording, &file, |_, _| {}),
                report!(Jit).check(recording, &file, |_, _| {}),
                report!(Startup).check(recording, &file, |_, _| {}),
                report!(ThreadPool).check(recording, &file, |_, _| {}),
                requests().check(recording, &file, Requests::extend_to),
            ];
            counts.iter_mut().zip(of_recording).for_each(|(sum, count)| *sum += count);
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn profiles_of_the_kinds_that_they_need_are_the_same() {
    for path in recordings() {
        let bytes = bytes_of(&path);
        for metric in [Metric::Wall, Metric::Alloc, Metric::Contention, Metric::Wait, Metric::Gc] {
            let options = Options::new(metric).with_idle(false).with_names(NameForm::CSharp);
            let recording = Reader::new(&*bytes).expect("a recording");
            let read = ProfileReader::new(options.clone())
                .with_interest(|_| Interest::None)
                .read(recording, |_| {})
                .expect("bytes in memory");
            let all = profile_of(&bytes, options);
            assert_eq!(read.profile.duration, all.duration, "{} {metric:?}", path.display());
            let speedscope = |profile| written(profile, Format::Speedscope);
            assert_eq!(speedscope(&read.profile), speedscope(&all), "{} {metric:?}", path.display());
        }
    }
}

#[test]
fn pages_of_the_kinds_that_they_need_are_the_same() {
    let mut without_spans = 0;
    for path in recordings() {
        let bytes = bytes_of(&path);
        let recording = Reader::new(&*bytes).expect("a recording");
        let mut kinds = recording;
        kinds.for_each(|_| {}).expect("bytes in memory");
        let has_spans = kinds.metadata().iter().any(Spans::is_start_or_stop);
        without_spans += usize::from(!has_spans);
        let page = |selection: Selection| {
            let options = page::profile_options(None);
            let recording = Reader::new(&*bytes).expect("a recording");
            let reader = ProfileReader::new(options);
            let options = PageOptions::default().with_selection(selection).with_spans(has_spans);
            let contents = PageContents::read(reader, recording, &options, |_| {}, |_| Vec::new());
            let PageContents { read, reports, .. } = contents.expect("bytes in memory");
            let mut out = Vec::new();
            let page =
                Page::new(&read.profile, WriteOptions::new("recording", "tests")).with_reports(reports);
            page.write(&mut out).expect("memory");
            out
        };
        // All of the time, but chosen: events of all kinds are read.
        let chosen = Selection::of_time(Some(RelativeTime::MIN), None);
        assert!(page(Selection::default()) == page(chosen), "{}", path.display());
    }
    assert!(without_spans > 3, "{without_spans} recordings have no spans");
}

/// Pages of live events, as a monitor makes them, have all events and no reader of a file.
#[test]
fn findings_of_live_events_are_those_of_a_file() {
    let mut found = 0;
    for path in recordings() {
        let bytes = bytes_of(&path);
        let recording = || Reader::new(&*bytes).expect("a recording");
        let options = page::profile_options(None).with_names(NameForm::CSharp).with_tracks(true);
        let reader = ProfileReader::new(options.clone());
        let judge = |overview: &Overview| overview.notes().iter().map(PageFinding::from).collect::<Vec<_>>();
        let page = PageContents::read(reader, recording(), &PageOptions::default(), |_| {}, judge);
        let of_file = page.expect("bytes in memory").findings;
        let (mut findings, mut profile) =
            (PageFindings::new(recording().info(), &options), ProfileBuilder::new(options));
        let others = findings.others().iter();
        let mut others: Vec<_> =
            others.map(|options| ProfileBuilder::new(options.clone()).without_code()).collect();
        let (mut counts, mut last) = (BTreeMap::new(), RelativeTime::START);
        let mut events = recording().in_time_order();
        let each = |event: Event<'_>| {
            profile.add(&event);
            for other in &mut others {
                other.add(&event);
            }
            findings.add(&event);
            *counts.entry(event.metadata_index()).or_default() += 1_u64;
            last = event.relative_time();
        };
        events.for_each(each).expect("bytes in memory");
        let events = events.into_events();
        let others = others.into_iter().map(|other| other.finish_with_code_of(events.info(), &mut profile));
        let others = others.collect::<Result<_, _>>().expect("events in time order");
        let (profile, omissions) = profile.finish(events.info()).expect("events in time order");
        let stream = StreamFacts::of(&events, &counts.into_iter().collect::<Vec<_>>(), last);
        let (_, of_events) = findings.finish((profile, &omissions), others, stream, judge);
        assert_eq!(of_events, of_file, "{}", path.display());
        found += of_file.len();
    }
    assert!(found > 20, "{found}");
}
