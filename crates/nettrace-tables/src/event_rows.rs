//! Rows from events: each event is one row of one table, or is counted as left out.

use std::io::Read;
use std::ops::ControlFlow;

use clr_events::enums::ThreadSampleType;
use clr_events::json::push_fields;
use clr_events::{
    ClrEvent, Interval, Intervals, KernelSample, KernelSampleKind, Provider, event_name, event_opcode,
    is_named_by_kind,
};
use hashbrown::HashMap;
use nettrace::{Event, EventBuffer, Events, MetadataMap, Reader, RelativeTime, Source, TraceInfo, Value};
use uuid::Uuid;

use crate::code_ids::{CodeIds, CodeTables};
use crate::error::Error;
use crate::id::Id;
use crate::input::Input;
use crate::promoted::{PromotedColumn, PromotedType};
use crate::promoted_values;
use crate::rewrite::{PayloadRewriter, Rewritten};
use crate::schema::{EVENTS, SCHEMA_VERSION, damages, events, losses, recordings, samples};
use crate::survey::{ProcessFacts, Survey, start_ns, time_ns};
use crate::table_writer::{Row, TableWriter};
use crate::typed::TypedKind;

/// Settings of an export.
///
/// ```
/// use nettrace_tables::Options;
///
/// // Without texts that may be secret, and with the lists of methods.
/// let options = Options::default().with_drop_fields(true).with_rundown(true);
/// assert!(options.drop_fields && options.rundown);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// True to write rows for the rundown events, too, by which the runtime lists its methods at the end
    /// of a recording.
    pub rundown: bool,
    /// True to drop values that may hold secrets: fields, payloads, messages of exceptions, tags of counters,
    /// command lines, promoted strings.
    pub drop_fields: bool,
}

impl Options {
    /// Sets [`rundown`](Self::rundown).
    #[must_use]
    pub fn with_rundown(self, rundown: bool) -> Self {
        Self { rundown, ..self }
    }

    /// Sets [`drop_fields`](Self::drop_fields).
    #[must_use]
    pub fn with_drop_fields(self, drop_fields: bool) -> Self {
        Self { drop_fields, ..self }
    }
}

/// The numbers of an exported recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Rows of `events`.
    pub events: u64,
    /// Rows of `samples`.
    pub samples: u64,
    /// Events without a row.
    pub left_out: u64,
    /// Events that the runtime lost.
    pub lost: u64,
    /// Damaged parts.
    pub damages: u64,
    /// True if it is truncated.
    pub is_truncated: bool,
    /// Number of methods without a name, because there are more than the limit.
    pub unnamed_methods: u64,
    /// The time of the last event, in nanoseconds since 1970.
    pub end_ns: i64,
}

/// The tables of a shard, except the tables of code.
#[derive(Debug)]
pub(crate) struct FactTables<'t> {
    pub(crate) events: &'t mut TableWriter,
    pub(crate) samples: &'t mut TableWriter,
    pub(crate) losses: &'t mut TableWriter,
    pub(crate) damages: &'t mut TableWriter,
    pub(crate) recordings: &'t mut TableWriter,
}

/// The numbers of event names in a shard, by which rows are sorted.
pub(crate) type EventKeys = HashMap<(String, String), u64>;

/// Maximum number of names to distinguish in the order of rows.
const MAX_KEYS: usize = 1 << 14;

/// The rows of a recording.
pub(crate) struct RecordingRows<'s, 't, 'm, 'r> {
    tables: FactTables<'t>,
    code: CodeTables<'t>,
    ids: CodeIds<'m>,
    keys: &'s mut EventKeys,
    kinds: MetadataMap<Kind>,
    intervals: Intervals<Mark>,
    input: &'s Input,
    options: Options,
    /// The recording's start, in nanoseconds since 1970.
    start_ns: i64,
    info: Option<TraceInfo>,
    counts: Counts,
    text: String,
    json: Vec<u8>,
    promoted: &'s [PromotedColumn],
    rewriter: Option<&'r mut (dyn PayloadRewriter + 'static)>,
    payload: Vec<u8>,
    rewritten: EventBuffer,
    /// The facts of the process from its rewritten event.
    process: ProcessFacts,
}

