//! A page that shows the allocations of a program, and their places:
//! `cargo run -p nettrace-export --example flame_graph app.nettrace app.html`

use std::error::Error;
use std::fs::File;
use std::path::Path;

use nettrace_export::{Format, Metric, Options, WriteOptions, profile, write};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(recording), Some(page)) = (arguments.next(), arguments.next()) else {
        return Err("name a recording, and the page to write".into());
    };
    flame_graph(Path::new(&recording), Path::new(&page))
}

pub(crate) fn flame_graph(recording: &Path, page: &Path) -> Result<(), Box<dyn Error>> {
    let options = Options::new(Metric::Alloc).with_tracks(false);
    let (profile, omissions) = profile(File::open(recording)?, options)?;
    write(
        &profile,
        Format::Flamegraph,
        WriteOptions::new("Allocations", "flame_graph"),
        &mut File::create(page)?,
    )?;
    println!(
        "{} bytes in {} samples, {} frames left out",
        profile.total(),
        profile.samples(),
        omissions.frames
    );
    Ok(())
}
