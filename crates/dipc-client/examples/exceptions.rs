//! Prints every exception that a process throws, as it is thrown, for some seconds: `cargo run --example exceptions -- PID SECONDS`.

use std::io::Write;
use std::thread;
use std::time::Duration;

use clr_events::ClrEvent;
use dipc_client::{Deadline, OptionalFeature, Providers, Rundown, SessionConfig, Target};
use nettrace::Decoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, seconds] = arguments else { return Err("usage: exceptions PID SECONDS".into()) };
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let target = Target::from_pid(pid.parse()?)?;

    // Neither stacks nor rundown are of use here; a runtime that is too old to leave them out may send them.
    let exceptions = Providers::parse("Microsoft-Windows-DotNETRuntime:0x8000:2")?;
    let optional = vec![OptionalFeature::NoStacks, OptionalFeature::NoRundown];
    let collect =
        SessionConfig { rundown: Rundown::Off, stackwalk: false, optional, ..SessionConfig::new(exceptions) };
    let mut session = target.start_session(&collect)?;

    // The runtime answers a stop only when its last events have been read, so the two need a thread each.
    let stopper = session.stopper();
    let stop = thread::spawn(move || {
        thread::sleep(seconds);
        stopper.stop()
    });
    let (mut decoder, mut chunk) = (Decoder::new(), vec![0; 1 << 16]);
    loop {
        while let Some(event) = decoder.next()? {
            if let Some(ClrEvent::ExceptionStart(thrown)) = ClrEvent::of(&event)? {
                writeln!(out, "{}: {}", thrown.exception_type, thrown.exception_message)?;
            }
        }
        match session.read(&mut chunk, Deadline::never())? {
            0 => break,
            count => decoder.feed(&chunk[..count]),
        }
    }
    Ok(stop.join().expect("the stopping thread does not panic")?)
}
