//! Work at the start of a program: loading assemblies and types, and compiling methods.

use hashbrown::HashMap;
use std::time::Duration;

use clr_events::enums::{MethodFlags, RuntimeSku};
use clr_events::view::RuntimeStart;
use clr_events::{ClrEvent, ids, sets};
use nettrace::{Event, Metadata, RelativeTime, ThreadId};
use serde::Serialize;

use crate::decode::decode;
use crate::report::jit::sum;
use crate::report::nanoseconds;
use crate::report::timeline::Timeline;

/// Something that happened once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Time of the event.
    #[serde(rename = "time_ns", serialize_with = "nanoseconds::serialize")]
    pub time: RelativeTime,
    /// The name of the step.
    pub what: String,
}

/// The start of a program.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct StartupReport {
    /// The process of the command line and the version: in recordings of several, the first process that
    /// reports them. `None` if the recording lacks process ids.
    pub process: Option<u64>,
    /// The program's command line, if the recording says so.
    pub command_line: Option<String>,
    /// The runtime's version, three numbers as `dotnet --list-runtimes` prints them, if the recording says
    /// so.
    pub runtime: Option<String>,
    /// Assemblies that were loaded.
    pub assemblies: u64,
    /// The duration of finding assemblies, if the recording says so; one within another counts once.
    #[serde(rename = "assemblies_ns", serialize_with = "nanoseconds::serialize")]
    pub assembly_time: Option<Duration>,
    /// Methods that were compiled.
    pub methods: u64,
    /// The duration of compiling, if the recording says so; one within another counts once.
    #[serde(rename = "methods_ns", serialize_with = "nanoseconds::serialize")]
    pub method_time: Option<Duration>,
    /// Precompiled methods that were looked up.
    pub precompiled: u64,
    /// Types that were loaded.
    pub types: u64,
    /// The duration of loading types, if the recording says so; one within another counts once.
    #[serde(rename = "types_ns", serialize_with = "nanoseconds::serialize")]
    pub type_time: Option<Duration>,
    /// Exceptions that were thrown.
    pub exceptions: u64,
    /// Methods that were compiled, over time.
    pub timeline: Timeline,
    /// Steps in the order of time, at most 10,000.
    pub steps: Vec<Step>,
}

/// Gathers the facts of a program's start: runtime keywords `Loader` (8), `JIT` (0x10), `TypeDiagnostic`
/// (0x8000000000), `AssemblyLoader` (4) and `CompilationDiagnostic` (0x2000000000).
#[derive(Debug, Default)]
pub struct Startup {
    report: StartupReport,
    nested: HashMap<(Option<u64>, ThreadId, Kind), (u32, RelativeTime)>,
    /// The methods that each thread compiles, the innermost last.
    compiling: HashMap<(Option<u64>, ThreadId), Vec<Compilation>>,
    /// By process.
    versions: HashMap<Option<u64>, String>,
    /// The process with the reported command line and version.
    named: Option<NamedProcess>,
    has_any: bool,
}

/// A process; `None` if the recording lacks process ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct NamedProcess(Option<u64>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Assembly,
    Type,
}

/// A method that is being compiled. A method that cannot be compiled never ends.
#[derive(Debug, Clone, Copy)]
struct Compilation {
    method_id: u64,
    start: RelativeTime,
    /// Time of methods compiled within, which is counted already.
    counted: Duration,
}

/// The maximum depth of nested compiling.
const MAX_DEPTH: usize = 64;

/// The version of a runtime: that of its class library. The virtual machine's is the number of a build
/// (`9.0.124`), or that of .NET Framework (`4.0.30319`).
fn version(runtime: &RuntimeStart<'_>) -> String {
    // .NET Core 2 and 3 give the number of .NET Framework. The folder that they lie in has their own.
    if runtime.bcl_major_version == 4 && runtime.sku == RuntimeSku::CORE_CLR {
        let path = runtime.runtime_dll_path.to_string();
        let number = path.replace('\\', "/").rsplit('/').nth(1).map(str::to_owned);
        let is_number = |text: &String| {
            text.starts_with(|first: char| first.is_ascii_digit())
                && text.chars().all(|each| each.is_ascii_alphanumeric() || ".-".contains(each))
        };
        return number.filter(is_number).unwrap_or_else(|| "Core 3.1 or earlier".to_owned());
    }
    format!("{}.{}.{}", runtime.bcl_major_version, runtime.bcl_minor_version, runtime.bcl_build_number)
}

/// Returns true if events of the kind have the command line of the process.
fn is_process_info(kind: &Metadata) -> bool {
    kind.event_id() == ids::event_pipe::PROCESS_INFO && kind.provider() == ids::event_pipe::PROVIDER
}

/// Steps that are listed.
const MAX_STEPS: usize = 10_000;

