//! Methods that were compiled while the program ran.

use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::time::Duration;

use clr_events::code::Tier;
use clr_events::csharp::{Detail, RuntimeName};
use clr_events::enums::MethodFlags;
use clr_events::ids::runtime::METHOD_UNLOAD_VERBOSE;
use clr_events::view::MethodCode;
use clr_events::{ClrEvent, EventSet, Provider, sets};
use nettrace::{Event, Metadata, RelativeTime, ThreadId};
use serde::Serialize;

use crate::decode::decode;
use crate::report::nanoseconds;
use crate::report::timeline::Timeline;

/// A method that was compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MethodRow {
    /// Method name as TraceEvent writes it, without the module.
    pub method: String,
    /// Method name in C#.
    pub csharp: String,
    /// The optimization tier.
    pub tier: String,
    /// The beginning of the compilation; its end, where the recording does not say when it began.
    #[serde(rename = "start_ns", serialize_with = "nanoseconds::serialize")]
    pub start: RelativeTime,
    /// The duration of compiling it, if the recording says when it began.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Option<Duration>,
    /// The size of the IL in bytes, if the recording has the beginning of the compilation.
    pub il_bytes: Option<u32>,
    /// The size of the machine code in bytes.
    pub native_bytes: u32,
}

/// The methods of a tier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TierRow {
    /// The runtime's name for it.
    pub tier: String,
    /// The number of methods.
    pub methods: u64,
    /// The sum of the known compile times; `None` if all are unknown.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Option<Duration>,
    /// The size of the machine code in bytes.
    pub native_bytes: u64,
}

/// The methods compiled in a recording.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct JitReport {
    /// The number of methods.
    pub methods: u64,
    /// The sum of the known compile times; `None` if all are unknown.
    #[serde(rename = "duration_ns", serialize_with = "nanoseconds::serialize")]
    pub duration: Option<Duration>,
    /// The size of the IL in bytes, of the methods that have it; `None` if none has.
    pub il_bytes: Option<u64>,
    /// The size of the machine code in bytes.
    pub native_bytes: u64,
    /// Methods over time.
    pub timeline: Timeline,
    /// The methods among them that the program made at run time (`DynamicMethod`, expressions, regular
    /// expressions), over time.
    #[serde(skip)]
    pub dynamic: Timeline,
    /// The number of methods made at run time that were unloaded, those from before the recording as well.
    #[serde(skip)]
    pub unloaded_dynamic: u64,
    /// By tier, the longest first.
    pub tiers: Vec<TierRow>,
    /// The methods that took longest, at most 1000.
    pub slowest: Vec<MethodRow>,
}

impl JitReport {
    /// Returns true if no method was compiled.
    pub const fn is_empty(&self) -> bool {
        self.methods == 0
    }
}

/// Gathers compiled methods: runtime keyword `JIT` (0x10) at level verbose.
#[derive(Debug, Default)]
pub struct Jit {
    /// The methods that each thread compiles, the innermost last.
    open: HashMap<(Option<u64>, ThreadId), Vec<Begun>>,
    tiers: BTreeMap<String, TierRow>,
    report: JitReport,
}

/// A method that is being compiled.
#[derive(Debug, Clone, Copy)]
struct Begun {
    method_id: u64,
    start: RelativeTime,
    il_bytes: u32,
}

/// Methods that are unloaded.
static UNLOADS: EventSet = EventSet::new(&[(Provider::Runtime, METHOD_UNLOAD_VERBOSE)]);

/// Methods that are listed.
const MAX_METHODS: usize = 1000;
/// The maximum depth of nested compiling.
const MAX_DEPTH: usize = 64;

