//! Requests with profiles for OpenTelemetry collectors.

use std::hash::Hash;

use clr_events::StackId;
use clr_events::code::CodeOrigin;
use hashbrown::HashMap;
use otlp_messages::Message as _;
use otlp_messages::common::any_value::Value;
use otlp_messages::common::{InstrumentationScope, KeyValue, Resource};
use otlp_messages::profiles::{
    ExportProfilesServiceRequest, Function, KeyValueAndUnit, Line, Link, Location, Mapping, Profile as Out,
    ProfilesDictionary, ResourceProfiles, Sample, ScopeProfiles, Stack, ValueType,
};

use crate::format::{duration, without_kind};
use crate::profile::frame::FrameId;
use crate::profile::frame_kind::FrameKind;
use crate::profile::measure::Unit;
use crate::profile::{Process, Profile, StackTotal};

/// Returns the body of an `ExportProfilesServiceRequest` with a profile, of a resource with these attributes
/// (`service.name` and others).
///
/// Samples are summed up by stack and thread, which `thread.id` and `thread.name` name, and have their weight
/// as value.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (method, weight) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
/// #     builder.add_sample(42, 7, RelativeTime::START, weight, ["Shop!Program.Main()", method]);
/// # }
/// # let profile = builder.finish();
/// let resource = [("service.name".to_owned(), "shop".to_owned())];
/// // The body of a POST to /v1development/profiles of a collector.
/// let body = nettrace_export::otlp_request(&profile, &resource, "my-tool");
/// assert!(body.windows(4).any(|bytes| bytes == b"shop"));
/// ```
pub fn otlp_request(profile: &Profile, resource: &[(String, String)], exporter: &str) -> Vec<u8> {
    let mut writer = RequestWriter::new(profile, exporter);
    writer.add(resource, profile.stack_totals.iter());
    writer.finish()
}

/// The request of [`otlp_request_by_process`].
#[derive(Debug)]
#[non_exhaustive]
pub struct OtlpRequest {
    /// The body of the request.
    pub body: Vec<u8>,
    /// The number of processes in it.
    pub profiles: usize,
}

/// Returns one request with a profile for each process of a profile of many, each of its own resource. The
/// names and stacks are common to all of them. `resource_of` returns the attributes of a process.
///
/// ```
/// # use nettrace_export::{Measure, StackProfileBuilder, Unit, nettrace::RelativeTime};
/// # let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// # for (process, weight) in [(42, 5_000_000), (43, 2_500_000)] {
/// #     builder.add_sample(process, 7, RelativeTime::START, weight, ["Shop!Program.Main()"]);
/// # }
/// # let profile = builder.finish();
/// let request = nettrace_export::otlp_request_by_process(&profile, "my-tool", |process| {
///     vec![("process.pid".to_owned(), process.id.to_string())]
/// });
/// assert_eq!(request.profiles, 2);
/// ```
pub fn otlp_request_by_process(
    profile: &Profile,
    exporter: &str,
    mut resource_of: impl FnMut(&Process) -> Vec<(String, String)>,
) -> OtlpRequest {
    let mut totals: Vec<Vec<&StackTotal>> = profile.processes.iter().map(|_| Vec::new()).collect();
    for total in profile.stack_totals.iter().filter(|total| total.stack.is_some()) {
        let thread = profile.threads.get(total.thread.index());
        if let Some(of_process) = thread.and_then(|thread| totals.get_mut(thread.process.index())) {
            of_process.push(total);
        }
    }
    let mut writer = RequestWriter::new(profile, exporter);
    for (process, totals) in profile.processes.iter().zip(totals) {
        if !totals.is_empty() {
            writer.add(&resource_of(process), totals.into_iter());
        }
    }
    OtlpRequest { profiles: writer.resources.len(), body: writer.finish() }
}

/// A request with parts of a profile, each of a resource.
struct RequestWriter<'p> {
    profile: &'p Profile,
    scope: InstrumentationScope,
    sample_type: ValueType,
    tables: Tables,
    resources: Vec<ResourceProfiles>,
}

impl<'p> RequestWriter<'p> {
    fn new(profile: &'p Profile, exporter: &str) -> Self {
        let mut tables = Tables::default();
        let unit = match profile.measure.unit {
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
        };
        let sample_type =
            ValueType { type_strindex: tables.text(profile.measure.name), unit_strindex: tables.text(unit) };
        let (name, version) = exporter.split_once(' ').unwrap_or((exporter, ""));
        let scope = InstrumentationScope { version: version.to_owned(), ..InstrumentationScope::new(name) };
        Self { profile, scope, sample_type, tables, resources: Vec::new() }
    }

