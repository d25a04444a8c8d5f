//! Counts the objects of a core dump or a process by type.
use clr_dump::{CoreFile, Memory, Names, Runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).ok_or("usage: heap CORE|PID")?;
    #[cfg(target_os = "linux")]
    if let Ok(pid) = target.parse() {
        let memory = clr_dump::ProcessMemory::open(pid)?;
        return print(&memory, &Runtime::find(&memory, &memory.files()?)?);
    }
    let core = CoreFile::open(std::fs::File::open(target)?)?;
    print(&core, &Runtime::find(&core, core.files())?)
}

fn print(memory: &dyn Memory, runtime: &Runtime) -> Result<(), Box<dyn std::error::Error>> {
    let names = Names::new(memory, runtime);
    let heap = names.heap_statistics()?;
    for row in &heap.types {
        println!("{} {} {}", row.amount.bytes, row.amount.objects, row.name.as_deref().unwrap_or("?"));
    }
    println!("{} regions, free {:?}, moving {}", heap.regions, heap.free, heap.is_moving);
    println!("{:x?} {:x?}", heap.gaps, heap.thin_locks);
    for thread in runtime.threads(memory)? {
        println!(
            "{} {:?} {:x?}",
            thread.os_id,
            runtime.thread_name(memory, &thread),
            runtime.monitor_waits(memory, &thread)
        );
        let read = names.thread_exceptions(&thread);
        println!("  {:?}, uncertain {}", read.missing, read.is_uncertain);
        for (state, chain) in read.exceptions {
            for exception in chain {
                println!("  {state:?} {exception:x?}");
            }
        }
    }
    println!("{:x?}", runtime.monitors(memory));
    Ok(())
}
