//! Prints every exception that a process throws, as it is thrown, for some seconds: `cargo run --example
//! exceptions -- PID SECONDS`.

use std::io::Write;
use std::time::Duration;

use clr_events::ClrEvent;
use dipc_client::{OptionalFeature, Providers, Rundown, SessionConfig, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, seconds] = arguments else { return Err("usage: exceptions PID SECONDS".into()) };
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let target = Target::from_pid(pid.parse()?)?;

    // Neither stacks nor rundown are needed; a runtime that is too old to leave them out may send them.
    let exceptions = Providers::parse("Microsoft-Windows-DotNETRuntime:0x8000:2")?;
    let optional = vec![OptionalFeature::NoStacks, OptionalFeature::NoRundown];
    let collect = SessionConfig::new(exceptions)
        .with_rundown(Rundown::Off)
        .with_stackwalk(false)
        .with_optional(optional);
    let mut session = target.start_session(&collect)?;

    session.stop_after(seconds);
    let mut events = session.events()?;
    while let Some(event) = events.next()? {
        if let Some(ClrEvent::ExceptionStart(thrown)) = ClrEvent::of(&event)? {
            writeln!(out, "{}: {}", thrown.exception_type, thrown.exception_message)?;
        }
    }
    Ok(())
}
