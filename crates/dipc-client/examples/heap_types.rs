//! Prints the types that have most of a process's heap: `cargo run --example heap_types -- PID`.

use std::io::Write;

use dipc_client::{OptionalFeature, Rundown, SessionConfig, Target};
use gcdump::{Grouping, HeapGraphBuilder, HeapReport};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid] = arguments else { return Err("usage: heap PID".into()) };
    let target = Target::from_pid(pid.parse()?)?;

    // The runtime collects and sends its heap while the session starts: the buffer has to hold all of it.
    let request = gcdump::request();
    let config = SessionConfig::new([request])
        .with_buffer_mb(1024)
        .with_rundown(Rundown::Keyword(request.rundown_keyword.into()))
        .with_stackwalk(false)
        .with_optional(vec![OptionalFeature::RundownKeyword, OptionalFeature::NoStacks]);
    let mut session = target.start_session(&config)?;
    session.request_stop()?;

    let mut builder = HeapGraphBuilder::new();
    let mut events = session.events()?.in_time_order();
    while let Some(event) = events.next()? {
        builder.add(&event);
    }
    let graph = builder.finish(events.loss().total())?;
    let mut rows = HeapReport::new(&graph, Grouping::Type, None).rows;
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    for row in rows.iter().take(10) {
        writeln!(out, "{:>10} {:>6} {}", row.bytes, row.objects, row.csharp)?;
    }
    Ok(())
}
