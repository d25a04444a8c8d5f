//! The pages of memory that views of threads read.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::dump::Dump;
use crate::memory::Memory;
use crate::memory::mapping::MappedFile;
use crate::memory::touched::TouchedMemory;
use crate::unwind::registers::Registers;

/// Maximum size in bytes of entries of debug directories to read: larger ones are PDBs.
const MAX_DEBUG_ENTRY: u32 = 1024;

/// Reads what views of threads, stacks, exceptions and modules need, until `end` at most. Returns the numbers
/// of the pages that were read, for the [first pages](crate::CopySettings::first_pages) of a copy.
/// `registers` are those of threads, with their thread ids.
pub fn thread_pages(
    memory: &dyn Memory,
    files: &[MappedFile],
    registers: &[(u64, Option<Registers>)],
    end: Instant,
) -> BTreeSet<u64> {
    let touched = TouchedMemory::new(memory).until(end);
    if let Ok(dump) = Dump::find(&touched, files) {
        read(&dump, registers);
    }
    touched.into_pages()
}

fn read(dump: &Dump<'_>, registers: &[(u64, Option<Registers>)]) {
    for thread in dump.threads().list().unwrap_or_default() {
        let registers = registers.iter().find(|(tid, _)| *tid == thread.os_id);
        let registers = registers.and_then(|(_, registers)| registers.as_ref());
        for frame in dump.threads().stack(&thread, registers).frames {
            let Some(code) = frame.code else { continue };
            dump.types().method(&code);
            dump.types().il_offset(&code, frame.position.lookup_address(frame.ip));
            dump.types().touch(&frame);
        }
        let _ = dump.threads().name(&thread);
        let _ = dump.locks().waits(&thread);
        for (_, chain) in dump.exceptions().of_thread(&thread).exceptions {
            for frame in chain.iter().flat_map(|exception| &exception.stack) {
                dump.exceptions().method(frame);
                dump.exceptions().il_offset(frame);
            }
        }
    }
    dump.locks().monitors();
    for module in dump.types().modules() {
        dump.types().metadata_bytes(&module);
        // The name of its PDB.
        for entry in dump.types().debug_entries(&module) {
            dump.types().debug_data(&entry, MAX_DEBUG_ENTRY);
        }
    }
}