/// The treatment of a kind of event.
#[derive(Debug, Clone)]
struct Kind {
    route: Route,
    /// The name; `None` if each event has its own.
    name: Option<String>,
    key: u64,
    /// The indexes of the promoted columns that its events have.
    promoted: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    LeftOut,
    ThreadSample,
    ProcessorSample,
    /// A thread that returns to a processor.
    Switch,
    Event(Option<TypedKind>),
}

/// A sample of a thread, of a duration that is not known yet.
#[derive(Debug, Clone, Copy)]
struct Mark {
    start: RelativeTime,
    kind: &'static str,
    activity: Option<Uuid>,
    stack: Option<Id>,
}

impl<'s, 't, 'm, 'r> RecordingRows<'s, 't, 'm, 'r> {
    pub(crate) fn new(
        input: &'s Input,
        options: Options,
        tables: FactTables<'t>,
        code: CodeTables<'t>,
        ids: CodeIds<'m>,
        keys: &'s mut EventKeys,
    ) -> Self {
        Self {
            tables,
            code,
            ids,
            keys,
            kinds: MetadataMap::new(),
            intervals: Intervals::default(),
            input,
            options,
            start_ns: 0,
            info: None,
            counts: Counts::default(),
            text: String::new(),
            json: Vec::new(),
            promoted: &[],
            rewriter: None,
            payload: Vec::new(),
            rewritten: EventBuffer::default(),
            process: ProcessFacts::default(),
        }
    }

    /// Adds columns after the columns of `events`.
    pub(crate) fn with_promoted(self, promoted: &'s [PromotedColumn]) -> Self {
        Self { promoted, ..self }
    }

