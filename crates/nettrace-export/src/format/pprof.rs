//! Gzipped protobuf, as `go tool pprof` reads it: samples summed up by stack and thread.
//!
//! # Source
//! `profile.proto` of google/pprof.

use hashbrown::HashMap;
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message as _;

use crate::format::protobuf::pprof::{
    Function, Label, Line, Location, Mapping, Profile as Out, Sample, ValueType,
};
use crate::format::{duration, without_kind};
use crate::profile::measure::{Measure, Unit};
use crate::profile::{Profile, StackTotal};

pub(super) fn write(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let mut encoder = GzEncoder::new(out, Compression::fast());
    encoder.write_all(&message(profile).encode_to_vec())?;
    encoder.finish()?.flush()
}

/// Texts by number; number 0 is the empty one.
#[derive(Default)]
struct Strings {
    texts: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl Strings {
    fn number(&mut self, text: &str) -> i64 {
        if self.texts.is_empty() {
            self.texts.push(String::new());
        }
        if text.is_empty() {
            return 0;
        }
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = signed(self.texts.len() as u64);
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

fn message(profile: &Profile) -> Out {
    let mut strings = Strings::default();
    let mut out = Out::default();
    let unit = match profile.measure.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
    };
    let name = value_name(profile.measure);
    for (kind, unit) in [(profile.measure.sample, "count"), (name, unit)] {
        out.sample_type.push(ValueType { kind: strings.number(kind), unit: strings.number(unit) });
    }
    out.default_sample_type = strings.number(name);
    // Pyroscope rejects profiles without it. Values are unchanged weights, not numbers of periods.
    out.period_type = out.sample_type.last().cloned();
    out.period = 1;
    let mut modules = HashMap::new();
    let mut functions = HashMap::new();
    for (frame, _) in profile.frames.iter() {
        let name = profile.frames.method(frame);
        let (module, method) = profile.frames.method_parts(frame);
        let source = profile.frames.line(frame);
        // The names are final: pprof does not look for symbols in files of these names.
        let mapping_id = *modules.entry(module).or_insert_with(|| {
            let id = out.mapping.len() as u64 + 1;
            out.mapping.push(Mapping { id, filename: strings.number(module), has_functions: true });
            id
        });
        // Lines of a method are places in one function.
        let function_id = *functions.entry((name, source.map(|source| source.file))).or_insert_with(|| {
            let id = out.function.len() as u64 + 1;
            let (name, system_name) = (strings.number(method), strings.number(name));
            let filename = strings.number(source.map_or("", |source| source.file));
            out.function.push(Function { id, name, system_name, filename });
            id
        });
        let line = source.map_or(0, |source| source.line.into());
        let id = u64::from(frame.0) + 1;
        out.location.push(Location { id, mapping_id, line: vec![Line { function_id, line }] });
    }
    out.sample =
        profile.stack_totals.iter().filter_map(|total| sample(profile, total, &mut strings)).collect();
    out.time_nanos = profile.start_unix_ms.unwrap_or(0).saturating_mul(1_000_000);
    out.duration_nanos = signed(duration(profile));
    out.string_table = strings.texts;
    out
}

/// Returns the name of the values: the name in other programs' profiles, if they have one.
fn value_name(measure: Measure) -> &'static str {
    if measure == Measure::CPU_TIME { "cpu" } else { measure.name }
}

fn sample(profile: &Profile, total: &StackTotal, strings: &mut Strings) -> Option<Sample> {
    let (stack, kind) = without_kind(profile, total.stack?);
    let number = |key: i64, number: u64| Label { key, text: 0, number: signed(number) };
    let mut label = Vec::new();
    // Profiles that were not built from a recording lack threads.
    if let Some(thread) = profile.threads.get(total.thread.index()) {
        let process = profile.process_of(thread).map_or(0, |process| process.id);
        let mut text =
            |key: &str, text: &str| Label { key: strings.number(key), text: strings.number(text), number: 0 };
        label.push(text("thread", &thread.frame));
        label.extend(kind.map(|kind| text("kind", kind)));
        label.push(number(strings.number("thread_id"), thread.id));
        label.push(number(strings.number("process_id"), process));
    }
    Some(Sample {
        location_id: profile.stacks.frames(stack).map(|frame| u64::from(frame.0) + 1).collect(),
        value: vec![signed(total.samples), signed(total.weight)],
        label,
    })
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
