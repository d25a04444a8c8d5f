//! The table of owners, with the limits and what is not known below it.

use std::fmt::Write as _;

use clr_dump::{GenerationUse, MemoryOwner, NativeArena, OwnedMemory};
use dipc_collect::memory::{MemoryGroup, MemoryReading, first_line, owner_name};

use crate::render::escape::escape_controls;
use crate::render::table::{Align, Columns, heading};
use crate::render::{units, width};

/// The width of the labels below the table.
const LABEL: usize = 14;
/// The width of the lines of a list of what is not known, where the terminal's is not known.
const WIDTH: usize = 80;

pub(super) fn text(reading: &MemoryReading, rows: Option<usize>, width: Option<usize>) -> String {
    let mut text = width::wrapped(&format!("{}\n\n", escape_controls(&first_line(reading))), width);
    text.push_str(&table(reading).fitted_to(width, &["DIRTY", "SWAP"]));
    text.push('\n');
    for (label, value) in lines(reading) {
        let room = width.unwrap_or(WIDTH).saturating_sub(LABEL + 1).max(20);
        for (index, part) in width::filled(&escape_controls(&value), room).iter().enumerate() {
            let _ = writeln!(text, "{:<LABEL$} {part}", if index == 0 { label } else { "" });
        }
    }
    for owned in rows.map(|_| &*reading.account.owners).unwrap_or_default() {
        text.push_str(&parts(owned, reading, rows.unwrap_or_default(), width));
    }
    text
}

fn table(reading: &MemoryReading) -> Columns {
    let account = &reading.account;
    let has_swap = account.total.swap > 0;
    let mut headings = vec![
        ("OWNER", Align::Left),
        (if reading.is_dump() { "BYTES" } else { "RSS" }, Align::Right),
        ("%", Align::Right),
    ];
    headings.extend((!reading.is_dump()).then_some(("DIRTY", Align::Right)));
    headings.extend(has_swap.then_some(("SWAP", Align::Right)));
    headings.push(("DETAILS", Align::Left));
    let mut columns = Columns::new(headings);
    let mut row = |name: &str, sizes: &linux_proc_stat::MappingSizes, details: String| {
        let share = units::share(sizes.resident, account.total.resident);
        let mut cells = vec![name.to_owned(), units::bytes(sizes.resident), format!("{share:.1}")];
        cells.extend((!reading.is_dump()).then(|| units::bytes(sizes.private_dirty)));
        cells.extend(has_swap.then(|| units::bytes(sizes.swap)));
        cells.push(details);
        columns.row(cells);
    };
    for owned in &account.owners {
        row(&owner_name(owned.owner, reading), &owned.sizes, details(owned, reading));
    }
    let all = if reading.is_dump() { "All in the dump" } else { "All resident (RSS)" };
    row(all, &account.total, String::new());
    columns
}

/// The contents of an owner's memory, in a few words.
fn details(owned: &OwnedMemory, reading: &MemoryReading) -> String {
    let account = &reading.account;
    let counted = |one: &str, many: &str| units::counted(owned.part_count, one, many);
    match owned.owner {
        MemoryOwner::Generation(_) | MemoryOwner::FrozenObjects => {
            let of = account.generations.iter().find(|of| of.owner == owned.owner);
            of.map_or_else(String::new, generation)
        }
        MemoryOwner::NativeHeap => account.native_heap.as_ref().map_or_else(
            |_| String::new(),
            |heap| {
                let free = units::bytes(heap.held());
                format!("{}, {free} free", units::counted(heap.arenas.len() as u64, "arena", "arenas"))
            },
        ),
        MemoryOwner::ThreadStacks => {
            let threads = owned.parts.iter().filter(|part| part.tid.is_some()).count();
            units::counted(threads as u64, "thread", "threads")
        }
        MemoryOwner::Assemblies | MemoryOwner::NativeLibraries | MemoryOwner::MappedFiles => {
            counted("file", "files")
        }
        MemoryOwner::SharedMemory | MemoryOwner::Unknown => counted("mapping", "mappings"),
        _ => String::new(),
    }
}

fn generation(of: &GenerationUse) -> String {
    let mut text = format!("used {}", units::bytes(of.used));
    if let Some(free) = of.free.filter(|free| *free > 0) {
        let _ = write!(text, ", free {}", units::bytes(free));
    }
    text
}

