//! The methods at addresses in the memory of a process, as a recording of events that name them.

mod sampled;
mod writer;

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use clr_dump::{Address, Code, Dump, Machine, ProcessMemory, Runtime};

use super::StackAddresses;
use writer::{NamesFile, NamesWriter};

pub use sampled::SampledNames;

/// The default context, which code is not unloaded from.
const DEFAULT_CONTEXTS: u64 = 1;

/// The code of a process that can unload code.
#[derive(Debug)]
pub struct UnloadableCode {
    memory: ProcessMemory,
    runtime: Runtime,
}

impl UnloadableCode {
    /// Returns the code of a process that has made load contexts of assemblies, from which it can unload
    /// code. `None` for other processes, and if the memory cannot be read.
    pub fn find(pid: u32) -> Option<Self> {
        Self::of_process(pid).filter(|code| {
            let made = Dump::new(&code.memory, &code.runtime).statics().made_load_contexts();
            made.is_some_and(|made| made > DEFAULT_CONTEXTS)
        })
    }

    /// Returns the code of any process of .NET; `None` for other processes, and if the memory cannot be read.
    pub fn of_process(pid: u32) -> Option<Self> {
        let memory = ProcessMemory::open(pid).ok()?;
        memory.machine().map_or(Ok(()), Machine::check).ok()?;
        let runtime = Runtime::find(&memory, &memory.files().ok()?).ok()?;
        Some(Self { memory, runtime })
    }

    /// Returns a recording with the names of the methods on the stacks of the events of a process that they
    /// do not name themselves.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn names_for(&self, process: Option<u64>, stacks: StackAddresses) -> io::Result<File> {
        let mut functions = BTreeMap::<u64, (Code, u64)>::new();
        for (address, is_return) in stacks.unnamed() {
            // The code of a return address can end there.
            let inside = Address::new(address.saturating_sub(is_return.into()));
            if let Ok(Some(found)) = self.runtime.code().find(&self.memory, inside) {
                let (_, last) = functions.entry(found.function.begin).or_insert((found, address));
                *last = address.max(*last);
            }
        }
        let dump = Dump::new(&self.memory, &self.runtime);
        let file = NamesFile::new(process.unwrap_or_default(), tempfile::tempfile()?);
        let mut file = file.map_err(io::Error::other)?;
        let mut names = NamesWriter::new(&mut file).map_err(io::Error::other)?;
        names.begin(process.unwrap_or_default()).map_err(io::Error::other)?;
        for (begin, (found, last)) in functions {
            if let Some(method) = dump.types().method(&found) {
                // The size is not known: the code goes at least to the last known address.
                names.add(&method, begin..last.saturating_add(1)).map_err(io::Error::other)?;
            }
        }
        file.finish()
    }
}
