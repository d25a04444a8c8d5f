//! Lists the managed threads of a core dump or a process.
use clr_dump::{CoreFile, CoreThread, Dump, NativeImage};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).ok_or("usage: threads CORE|PID")?;
    #[cfg(target_os = "linux")]
    if let Ok(pid) = target.parse() {
        let memory = clr_dump::ProcessMemory::open(pid)?;
        return print(&Dump::find(&memory, &memory.files()?)?, &[]);
    }
    let core = CoreFile::open(std::fs::File::open(target)?)?;
    println!("{:?} {:?} {} threads", core.process(), core.signal(), core.threads().len());
    print(&Dump::open(&core)?, core.threads())
}

fn print(dump: &Dump<'_>, threads: &[CoreThread]) -> Result<(), Box<dyn std::error::Error>> {
    println!("{} {}", dump.runtime().version(), dump.runtime().path());
    for thread in dump.threads().list()? {
        println!("thread {} {:?}", thread.os_id, dump.threads().name(&thread));
        let registers = threads.iter().find(|other| u64::from(other.tid) == thread.os_id);
        let stack = dump.threads().stack(&thread, registers.and_then(|thread| thread.registers.as_ref()));
        for frame in &stack.frames {
            let Some(code) = &frame.code else {
                let address = frame.position.lookup_address(frame.ip);
                let image = dump.native_image(address);
                let offset = |image: &NativeImage| frame.ip.checked_sub(image.base).unwrap_or_default();
                let image = image.map(|image| format!("{}+{:#x}", image.file_name(), offset(&image)));
                println!("  {:#x} native {}", frame.ip, image.unwrap_or_default());
                continue;
            };
            let method = dump.types().method(code);
            let token = method.as_ref().and_then(|method| method.token).unwrap_or_default();
            let name = method.and_then(|method| method.name);
            let name = name.map(|name| [name.type_name, name.name, name.signature].join(" "));
            println!("  {:#x} {token:#x} {}", frame.ip, name.unwrap_or_default());
        }
        for (index, gap) in stack.gaps {
            println!("  gap before frame {index}: {gap}");
        }
    }
    Ok(())
}
