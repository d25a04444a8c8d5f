//! Records a process for some seconds into a file: `cargo run --example collect -- PID PROVIDERS SECONDS FILE`, where the
//! providers are written as dotnet-trace has them, for instance `Microsoft-Windows-DotNETRuntime:0x1:4`.

use std::fs::File;
use std::io::Write;
use std::thread;
use std::time::Duration;

use dipc_client::{Deadline, Providers, SessionConfig, Target};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid, providers, seconds, path] = arguments else {
        return Err("usage: collect PID PROVIDERS SECONDS FILE".into());
    };
    let seconds = Duration::try_from_secs_f64(seconds.parse()?)?;
    let mut file = File::create(path)?;

    let target = Target::from_pid(pid.parse()?)?;
    let mut session = target.start_session(&SessionConfig::new(Providers::parse(providers)?))?;
    // The runtime answers a stop only when its last events have been read, so the two need a thread each.
    let stopper = session.stopper();
    let stop = thread::spawn(move || {
        thread::sleep(seconds);
        stopper.stop()
    });
    let mut buffer = vec![0; 1 << 20];
    loop {
        match session.read(&mut buffer, Deadline::never())? {
            0 => break,
            count => file.write_all(&buffer[..count])?,
        }
    }
    writeln!(out, "{} bytes, started by {}", session.bytes_read(), session.command())?;
    Ok(stop.join().expect("the stopping thread does not panic")?)
}
