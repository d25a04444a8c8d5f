//! Prints the chains of awaits of a core dump, or of a process by its id: `awaits CORE|PID`.

use std::error::Error;

use clr_dump::{AwaitKind, CoreFile, Dump, MappedFile, Memory};

fn main() -> Result<(), Box<dyn Error>> {
    let from = std::env::args().nth(1).ok_or("usage: awaits CORE|PID")?;
    #[cfg(target_os = "linux")]
    if let Ok(pid) = from.parse() {
        let memory = clr_dump::ProcessMemory::open(pid)?;
        let files = memory.files()?;
        return print(&memory, &files);
    }
    let core = CoreFile::open(std::fs::File::open(from)?)?;
    print(&core, core.files())
}

fn print(memory: &dyn Memory, files: &[MappedFile]) -> Result<(), Box<dyn Error>> {
    let dump = Dump::find(memory, files)?;
    let chains = dump.awaits().chains()?;
    println!("{} methods in {} chains", chains.methods, chains.chains);
    for group in &chains.groups {
        println!("\n{} chains, {:?}:", group.count, group.end);
        for node in &group.nodes {
            let of = match node.kind {
                AwaitKind::Method { state_machine: Some(of), .. } => of,
                _ => node.type_handle,
            };
            let name = dump.types().name(of);
            println!("  {:#x} {} {:?}", node.address, name.as_deref().unwrap_or("?"), node.kind);
        }
    }
    Ok(())
}
