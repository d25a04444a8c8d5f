//! `dipc dump analyze CORE channels`: the channels of the heap, with what waits for each.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Channel, ChannelWaiter, Channels, Dump};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Failure};
use crate::inspect::await_name::{await_name, is_of_program};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::type_text;
use crate::render::table::{Align, Columns};
use crate::render::{output, units, width};

/// The default number of rows that are shown.
const ROWS: usize = 30;
/// Maximum number of methods of a row of the table.
const METHODS: usize = 3;

#[derive(Debug, Args)]
pub(super) struct ChannelsArgs {
    /// Number of channels to show, those with waiting writers first, then by items [default: 30 in a table,
    /// else all]
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N")]
    head: Option<usize>,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &ChannelsArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let channels =
        dump.awaits().channels().map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    core_heap::check(source, &channels.walk)?;
    let list = List::new(dump, &channels);
    match format {
        Format::Table => output::print(text(&list, args.head.unwrap_or(ROWS)))?,
        Format::Json => output::print_json(&Report::new(&list, args.head.unwrap_or(usize::MAX)))?,
    }
    Ok(if list.is_complete { Exit::Done } else { Exit::Incomplete })
}

/// The channels of a heap, those with waiting writers first.
struct List<'c> {
    rows: Vec<Row<'c>>,
    is_complete: bool,
}

struct Row<'c> {
    channel: &'c Channel,
    type_name: String,
    /// The methods that wait to read and to write, with the number of operations of each.
    readers: BTreeMap<String, u64>,
    writers: BTreeMap<String, u64>,
}

impl<'c> List<'c> {
    fn new(dump: &Dump<'_>, channels: &'c Channels) -> Self {
        let row = |channel: &'c Channel| Row {
            channel,
            type_name: type_text(
                dump.types().name(channel.type_handle).as_deref(),
                channel.type_handle.get(),
            ),
            readers: methods(dump, &channel.readers),
            writers: methods(dump, &channel.writers),
        };
        let mut rows: Vec<_> = channels.channels.iter().map(row).collect();
        rows.sort_by_key(|row| {
            let Channel { writers, readers, items, .. } = row.channel;
            Reverse((writers.len(), *items, readers.len()))
        });
        Self { rows, is_complete: core_heap::is_whole(&channels.walk) && !channels.is_truncated }
    }
}

/// The methods that wait, with the number of operations that each awaits.
fn methods(dump: &Dump<'_>, waiters: &[ChannelWaiter]) -> BTreeMap<String, u64> {
    let mut methods = BTreeMap::new();
    for waiter in waiters {
        let of_program = waiter.chain.iter().find(|node| is_of_program(dump, node));
        let name = of_program.or_else(|| waiter.chain.first()).map(|node| await_name(dump, node));
        *methods.entry(name.unwrap_or_else(|| "nothing that is known".to_owned())).or_default() += 1;
    }
    methods
}

/// The state of the channels in one sentence.
fn answer(list: &List<'_>) -> String {
    if list.rows.is_empty() {
        return "The heap has no channel".to_owned();
    }
    let channels = || list.rows.iter().map(|row| row.channel);
    let items = channels().filter_map(|channel| channel.items).fold(0, u64::saturating_add);
    let writers: usize = channels().map(|channel| channel.writers.len()).sum();
    let readers: usize = channels().map(|channel| channel.readers.len()).sum();
    let full = channels().filter(|channel| channel.is_full()).count();
    let mut text = format!(
        "{} with {}",
        units::counted(list.rows.len() as u64, "channel", "channels"),
        units::counted(items, "item", "items"),
    );
    if full > 0 {
        let _ = write!(text, ", {}", units::counted(full as u64, "of them full", "of them full"));
    }
    let _ = write!(
        text,
        "; {} to write, {} to read",
        units::counted(writers as u64, "waits", "wait"),
        units::count(readers as u64)
    );
    text
}

fn text(list: &List<'_>, most: usize) -> String {
    use Align::{Left, Right};
    let mut text = width::wrapped(&(answer(list) + "\n"), width::of_output());
    if !list.rows.is_empty() {
        text.push('\n');
        let mut columns = Columns::new([
            ("ITEMS", Right),
            ("CAPACITY", Right),
            ("STATE", Left),
            ("CHANNEL", Left),
            ("WAITING TO WRITE", Left),
            ("WAITING TO READ", Left),
        ]);
        for row in list.rows.iter().take(most) {
            columns.row([
                row.channel.items.map_or_else(|| "?".to_owned(), units::count),
                row.channel.capacity.map_or_else(|| "-".to_owned(), units::count),
                state(row.channel).to_owned(),
                row.type_name.rsplit_once("Channels.").map_or(&*row.type_name, |(_, own)| own).to_owned(),
                waiting(&row.writers),
                waiting(&row.readers),
            ]);
        }
        text.push_str(&columns.fitted(&["CHANNEL", "WAITING TO WRITE", "WAITING TO READ"]));
    }
    let left = list.rows.len().saturating_sub(most);
    if left > 0 {
        let _ = writeln!(text, "({} more)", units::count(left as u64));
    }
    if !list.is_complete {
        text.push_str("The heap was not read to its end: channels and waiters can be missing\n");
    }
    text
}

fn state(channel: &Channel) -> &'static str {
    match channel.is_completed {
        true => "completed",
        false if channel.is_full() => "full",
        false => "",
    }
}

fn waiting(methods: &BTreeMap<String, u64>) -> String {
    let mut methods: Vec<_> = methods.iter().collect();
    methods.sort_by_key(|(_, count)| Reverse(**count));
    let mut text: Vec<_> = methods
        .iter()
        .take(METHODS)
        .map(|(name, count)| if **count == 1 { (*name).clone() } else { format!("{name} ({count})") })
        .collect();
    let left = methods.len().saturating_sub(METHODS);
    if left > 0 {
        text.push(format!("{left} more"));
    }
    text.join(", ")
}

#[derive(Debug, Serialize)]
struct Report<'c> {
    /// The state of the channels in one sentence.
    answer: String,
    channels: u64,
    complete: bool,
    rows: Vec<RowReport<'c>>,
}

#[derive(Debug, Serialize)]
struct RowReport<'c> {
    address: String,
    r#type: &'c str,
    /// The items that are unread; null if the dump lacks them.
    items: Option<u64>,
    /// Null if any number of items is kept.
    capacity: Option<u64>,
    full: bool,
    /// True if nothing is written any more.
    completed: bool,
    /// The number of operations that wait, and the methods that await them.
    writers: u64,
    readers: u64,
    waiting_to_write: &'c BTreeMap<String, u64>,
    waiting_to_read: &'c BTreeMap<String, u64>,
}

impl<'c> Report<'c> {
    fn new(list: &'c List<'c>, most: usize) -> Self {
        let row = |row: &'c Row<'c>| RowReport {
            address: row.channel.address.to_string(),
            r#type: &row.type_name,
            items: row.channel.items,
            capacity: row.channel.capacity,
            full: row.channel.is_full(),
            completed: row.channel.is_completed,
            writers: row.channel.writers.len() as u64,
            readers: row.channel.readers.len() as u64,
            waiting_to_write: &row.writers,
            waiting_to_read: &row.readers,
        };
        Self {
            answer: answer(list),
            channels: list.rows.len() as u64,
            complete: list.is_complete,
            rows: list.rows.iter().take(most).map(row).collect(),
        }
    }
}
