//! What does a program allocate, and where? `cargo run -p nettrace-export --example flame_graph app.nettrace app.html`

use std::error::Error;
use std::fs::File;

use nettrace_export::{Format, Labels, Metric, Options, ProfileBuilder};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(recording), Some(page)) = (arguments.next(), arguments.next()) else {
        return Err("name a recording, and the page to write".into());
    };
    let mut events = nettrace::Reader::new(File::open(recording)?)?.in_time_order();
    let mut builder = ProfileBuilder::new(Options { tracks: false, ..Options::new(Metric::Alloc) });
    events.for_each(|event| builder.add(&event))?;
    let (profile, missing) = builder.finish(events.events().info())?;
    let labels = Labels { title: "Allocations", exporter: "flame_graph", ..Labels::default() };
    nettrace_export::write(&profile, Format::Flamegraph, labels, &mut File::create(page)?)?;
    println!(
        "{} bytes in {} samples, {} frames left out",
        profile.total(),
        profile.samples(),
        missing.frames
    );
    Ok(())
}
