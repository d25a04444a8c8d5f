//! `dipc dump analyze CORE async`: chains of awaits.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use clr_dump::{Address, AwaitChains, AwaitGroup, AwaitKind, AwaitNode, ChainEnd, Delay, TypeHandle};
use clr_events::csharp::async_method;
use nettrace_export::Pattern;
use serde::Serialize;

use super::stacks::label;
use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_dump::{Analysis, ManagedThread};
use crate::inspect::core_heap;
use crate::inspect::core_lines::FrameLine;
use crate::inspect::core_text::{method_text, type_text};
use crate::render::escape::escape_controls;
use crate::render::{output, units, width};

/// The default number of chains that are shown.
const CHAINS: usize = 30;
/// Maximum number of lines of a chain in a table.
const MAX_LINES: usize = 100;

#[derive(Debug, Args)]
pub(crate) struct AsyncArgs {
    /// Only chains with this text in the name of a method or type; '*' matches any text
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) of: Option<String>,
    /// Number of chains to show, counting equal chains once [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    pub(crate) head: Option<usize>,
}

pub(crate) fn print(analysis: &Analysis<'_>, args: &AsyncArgs, format: Format) -> Result<Exit, Failure> {
    let chains = analysis
        .dump
        .awaits()
        .chains()
        .map_err(|missing| core_heap::lacks(analysis.source, &missing.to_string()))?;
    core_heap::check(analysis.source, &chains.walk)?;
    let texts = Texts { analysis, threads: waiting_threads(analysis, &chains) };
    let pattern = args.of.as_deref().map(Pattern::new);
    let is_meant = |group: &&AwaitGroup| {
        pattern.as_ref().is_none_or(|of| group.nodes.iter().any(|node| of.matches(&texts.name(node))))
    };
    let groups: Vec<_> = chains.groups.iter().filter(is_meant).collect();
    match format {
        Format::Json => output::print_json(&Report::new(&texts, &chains, &groups, args.head))?,
        Format::Table => output::print(text(&texts, &chains, &groups, args.head.unwrap_or(CHAINS)))?,
    }
    let is_whole = chains.walk.gaps.is_empty() && !chains.is_truncated && !chains.walk.is_moving;
    Ok(if is_whole { Exit::Done } else { Exit::Incomplete })
}

/// The threads with stacks that refer to the events of chains, keyed by event address. An event that several
/// threads refer to is left out: the waiting thread is unknown.
fn waiting_threads<'a>(
    analysis: &'a Analysis<'_>,
    chains: &AwaitChains,
) -> HashMap<Address, &'a ManagedThread> {
    let nodes = chains.groups.iter().flat_map(|group| &group.nodes);
    let events: Vec<_> =
        nodes.filter(|node| node.kind == AwaitKind::Thread).map(|node| node.address).collect();
    let mut found: HashMap<Address, Option<&ManagedThread>> = HashMap::new();
    if events.is_empty() {
        return HashMap::new();
    }
    for thread in &analysis.threads {
        let registers = analysis.source.core().and_then(|core| core.registers(thread.thread.os_id));
        let words =
            analysis.dump.heap().stack_words(&thread.thread, &thread.stack, registers).unwrap_or_default();
        for event in events.iter().filter(|event| words.binary_search(event).is_ok()) {
            found.entry(*event).and_modify(|other| *other = None).or_insert(Some(thread));
        }
    }
    found.into_iter().filter_map(|(event, thread)| Some((event, thread?))).collect()
}

/// Formats the objects of chains.
struct Texts<'a> {
    analysis: &'a Analysis<'a>,
    threads: HashMap<Address, &'a ManagedThread>,
}

