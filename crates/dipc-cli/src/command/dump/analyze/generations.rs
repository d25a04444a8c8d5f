//! `dipc dump analyze CORE generations`: the generations of the heap, and the largest free blocks in them.

use std::fmt::Write as _;

use clap::Args;
use clr_dump::{Address, Dump, FreeBlock, Handle, HeapContents, HeapRegion};
use serde::Serialize;

use crate::args::format::Format;
use crate::args::heap_paths::parse_address;
use crate::exit::{Exit, Failure};
use crate::inspect::core_heap;
use crate::inspect::core_source::Source;
use crate::inspect::core_text::type_text;
use crate::inspect::heap_generations::{self, GenerationRow, generation_key, generation_text};
use crate::render::table::{Align, Columns, heading};
use crate::render::{messages, output, units};

/// The default number of free blocks to show.
const BLOCKS: usize = 10;

#[derive(Debug, Args)]
pub(super) struct GenerationsArgs {
    /// Show the generation and the region of this address, in hexadecimal
    #[arg(value_name = "ADDRESS", value_parser = parse_address)]
    address: Option<u64>,
    /// Number of the largest free blocks to show, at most 32
    #[arg(short = 'n', long = "rows", alias = "head", value_name = "N", default_value_t = BLOCKS)]
    head: usize,
}

pub(super) fn print(
    source: &Source,
    dump: &Dump<'_>,
    args: &GenerationsArgs,
    format: Format,
) -> Result<Exit, Failure> {
    let regions = dump.heap().regions();
    let regions = regions.map_err(|missing| core_heap::lacks(source, &missing.to_string()))?;
    if let Some(address) = args.address {
        let region = regions.region_of(Address::new(address)).ok_or_else(|| {
            Failure::new(Exit::Failed, format_args!("{address:#x}: not an address of the managed heap"))
        })?;
        let heap = regions.server_heaps().map(|_| region.heap);
        print_region(address, &region, heap, format)?;
        return Ok(Exit::Done);
    }
    let contents = core_heap::contents(source, dump)?;
    let server_heaps = regions.server_heaps();
    match format {
        Format::Table => output::print(text(dump, &contents, server_heaps, args.head))?,
        Format::Json => output::print_json(&Report::new(dump, &contents, server_heaps, args.head))?,
    }
    let missing = contents.walk.missing_bytes();
    if contents.walk.is_moving {
        messages::warning(core_heap::moving(source, missing));
    } else if missing > 0 {
        messages::warning(format_args!("{} of the heap cannot be read", units::bytes(missing)));
    }
    Ok(if core_heap::is_whole(&contents.walk) { Exit::Done } else { Exit::Incomplete })
}

fn print_region(address: u64, region: &HeapRegion, heap: Option<u32>, format: Format) -> Result<(), Failure> {
    if format == Format::Json {
        return output::print_json(&RegionRow {
            address: format!("{address:#x}"),
            generation: generation_key(region.generation),
            heap,
            region_start: region.start.to_string(),
            region_end: region.end.to_string(),
            committed_end: region.committed.to_string(),
        });
    }
    let of_heap = heap.map_or_else(String::new, |heap| format!(" of heap {heap}"));
    output::print(format!(
        "{address:#x}: {}{of_heap}\nRegion: objects from {} to {}, committed to {}\n",
        clr_dump::generation_name(region.generation),
        region.start,
        region.end,
        region.committed
    ))
}

fn text(dump: &Dump<'_>, contents: &HeapContents, server_heaps: Option<u32>, most: usize) -> String {
    use Align::{Left, Right};
    let mut text = format!(
        "{} committed, {} of objects and {} free between them, in {}{}\n\n",
        units::bytes(contents.walk.committed_bytes),
        units::bytes(contents.walk.objects.bytes),
        units::bytes(contents.walk.free.bytes),
        units::counted(contents.walk.regions as u64, "region", "regions"),
        server_heaps.map_or_else(String::new, |heaps| {
            format!(" of {}", units::counted(heaps.into(), "heap", "heaps"))
        })
    );
    text.push_str(&heap_generations::table(&contents.sums(), false));
    if server_heaps.is_some_and(|heaps| heaps > 1) {
        text.push('\n');
        text.push_str(&heap_generations::table(&contents.generations, true));
    }
    if contents.free_blocks.is_empty() || most == 0 {
        return text;
    }
    let _ = write!(text, "\n{}", heading("Largest free blocks"));
    let mut columns = Columns::new([
        ("FREE", Right),
        ("GENERATION", Left),
        ("ADDRESS", Left),
        ("NEXT OBJECT", Left),
        ("PINNED AFTER IT", Left),
        ("PINNED BEFORE IT", Left),
    ]);
    for block in contents.free_blocks.iter().take(most) {
        columns.row([
            units::bytes(block.bytes),
            generation_text(block.generation).to_owned(),
            block.address.to_string(),
            next_type(dump, block).unwrap_or_else(|| "-".to_owned()),
            pinned_text(dump, block.pinned_after),
            pinned_text(dump, block.pinned_before),
        ]);
    }
    text.push_str(&columns.fitted(&["PINNED BEFORE IT", "NEXT OBJECT"]));
    text
}