impl Startup {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        is_process_info(kind) || sets::STARTUP.contains(kind)
    }

    /// Adds an event. Looks at [`sets::STARTUP`], and at the command line that EventPipe writes.
    pub fn add(&mut self, event: &Event<'_>) {
        if is_process_info(event.metadata()) {
            let process = NamedProcess(event.process_id());
            let is_first = *self.named.get_or_insert(process) == process;
            if let Some(Ok((_, nettrace::Value::String(line)))) = event.fields().next()
                && is_first
            {
                self.report.command_line = Some(line.to_string());
            }
            return;
        }
        if let Some(view) = decode(event, &sets::STARTUP) {
            self.add_decoded(event, &view);
        }
    }

    /// Adds an event that was decoded already.
    pub fn add_decoded(&mut self, event: &Event<'_>, view: &ClrEvent<'_>) {
        let now = event.relative_time().max(RelativeTime::START);
        let key = |kind| (event.process_id(), event.thread_id(), kind);
        let report = &mut self.report;
        match view {
            ClrEvent::RuntimeStart(runtime) => {
                if self.versions.len() < MAX_STEPS {
                    self.versions.insert(event.process_id(), version(runtime));
                }
                self.step(now, "runtime started".to_owned());
            }
            // Written at the end of a session: the runtime had started long before.
            ClrEvent::RuntimeDcStart(runtime) => {
                if self.versions.len() < MAX_STEPS {
                    self.versions.entry(event.process_id()).or_insert_with(|| version(runtime));
                }
                return;
            }
            ClrEvent::AssemblyLoad(assembly) => {
                report.assemblies = report.assemblies.saturating_add(1);
                let name = assembly.fully_qualified_assembly_name.to_string();
                let name = name.split(',').next().unwrap_or_default();
                self.step(now, format!("assembly {name}"));
            }
            ClrEvent::AssemblyLoaderStart(_) => self.begin(key(Kind::Assembly), now),
            ClrEvent::AssemblyLoaderStop(_) => {
                let took = self.end(key(Kind::Assembly), now);
                self.report.assembly_time = sum(self.report.assembly_time, took);
            }
            ClrEvent::MethodJittingStarted(method) => {
                let compiling = self.compiling.entry((event.process_id(), event.thread_id())).or_default();
                // With that many, the oldest is a method that could not be compiled.
                if compiling.len() >= MAX_DEPTH {
                    compiling.remove(0);
                }
                let (method_id, counted) = (method.method_id, Duration::ZERO);
                compiling.push(Compilation { method_id, start: now, counted });
            }
            ClrEvent::MethodLoadVerbose(method) if method.method_flags.contains(MethodFlags::JITTED) => {
                report.methods = report.methods.saturating_add(1);
                report.timeline.add(now, 1);
                let name = method.method_name.to_string();
                if name == "Main" || name == "<Main>$" {
                    self.step(now, format!("method {}.{name} compiled", method.method_namespace));
                }
                let took = self.compiled((event.process_id(), event.thread_id()), method.method_id, now);
                self.report.method_time = sum(self.report.method_time, took);
            }
            ClrEvent::R2RGetEntryPoint(_) => report.precompiled = report.precompiled.saturating_add(1),
            ClrEvent::TypeLoadStart(_) => self.begin(key(Kind::Type), now),
            ClrEvent::TypeLoadStop(_) => {
                report.types = report.types.saturating_add(1);
                let took = self.end(key(Kind::Type), now);
                self.report.type_time = sum(self.report.type_time, took);
            }
            ClrEvent::ExceptionStart(thrown) => {
                report.exceptions = report.exceptions.saturating_add(1);
                self.step(now, format!("exception {}", thrown.exception_type));
            }
            _ => return,
        }
        self.has_any = true;
    }

    fn step(&mut self, time: RelativeTime, what: String) {
        if self.report.steps.len() < MAX_STEPS {
            self.report.steps.push(Step { time, what });
        }
    }

    fn begin(&mut self, key: (Option<u64>, ThreadId, Kind), now: RelativeTime) {
        let (depth, _) = self.nested.entry(key).or_insert((0, now));
        *depth = depth.saturating_add(1);
    }

    /// Ends a step and returns its duration if it is the outermost one.
    fn end(&mut self, key: (Option<u64>, ThreadId, Kind), now: RelativeTime) -> Option<Duration> {
        let (depth, since) = self.nested.get_mut(&key)?;
        *depth = depth.saturating_sub(1);
        let took = now.abs_diff(*since);
        if *depth == 0 {
            self.nested.remove(&key);
            return Some(took);
        }
        None
    }

    /// Ends a compilation and returns its duration without the part that is already counted, if its beginning
    /// was seen.
    fn compiled(
        &mut self,
        key: (Option<u64>, ThreadId),
        method_id: u64,
        now: RelativeTime,
    ) -> Option<Duration> {
        let compiling = self.compiling.get_mut(&key)?;
        let place = compiling.iter().rposition(|begun| begun.method_id == method_id)?;
        // Later ones began within it, and will not end.
        let mut ended = compiling.drain(place..);
        let first = ended.next()?;
        let counted = ended.fold(first.counted, |sum, within| sum.saturating_add(within.counted));
        let took = now.abs_diff(first.start).saturating_sub(counted);
        if let Some(outer) = compiling.last_mut() {
            outer.counted = outer.counted.saturating_add(counted).saturating_add(took);
        }
        Some(took)
    }

    /// Returns the report; `None` if there was nothing.
    pub fn finish(mut self) -> Option<StartupReport> {
        let named = self.named.or_else(|| self.versions.keys().min().copied().map(NamedProcess));
        if let Some(NamedProcess(process)) = named {
            self.report.process = process;
            self.report.runtime = self.versions.remove(&process);
        }
        self.has_any.then_some(self.report)
    }
}
