//! The counters of a recording, one value per line: `cargo run -p clr-counters --example values -- FILE
//! [COUNTERS]`.

use std::fs::File;
use std::io::{self, Write};

use clr_counters::{Aspect, Counters, Sample, Selection};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let (path, selection) = match arguments {
        [path] => (path, Selection::everything()),
        [path, list] => (path, Selection::parse(list)?),
        _ => return Err("usage: values FILE [COUNTERS]".into()),
    };
    let mut counters = Counters::new(selection);
    let mut events = nettrace::Reader::new(File::open(path)?)?.in_time_order();
    let mut written = Ok(());
    while let Some(event) = events.next()? {
        counters.add(&event, |sample| written = print(&sample, out));
        std::mem::replace(&mut written, Ok(()))?;
    }
    // Values are held until it is known which of the two ways reports them.
    counters.finish(|sample| written = print(&sample, out));
    Ok(written?)
}

fn print(sample: &Sample<'_>, out: &mut dyn Write) -> io::Result<()> {
    let value = sample.number(Aspect::Rate).or(sample.number(Aspect::Value)).unwrap_or(f64::NAN);
    let seconds = sample.time.since_start().as_secs_f64();
    writeln!(out, "{seconds:>9.3} {}/{} {value}", sample.series.provider, sample.series.name)
}
