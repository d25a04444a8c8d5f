//! Prints the references of all stacks of a core dump: `roots CORE`.
//!
//! Each line has the thread, the method of the frame, the place of the reference in it, the address and the
//! type of the object. Words that only may be references are marked.

use std::error::Error;
use std::fs::File;

use clr_dump::{CoreFile, Dump};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("roots CORE")?;
    let core = CoreFile::open(File::open(path)?)?;
    let dump = Dump::open(&core)?;
    let types = dump.types();
    for thread in dump.threads().list()? {
        let of = dump.threads().stack_roots(&thread, core.registers(thread.os_id));
        for root in of.roots {
            let method = root.code.and_then(|code| types.method(&code)?.name);
            let method = method.map(|name| format!("{}.{}", name.type_name, name.name)).unwrap_or_default();
            let of_object =
                dump.heap().type_name(root.word).map_or_else(|| "?".to_owned(), |name| name.to_string());
            println!("{}\t{method}\t{}\t{:#x}\t{of_object}", thread.os_id, root.place, root.word);
        }
        if of.is_incomplete || of.frames_without_slots > 0 {
            eprintln!(
                "thread {}: {} frames without readable slots, incomplete: {}",
                thread.os_id, of.frames_without_slots, of.is_incomplete
            );
        }
    }
    Ok(())
}
