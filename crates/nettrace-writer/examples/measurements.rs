//! Makes a recording of a log of measurements:
//! `cargo run -p nettrace-writer --example measurements -- LOG OUT`. Each line of the log has the time in
//! milliseconds since 1970, a name without spaces, and a number.

use std::fs;

use nettrace::{Ticks, TraceInfo, TypeCode};
use nettrace_writer::{EventKind, EventWriter, FieldKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>())
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let [log, recording] = arguments else { return Err("usage: measurements LOG OUT".into()) };
    let log = fs::read_to_string(log)?;
    let mut rows = Vec::new();
    for line in log.lines() {
        let [time, name, value] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not a time, a name and a number: {line}").into());
        };
        rows.push((time.parse::<u64>()?, name, value.parse::<f64>()?));
    }
    // Readers merge by time, so a thread's events must be written in time order.
    rows.sort_by_key(|(time, ..)| *time);
    let start = rows.first().ok_or("the log is empty")?.0;

    // A process of its own: merged with a recording of a program, the measurements stay apart from its
    // threads.
    let process_id = u64::from(std::process::id());
    let info = TraceInfo::new_v6(start, Ticks(0), vec![("ProcessId".into(), process_id.to_string())]);
    let mut writer = EventWriter::new(&info)?;
    let fields = [("Name", FieldKind::Text), ("Value", FieldKind::Scalar(TypeCode::F64))];
    let measurement = writer.define(&EventKind::new("Log", 1, "Measurement", &fields))?;
    let thread = writer.thread(process_id, process_id, Some("log"))?;
    for (time, name, value) in rows {
        let mut payload = u16::try_from(name.len())?.to_le_bytes().to_vec();
        payload.extend_from_slice(name.as_bytes());
        payload.extend_from_slice(&value.to_le_bytes());
        // The clock of this header counts nanoseconds.
        let ticks = Ticks((time - start) * 1_000_000);
        writer.event(measurement, ticks, thread, None, &[], &payload)?;
    }
    writer.finish()?;
    fs::write(recording, writer.bytes())?;
    Ok(())
}
