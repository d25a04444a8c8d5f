//! Lists the managed threads of a core dump or a process.
use clr_dump::{CoreFile, CoreThread, Memory, Names, Runtime};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let target = std::env::args().nth(1).ok_or("usage: threads CORE|PID")?;
    #[cfg(target_os = "linux")]
    if let Ok(pid) = target.parse() {
        let memory = clr_dump::ProcessMemory::open(pid)?;
        return print(&memory, &Runtime::find(&memory, &memory.files()?)?, &[]);
    }
    let core = CoreFile::open(std::fs::File::open(target)?)?;
    println!("{:?} {:?} {} threads", core.process(), core.signal(), core.threads().len());
    print(&core, &Runtime::find(&core, core.files())?, core.threads())
}

fn print(
    memory: &dyn Memory,
    runtime: &Runtime,
    threads: &[CoreThread],
) -> Result<(), Box<dyn std::error::Error>> {
    let names = Names::new(memory, runtime);
    println!("{} {}", runtime.version(), runtime.path());
    for thread in runtime.threads(memory)? {
        println!("thread {} {:?}", thread.os_id, runtime.thread_name(memory, &thread));
        let registers = threads.iter().find(|other| u64::from(other.tid) == thread.os_id);
        let stack = runtime.stack(memory, &thread, registers.and_then(|thread| thread.registers.as_ref()));
        for frame in &stack.frames {
            let Some(code) = &frame.code else {
                let address = frame.position.lookup_address(frame.ip);
                let image = runtime.native_image(memory, address);
                let image = image.map(|image| format!("{}+{:#x}", image.file_name(), frame.ip - image.base));
                println!("  {:#x} native {}", frame.ip, image.unwrap_or_default());
                continue;
            };
            let method = names.method(code);
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
