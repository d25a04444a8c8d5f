//! Prints what the runtime in a process says about itself: `cargo run --example info -- PID`.

use dipc_client::Target;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("usage: info PID")?.parse()?;
    let info = Target::from_pid(pid)?.info()?;
    println!("{}", info.command_line);
    println!("pid {}, runs on {} {}", info.process_id, info.os, info.arch);
    if let Some(version) = info.clr_version {
        println!(".NET {version}");
    }
    Ok(())
}
