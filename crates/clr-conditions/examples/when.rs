//! The times at which a condition is met in a recording: `cargo run -p clr-conditions --example when -- FILE
//! CONDITION`.

use std::fs::File;
use std::io::Write;

use clr_conditions::{Condition, Evaluator, Match};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [path, text] = arguments else { return Err("usage: when FILE CONDITION".into()) };
    let condition = Condition::parse(text)?;
    for request in condition.requests() {
        writeln!(out, "needs {}:{:#x}:{}", request.name, request.keywords, request.level)?;
    }
    let (mut evaluator, mut matches) = (Evaluator::new(condition), Vec::new());
    let mut events = nettrace::Reader::new(File::open(path)?)?.in_time_order();
    while let Some(event) = events.next()? {
        evaluator.event(&event, |met| matches.push(met));
        write(&mut matches, out)?;
    }
    evaluator.finish(|met| matches.push(met));
    write(&mut matches, out)
}

fn write(matches: &mut Vec<Match>, out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    for met in matches.drain(..) {
        writeln!(out, "{:>9.3} s {}", met.time.since_start().as_secs_f64(), met.what)?;
    }
    Ok(())
}
