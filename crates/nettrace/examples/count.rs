//! Counts the events of a recording by provider and recorded name: `count FILE`. The runtime's own events are
//! unnamed there; clr-events has their names.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: count FILE")?;
    let mut events = nettrace::Reader::new(File::open(path)?)?;
    let mut counts = BTreeMap::<(String, String, u32), u64>::new();
    while let Some(event) = events.next()? {
        let metadata = event.metadata();
        let key = (metadata.provider().to_owned(), metadata.name().to_owned(), metadata.event_id());
        *counts.entry(key).or_default() += 1;
    }
    for ((provider, name, id), count) in counts {
        println!("{count:>10} {provider}/{name} ({id})");
    }
    println!(
        "lost: {}, damage: {:?}, cut at: {:?}",
        events.loss().total(),
        events.damage(),
        events.truncated_at()
    );
    Ok(())
}
