//! A recording as the reader has it, in plain values that compare and print: read as a slice, from a `Read`,
//! and pushed.

use std::io::{ErrorKind, Read};
use std::ops::ControlFlow;

use nettrace::{
    Array, Damage, DateTime, Decoder, Error, Event, Events, Label, Metadata, ReadSource, Reader, Record,
    SliceReader, SliceSource, Source, Ticks, TimeOrder, TraceInfo, Value,
};

/// Everything that an event says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) provider: String,
    pub(crate) event_id: u32,
    pub(crate) name: String,
    pub(crate) version: u32,
    pub(crate) level: u32,
    pub(crate) keywords: u64,
    pub(crate) opcode: Option<u8>,
    pub(crate) provider_id: Option<[u8; 16]>,
    pub(crate) template: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) key_values: Vec<(String, String)>,
    pub(crate) thread: u64,
    pub(crate) thread_name: Option<String>,
    pub(crate) capture_thread: u64,
    pub(crate) process: Option<u64>,
    /// That of the thread, and that of the capturing thread.
    pub(crate) processors: [Option<u32>; 2],
    pub(crate) sequence: Option<u32>,
    pub(crate) sorted: bool,
    pub(crate) time: u64,
    pub(crate) activity: Option<[u8; 16]>,
    pub(crate) related: Option<[u8; 16]>,
    pub(crate) labels: Vec<String>,
    pub(crate) stack: Vec<u64>,
    pub(crate) payload: Vec<u8>,
    /// Names and values; an error in the place of the fields from there on.
    pub(crate) fields: Vec<(String, String)>,
}

/// The full result of a reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reading {
    pub(crate) events: Vec<Seen>,
    /// By the number that events use for the thread; threads without loss are left out.
    pub(crate) lost: Vec<(u64, u64)>,
    pub(crate) total_lost: u64,
    pub(crate) damage: Vec<Damage>,
    pub(crate) truncated: Option<u64>,
    pub(crate) info: TraceInfo,
}

fn seen(event: &Event<'_>) -> Seen {
    let fields = event
        .fields()
        .map(|field| match field {
            Ok((name, value)) => (name.to_owned(), value_text(&value)),
            Err(error) => ("!".to_owned(), error.to_string()),
        })
        .collect();
    Seen {
        provider: event.provider().to_owned(),
        event_id: event.id(),
        name: event.name().to_owned(),
        version: event.version(),
        level: event.level(),
        keywords: event.keywords(),
        opcode: event.opcode(),
        provider_id: event.metadata().provider_id().map(|id| id.to_bytes_le()),
        template: event.metadata().message_template().map(str::to_owned),
        description: event.metadata().description().map(str::to_owned),
        key_values: event.metadata().key_values().to_vec(),
        thread: event.thread_id().0,
        thread_name: event.thread().and_then(|thread| thread.name()).map(str::to_owned),
        capture_thread: event.capture_thread_id().0,
        process: event.process_id(),
        processors: [event.processor(), event.capture_processor()],
        sequence: event.sequence(),
        sorted: event.is_sorted(),
        time: event.time().0,
        activity: event.activity().map(|id| id.to_bytes_le()),
        related: event.related_activity().map(|id| id.to_bytes_le()),
        labels: event.labels().map(|label| label_text(&label)).collect(),
        stack: event.stack().collect(),
        payload: event.payload().to_vec(),
        fields,
    }
}

fn label_text(label: &Label<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match label {
        Label::Activity(id) => format!("activity {:02x?}", id.to_bytes_le()),
        Label::RelatedActivity(id) => format!("related {:02x?}", id.to_bytes_le()),
        Label::TraceId(id) => format!("trace {id:02x?}"),
        Label::SpanId(id) => format!("span {id}"),
        Label::Text(key, value) => format!("{:?}={:?}", text(key), text(value)),
        Label::Number(key, value) => format!("{:?}={value}", text(key)),
        Label::Opcode(opcode) => format!("opcode {opcode}"),
        Label::Keywords(keywords) => format!("keywords {keywords}"),
        Label::Level(level) => format!("level {level}"),
        Label::Version(version) => format!("version {version}"),
        other => format!("{other:?}"),
    }
}

