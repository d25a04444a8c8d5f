//! Prints the descriptor of a process's runtime: `cargo run --example contracts -- PID`.

#[cfg(target_os = "linux")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use clr_dump::ProcessMemory;
    use clr_dump::contracts::Contracts;

    let pid = std::env::args().nth(1).ok_or("the process id is missing")?.parse()?;
    let memory = ProcessMemory::open(pid)?;
    let Some(contracts) = Contracts::find(&memory, &memory.files()?)? else {
        println!("its runtime does not describe its data");
        return Ok(());
    };
    for descriptor in contracts.descriptors() {
        println!(
            "descriptor {:?} at {}, version {}",
            descriptor.name, descriptor.address, descriptor.version
        );
    }
    for (name, version) in contracts.versions() {
        println!("contract {name} {version}");
    }
    for error in contracts.errors() {
        println!("{error}");
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn main() {}
