//! Counts the objects of a core dump or a process by type.
use clr_dump::{CoreFile, Dump};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).ok_or("usage: heap CORE|PID")?;
    #[cfg(target_os = "linux")]
    if let Ok(pid) = target.parse() {
        let memory = clr_dump::ProcessMemory::open(pid)?;
        return print(&Dump::find(&memory, &memory.files()?)?);
    }
    let core = CoreFile::open(std::fs::File::open(target)?)?;
    print(&Dump::open(&core)?)
}

fn print(dump: &Dump<'_>) -> Result<(), Box<dyn std::error::Error>> {
    let heap = dump.heap().statistics()?;
    for row in &heap.types {
        println!("{} {} {}", row.amount.bytes, row.amount.objects, row.name.as_deref().unwrap_or("?"));
    }
    let walk = &heap.walk;
    println!("{} regions, free {:?}, moving {}", walk.regions, walk.free, walk.is_moving);
    println!("{:x?} {:x?}", walk.gaps, heap.thin_locks);
    for thread in dump.threads().list()? {
        println!("{} {:?} {:x?}", thread.os_id, dump.threads().name(&thread), dump.locks().waits(&thread));
        let read = dump.exceptions().of_thread(&thread);
        println!("  {:?}, uncertain {}", read.missing, read.is_uncertain);
        for (state, chain) in read.exceptions {
            for exception in chain {
                println!("  {state:?} {exception:x?}");
            }
        }
    }
    println!("{:x?}", dump.locks().monitors());
    Ok(())
}