    /// Adds the profile of a resource, with these totals.
    fn add<'t>(&mut self, resource: &[(String, String)], totals: impl Iterator<Item = &'t StackTotal>) {
        let samples = totals.filter_map(|total| self.sample(total)).collect();
        let start = self.profile.start_unix_ms.and_then(|start| u64::try_from(start).ok()).unwrap_or(0);
        let out = Out {
            // Pyroscope requires a period. Values are unchanged weights, not numbers of periods.
            period_type: Some(self.sample_type),
            period: 1,
            sample_type: Some(self.sample_type),
            samples,
            time_unix_nano: start.saturating_mul(1_000_000),
            duration_nano: duration(self.profile),
        };
        let attribute = |(key, value): &(String, String)| KeyValue::new(key, &**value);
        self.resources.push(ResourceProfiles {
            resource: Some(Resource { attributes: resource.iter().map(attribute).collect() }),
            scope_profiles: vec![ScopeProfiles { scope: Some(self.scope.clone()), profiles: vec![out] }],
        });
    }

    fn sample(&mut self, total: &StackTotal) -> Option<Sample> {
        let (stack, _) = without_kind(self.profile, total.stack?);
        let mut attribute_indices = Vec::new();
        if let Some(thread) = self.profile.threads.get(total.thread.index()) {
            let id = i64::try_from(thread.id).unwrap_or(i64::MAX);
            attribute_indices.push(self.tables.attribute("thread.id", None, Some(id)));
            attribute_indices.push(self.tables.attribute("thread.name", Some(&thread.frame), None));
        }
        let value = i64::try_from(total.weight).unwrap_or(i64::MAX);
        let stack_index = self.tables.stack(self.profile, stack);
        Some(Sample { stack_index, attribute_indices, values: vec![value] })
    }

    fn finish(self) -> Vec<u8> {
        let Self { tables, resources, .. } = self;
        ExportProfilesServiceRequest {
            resource_profiles: resources,
            dictionary: Some(tables.into_dictionary()),
        }
        .encode_to_vec()
    }
}

/// The tables of a request. Row 0 of each is the empty one.
#[derive(Default)]
struct Tables {
    texts: Rows<String>,
    modules: Rows<i32>,
    functions: Rows<(i32, i32, i32)>,
    frames: Rows<FrameId>,
    locations: Vec<Location>,
    stacks: Rows<StackId>,
    stack_rows: Vec<Stack>,
    attributes: Rows<(i32, Option<i32>, Option<i64>)>,
    attribute_rows: Vec<KeyValueAndUnit>,
}

/// The numbers of rows, from 1 on.
struct Rows<K>(HashMap<K, i32>);

impl<K> Default for Rows<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Hash + Eq> Rows<K> {
    /// Returns the number of a row, and whether it is new.
    fn number(&mut self, key: K) -> (i32, bool) {
        let next = i32::try_from(self.0.len()).unwrap_or(i32::MAX).saturating_add(1);
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }

    /// The keys, in the order of their numbers.
    fn into_keys(self) -> Vec<K> {
        let mut keys: Vec<_> = self.0.into_iter().collect();
        keys.sort_unstable_by_key(|(_, number)| *number);
        keys.into_iter().map(|(key, _)| key).collect()
    }
}

/// Returns the type of a frame, as the semantic conventions call it.
const fn frame_type(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::Code(CodeOrigin::Kernel) => "kernel",
        FrameKind::Code(CodeOrigin::Native) => "native",
        FrameKind::Code(origin) if origin.is_native_runtime() => "native",
        FrameKind::Code(_) | FrameKind::Pseudo => "dotnet",
    }
}

impl Tables {
    fn text(&mut self, text: &str) -> i32 {
        if text.is_empty() { 0 } else { self.texts.number(text.to_owned()).0 }
    }

    fn attribute(&mut self, key: &str, text: Option<&str>, number: Option<i64>) -> i32 {
        let key = self.text(key);
        let text_number = text.map(|text| self.texts.number(text.to_owned()).0);
        let (row, is_new) = self.attributes.number((key, text_number, number));
        if is_new {
            let text = text.map(|text| Value::StringValue(text.to_owned()));
            let value = text.or(number.map(Value::IntValue)).map(Into::into);
            self.attribute_rows.push(KeyValueAndUnit { key_strindex: key, value });
        }
        row
    }

    fn stack(&mut self, profile: &Profile, stack: StackId) -> i32 {
        let (row, is_new) = self.stacks.number(stack);
        if is_new {
            let locations = profile.stacks.frames(stack).map(|frame| self.location(profile, frame));
            let location_indices = locations.collect();
            self.stack_rows.push(Stack { location_indices });
        }
        row
    }

    fn location(&mut self, profile: &Profile, frame: FrameId) -> i32 {
        let (row, is_new) = self.frames.number(frame);
        if is_new {
            let name = profile.frames.method(frame);
            let (module, method) = profile.frames.method_parts(frame);
            let source = profile.frames.line(frame);
            let filename = self.text(module);
            let mapping_index = if filename == 0 { 0 } else { self.modules.number(filename).0 };
            let key =
                (self.text(method), self.text(name), self.text(source.map_or("", |source| source.file)));
            let (function_index, _) = self.functions.number(key);
            let line = source.map_or(0, |source| source.line.into());
            let kind =
                self.attribute("profile.frame.type", Some(frame_type(profile.frames.kind(frame))), None);
            self.locations.push(Location {
                mapping_index,
                lines: vec![Line { function_index, line }],
                attribute_indices: vec![kind],
            });
        }
        row
    }

    fn into_dictionary(self) -> ProfilesDictionary {
        let mapping = |filename_strindex| Mapping { filename_strindex };
        let function = |(name_strindex, system_name_strindex, filename_strindex)| Function {
            name_strindex,
            system_name_strindex,
            filename_strindex,
        };
        ProfilesDictionary {
            mapping_table: with_nothing(self.modules.into_keys().into_iter().map(mapping)),
            location_table: with_nothing(self.locations),
            function_table: with_nothing(self.functions.into_keys().into_iter().map(function)),
            link_table: vec![Link {}],
            string_table: with_nothing(self.texts.into_keys()),
            attribute_table: with_nothing(self.attribute_rows),
            stack_table: with_nothing(self.stack_rows),
        }
    }
}

/// Rows after the empty one.
fn with_nothing<T: Default>(rows: impl IntoIterator<Item = T>) -> Vec<T> {
    std::iter::once(T::default()).chain(rows).collect()
}