impl Texts<'_> {
    fn type_name(&self, type_handle: TypeHandle) -> String {
        type_text(self.analysis.dump.types().name(type_handle).as_deref(), type_handle.get())
    }

    /// The `async` method of a state machine, or its type where the compiler named it in another way.
    fn method(&self, node: &AwaitNode, state_machine: Option<TypeHandle>) -> String {
        let of = state_machine.unwrap_or(node.type_handle);
        match self.analysis.dump.types().name(of) {
            Some(name) => async_method(&name).unwrap_or_else(|| type_text(Some(&name), of.get())),
            None => of.to_string(),
        }
    }

    /// The `async` method of a call that the runtime suspended.
    fn suspended_method(&self, node: &AwaitNode) -> Option<String> {
        method_text(&self.analysis.dump.awaits().suspended_method(node)?)
    }

    /// The method that a delegate calls.
    fn delegate(&self, delegate: Address) -> Option<String> {
        method_text(&self.analysis.dump.heap().delegate_method(delegate)?)
    }

    /// The method, or the type of the object.
    fn name(&self, node: &AwaitNode) -> String {
        match node.kind {
            AwaitKind::Method { state_machine, .. } => self.method(node, state_machine),
            AwaitKind::SuspendedCall { .. } => self
                .suspended_method(node)
                .unwrap_or_else(|| format!("{} (its code is not known)", self.type_name(node.type_handle))),
            _ => self.type_name(node.type_handle),
        }
    }

    /// The source line of the `await` at which a method is.
    fn source_line(&self, node: &AwaitNode) -> Option<FrameLine> {
        let (method, il_offset) = self.analysis.dump.awaits().await_place(node)?;
        self.analysis.line_of(&method, il_offset)
    }

    fn suffix(&self, node: &AwaitNode) -> String {
        self.source_line(node).map_or_else(String::new, |line| line.suffix())
    }

    /// The line of an object in a chain.
    fn line(&self, node: &AwaitNode) -> String {
        let name = self.name(node);
        match node.kind {
            AwaitKind::Method { state: Some(state), .. } if state >= 0 => {
                format!("{name}, await {state}{}", self.suffix(node))
            }
            AwaitKind::SuspendedCall { .. } => name + &self.suffix(node),
            AwaitKind::Method { state: Some(-1), .. } => format!("{name}, running or about to run"),
            AwaitKind::Task { delay: Some(Delay::Elapsed), .. } => {
                format!("{name}: a delay that has elapsed; what follows waits for a thread of the pool")
            }
            AwaitKind::Task { delay: Some(Delay::Running(delay)), .. } => {
                format!("{name}: a delay of {}", units::time(Duration::from_millis(delay.into())))
            }
            AwaitKind::Task { action: Some(action), is_running, .. } => {
                let state = if is_running { "runs" } else { "has not begun" };
                match self.delegate(action) {
                    Some(method) => format!("{name}: {method} {state}"),
                    None => format!("{name}: its delegate {state}"),
                }
            }
            AwaitKind::Task { action: None, is_running: true, .. } => {
                format!("{name}: its methods run, or are about to")
            }
            AwaitKind::Callback => match self.delegate(node.address) {
                Some(method) => format!("then {method} is called"),
                None => format!("then a {name} is called"),
            },
            AwaitKind::Thread => match self.threads.get(&node.address) {
                Some(thread) => format!("thread {} waits for it", label(thread)),
                None => "a thread waits for it".to_owned(),
            },
            _ => name,
        }
    }
}

fn text(texts: &Texts<'_>, chains: &AwaitChains, groups: &[&AwaitGroup], most: usize) -> String {
    let room = width::of_output().map_or(usize::MAX, |width| width.saturating_sub(2).max(1));
    let mut text = format!(
        "{} that {} not ended, in {}\n",
        units::counted(chains.methods, "async method", "async methods"),
        if chains.methods == 1 { "has" } else { "have" },
        units::counted(chains.chains, "chain of awaits", "chains of awaits"),
    );
    for group in groups.iter().take(most) {
        let first = group.nodes.first().map_or_else(Address::default, |node| node.address);
        let count = units::counted(group.count, "chain", "chains");
        let which = if group.count == 1 { "from" } else { "the first from" };
        let _ = writeln!(text, "\n{count}, {which} {first:#x}:");
        let mut push = |line: &str| {
            let _ = writeln!(text, "  {}", width::cut(&escape_controls(line), room));
        };
        for node in group.nodes.iter().take(MAX_LINES) {
            push(&texts.line(node));
        }
        let left = group.nodes.len().saturating_sub(MAX_LINES);
        if left > 0 {
            push(&format!("({} more)", units::count(left as u64)));
        }
        match group.end {
            ChainEnd::Cycle(at) => {
                let name = group.nodes.get(at).map_or_else(String::new, |node| texts.name(node));
                push(&format!("and {name}, above, waits for it: none of them ever ends"));
            }
            ChainEnd::Cut => push("(longer chains are not read)"),
            _ => {}
        }
    }
    let left = groups.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "\n({} more)", units::count(left as u64));
    }
    if let Some(line) = starvation(chains) {
        let _ = write!(text, "\n{}", width::wrapped(&(line + "\n"), width::of_output()));
    }
    for line in missing(chains) {
        let _ = writeln!(text, "\n{line}");
    }
    text
}

/// The number of chains that begin with a delay that has elapsed: each waits for a thread of the pool.
pub(super) fn elapsed_delays(chains: &AwaitChains) -> u64 {
    let is_elapsed = |group: &&AwaitGroup| {
        let first = group.nodes.first().map(|node| node.kind);
        matches!(first, Some(AwaitKind::Task { delay: Some(Delay::Elapsed), .. }))
    };
    chains.groups.iter().filter(is_elapsed).map(|group| group.count).sum()
}

/// Returns sentences about the async methods that have not ended.
pub(crate) fn summary(chains: &AwaitChains) -> String {
    let verb = if chains.methods == 1 { "has" } else { "have" };
    let methods = units::counted(chains.methods, "async method", "async methods");
    let count = units::counted(chains.chains, "chain of awaits", "chains of awaits");
    let mut text = format!("{methods} {verb} not ended, in {count}: dump analyze CORE async\n");
    text.extend(starvation(chains).map(|line| line + "\n"));
    text
}