/// The lines below the table.
fn lines(reading: &MemoryReading) -> Vec<(&'static str, String)> {
    let account = &reading.account;
    let bytes = units::bytes;
    let mut lines = Vec::new();
    if reading.is_dump() {
        let text = "bytes in the dump, which are not the memory that was resident: a dump has what was written to it";
        lines.push(("Measured", text.to_owned()));
    } else {
        let mut text = format!(
            "{} PSS, {} private and dirty",
            bytes(account.total.proportional),
            bytes(account.total.private_dirty)
        );
        let swap = Some(account.total.swap).filter(|swap| *swap > 0).map(|swap| (swap, "swapped out"));
        let lazily = Some(account.total.lazily_freed).filter(|lazily| *lazily > 0);
        let lazily = lazily.map(|lazily| (lazily, "given back and not taken yet"));
        let peak = reading.process.peak_resident.map(|peak| (peak, "resident at most"));
        let reserved = reading.process.virtual_size.map(|size| (size, "of addresses"));
        let tables = reading.process.page_tables.map(|tables| (tables, "of page tables besides"));
        for (size, what) in [swap, lazily, peak, reserved, tables].into_iter().flatten() {
            let _ = write!(text, ", {} {what}", bytes(size));
        }
        lines.push(("Process", text));
    }
    if !account.generations.is_empty() {
        lines.push(("GC heap", heap_line(reading)));
    }
    if let Ok(heap) = &account.native_heap {
        let used = heap.sum(NativeArena::used);
        let mut text = format!(
            "{} in use, {} free and resident, {} free and returned",
            bytes(used),
            bytes(heap.held()),
            bytes(heap.sum(|arena| arena.returned))
        );
        if let Some(mapped) = heap.mapped.filter(|mapped| *mapped > 0) {
            let _ = write!(text, ", {} in blocks with mappings of their own", bytes(mapped));
        }
        lines.push(("Native heap", text));
    }
    if let Some(group) = &reading.group {
        lines.push(("Control group", group_line(group)));
    }
    if let Some(limit) = reading.heap_limit() {
        lines.push(("GC heap limit", format!("{}, by {}", bytes(limit.bytes), limit.source)));
    }
    if !reading.settings.is_empty() {
        let settings: Vec<_> =
            reading.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.push(("Settings", settings.join(" ")));
    }
    lines.extend(reading.missing.iter().map(|missing| ("Not seen", missing.clone())));
    lines
}

/// The managed heap as its collector counts it.
fn heap_line(reading: &MemoryReading) -> String {
    let generations = &reading.account.generations;
    let sum = |of: &dyn Fn(&GenerationUse) -> u64| generations.iter().map(of).fold(0, u64::saturating_add);
    let committed = sum(&|of| of.used.saturating_add(of.free.unwrap_or_default()).saturating_add(of.unused));
    format!(
        "{} committed: {} objects and garbage, {} free between them, {} after the last ones",
        units::bytes(committed),
        units::bytes(sum(&|of| of.used)),
        units::bytes(sum(&|of| of.free.unwrap_or_default())),
        units::bytes(sum(&|of| of.unused)),
    )
}

fn group_line(group: &MemoryGroup) -> String {
    let bytes = units::bytes;
    let mut text = match group.limited {
        Some((used, limit)) => format!("{} of {} (limit)", bytes(used), bytes(limit)),
        None => "no limit".to_owned(),
    };
    let _ = write!(text, ", working set {}", bytes(group.working_set));
    if let Some(usage) = group.usage {
        let _ = write!(text, ", {} with pages of files", bytes(usage));
    }
    let events = group.events.unwrap_or_default();
    if let Some(kills) = events.oom_kills.filter(|kills| *kills > 0) {
        let _ = write!(text, ", {} killed for want of memory", units::counted(kills, "process", "processes"));
    }
    if let Some(times) = events.max.filter(|times| *times > 0) {
        let _ = write!(text, ", at the limit {}", units::counted(times, "time", "times"));
    }
    if let Some(pressure) = group.pressure.filter(|pressure| pressure.some_ns > 0) {
        let stalled = std::time::Duration::from_nanos(pressure.some_ns);
        let _ = write!(text, ", stalled for memory {}", units::time(stalled));
    }
    text
}

/// The list of an owner's parts.
fn parts(owned: &OwnedMemory, reading: &MemoryReading, rows: usize, width: Option<usize>) -> String {
    if owned.parts.is_empty() || rows == 0 {
        return String::new();
    }
    let mut text = "\n".to_owned() + &heading(&owner_name(owned.owner, reading));
    let mut columns = Columns::new([
        (if reading.is_dump() { "BYTES" } else { "RSS" }, Align::Right),
        ("ADDRESSES", Align::Right),
        ("PART", Align::Left),
    ]);
    for part in owned.parts.iter().take(rows) {
        let name = match (part.tid, &*part.name) {
            (Some(tid), name) => format!("{tid} {name}"),
            (None, "") => part.address.to_string(),
            (None, name) => name.to_owned(),
        };
        columns.row([units::bytes(part.sizes.resident), units::bytes(part.mapped), name]);
    }
    text.push_str(&columns.fitted_to(width, &["ADDRESSES"]));
    let more = owned.part_count.saturating_sub(rows as u64);
    if more > 0 {
        let _ = writeln!(text, "{}", units::counted(more, "more", "more"));
    }
    text
}
