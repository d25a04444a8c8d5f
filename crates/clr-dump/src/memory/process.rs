//! The memory of a live process, by `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::error::{Error, Machine};
use crate::memory::mapping::{MappedFile, Mapping, parse_mappings, parse_maps};
use crate::memory::{Memory, MemoryResult, Missing};

/// The memory of a live process. The process runs on while it is read: structures can change between two
/// reads, and a value that was read can be out of date.
///
/// ```
/// use clr_dump::{Memory, ProcessMemory};
///
/// let (value, mut copy) = (*b"4711", [0; 4]);
/// let memory = ProcessMemory::open(std::process::id())?;
/// memory.read(value.as_ptr().addr() as u64, &mut copy)?;
/// assert_eq!(copy, value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ProcessMemory {
    file: File,
    pid: u32,
}

impl ProcessMemory {
    /// Opens the memory of a process. This takes the permission to trace it.
    ///
    /// # Errors
    /// If the process does not exist, or the caller may not read its memory.
    pub fn open(pid: u32) -> Result<Self, Error> {
        let path = format!("/proc/{pid}/mem");
        let file = File::open(&path).map_err(|error| Error::Io { what: path, error })?;
        Ok(Self { file, pid })
    }

    /// Reads the current mappings of files.
    ///
    /// # Errors
    /// If the process has ended, or its mappings may not be read.
    pub fn files(&self) -> Result<Vec<MappedFile>, Error> {
        Ok(parse_maps(&self.proc_file("maps")?))
    }

    /// Reads all current mappings.
    ///
    /// ```
    /// let memory = clr_dump::ProcessMemory::open(std::process::id())?;
    /// let stack = memory.mappings()?.into_iter().find(|mapping| &*mapping.name == "[stack]");
    /// assert!(stack.is_some_and(|stack| !stack.is_file() && stack.size() > 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the process has ended, or its mappings may not be read.
    pub fn mappings(&self) -> Result<Vec<Mapping>, Error> {
        Ok(parse_mappings(&self.proc_file("maps")?))
    }

    /// The process id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the architecture of its program; `None` if it cannot be read, or is not an ELF file.
    pub fn machine(&self) -> Option<Machine> {
        let mut header = [0; 20];
        let program = File::open(format!("/proc/{}/exe", self.pid)).ok()?;
        program.read_exact_at(&mut header, 0).ok()?;
        let number = header.last_chunk().map(|bytes| u16::from_le_bytes(*bytes))?;
        header.starts_with(b"\x7fELF").then_some(Machine(number))
    }

    /// Reads a file of the process in `/proc`.
    pub(crate) fn proc_file(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = format!("/proc/{}/{name}", self.pid);
        std::fs::read(&path).map_err(|error| Error::Io { what: path, error })
    }
}

impl Memory for ProcessMemory {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        self.file.read_exact_at(buffer, address).map_err(|_| Missing { address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::address::Address;

    #[test]
    fn the_memory_of_this_process_is_read() {
        // As x86-64 has it in its memory.
        static VALUE: [u8; 8] = 0x1234_5678_9abc_def0_u64.to_le_bytes();
        let memory = ProcessMemory::open(std::process::id()).unwrap();
        let address = std::ptr::from_ref(&VALUE).addr() as u64;
        assert_eq!((&memory as &dyn Memory).u64(address), Ok(u64::from_le_bytes(VALUE)));
        assert_eq!((&memory as &dyn Memory).u64(0), Err(Missing { address: 0 }));
        assert_eq!((&memory as &dyn Memory).u64(u64::MAX - 7), Err(Missing { address: u64::MAX - 7 }));
        if cfg!(target_arch = "x86_64") {
            assert_eq!(memory.machine(), Some(Machine::X86_64));
        }
        let files = memory.files().unwrap();
        let address = Address::new(address);
        assert!(files.iter().any(|file| (file.start..file.end).contains(&address)));
    }
}
