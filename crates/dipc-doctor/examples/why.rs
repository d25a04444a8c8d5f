//! The reasons why .NET processes cannot be reached: `cargo run -p dipc-doctor --example why`.

use std::env;
use std::io::Write;

use dipc_client::Timeouts;
use dipc_doctor::{Status, examine, find_candidates};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&mut std::io::stdout())
}

pub(crate) fn run(out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let found = find_candidates(&dipc_transport::discover());
    writeln!(out, "{} processes look like .NET", found.len())?;
    for pid in found {
        let examination = examine(pid, &env::temp_dir(), Timeouts::default());
        for finding in examination.findings.iter().filter(|finding| finding.status == Status::Problem) {
            // Evidence includes text of the process: `{:?}` escapes characters that would steer a terminal.
            writeln!(out, "{pid} {}: {:?}; fix: {:?}", finding.check, finding.evidence, finding.fix)?;
        }
    }
    Ok(())
}
