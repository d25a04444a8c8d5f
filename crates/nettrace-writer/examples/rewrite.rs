//! Writes a recording again, in V4 or V6: `rewrite IN OUT 4|6`.

use std::fs::File;
use std::io::Write as _;

use nettrace_writer::{Version, transcode};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rewrite IN OUT [4|6]".into());
    };
    let version = if arguments.next().as_deref() == Some("6") { Version::V6 } else { Version::V4 };
    let events = nettrace::Reader::new(File::open(from)?)?;
    let mut out = File::create(to)?;
    let (events, transcoder) =
        transcode(events, version, |bytes| Ok::<_, Box<dyn std::error::Error>>(out.write_all(bytes)?))?;
    println!("{} events were lost; not said: {:?}", events.loss().total(), transcoder.omissions());
    Ok(())
}
