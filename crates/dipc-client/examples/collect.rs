//! Records a process for some seconds into a file: `cargo run --example collect -- PID PROVIDERS SECONDS
//! FILE`, with the providers in dotnet-trace's syntax, for instance `Microsoft-Windows-DotNETRuntime:0x1:4`.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use dipc_client::{Providers, SessionConfig, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, providers, seconds, path] = arguments else {
        return Err("usage: collect PID PROVIDERS SECONDS FILE".into());
    };
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let mut file = File::create(path)?;

    let target = Target::from_pid(pid.parse()?)?;
    let mut session = target.start_session(&SessionConfig::new(Providers::parse(providers)?))?;
    session.stop_after(seconds);
    io::copy(&mut session.reader(), &mut file)?;
    writeln!(out, "{} bytes, started by {}", session.bytes_read(), session.command())?;
    Ok(())
}
