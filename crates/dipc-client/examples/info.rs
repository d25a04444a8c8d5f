//! Prints what the runtime in a process reports about itself: `cargo run --example info -- PID`.

use std::io::Write;

use dipc_client::Target;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid] = arguments else { return Err("usage: info PID".into()) };
    let info = Target::from_pid(pid.parse()?)?.info()?;
    writeln!(out, "{}", info.command_line)?;
    writeln!(out, "pid {}, runs on {} {}", info.process_id, info.os, info.arch)?;
    if let Some(version) = info.clr_version {
        writeln!(out, ".NET {version}")?;
    }
    Ok(())
}
