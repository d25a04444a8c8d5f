//! `dipc dump analyze CORE tasks`: the tasks of the heap by state and by what they run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Address, Dump, TaskGroup, TaskGroups, TaskStatus, TaskWork};
use clr_events::csharp::async_method;
use nettrace_export::Pattern;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::{method_text, type_text};
use crate::render::table::{Align, Columns};
use crate::render::{output, units, width};

/// The default number of rows that are shown.
const ROWS: usize = 30;

#[derive(Debug, Args)]
pub(super) struct TasksArgs {
    /// Only tasks with this text in their state, their method or their type; '*' matches any text
    #[arg(long = "type", value_name = "TYPE")]
    of: Option<String>,
    /// Show the tasks that have ended well, too
    #[arg(long)]
    all: bool,
    /// Number of rows to show [default: 30 in a table, else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &TasksArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let tasks = dump.awaits().tasks().map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    core_heap::check(source, &tasks.walk)?;
    let list = List::new(dump, &tasks, args);
    match format {
        Format::Table => output::print(text(&list, args.head.unwrap_or(ROWS)))?,
        Format::Json => output::print_json(&Report::new(&list, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if core_heap::is_whole(&tasks.walk) && !tasks.is_truncated { Exit::Done } else { Exit::Incomplete })
}

/// The tasks of a heap.
struct List {
    /// The number of tasks in each state.
    states: BTreeMap<TaskStatus, u64>,
    rows: Vec<Row>,
    is_incomplete: bool,
}

/// Tasks in one state with one method and one type.
struct Row {
    status: TaskStatus,
    /// The method; `None` of tasks that other objects end.
    method: Option<String>,
    type_name: String,
    is_async: bool,
    count: u64,
    first: Address,
}

impl List {
    fn new(dump: &Dump<'_>, tasks: &TaskGroups, args: &TasksArgs) -> Self {
        let pattern = args.of.as_deref().map(Pattern::new);
        let mut states = BTreeMap::new();
        let mut rows: BTreeMap<(TaskStatus, Option<String>, String), Row> = BTreeMap::new();
        for group in &tasks.groups {
            *states.entry(group.status).or_default() += group.count;
            let type_name = dump.types().name(group.type_handle);
            let type_name = type_text(type_name.as_deref(), group.type_handle.get());
            let method = method(dump, group);
            let is_meant = pattern.as_ref().is_none_or(|of| {
                let texts = [Some(group.status.name()), method.as_deref(), Some(&*type_name)];
                texts.into_iter().flatten().any(|text| of.matches(text))
            });
            let is_shown = args.all || pattern.is_some() || group.status != TaskStatus::RanToCompletion;
            if !is_meant || !is_shown {
                continue;
            }
            let key = (group.status, method.clone(), type_name.clone());
            let row = rows.entry(key).or_insert(Row {
                status: group.status,
                method,
                type_name,
                is_async: matches!(group.work, TaskWork::Method(_)),
                count: 0,
                first: group.first,
            });
            row.count += group.count;
        }
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by_key(|row| (row.status.is_completed(), std::cmp::Reverse(row.count)));
        let is_incomplete = tasks.is_truncated || !core_heap::is_whole(&tasks.walk);
        Self { states, rows, is_incomplete }
    }

    fn count(&self) -> u64 {
        self.states.values().sum()
    }
}

/// The method that a task runs.
fn method(dump: &Dump<'_>, group: &TaskGroup) -> Option<String> {
    match group.work {
        TaskWork::Method(machine) => async_method(&dump.types().name(machine)?),
        TaskWork::Delegate(delegate) => method_text(&dump.heap().delegate_method(delegate)?),
        _ => None,
    }
}

/// The state of the tasks in one sentence.
fn answer(list: &List) -> String {
    let pending: u64 =
        list.states.iter().filter(|(status, _)| !status.is_completed()).map(|(_, count)| count).sum();
    let state = |status: TaskStatus, one: &str, many: &str| {
        let count = list.states.get(&status).copied().unwrap_or_default();
        (count > 0).then(|| units::counted(count, one, many))
    };
    let parts = [
        state(TaskStatus::WaitingToRun, "waits for a thread", "wait for a thread"),
        state(TaskStatus::Running, "runs", "run"),
        state(TaskStatus::WaitingForActivation, "waits for what ends it", "wait for what ends them"),
        state(TaskStatus::WaitingForChildrenToComplete, "waits for its children", "wait for their children"),
        state(TaskStatus::Created, "was not started", "were not started"),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let mut text = format!("{} not ended{parts}", units::counted(pending, "task has", "tasks have"));
    let ended = [
        state(TaskStatus::Faulted, "ended with an exception", "ended with an exception"),
        state(TaskStatus::Canceled, "was canceled", "were canceled"),
    ];
    for part in ended.into_iter().flatten() {
        let _ = write!(text, ", {part}");
    }
    text
}

fn text(list: &List, most: usize) -> String {
    use Align::{Left, Right};
    let mut text = width::wrapped(&(answer(list) + "\n"), width::of_output());
    if !list.rows.is_empty() {
        text.push('\n');
        let mut columns = Columns::new([("TASKS", Right), ("STATE", Left), ("METHOD", Left), ("TYPE", Left)]);
        for row in list.rows.iter().take(most) {
            columns.row([
                units::count(row.count),
                row.status.name().to_owned(),
                row.method.clone().unwrap_or_default(),
                // The box of a method has its name once more.
                if row.is_async { "async method".to_owned() } else { row.type_name.clone() },
            ]);
        }
        text.push_str(&columns.fitted(&["TYPE"]));
    }
    let left = list.rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left as u64));
    }
    text.push_str("Tasks that nothing refers to are counted, too, until a collection removes them\n");
    if list.is_incomplete {
        text.push_str("The heap was not read to its end: tasks can be missing\n");
    }
    text
}

#[derive(Debug, Serialize)]
struct Report {
    /// The state of the tasks in one sentence.
    answer: String,
    /// All tasks of the heap, also those that nothing refers to.
    tasks: u64,
    /// The number of tasks in each state, by the names of `Task.Status`.
    states: BTreeMap<&'static str, u64>,
    complete: bool,
    rows: Vec<RowReport>,
}

#[derive(Debug, Serialize)]
struct RowReport {
    state: &'static str,
    /// Null for tasks that other objects end, and those that have ended and called a delegate.
    method: Option<String>,
    r#type: String,
    tasks: u64,
    /// The address of the first of them.
    first: String,
}

impl Report {
    fn new(list: &List, most: usize) -> Self {
        let row = |row: &Row| RowReport {
            state: row.status.name(),
            method: row.method.clone(),
            r#type: row.type_name.clone(),
            tasks: row.count,
            first: row.first.to_string(),
        };
        Self {
            answer: answer(list),
            tasks: list.count(),
            states: list.states.iter().map(|(status, count)| (status.name(), *count)).collect(),
            complete: !list.is_incomplete,
            rows: list.rows.iter().take(most).map(row).collect(),
        }
    }
}
