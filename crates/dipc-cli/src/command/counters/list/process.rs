//! The counters that a process reports to have.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clr_counters::{
    EventCounter, EventCounterValue, Instrument, MeterEvent, MeterEventKind, MeterNotice, ProviderRequest,
    Selection, SessionSettings,
};
use dipc_collect::counters::{self, CounterEvents, CounterReader, CountersRequest};
use dipc_collect::stream;
use nettrace::{Event, Utf16};
use serde::Serialize;

use super::{ListArgs, ListedProvider};
use crate::args::format::Format;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::record::notes::Messages;
use crate::record::recorder::Limits;
use crate::record::session::resume;
use crate::record::source::{Child, PortWatcher, Source};
use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns, heading};
use crate::render::{messages, output, units};

/// The interval of EventCounters, which become known only when they report.
const INTERVAL: Duration = Duration::from_secs(1);
/// The time to wait for EventCounters: one interval, and the delay of its values.
const LISTENING: Duration = Duration::from_millis(1500);
/// The time to wait for the list of instruments: runtimes before 6.0 do not send one.
const ENUMERATION: Duration = Duration::from_secs(4);
/// Maximum number of counters to keep; further ones are only counted.
const MAX_COUNTERS: usize = 100_000;
/// Maximum number of characters of a string to keep.
const MAX_TEXT_LENGTH: usize = 1000;

pub(super) fn run(args: &ListArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let mut source = Source::open(&args.source.selector(false)?, args.timeout, &interrupts)?;
    let mut child = source.child.take();
    // Kept to the end: no runtime may wait forever, and commands for this one go through the port.
    let _watcher = source.port.take().map(PortWatcher::resuming);
    let result = listen(args, &source, &interrupts);
    // The program was started only to be queried.
    child.iter_mut().for_each(Child::kill);
    let list = result?;
    match args.format {
        Format::Table => output::print(list.table())?,
        Format::Json => output::print_json(&list.listed())?,
    }
    list.report()
}

/// Queries the process.
fn listen(args: &ListArgs, source: &Source, interrupts: &Interrupts) -> Result<CounterList, Failure> {
    let everything = Selection::everything();
    let selection = match &args.counters {
        Some(selection) => everything.and(selection.clone()),
        None => everything,
    };
    let settings = SessionSettings::default().with_interval(INTERVAL).with_list_instruments(true);
    let request = CountersRequest::new(settings).without_renewal();
    let limits = Limits::new(&source.target, source.pid, args.timeout, interrupts);
    let mut listener = Listener {
        source,
        selection,
        limits: &limits,
        is_first: true,
        list: CounterList::default(),
        begun: Instant::now(),
        is_complete: false,
    };
    let is_over = || interrupts.count() > 0;
    let collected = counters::collect(&source.target, request, &mut listener, is_over, &mut Messages)?;
    limits.end(collected.end).report("its counters so far are listed", "listed")?;
    Ok(listener.list)
}

/// The counters that a session reports.
struct Listener<'s> {
    source: &'s Source,
    selection: Selection,
    limits: &'s Limits,
    /// True until a session has begun.
    is_first: bool,
    list: CounterList,
    begun: Instant,
    /// True if all instruments were listed.
    is_complete: bool,
}

impl Listener<'_> {
    fn add(&mut self, event: &Event<'_>) {
        if let Some(counter) = EventCounter::of(event) {
            self.list.add_counter(event, &counter);
            return;
        }
        match MeterEvent::of(event).map(|event| event.kind) {
            Some(MeterEventKind::InstrumentPublished(instrument)) => {
                self.list.add_instrument(&instrument);
            }
            Some(MeterEventKind::EnumerationComplete) => self.is_complete = true,
            Some(MeterEventKind::Notice(MeterNotice::OtherSession { running })) => {
                self.list.holder = Some(text(running));
                self.is_complete = true;
            }
            _ => {}
        }
    }
}

impl CounterReader for Listener<'_> {
    type Error = Failure;

    fn requests(&self, settings: &SessionSettings) -> Vec<ProviderRequest> {
        self.selection.requests(settings)
    }

    fn begin(&mut self, _: &SessionSettings) -> stream::Limits {
        if std::mem::take(&mut self.is_first) {
            resume(&self.source.target);
        }
        (self.list, self.begun, self.is_complete) = (CounterList::default(), Instant::now(), false);
        self.limits.stream.clone()
    }

    fn read(&mut self, events: &mut CounterEvents<'_>, _: bool) -> Result<(), Failure> {
        while let Some(event) = events.next() {
            self.add(&event);
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        let elapsed = self.begun.elapsed();
        let is_heard = elapsed >= LISTENING && self.is_complete;
        is_heard || elapsed >= ENUMERATION
    }
}