/// A value with its type, so that nothing prints like something else.
pub(crate) fn value_text(value: &Value<'_>) -> String {
    match value {
        Value::Bool(v) => format!("bool {v}"),
        Value::Utf16Unit(v) => format!("utf16 {v}"),
        Value::Utf8Unit(v) => format!("utf8 {v}"),
        Value::I8(v) => format!("i8 {v}"),
        Value::U8(v) => format!("u8 {v}"),
        Value::I16(v) => format!("i16 {v}"),
        Value::U16(v) => format!("u16 {v}"),
        Value::I32(v) => format!("i32 {v}"),
        Value::U32(v) => format!("u32 {v}"),
        Value::I64(v) => format!("i64 {v}"),
        Value::U64(v) => format!("u64 {v}"),
        Value::F32(v) => format!("f32 {:08x}", v.to_bits()),
        Value::F64(v) => format!("f64 {:016x}", v.to_bits()),
        Value::Decimal(v) => format!("decimal {v:02x?}"),
        Value::DateTime(DateTime::FileTime(v)) => format!("filetime {v}"),
        Value::DateTime(DateTime::SystemTime(v)) => format!(
            "systemtime {} {} {} {} {} {} {} {}",
            v.year, v.month, v.day_of_week, v.day, v.hour, v.minute, v.second, v.millisecond
        ),
        Value::Guid(v) => format!("guid {:02x?}", v.to_bytes_le()),
        Value::String(v) => format!("string {:?}", v.units().collect::<Vec<_>>()),
        Value::Array(v) => array_text(*v),
        Value::Object(fields) => {
            let text: Vec<_> = fields
                .map(|field| match field {
                    Ok((name, value)) => format!("{name}: {}", value_text(&value)),
                    Err(error) => format!("!{error}"),
                })
                .collect();
            format!("{{{}}}", text.join(", "))
        }
        other => format!("{other:?}"),
    }
}

fn array_text(array: Array<'_>) -> String {
    let length = array.len();
    let text: Vec<_> = array.map(|value| value_text(&value)).collect();
    assert_eq!(text.len(), length, "an array gives as many elements as it says");
    format!("[{}]", text.join(", "))
}

fn finish<S: Source>(events: &Events<S>, list: Vec<Seen>) -> Reading {
    let mut by_thread: Vec<(u64, u64)> = Vec::new();
    for thread in events.threads().iter().filter(|thread| thread.lost() > 0) {
        match by_thread.iter_mut().find(|(index, _)| *index == thread.index()) {
            Some((_, count)) => *count += thread.lost(),
            None => by_thread.push((thread.index(), thread.lost())),
        }
    }
    by_thread.sort_unstable();
    Reading {
        events: list,
        lost: by_thread,
        total_lost: events.loss().total(),
        damage: events.damage().to_vec(),
        truncated: events.truncated_at(),
        info: events.info().expect("whatever opens has a header").clone(),
    }
}

/// Reads a slice.
pub(crate) fn slice(bytes: &[u8]) -> Result<Reading, Error> {
    let mut events = SliceReader::new(bytes)?;
    let mut list = Vec::new();
    while let Some(event) = events.next()? {
        list.push(seen(&event));
    }
    Ok(finish(&events, list))
}

/// The same with the loop inside the reader.
pub(crate) fn slice_for_each(bytes: &[u8]) -> Result<Reading, Error> {
    let mut events = SliceReader::new(bytes)?;
    let mut list = Vec::new();
    events.for_each(|event| list.push(seen(&event)))?;
    Ok(finish(&events, list))
}

/// The same by records, and the records between the events, each after the number of events so far.
fn by_records(bytes: &[u8]) -> Result<(Reading, Vec<(usize, String)>), Error> {
    let mut events = SliceReader::new(bytes)?;
    let (mut list, mut others) = (Vec::new(), Vec::new());
    while let Some(record) = events.next_record()? {
        add_record(&record, &mut list, &mut others);
    }
    Ok((finish(&events, list), others))
}

/// The same with the loop inside the reader.
fn by_each_record(bytes: &[u8]) -> Result<(Reading, Vec<(usize, String)>), Error> {
    let mut events = SliceReader::new(bytes)?;
    let (mut list, mut others) = (Vec::new(), Vec::new());
    let flow = events.try_for_each_record(&mut |record| {
        add_record(record, &mut list, &mut others);
        ControlFlow::Continue(())
    })?;
    assert!(flow.is_continue());
    Ok((finish(&events, list), others))
}

fn add_record(record: &Record<'_>, list: &mut Vec<Seen>, others: &mut Vec<(usize, String)>) {
    let other = match record {
        Record::Event(event) => return list.push(seen(event)),
        Record::SequencePoint(point) => {
            let threads: Vec<_> =
                point.threads().map(|(slot, thread, number)| (slot, thread.id(), number)).collect();
            format!("point at {:?} of {threads:?}", point.time())
        }
        other => format!("{other:?}"),
    };
    others.push((list.len(), other));
}