/// The type of the object after a free block.
fn next_type(dump: &Dump<'_>, block: &FreeBlock) -> Option<String> {
    let of = block.next?.type_handle;
    Some(type_text(dump.types().name(of).as_deref(), of.get()))
}

/// The type and the handle of a pinned object.
fn pinned_text(dump: &Dump<'_>, handle: Option<Handle>) -> String {
    let Some(handle) = handle else { return "-".to_owned() };
    let of = dump.heap().type_of(handle.object).unwrap_or_default();
    format!("{}, handle {}", type_text(dump.types().name(of).as_deref(), of.get()), handle.address)
}

#[derive(Debug, Serialize)]
struct RegionRow {
    address: String,
    generation: &'static str,
    /// The number of the heap of a server's collector; null of a workstation's.
    heap: Option<u32>,
    region_start: String,
    region_end: String,
    committed_end: String,
}

#[derive(Debug, Serialize)]
struct Report {
    objects: u64,
    bytes: u64,
    free_bytes: u64,
    committed_bytes: u64,
    regions: usize,
    /// The number of heaps of a server's collector; null of a workstation's.
    server_heaps: Option<u32>,
    /// Bytes of the heap that could not be read.
    missing_bytes: u64,
    /// True if a collection was moving objects: some can be missing or counted twice.
    moving: bool,
    /// The sums of all heaps.
    generations: Vec<GenerationRow>,
    /// The generations of each heap of a server's collector.
    heaps: Vec<GenerationRow>,
    /// The largest free blocks, the largest first.
    free_blocks: Vec<BlockRow>,
}

#[derive(Debug, Serialize)]
struct BlockRow {
    address: String,
    bytes: u64,
    generation: &'static str,
    next_type: Option<String>,
    pinned_before: Option<PinnedRow>,
    pinned_after: Option<PinnedRow>,
}

/// A pinned object near a free block.
#[derive(Debug, Serialize)]
struct PinnedRow {
    object: String,
    r#type: Option<String>,
    handle: String,
}

impl PinnedRow {
    fn new(dump: &Dump<'_>, handle: &Handle) -> Self {
        Self {
            object: handle.object.to_string(),
            r#type: dump.heap().type_name(handle.object).map(|name| type_text(Some(&name), 0)),
            handle: handle.address.to_string(),
        }
    }
}

impl Report {
    fn new(dump: &Dump<'_>, contents: &HeapContents, server_heaps: Option<u32>, most: usize) -> Self {
        let block = |block: &FreeBlock| BlockRow {
            address: block.address.to_string(),
            bytes: block.bytes,
            generation: generation_key(block.generation),
            next_type: next_type(dump, block),
            pinned_before: block.pinned_before.map(|handle| PinnedRow::new(dump, &handle)),
            pinned_after: block.pinned_after.map(|handle| PinnedRow::new(dump, &handle)),
        };
        let heaps = if server_heaps.is_some() { &contents.generations[..] } else { &[] };
        Self {
            objects: contents.walk.objects.objects,
            bytes: contents.walk.objects.bytes,
            free_bytes: contents.walk.free.bytes,
            committed_bytes: contents.walk.committed_bytes,
            regions: contents.walk.regions,
            server_heaps,
            missing_bytes: contents.walk.missing_bytes(),
            moving: contents.walk.is_moving,
            generations: contents.sums().iter().map(GenerationRow::of_sum).collect(),
            heaps: heaps.iter().map(GenerationRow::of_heap).collect(),
            free_blocks: contents.free_blocks.iter().take(most).map(block).collect(),
        }
    }
}