    /// Sets a rewriter for payloads.
    pub(crate) fn with_rewriter(self, rewriter: Option<&'r mut (dyn PayloadRewriter + 'static)>) -> Self {
        Self { rewriter, ..self }
    }

    /// Reads the recording to its end. `about` is the result of its first reading.
    pub(crate) fn read<R: Read>(
        mut self,
        mut reader: Reader<R>,
        about: &RecordingFacts,
    ) -> Result<Counts, Error> {
        self.start_ns = start_ns(reader.info());
        self.counts.end_ns = self.start_ns;
        self.info = reader.info().cloned();
        let flow = reader.try_for_each(|event| match self.add(&event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        });
        let flow = flow.map_err(|error| Error::Recording { path: self.input.path.clone(), error })?;
        if let ControlFlow::Break(error) = flow {
            return Err(error);
        }
        self.finish(&reader, about)
    }

    #[inline]
    fn add(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let index = event.metadata_index();
        if self.kinds.get(index).is_none() {
            self.add_kind(event);
        }
        let now = time_ns(self.start_ns, event.relative_time());
        self.counts.end_ns = self.counts.end_ns.max(now);
        match self.kinds.get(index).map(|kind| kind.route) {
            Some(Route::LeftOut) => {
                self.counts.left_out += 1;
                Ok(())
            }
            Some(Route::ThreadSample) => match ClrEvent::of(event) {
                Ok(Some(ClrEvent::ThreadSample(sample))) => self.add_thread_sample(event, sample.kind),
                _ => self.add_event(event, now, None),
            },
            Some(Route::ProcessorSample) => {
                let stack = self.ids.stack(event, &mut self.code)?;
                let ns = match KernelSampleKind::OnCpu.read(event) {
                    KernelSample::OnCpu(ns) => i64::try_from(ns).ok(),
                    KernelSample::OffCpu { .. } => None,
                };
                let mark = Mark {
                    start: event.relative_time(),
                    kind: "processor",
                    activity: event.activity(),
                    stack,
                };
                self.add_sample(event.process_id(), event.thread_id().0, &mark, ns)
            }
            Some(Route::Switch) => {
                let stack = self.ids.stack(event, &mut self.code)?;
                let mut numbers = event.fields().map_while(|field| match field {
                    Ok((_, Value::U64(number))) => Some(number),
                    _ => None,
                });
                let ns = numbers.next().unwrap_or(0);
                let is_preempted = numbers.next().is_some_and(|number| number != 0);
                let start = event.relative_time().as_nanos().saturating_sub_unsigned(ns);
                let mark = Mark {
                    start: RelativeTime::from_nanos(start).max(RelativeTime::START),
                    kind: if is_preempted { "ready" } else { "off_cpu" },
                    activity: event.activity(),
                    stack,
                };
                let ns = i64::try_from(ns).unwrap_or(i64::MAX);
                self.add_sample(event.process_id(), event.thread_id().0, &mark, Some(ns))
            }
            Some(Route::Event(typed)) => self.add_event(event, now, typed),
            None => self.add_event(event, now, None),
        }
    }

    #[inline(never)]
    fn add_kind(&mut self, event: &Event<'_>) {
        let (index, metadata) = (event.metadata_index(), event.metadata());
        let route = match Provider::of(metadata) {
            Some(Provider::Rundown) if !self.options.rundown => Route::LeftOut,
            Some(Provider::SampleProfiler) => Route::ThreadSample,
            _ => match KernelSampleKind::of(metadata) {
                Some(KernelSampleKind::OnCpu) => Route::ProcessorSample,
                Some(KernelSampleKind::OffCpu) => Route::Switch,
                None => Route::Event(TypedKind::of(metadata)),
            },
        };
        let name = event_name(event).to_string();
        let count = self.keys.len() as u64;
        let is_full = self.keys.len() >= MAX_KEYS;
        let key = match self.keys.get(&(metadata.provider().to_owned(), name.clone())) {
            Some(key) => *key,
            None if is_full => count,
            None => *self.keys.entry((metadata.provider().to_owned(), name.clone())).or_insert(count),
        };
        let is_named_by_kind = is_named_by_kind(event);
        let is_of = |column: &PromotedColumn| {
            !is_named_by_kind && column.provider().eq_ignore_ascii_case(metadata.provider())
                || column.is_of(metadata.provider(), &name)
        };
        let promoted = self.promoted.iter().enumerate().filter(|(_, column)| is_of(column));
        let promoted = promoted.map(|(index, _)| index).collect();
        let name = is_named_by_kind.then_some(name);
        self.kinds.insert(index, Kind { route, name, key, promoted });
    }

    #[inline]
    fn add_thread_sample(&mut self, event: &Event<'_>, kind: ThreadSampleType) -> Result<(), Error> {
        let mark = Mark {
            start: event.relative_time(),
            kind: match kind {
                ThreadSampleType::MANAGED => "managed",
                ThreadSampleType::EXTERNAL => "external",
                _ => "error",
            },
            activity: event.activity(),
            stack: self.ids.stack(event, &mut self.code)?,
        };
        match self.intervals.mark(event, mark) {
            Some(ended) => self.add_interval(&ended),
            None => Ok(()),
        }
    }

    fn add_interval(&mut self, ended: &Interval<Mark>) -> Result<(), Error> {
        let end = self.info.as_ref().map_or(RelativeTime::START, |info| info.relative_time(ended.end));
        // A sample before the recording's start counts from the start, as in the reports.
        let start = ended.mark.start.max(RelativeTime::START);
        let ns = end.saturating_duration_since(start).as_nanos();
        self.add_sample(
            ended.process,
            ended.thread.0,
            &ended.mark,
            Some(i64::try_from(ns).unwrap_or(i64::MAX)),
        )
    }

    fn add_sample(
        &mut self,
        process: Option<u64>,
        thread: u64,
        mark: &Mark,
        ns: Option<i64>,
    ) -> Result<(), Error> {
        let now = time_ns(self.start_ns, mark.start);
        // Sorted by time, as the sampler visits all threads in turn: sorted by thread, times take a sixth
        // more, and stacks are not smaller.
        let mut row = self.tables.samples.row(0, now);
        set_common(&mut row, now, self.input, process);
        row.long(samples::TID, thread.cast_signed());
        row.text(samples::KIND, mark.kind);
        if let Some(ns) = ns {
            row.long(samples::NS, ns);
        }
        if let Some(activity) = mark.activity {
            row.text(samples::ACTIVITY, activity.hyphenated().encode_lower(&mut Uuid::encode_buffer()));
        }
        if let Some(stack) = mark.stack {
            row.id(samples::STACK_ID, stack);
        }
        self.counts.samples += 1;
        self.tables.samples.end_row()
    }

    fn add_event(&mut self, event: &Event<'_>, now: i64, typed: Option<TypedKind>) -> Result<(), Error> {
        let stack = self.ids.stack(event, &mut self.code)?;
        let kind = self.kinds.get(event.metadata_index());
        let mut row = self.tables.events.row(kind.map_or(0, |kind| kind.key), now);
        set_common(&mut row, now, self.input, event.process_id());
        row.long(events::TID, event.thread_id().0.cast_signed());
        if let Some(cpu) = event.processor() {
            row.int(events::CPU, cpu.cast_signed());
        }
        row.text(events::PROVIDER, event.provider());
        match kind.and_then(|kind| kind.name.as_deref()) {
            Some(name) => row.text(events::EVENT, name),
            None => row.text(events::EVENT, &event_name(event).to_string()),
        }
        row.int(events::EVENT_ID, event.id().cast_signed());
        row.int(events::EVENT_VERSION, event.version().cast_signed());
        row.int(events::LEVEL, event.level().cast_signed());
        row.long(events::KEYWORDS, event.keywords().cast_signed());
        if let Some(opcode) = event_opcode(event) {
            row.int(events::OPCODE, opcode.into());
        }
        let mut buffer = Uuid::encode_buffer();
        if let Some(activity) = event.activity() {
            row.text(events::ACTIVITY, activity.hyphenated().encode_lower(&mut buffer));
        }
        if let Some(related) = event.related_activity() {
            row.text(events::RELATED, related.hyphenated().encode_lower(&mut buffer));
        }
        if let Some(stack) = stack {
            row.id(events::STACK_ID, stack);
        }
        let mut event = *event;
        let mut is_readable = true;
        if let Some(rewriter) = self.rewriter.as_deref_mut() {
            self.payload.clear();
            match rewriter.rewrite(&event, &mut self.payload) {
                Rewritten::Kept => {}
                Rewritten::Replaced => event = event.with_payload(&self.payload, &mut self.rewritten),
                Rewritten::Unreadable => is_readable = false,
            }
        }
        let event = &event;
        if is_readable && self.rewriter.is_some() && ProcessFacts::are_in(event) {
            self.process.add(event);
        }
        for index in kind.into_iter().flat_map(|kind| &kind.promoted).filter(|_| is_readable) {
            let Some(column) = self.promoted.get(*index) else { continue };
            if self.options.drop_fields && column.kind() == PromotedType::Text {
                continue;
            }
            // Events of a kind may each have a name of their own.
            let has_own_name = kind.is_some_and(|kind| kind.name.is_none());
            if !has_own_name || column.is_of(event.provider(), &event_name(event).to_string()) {
                let place = EVENTS.columns.len().saturating_add(*index);
                promoted_values::set(column, event, &mut row, place, &mut self.json);
            }
        }
        let drop_texts = self.options.drop_fields;
        let is_typed =
            is_readable && typed.is_some_and(|typed| typed.set(event, &mut row, &mut self.text, drop_texts));
        if !is_typed && !self.options.drop_fields && is_readable {
            self.json.clear();
            let is_whole = push_fields(&mut self.json, event);
            match std::str::from_utf8(&self.json) {
                Ok("" | "{}") | Err(_) => {}
                Ok(json) => row.text(events::FIELDS, json),
            }
            // Bytes without a field name cannot be rewritten.
            if !is_whole && self.rewriter.is_none() {
                row.bytes(events::PAYLOAD, event.payload());
            }
        }
        self.counts.events += 1;
        self.tables.events.end_row()
    }

    fn finish<S: Source>(mut self, reader: &Events<S>, about: &RecordingFacts) -> Result<Counts, Error> {
        let mut open: Vec<_> = std::mem::take(&mut self.intervals).into_open().collect();
        open.sort_by_key(|open| (open.process, open.thread, open.start));
        for last in open {
            self.add_sample(last.process, last.thread.0, &last.mark, None)?;
        }
        self.add_losses(reader)?;
        for damage in reader.damage() {
            let mut row = self.tables.damages.row(0, damage.offset.cast_signed());
            row.text(damages::RECORDING, &self.input.recording);
            row.long(damages::OFFSET, damage.offset.cast_signed());
            row.long(damages::SKIPPED, damage.skipped.cast_signed());
            row.text(damages::WHAT, &damage.what);
            self.tables.damages.end_row()?;
        }
        self.counts.lost = reader.loss().total();
        self.counts.damages = reader.damage_count();
        self.counts.is_truncated = reader.truncated_at().is_some();
        self.counts.unnamed_methods = about.unnamed_methods;
        self.add_recording(about)?;
        Ok(self.counts)
    }

    fn add_losses<S: Source>(&mut self, reader: &Events<S>) -> Result<(), Error> {
        let loss = reader.loss();
        let at = |ticks| {
            let time = reader.info().map_or(RelativeTime::START, |info| info.relative_time(ticks));
            time_ns(self.start_ns, time)
        };
        let process = self.info.as_ref().and_then(|info| info.process_id);
        let listed = loss.gaps().iter().map(|gap| gap.events).fold(0, u64::saturating_add);
        let rest = loss.total().saturating_sub(listed);
        let gaps = loss
            .gaps()
            .iter()
            .map(|gap| (Some(gap.thread), gap.events, gap.after.map(at), gap.before.map(at)));
        let unlisted = (rest > 0).then_some((None, rest, None, None));
        for (thread, count, after, before) in gaps.chain(unlisted) {
            let now = before.or(after).unwrap_or(self.counts.end_ns);
            let mut row = self.tables.losses.row(0, now);
            set_common(&mut row, now, self.input, process);
            if let Some(thread) = thread {
                row.long(losses::TID, thread.0.cast_signed());
            }
            if let Some(after) = after {
                row.long(losses::AFTER_NS, after);
            }
            if let Some(before) = before {
                row.long(losses::BEFORE_NS, before);
            }
            row.long(losses::EVENTS, count.cast_signed());
            self.tables.losses.end_row()?;
        }
        Ok(())
    }

    fn add_recording(&mut self, about: &RecordingFacts) -> Result<(), Error> {
        use recordings as column;

        let (input, counts) = (self.input, &self.counts);
        let mut row = self.tables.recordings.row(0, self.start_ns);
        row.text(column::RECORDING, &input.recording);
        let labels = &input.labels;
        let process = if self.rewriter.is_some() { &self.process } else { &about.process };
        let command_line = process.command_line.as_deref().filter(|_| !self.options.drop_fields);
        for (column, text) in [
            (column::VERSION, labels.version()),
            (column::POD, labels.pod()),
            (column::HOST, labels.host()),
            (column::RUNTIME, about.runtime.as_deref()),
            (column::OS, process.os.as_deref()),
            (column::ARCH, process.arch.as_deref()),
            (column::COMMAND_LINE, command_line),
            (column::URI, Some(&*input.uri)),
        ] {
            if let Some(text) = text {
                row.text(column, text);
            }
        }
        if let Some(info) = &self.info {
            row.text(column::FORMAT, &format!("{} {}", info.format, info.version));
            if let Some(pid) = info.process_id {
                row.long(column::PID, pid.cast_signed());
            }
        }
        row.long(column::START_NS, self.start_ns);
        row.long(column::END_NS, counts.end_ns);
        row.long(column::BYTES, input.bytes.cast_signed());
        row.long(column::EVENTS, counts.events.cast_signed());
        row.long(column::SAMPLES, counts.samples.cast_signed());
        row.long(column::LEFT_OUT, counts.left_out.cast_signed());
        row.long(column::LOST, counts.lost.cast_signed());
        row.long(column::DAMAGES, counts.damages.cast_signed());
        row.bool(column::TRUNCATED, counts.is_truncated);
        row.int(column::SCHEMA_VERSION, SCHEMA_VERSION);
        row.text(column::LABELS, &labels.to_json());
        row.long(column::UNNAMED_METHODS, counts.unnamed_methods.cast_signed());
        self.tables.recordings.end_row()
    }
}

/// The facts of a recording from its first reading.
#[derive(Debug)]
pub(crate) struct RecordingFacts {
    process: ProcessFacts,
    runtime: Option<String>,
    unnamed_methods: u64,
}

impl RecordingFacts {
    pub(crate) fn new(survey: &mut Survey) -> Self {
        Self {
            process: std::mem::take(&mut survey.process),
            runtime: survey.runtime.take(),
            unnamed_methods: survey.code.left_out(),
        }
    }
}

/// Sets the first columns of `events`, `samples` and `losses`.
#[inline]
fn set_common(row: &mut Row<'_>, now: i64, input: &Input, process: Option<u64>) {
    row.long(events::TIME_NS, now);
    if let Some(version) = input.labels.version() {
        row.text(events::VERSION, version);
    }
    if let Some(pod) = input.labels.pod() {
        row.text(events::POD, pod);
    }
    row.text(events::RECORDING, &input.recording);
    if let Some(process) = process {
        row.long(events::PID, process.cast_signed());
    }
}