/// The same on all processors.
#[cfg(feature = "rayon")]
pub(crate) fn parallel(bytes: &[u8]) -> Result<Reading, Error> {
    let mut events = SliceReader::new(bytes)?;
    let list = events.par_fold(
        Vec::new,
        |list, event| list.push(seen(&event)),
        |mut earlier, mut later| {
            earlier.append(&mut later);
            earlier
        },
    )?;
    Ok(finish(&events, list))
}

/// The same from an input with random access, on a number of threads.
pub(crate) fn on_threads(bytes: &[u8], threads: usize) -> Result<Reading, Error> {
    let (events, mut list) = Reader::par_fold(
        bytes,
        threads,
        Vec::new,
        |list: &mut Vec<(u64, Seen)>, event| list.push((event.offset(), seen(&event))),
        |mut one, mut other| {
            one.append(&mut other);
            one
        },
    )?;
    // The threads' lists are joined in no order.
    list.sort_by_key(|(offset, _)| *offset);
    assert_eq!(events.input().offset(), bytes.len() as u64, "everything was passed");
    Ok(finish(&events, list.into_iter().map(|(_, seen)| seen).collect()))
}

/// Reads pushed pieces, which end at `splits`, in ascending order.
pub(crate) fn pushed(bytes: &[u8], splits: &[usize]) -> Result<Reading, Error> {
    let mut events = Decoder::new().with_lookahead();
    let mut list = Vec::new();
    let mut from = 0;
    for to in splits.iter().copied().chain([bytes.len()]) {
        events.feed(&bytes[from..to]);
        from = to;
        while let Some(event) = events.next()? {
            list.push(seen(&event));
        }
    }
    events.end_of_input();
    while let Some(event) = events.next()? {
        list.push(seen(&event));
    }
    Ok(finish(&events, list))
}

