//! Writes a core dump with only the memory that its analysis reads:
//! `shrink CORE SMALL [LARGEST METADATA [PROGRAM]]`.
//!
//! With the program, its memory that the kernel has left out is read from its file, and left out again.
//! The metadata of modules is read whole; that of modules with more bytes than the limit is left out, and
//! their types and methods lose their names.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::sync::Mutex;

use clr_dump::{CoreFile, Dump, HeapObject, HeapVisitor, Memory, MemoryResult, Missing, TypeHandle};

const PAGE: usize = 4096;

/// A core dump, and the pages of it that were read.
struct Recorded {
    core: CoreFile,
    /// The core dump without files.
    alone: CoreFile,
    pages: Mutex<BTreeSet<u64>>,
    /// The most bytes that are read at once.
    most: usize,
}

impl Memory for Recorded {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        if buffer.len() > self.most {
            return Err(Missing { address });
        }
        self.core.read(address, buffer)?;
        let last = address + buffer.len().saturating_sub(1) as u64;
        let is_there = |page: &u64| {
            let at = address.max(page * PAGE as u64);
            self.alone.read(at, &mut [0]).is_ok()
        };
        let pages = address / PAGE as u64..=last / PAGE as u64;
        self.pages.lock().unwrap().extend(pages.filter(is_there));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [from, to, rest @ ..] = &arguments[..] else { return Err("usage: shrink CORE SMALL [BYTES]".into()) };
    let most = rest.first().map_or(Ok(64 << 10), |most| most.parse())?;
    let bytes = fs::read(from)?;
    let (mut core, alone) = (CoreFile::open(bytes.clone())?, CoreFile::open(bytes.clone())?);
    if let Some(program) = rest.get(1) {
        let program = fs::read(program)?;
        core.add_files(|_| Some(Box::new(program.clone())));
    }
    let recorded = Recorded { core, alone, pages: Mutex::default(), most };
    let dump = Dump::find(&recorded, recorded.core.files())?;
    for thread in dump.threads().list()? {
        let stack = dump.threads().stack(&thread, recorded.core.registers(thread.os_id));
        for (_, code) in stack.managed() {
            dump.types().method(code);
        }
        let _ = dump.threads().name(&thread);
        let _ = dump.locks().waits(&thread);
        dump.exceptions().of_thread(&thread);
    }
    let _ = dump.heap().statistics();
    let mut examples = Examples::default();
    let _ = dump.heap().walk(&mut examples);
    for object in examples.0.values() {
        let _ = dump.heap().content(object, 4);
    }
    let threads = dump.threads().list()?;
    for field in dump.statics().fields(examples.0.keys().copied(), &threads) {
        dump.statics().value(&field);
    }
    let _ = (dump.heap().handles(), dump.statics().objects(), dump.awaits().chains());
    let _ = dump.heap().regions().and_then(|regions| regions.finalizable());
    for thread in dump.threads().list()? {
        let registers = recorded.core.registers(thread.os_id);
        let stack = dump.threads().stack(&thread, registers);
        let _ = dump.statics().thread_object(&thread);
        let _ = dump.heap().stack_words(&thread, &stack, registers);
    }
    dump.locks().monitors();
    write(&bytes, &recorded, to)
}

/// The first object of each type.
#[derive(Default)]
struct Examples(BTreeMap<TypeHandle, HeapObject>);

impl HeapVisitor for Examples {
    fn object(&mut self, object: &HeapObject) {
        self.0.entry(object.type_handle).or_insert(*object);
    }

    fn wants_references(&self) -> bool {
        true
    }
}

/// Writes the notes as they are, and the pages as segments.
fn write(bytes: &[u8], recorded: &Recorded, to: &str) -> Result<(), Box<dyn Error>> {
    let number =
        |at: usize| usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap();
    let count = usize::from(u16::from_le_bytes(bytes[56..58].try_into()?));
    let headers: Vec<_> = (0..count).map(|index| number(32) + 56 * index).collect();
    // Memory that is not written, and has fewer bytes in the file than in the process.
    let is_left_out = |at: &&usize| {
        bytes[**at..**at + 4] == [1, 0, 0, 0]
            && bytes[**at + 4] & 2 == 0
            && number(**at + 32) < number(**at + 40)
    };
    let left_out: Vec<_> = headers
        .iter()
        .filter(is_left_out)
        .map(|at| (number(at + 16), number(at + 32), number(at + 40)))
        .collect();
    let note = headers.into_iter().find(|at| bytes[*at..at + 4] == [4, 0, 0, 0]).ok_or("no notes")?;
    let notes = &bytes[number(note + 8)..number(note + 8) + number(note + 32)];
    let mut ranges: Vec<(u64, Vec<u8>)> = Vec::new();
    for page in recorded.pages.lock().unwrap().iter() {
        let address = page * PAGE as u64;
        let mut content = vec![0; PAGE];
        if recorded.core.read(address, &mut content).is_err() {
            // A segment ends within the page: take what there is.
            for (index, byte) in content.iter_mut().enumerate() {
                let _ = recorded.core.read(address + index as u64, std::slice::from_mut(byte));
            }
        }
        match ranges.last_mut() {
            Some((start, last)) if *start + last.len() as u64 == address => last.extend(content),
            _ => ranges.push((address, content)),
        }
    }
    let mut file = bytes[..64].to_vec();
    file[32..40].copy_from_slice(&64_u64.to_le_bytes());
    file[40..48].fill(0);
    file[56..58].copy_from_slice(&u16::try_from(ranges.len() + left_out.len() + 1)?.to_le_bytes());
    let mut content = 64 + 56 * (ranges.len() + left_out.len() + 1);
    let mut header = |kind: u32, address: u64, size: usize, memory: usize| {
        file.extend([kind, 4].iter().flat_map(|word| word.to_le_bytes()));
        let words = [content as u64, address, 0, size as u64, memory as u64, 1];
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        content += size;
    };
    header(4, 0, notes.len(), notes.len());
    for (address, content) in &ranges {
        header(1, *address, content.len(), content.len());
    }
    for (address, there, size) in left_out {
        header(1, (address + there) as u64, 0, size - there);
    }
    file.extend(notes);
    for (_, content) in &ranges {
        file.extend(content);
    }
    fs::write(to, file)?;
    Ok(())
}
