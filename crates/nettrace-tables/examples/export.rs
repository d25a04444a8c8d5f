//! Exports recordings, and prints the speed: `export DIR FILE…`.

use std::path::Path;
use std::time::Instant;

use nettrace_tables::{Dataset, Input, Labels, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("export DIR FILE…")?;
    let dataset = Dataset::new(folder, Options::default());
    for file in arguments {
        let mut labels = Labels::default();
        labels.insert("service", "example");
        let start = Instant::now();
        let input = Input::open(Path::new(&file), labels)?;
        let plan = dataset.plan(vec![input])?;
        for shard in &plan.shards {
            let summary = dataset.export(shard)?;
            let events: u64 = summary.recordings.iter().map(|it| it.events + it.samples + it.left_out).sum();
            let bytes: u64 = summary.files.iter().map(|(_, _, bytes)| bytes).sum();
            println!("{file}: {events} events in {:.3} s, {bytes} bytes", start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