/// Gives its bytes in pieces that end at `splits`, and is interrupted before each.
struct Pieces<'a> {
    bytes: &'a [u8],
    at: usize,
    splits: &'a [usize],
    interrupted: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        self.interrupted = !self.interrupted;
        if self.interrupted {
            return Err(ErrorKind::Interrupted.into());
        }
        while self.splits.first().is_some_and(|end| *end <= self.at) {
            self.splits = &self.splits[1..];
        }
        let end = self.splits.first().copied().unwrap_or(self.bytes.len());
        let count = room.len().min(end - self.at);
        room[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Reads from a `Read` that gives pieces that end at `splits`, in ascending order.
pub(crate) fn read(bytes: &[u8], splits: &[usize]) -> Result<Reading, Error> {
    let mut events = Reader::new(Pieces { bytes, at: 0, splits, interrupted: false })?.with_lookahead();
    let mut list = Vec::new();
    while let Some(event) = events.next()? {
        list.push(seen(&event));
    }
    Ok(finish(&events, list))
}

/// The same part by part.
fn in_parts<S: Source>(mut events: Events<S>) -> Result<Reading, Error> {
    let mut list = Vec::new();
    loop {
        let before = list.len();
        let Some(count) = events.read_part(|event| list.push(seen(&event)))? else { break };
        assert_eq!(count, (list.len() - before) as u64, "the events of a part");
        assert!(count > 0, "a part has an event");
    }
    Ok(finish(&events, list))
}

/// Reads a slice in time order with several readers that take turns, each of which passes the parts of the
/// others.
fn shared<'b>(
    bytes: &'b [u8],
    order: impl Fn(Reader<&'b [u8]>) -> TimeOrder<ReadSource<&'b [u8]>>,
    most: usize,
    readers: usize,
) -> Result<Vec<Seen>, Error> {
    let open = || Ok(order(Reader::new(bytes)?.with_lookahead()));
    let mut readers: Vec<_> = (0..readers).map(|_| open()).collect::<Result<_, Error>>()?;
    let mut list = Vec::new();
    for turn in 0.. {
        let before = list.len();
        let own = turn % readers.len();
        let count = readers[own].read_part(most, |event| list.push(seen(&event)))?;
        assert_eq!(count.unwrap_or(0), (list.len() - before) as u64, "the events of a part");
        for (_, other) in readers.iter_mut().enumerate().filter(|(index, _)| *index != own) {
            assert_eq!(other.pass_part(most)?, count, "events that are passed");
        }
        if count.is_none() {
            break;
        }
    }
    Ok(list)
}

/// Reads a slice in time order, event by event, all at once and in parts, which must be the same.
pub(crate) fn in_time_order(bytes: &[u8]) -> Result<Vec<Seen>, Error> {
    let mut events = SliceReader::new(bytes)?.in_time_order();
    let mut list = Vec::new();
    while let Some(event) = events.next()? {
        list.push(seen(&event));
    }
    let mut at_once = Vec::new();
    SliceReader::new(bytes)?.in_time_order().for_each(|event| at_once.push(seen(&event)))?;
    assert_eq!(at_once, list, "time order all at once");
    for (most, readers) in [(3, 2), (1000, 3), (usize::MAX, 1)] {
        let shared = shared(bytes, Events::in_time_order, most, readers)?;
        assert_eq!(shared, list, "time order of {readers} readers, by {most}");
    }
    for remainder in 0..=KIND_GROUPS {
        assert_time_order_of_kinds(bytes, &list, &events, remainder)?;
    }
    Ok(list)
}

/// The groups into which kinds of events are divided, to choose some.
const KIND_GROUPS: u32 = 3;

fn kind_group(provider: &str, event_id: u32, name: &str) -> u32 {
    let sum = |text: &str| text.chars().map(u32::from).fold(7, |sum: u32, unit| sum.wrapping_mul(31) ^ unit);
    (sum(provider) ^ event_id.wrapping_mul(97) ^ sum(name)) % KIND_GROUPS
}

/// Checks that the time order of the kinds of a group, possibly empty, equals the time order of all events
/// without the others, and that everything else is known as after reading all in time order.
fn assert_time_order_of_kinds(
    bytes: &[u8],
    all: &[Seen],
    all_read: &TimeOrder<SliceSource<'_>>,
    group: u32,
) -> Result<(), Error> {
    let is_wanted = move |kind: &Metadata| kind_group(kind.provider(), kind.event_id(), kind.name()) == group;
    let expected: Vec<_> = all
        .iter()
        .filter(|seen| kind_group(&seen.provider, seen.event_id, &seen.name) == group)
        .cloned()
        .collect();
    let mut events = SliceReader::new(bytes)?.in_time_order_of(is_wanted);
    let mut list = Vec::new();
    events.for_each(|event| list.push(seen(&event)))?;
    assert_eq!(list, expected, "time order of kinds");
    let (read, all_events) = (events.events(), all_read.events());
    assert_eq!(finish(read, Vec::new()), finish(all_events, Vec::new()), "loss and damage");
    assert_eq!(read.metadata(), all_events.metadata(), "kinds");
    assert_eq!(format!("{:?}", read.threads()), format!("{:?}", all_events.threads()), "threads");
    let relative = |time| all_events.info().map(|info| info.relative_time(Ticks(time)));
    let end = all.iter().filter_map(|seen| relative(seen.time)).max();
    assert_eq!((events.last_time(), all_read.last_time()), (end, end), "the last time");
    for (most, readers) in [(3, 2), (usize::MAX, 1)] {
        let shared = shared(bytes, |events| events.in_time_order_of(is_wanted), most, readers)?;
        assert_eq!(shared, expected, "time order of kinds, of {readers} readers, by {most}");
    }
    Ok(())
}

/// On all processors damage within a block and damage between blocks are found in another order.
#[cfg(feature = "rayon")]
fn by_offset(mut reading: Result<Reading, String>) -> Result<Reading, String> {
    if let Ok(reading) = &mut reading {
        reading.damage.sort_by(|a, b| (a.offset, &a.what).cmp(&(b.offset, &b.what)));
    }
    reading
}

/// The same reading in all forms, with every split that is given; a difference panics.
pub(crate) fn in_all_forms(bytes: &[u8], splits: &[Vec<usize>]) -> Result<Reading, String> {
    // How many of the first bytes an error quotes is how many had come.
    let text =
        |error: Error| error.to_string().split(": it begins with").next().unwrap_or_default().to_owned();
    let whole = slice(bytes).map_err(text);
    assert_eq!(slice_for_each(bytes).map_err(text), whole, "for_each");
    let records = by_records(bytes).map_err(text);
    assert_eq!(by_each_record(bytes).map_err(text), records, "try_for_each_record");
    assert_eq!(records.map(|(reading, _)| reading), whole, "next_record");
    assert_eq!(SliceReader::new(bytes).and_then(in_parts).map_err(text), whole, "in parts");
    #[cfg(feature = "rayon")]
    assert_eq!(by_offset(parallel(bytes).map_err(text)), by_offset(whole.clone()), "on all processors");
    for threads in [1, 2, 4] {
        assert_eq!(on_threads(bytes, threads).map_err(text), whole, "on {threads} threads");
    }
    for splits in splits {
        let pieces = Pieces { bytes, at: 0, splits, interrupted: false };
        let parts = Reader::new(pieces).and_then(|events| in_parts(events.with_lookahead()));
        for (form, other) in
            [("pushed", pushed(bytes, splits)), ("read", read(bytes, splits)), ("in parts", parts)]
        {
            let other = other.map_err(text);
            assert_eq!(other, whole, "{form}, split at {splits:?}");
        }
    }
    whole
}
