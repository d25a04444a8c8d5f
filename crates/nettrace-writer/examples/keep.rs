//! Copies the events of one provider: `cargo run -p nettrace-writer --example keep -- IN OUT PROVIDER`.

use std::fs::File;
use std::io::{self, Write};

use nettrace::{Reader, Record};
use nettrace_writer::{Version, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [from, to, provider] = arguments else { return Err("usage: keep IN OUT PROVIDER".into()) };
    let mut records = Reader::new(File::open(from)?)?;
    let info = records.info().ok_or("the recording has no header")?;
    let mut writer = Writer::new(Version::of(info), info, File::create(to)?)?;
    let mut removed = 0;
    while let Some(record) = records.next_record()? {
        match &record {
            // Not just left unwritten: the later events of its thread get new sequence numbers.
            Record::Event(event) if event.provider() != provider => {
                writer.remove(event);
                removed += 1;
            }
            _ => writer.write(&record)?,
        }
    }
    let (_, omissions) = writer.finish(records.threads())?;
    writeln!(out, "{removed} events removed, {} lost before", records.loss().total())?;
    if !omissions.is_empty() {
        writeln!(out, "this version cannot express: {omissions:?}")?;
    }
    Ok(())
}
