//! The notes of a core dump: threads, process, signal, mapped files.

use crate::memory::address::Address;
use crate::memory::copy_note::{self, CopyNote};
use crate::memory::mapping::{MAX_MAPPINGS, MappedFile};
use crate::processor::{Machine, Processor};
use crate::unwind::registers::Registers;

use super::{CoreFile, Fields};

/// Maximum number of threads to read.
const MAX_THREADS: usize = 1 << 16;
/// Maximum number of notes to read.
const MAX_NOTES: usize = 1 << 20;
/// Maximum number of bytes of the list of mapped files.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// The offset of the general registers in NT_PRSTATUS.
const REGISTERS: usize = 112;
/// Maximum number of bytes of NT_PRSTATUS to read: those of arm64.
const MAX_STATUS: usize = 392;

/// A thread of a core dump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreThread {
    /// The thread id in the system.
    pub tid: u32,
    /// The signal that the thread was about to receive; zero without a signal.
    pub signal: u16,
    /// The registers, of the processors that are read.
    pub registers: Option<Registers>,
}

/// The process of a core dump.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CoreProcess {
    /// The process id.
    pub pid: u32,
    /// The name of the program, at most 15 characters.
    pub name: String,
    /// The first 79 characters of the command line.
    pub arguments: String,
}

/// The signal for which a core dump was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalInfo {
    /// The number of the signal.
    pub number: i32,
    /// The cause (`si_code`).
    pub code: i32,
    /// The address of the fault, for signals with an address.
    pub address: Address,
}

impl CoreFile {
    /// Reads notes up to the first incomplete one.
    pub(super) fn read_notes(&mut self, mut at: u64, bytes: u64) {
        let end = at.saturating_add(bytes).min(self.file.size());
        for _ in 0..MAX_NOTES {
            let Ok(header) = self.file.array::<12>(at) else { return };
            let field = |at: usize| Fields(header.get(at..).unwrap_or_default()).u32();
            let (name, size, kind) = (u64::from(field(0)), u64::from(field(4)), field(8));
            let content = at.saturating_add(12).saturating_add(name.next_multiple_of(4));
            let next = content.saturating_add(size.next_multiple_of(4));
            if content.saturating_add(size) > end || next <= at {
                return;
            }
            self.read_note(kind, content, size);
            at = next;
        }
    }

    fn read_note(&mut self, kind: u32, at: u64, size: u64) {
        match kind {
            // NT_PRSTATUS
            1 if size >= 336 && self.threads.len() < MAX_THREADS => {
                let mut status = [0; MAX_STATUS];
                let size = usize::try_from(size).unwrap_or(MAX_STATUS).min(MAX_STATUS);
                let status = status.get_mut(..size).unwrap_or_default();
                if self.file.read_exact(at, status).is_ok() {
                    self.threads.push(thread(status, self.machine()));
                }
            }
            // NT_PRPSINFO
            3 if size >= 136 && self.process.is_none() => {
                self.process = self.file.array::<136>(at).ok().map(|info| process(&info));
            }
            // NT_SIGINFO
            0x5349_4749 if size >= 24 && self.signal.is_none() => {
                if let Ok(info) = self.file.array::<24>(at) {
                    let field = |at: usize| Fields(info.get(at..).unwrap_or_default());
                    let number = field(0).u32().cast_signed();
                    let code = field(8).u32().cast_signed();
                    self.signal = Some(SignalInfo { number, code, address: Address::new(field(16).u64()) });
                }
            }
            // NT_AUXV: pairs of words; AT_EXECFN is the address of the path.
            6 => {
                const EXECUTED_PATH: u64 = 31;
                for pair in 0..size.min(1024) / 16 {
                    let Ok(pair) = self.file.array::<16>(at.saturating_add(pair.saturating_mul(16))) else {
                        break;
                    };
                    if Fields(&pair).u64() == EXECUTED_PATH {
                        self.executed_path = Some(Fields(pair.get(8..).unwrap_or_default()).u64());
                    }
                }
            }
            copy_note::KIND if size == 48 && self.copy.is_none() => {
                self.copy = self.file.array(at).ok().as_ref().and_then(CopyNote::decode);
            }
            // NT_FILE
            0x4649_4c45 if self.files.is_empty() => {
                self.read_files(at, size.min(MAX_FILE_BYTES));
            }
            _ => {}
        }
    }

    /// Reads the list of mapped files: count, bytes of a page, a row for each file, and their names.
    fn read_files(&mut self, at: u64, size: u64) {
        let Ok(length) = usize::try_from(size.min(self.file.size())) else { return };
        let mut bytes = vec![0; length];
        if self.file.read_exact(at, &mut bytes).is_err() {
            return;
        }
        let (count, page) = (Fields(&bytes).u64(), Fields(bytes.get(8..).unwrap_or_default()).u64());
        let rest = bytes.get(16..).unwrap_or_default();
        let rows = usize::try_from(count).ok().and_then(|count| count.checked_mul(24));
        // The padding of createdump after the names has the form of further, empty names.
        let Some((rows, names)) = rows.and_then(|rows| rest.split_at_checked(rows)) else { return };
        let names = names.split(|byte| *byte == 0);
        for (row, name) in rows.as_chunks::<24>().0.iter().zip(names).take(MAX_MAPPINGS) {
            let field = |at: usize| Fields(row.get(at..).unwrap_or_default()).u64();
            let file_offset = field(16).saturating_mul(page);
            let path = String::from_utf8_lossy(name).into();
            self.files.push(MappedFile {
                start: Address::new(field(0)),
                end: Address::new(field(8)),
                file_offset,
                path,
            });
        }
    }
}

fn thread(status: &[u8], machine: Machine) -> CoreThread {
    let field = |at: usize| Fields(status.get(at..).unwrap_or_default());
    let registers =
        Processor::of(machine).and_then(|processor| Registers::of_user(processor, status.get(REGISTERS..)?));
    CoreThread { tid: field(32).u32(), signal: field(12).u16(), registers }
}

fn process(info: &[u8; 136]) -> CoreProcess {
    let field = |at: usize| Fields(info.get(at..).unwrap_or_default());
    let text = |range: std::ops::Range<usize>| {
        let bytes = info.get(range).unwrap_or_default().split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes).trim_end().to_owned()
    };
    CoreProcess { pid: field(24).u32(), name: text(40..56), arguments: text(56..136) }
}