impl Jit {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        sets::COMPILATION.contains(kind) || UNLOADS.contains(kind)
    }

    /// Adds an event. Looks at [`sets::COMPILATION`], and at methods that are unloaded.
    pub fn add(&mut self, event: &Event<'_>) {
        let view = decode(event, &sets::COMPILATION).or_else(|| decode(event, &UNLOADS));
        if let Some(view) = view {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let key = (event.process_id(), event.thread_id());
        match view {
            ClrEvent::MethodJittingStarted(method) => {
                let open = self.open.entry(key).or_default();
                // Methods that failed to compile never end: the oldest is no longer compiling.
                if open.len() >= MAX_DEPTH {
                    open.remove(0);
                }
                open.push(Begun {
                    method_id: method.method_id,
                    start: event.relative_time().max(RelativeTime::START),
                    il_bytes: method.method_il_size,
                });
            }
            ClrEvent::MethodLoadVerbose(method) if method.method_flags.contains(MethodFlags::JITTED) => {
                let open = self.open.get_mut(&key);
                let begun = open.and_then(|open| {
                    let place = open.iter().rposition(|begun| begun.method_id == method.method_id)?;
                    open.drain(place..).next()
                });
                let now = event.relative_time().max(RelativeTime::START);
                if method.method_flags.contains(MethodFlags::DYNAMIC) {
                    self.report.dynamic.add(now, 1);
                }
                self.compiled(method, now, begun);
            }
            ClrEvent::MethodUnloadVerbose(method) if method.method_flags.contains(MethodFlags::DYNAMIC) => {
                self.report.unloaded_dynamic = self.report.unloaded_dynamic.saturating_add(1);
            }
            _ => {}
        }
    }

    fn compiled(&mut self, method: &MethodCode<'_>, now: RelativeTime, begun: Option<Begun>) {
        let start = begun.map_or(now, |begun| begun.start);
        let duration = begun.map(|begun| now.abs_diff(begun.start));
        let il_bytes = begun.map(|begun| begun.il_bytes);
        let tier = method.method_flags.tier();
        let tier = tier.name().map_or_else(|| number(tier), str::to_owned);
        let report = &mut self.report;
        report.methods += 1;
        report.duration = sum(report.duration, duration);
        if let Some(bytes) = il_bytes {
            *report.il_bytes.get_or_insert(0) += u64::from(bytes);
        }
        report.native_bytes += u64::from(method.method_size);
        report.timeline.add(now, 1);
        let row = self
            .tiers
            .entry(tier.clone())
            .or_insert_with(|| TierRow { tier: tier.clone(), ..TierRow::default() });
        row.methods += 1;
        row.duration = sum(row.duration, duration);
        row.native_bytes += u64::from(method.method_size);
        let native_bytes = method.method_size;
        let (method, csharp) = names(method);
        report.slowest.push(MethodRow { method, csharp, tier, start, duration, il_bytes, native_bytes });
        if report.slowest.len() >= 2 * MAX_METHODS {
            keep_slowest(&mut report.slowest);
        }
    }

    /// Returns the report.
    pub fn finish(self) -> JitReport {
        let Self { tiers, mut report, .. } = self;
        keep_slowest(&mut report.slowest);
        report.tiers = tiers.into_values().collect();
        report.tiers.sort_by_key(|row| std::cmp::Reverse((row.duration, row.methods)));
        report
    }
}

/// The sum of the durations that are known.
pub(super) fn sum(total: Option<Duration>, duration: Option<Duration>) -> Option<Duration> {
    total.map_or(duration, |total| Some(total.saturating_add(duration.unwrap_or_default())))
}

fn keep_slowest(methods: &mut Vec<MethodRow>) {
    methods.sort_by_key(|method| std::cmp::Reverse(method.duration));
    methods.truncate(MAX_METHODS);
}

/// The name as TraceEvent writes it, and in C#.
fn names(method: &MethodCode<'_>) -> (String, String) {
    let texts = [method.method_namespace, method.method_name, method.method_signature];
    let [namespace, name, signature] = texts.map(|text| text.to_string());
    let parameters = signature.find('(').and_then(|open| signature.get(open..)).unwrap_or_default();
    let full = format!("{namespace}.{name}{parameters}");
    let runtime = RuntimeName { namespace: &namespace, name: &name, signature: &signature };
    let csharp = runtime.csharp(Detail::Short).map_or_else(|| full.clone(), |name| name.text);
    (full, csharp)
}

fn number(tier: Tier) -> String {
    format!("tier {}", tier.0)
}
