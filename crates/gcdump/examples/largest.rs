//! The types that hold most of a heap: `cargo run -p gcdump --example largest -- FILE`, for a `.gcdump` file
//! or a recording of a heap dump.

use std::fs;
use std::io::Write;

use gcdump::{Dominators, Grouping, HeapGraph, HeapGraphBuilder, HeapReport, file};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [path] = arguments else { return Err("usage: largest FILE".into()) };
    let bytes = fs::read(path)?;
    let graph = if bytes.starts_with(b"Nettrace") { graph_of(&bytes)? } else { file::read(&bytes)? };
    let dominators = Dominators::new(&graph);
    let mut rows = HeapReport::new(&graph, Grouping::Type, Some(&dominators)).rows;
    rows.sort_by_key(|row| std::cmp::Reverse(row.retained_bytes));
    for row in rows.iter().take(10) {
        let retained = row.retained_bytes.unwrap_or(row.bytes);
        writeln!(out, "{retained:>10} {:>10} {:>6} {}", row.bytes, row.objects, row.csharp)?;
    }
    Ok(())
}

/// Returns the heap of a recording with the providers of `gcdump::request`.
fn graph_of(recording: &[u8]) -> Result<HeapGraph, Box<dyn std::error::Error>> {
    let mut builder = HeapGraphBuilder::new();
    let mut events = nettrace::SliceReader::new(recording)?.in_time_order();
    events.for_each(|event| builder.add(&event))?;
    Ok(builder.finish(events.loss().total())?)
}