/// Returns a sentence about delays that have elapsed and that no thread of the pool continues.
pub(crate) fn starvation(chains: &AwaitChains) -> Option<String> {
    let count = elapsed_delays(chains);
    let delays = units::counted(count, "delay has elapsed and waits", "delays have elapsed and wait");
    (count > 0).then(|| {
        format!("{delays} for a thread of the pool: all of its threads are busy or blocked (starvation); the stacks show the cause")
    })
}

/// Sentences about missing data.
fn missing(chains: &AwaitChains) -> Vec<&'static str> {
    let mut missing = Vec::new();
    if chains.is_truncated {
        missing.push("There are more objects or chains than are read");
    }
    if !chains.walk.gaps.is_empty() {
        missing.push("The heap is not all in the dump: methods can be missing");
    }
    if chains.walk.is_moving {
        missing.push("A collection was moving objects: methods can be missing or counted twice");
    }
    missing
}

#[derive(Debug, Serialize)]
struct Report {
    /// Async methods that have not ended.
    methods: u64,
    chains: u64,
    /// Chains that begin with a delay that has elapsed: each waits for a thread of the pool.
    elapsed_delays: u64,
    complete: bool,
    missing: Vec<&'static str>,
    /// Groups of equal chains, largest first.
    groups: Vec<GroupReport>,
}

#[derive(Debug, Serialize)]
struct GroupReport {
    chains: u64,
    /// `whole`, `cycle` or `cut`.
    end: &'static str,
    /// For a cycle: the index of the link that waits for the last link.
    #[serde(skip_serializing_if = "Option::is_none")]
    cycle_to: Option<usize>,
    /// The first chain: each link waits for the previous link.
    links: Vec<LinkReport>,
}

#[derive(Debug, Serialize)]
struct LinkReport {
    /// `method`, `task`, `source`, `callback`, `thread` or `other`.
    kind: &'static str,
    address: String,
    r#type: String,
    /// The async method; of a task or callback, the method that it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The number of the await in the source, from 0; negative while the method runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<i32>,
    /// The source line of this await, if a PDB has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_running: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u32>,
    /// True if the delay has elapsed: the rest of the chain waits for a thread of the pool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    delay_elapsed: bool,
    /// The thread that waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u64>,
}

impl Report {
    fn new(texts: &Texts<'_>, chains: &AwaitChains, groups: &[&AwaitGroup], most: Option<usize>) -> Self {
        let missing = missing(chains);
        Self {
            methods: chains.methods,
            chains: chains.chains,
            elapsed_delays: elapsed_delays(chains),
            complete: missing.is_empty(),
            missing,
            groups: groups
                .iter()
                .take(most.unwrap_or(usize::MAX))
                .map(|group| GroupReport::new(texts, group))
                .collect(),
        }
    }
}

impl GroupReport {
    fn new(texts: &Texts<'_>, group: &AwaitGroup) -> Self {
        let (end, cycle_to) = match group.end {
            ChainEnd::Cycle(at) => ("cycle", Some(at)),
            ChainEnd::Cut => ("cut", None),
            _ => ("whole", None),
        };
        let links = group.nodes.iter().map(|node| LinkReport::new(texts, node)).collect();
        Self { chains: group.count, end, cycle_to, links }
    }
}

impl LinkReport {
    fn new(texts: &Texts<'_>, node: &AwaitNode) -> Self {
        let (file, line) = texts.source_line(node).map(|of| (of.file.to_string(), of.line)).unzip();
        let mut report = Self {
            kind: "other",
            file,
            line,
            address: format!("{:#x}", node.address),
            r#type: texts.type_name(node.type_handle),
            method: None,
            state: None,
            is_running: None,
            delay_ms: None,
            delay_elapsed: false,
            tid: None,
        };
        match node.kind {
            AwaitKind::Method { state_machine, state } => {
                report.kind = "method";
                report.method = Some(texts.method(node, state_machine));
                report.state = state;
            }
            AwaitKind::Task { action, is_running, delay } => {
                report.kind = "task";
                report.method = action.and_then(|action| texts.delegate(action));
                report.is_running = action.is_some().then_some(is_running);
                match delay {
                    Some(Delay::Running(milliseconds)) => report.delay_ms = Some(milliseconds),
                    Some(Delay::Elapsed) => report.delay_elapsed = true,
                    _ => {}
                }
            }
            AwaitKind::SuspendedCall { .. } => {
                report.kind = "method";
                report.method = texts.suspended_method(node);
            }
            AwaitKind::Source => report.kind = "source",
            AwaitKind::Callback => {
                report.kind = "callback";
                report.method = texts.delegate(node.address);
            }
            AwaitKind::Thread => {
                report.kind = "thread";
                report.tid = texts.threads.get(&node.address).map(|thread| thread.thread.os_id);
            }
            _ => {}
        }
        report
    }
}