/// The providers of a process with their counters.
#[derive(Debug, Default)]
struct CounterList {
    /// Keyed by kind (EventSources first), name and version.
    providers: BTreeMap<(bool, String, String), BTreeMap<CounterKey, ListedCounter>>,
    count: usize,
    left_out: u64,
    /// The session that holds the Meters of the process.
    holder: Option<String>,
}

/// The name of a counter, and the tags of its Meter and of itself: instruments with the same name may differ
/// in tags.
type CounterKey = (String, String, String);

/// A counter as it is printed.
#[derive(Debug, Serialize)]
struct ListedCounter {
    name: String,
    unit: String,
    /// The class of the instrument; for EventCounters, whether they are a mean or a sum.
    kind: String,
    display_name: String,
    description: String,
    instrument_tags: String,
    meter_tags: String,
}

impl CounterList {
    fn add_counter(&mut self, event: &Event<'_>, counter: &EventCounter<'_>) {
        let kind = match counter.value {
            EventCounterValue::Mean { .. } => "mean",
            EventCounterValue::Sum { .. } => "sum",
        };
        let listed = ListedCounter {
            name: text(counter.name),
            unit: text(counter.display_units),
            kind: kind.into(),
            display_name: text(counter.display_name),
            description: String::new(),
            instrument_tags: String::new(),
            meter_tags: String::new(),
        };
        self.add((false, event.provider().chars().take(MAX_TEXT_LENGTH).collect(), String::new()), listed);
    }

    fn add_instrument(&mut self, instrument: &Instrument<'_>) {
        let kind = text(instrument.instrument_type);
        let listed = ListedCounter {
            name: text(instrument.name),
            unit: text(instrument.unit),
            kind: kind.split_once('`').map_or(&*kind, |(class, _)| class).to_owned(),
            display_name: String::new(),
            description: text(instrument.description),
            instrument_tags: text(instrument.instrument_tags),
            meter_tags: text(instrument.meter_tags),
        };
        self.add((true, text(instrument.meter), text(instrument.meter_version)), listed);
    }

    fn add(&mut self, provider: (bool, String, String), counter: ListedCounter) {
        let key = (counter.name.clone(), counter.meter_tags.clone(), counter.instrument_tags.clone());
        let is_known = self.providers.get(&provider).is_some_and(|counters| counters.contains_key(&key));
        if is_known {
            return;
        }
        if self.count >= MAX_COUNTERS {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.providers.entry(provider).or_default().insert(key, counter);
    }

    fn table(&self) -> String {
        use Align::Left;
        let mut text = String::new();
        for ((is_meter, provider, version), counters) in &self.providers {
            let kind = if *is_meter { "Meter" } else { "EventCounters" };
            let version = if version.is_empty() { String::new() } else { format!(", version {version}") };
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&heading(&escape_controls(&format!("{provider} ({kind}{version})"))));
            let mut columns =
                Columns::new([("COUNTER", Left), ("UNIT", Left), ("KIND", Left), ("MEANING", Left)]);
            for counter in counters.values() {
                let meaning =
                    if *is_meter { counter.description.clone() } else { counter.display_name.clone() };
                let name = [&counter.name, &counter.meter_tags, &counter.instrument_tags]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .map(String::as_str)
                    .collect::<Vec<_>>()
                    .join(" ");
                columns.row([name, counter.unit.clone(), counter.kind.clone(), meaning]);
            }
            text.push_str(&columns.fitted(&["MEANING", "KIND"]));
        }
        text
    }

    fn listed(&self) -> Vec<ListedProvider<'_, &ListedCounter>> {
        let providers = self.providers.iter();
        let listed = providers.map(|((is_meter, provider, version), counters)| ListedProvider {
            provider,
            is_meter: *is_meter,
            since: None,
            version: Some(version),
            counters: counters.values().collect(),
        });
        listed.collect()
    }

    /// Reports omissions from the list, and returns the exit code.
    fn report(&self) -> Outcome {
        if self.left_out > 0 {
            messages::warning(format_args!("{} counters are left out", units::count(self.left_out)));
        }
        if let Some(holder) = &self.holder {
            messages::warning(format_args!(
                "the Meters of the process are held by another session, {holder}: they are not listed"
            ));
        }
        if self.providers.is_empty() {
            return Err(Failure::new(Exit::Failed, "counters: the process listed none"));
        }
        Ok(if self.holder.is_some() { Exit::Refused } else { Exit::Done })
    }
}

/// Returns the text, truncated to [`MAX_TEXT_LENGTH`]: longer strings are not meant for people.
fn text(text: Utf16<'_>) -> String {
    text.chars().take(MAX_TEXT_LENGTH).collect()
}
