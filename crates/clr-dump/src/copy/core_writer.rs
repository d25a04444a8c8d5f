//! The headers and notes of a core dump that is written.
//!
//! # Source
//! System V ABI, *Program Header* and *Note Section*; Linux `include/uapi/linux/elf.h`,
//! `include/linux/elfcore.h`, `include/linux/elfcore-compat.h`, `fs/binfmt_elf.c`.

use crate::memory::PAGE;
use crate::memory::copy_note::{self, CopyNote};
use crate::memory::mapping::MappedFile;

const ELF_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;
/// `PN_XNUM`: the count of program headers is in the first section header.
const EXTENDED_COUNT: u64 = 0xffff;

/// A thread for the notes of a core dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers: NT_PRSTATUS")]
pub struct ThreadNote {
    /// The thread id in the system.
    pub tid: u32,
    /// The signal that it was about to receive; zero without a signal.
    pub signal: u16,
    /// The `siginfo_t` of that signal.
    pub signal_info: Option<[u8; 128]>,
    /// The general registers: `user_regs_struct`, or `user_pt_regs` on arm64.
    pub registers: Vec<u8>,
    /// The floating-point registers: `user_fpregs_struct`, or `user_fpsimd_state` on arm64; empty if unknown.
    pub floating_registers: Vec<u8>,
}

/// A process for the notes of a core dump.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers: NT_PRPSINFO")]
pub struct ProcessNote {
    /// The process id.
    pub pid: u32,
    /// The id of its parent.
    pub parent: u32,
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The name; 15 bytes of it are written.
    pub name: Vec<u8>,
    /// The command line; 79 bytes of it are written.
    pub arguments: Vec<u8>,
    /// The auxiliary vector (`/proc/PID/auxv`).
    pub auxiliary: Vec<u8>,
    /// The mapped files.
    pub files: Vec<MappedFile>,
}

/// Memory of a core dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) file_offset: u64,
    pub(crate) file_bytes: u64,
    /// `PF_R`, `PF_W` and `PF_X`.
    pub(crate) flags: u32,
    /// The start of its mapping, which can have several segments. Readers of other programs ignore it: it is
    /// in the place of the physical address, which processes do not have.
    pub(crate) mapping: u64,
}

/// Returns the notes: the process, the first thread, the files, and the other threads, as the kernel orders
/// them. The first thread is the current one for debuggers. The description of the copy is last; its length
/// does not depend on its content.
pub(crate) fn notes(process: &ProcessNote, threads: &[ThreadNote], copy: &CopyNote) -> Vec<u8> {
    let mut out = Vec::new();
    let mut threads = threads.iter();
    let first = threads.next();
    if let Some(first) = first {
        note(&mut out, 1, &status(process, first));
    }
    note(&mut out, 3, &information(process));
    if let Some(info) = first.and_then(|first| first.signal_info) {
        note(&mut out, 0x5349_4749, &info);
    }
    note(&mut out, 6, &process.auxiliary);
    note(&mut out, 0x4649_4c45, &files(&process.files));
    if let Some(first) = first.filter(|first| !first.floating_registers.is_empty()) {
        note(&mut out, 2, &first.floating_registers);
    }
    for thread in threads {
        note(&mut out, 1, &status(process, thread));
        if !thread.floating_registers.is_empty() {
            note(&mut out, 2, &thread.floating_registers);
        }
    }
    named_note(&mut out, *b"DIPC", copy_note::KIND, &copy.encode());
    out
}

fn note(out: &mut Vec<u8>, kind: u32, content: &[u8]) {
    named_note(out, *b"CORE", kind, content);
}

fn named_note(out: &mut Vec<u8>, name: [u8; 4], kind: u32, content: &[u8]) {
    let size = u32::try_from(content.len()).unwrap_or(u32::MAX);
    for word in [5, size, kind] {
        out.extend(word.to_le_bytes());
    }
    out.extend(name);
    out.extend([0; 4]);
    out.extend(content);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Puts bytes at an offset; those past the end are dropped.
fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    let to = out.get_mut(at..).unwrap_or_default();
    for (to, from) in to.iter_mut().zip(bytes) {
        *to = *from;
    }
}

/// `elf_prstatus`. The number of general registers is that of the processor.
fn status(process: &ProcessNote, thread: &ThreadNote) -> Vec<u8> {
    const REGISTERS: usize = 112;
    let end = thread.registers.len().next_multiple_of(8).saturating_add(REGISTERS);
    let mut out = vec![0; end.saturating_add(8)];
    put(&mut out, 0, &u32::from(thread.signal).to_le_bytes());
    put(&mut out, 12, &thread.signal.to_le_bytes());
    put(&mut out, 32, &thread.tid.to_le_bytes());
    put(&mut out, 36, &process.parent.to_le_bytes());
    put(&mut out, REGISTERS, &thread.registers);
    let has_floating = u32::from(!thread.floating_registers.is_empty());
    put(&mut out, end, &has_floating.to_le_bytes());
    out
}

/// `elf_prpsinfo`
fn information(process: &ProcessNote) -> [u8; 136] {
    let mut out = [0; 136];
    put(&mut out, 1, b"R");
    put(&mut out, 16, &process.uid.to_le_bytes());
    put(&mut out, 20, &process.gid.to_le_bytes());
    put(&mut out, 24, &process.pid.to_le_bytes());
    put(&mut out, 28, &process.parent.to_le_bytes());
    put(&mut out, 40, process.name.get(..15).unwrap_or(&process.name));
    put(&mut out, 56, process.arguments.get(..79).unwrap_or(&process.arguments));
    out
}

/// `NT_FILE`: count, bytes of a page, a row for each file, and their names.
fn files(files: &[MappedFile]) -> Vec<u8> {
    let count = u64::try_from(files.len()).unwrap_or_default();
    let mut out = Vec::new();
    out.extend(count.to_le_bytes());
    out.extend(PAGE.to_le_bytes());
    for file in files {
        for word in [file.start.get(), file.end.get(), file.file_offset / PAGE] {
            out.extend(word.to_le_bytes());
        }
    }
    for file in files {
        out.extend(file.path.as_bytes());
        out.push(0);
    }
    out
}

/// The offset of the first memory in a file with notes of that length and at most `segments` segments.
pub(crate) fn memory_offset(notes: usize, segments: u64) -> u64 {
    let notes = u64::try_from(notes).unwrap_or(u64::MAX);
    notes_offset(segments).saturating_add(notes).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX)
}

fn notes_offset(segments: u64) -> u64 {
    let headers = segments.saturating_add(1).saturating_mul(PROGRAM_HEADER);
    headers.saturating_add(ELF_HEADER).saturating_add(SECTION_HEADER)
}

/// Returns the beginning of a file, up to its first memory: headers and notes. Unused places for segments are
/// left empty (`PT_NULL`).
pub(crate) fn beginning(machine: u16, notes: &[u8], places: u64, segments: &[Segment]) -> Vec<u8> {
    let count = places.saturating_add(1);
    let mut out = Vec::new();
    out.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let half = |out: &mut Vec<u8>, value: u16| out.extend(value.to_le_bytes());
    let word = |out: &mut Vec<u8>, value: u32| out.extend(value.to_le_bytes());
    let long = |out: &mut Vec<u8>, value: u64| out.extend(value.to_le_bytes());
    half(&mut out, 4);
    half(&mut out, machine);
    word(&mut out, 1);
    let programs = ELF_HEADER.saturating_add(SECTION_HEADER);
    let is_extended = count >= EXTENDED_COUNT;
    for value in [0, programs, if is_extended { ELF_HEADER } else { 0 }] {
        long(&mut out, value);
    }
    word(&mut out, 0);
    let shown = u16::try_from(count.min(EXTENDED_COUNT)).unwrap_or(u16::MAX);
    for value in [64, 56, shown, if is_extended { 64 } else { 0 }, u16::from(is_extended), 0] {
        half(&mut out, value);
    }
    // The one section header: only the count, in `sh_info`, has a meaning.
    let mut section = [0; 64];
    if is_extended {
        put(&mut section, 32, &1_u64.to_le_bytes());
        put(&mut section, 44, &u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }
    out.extend(section);
    let mut program = |kind: u32, segment: &Segment, align: u64| {
        word(&mut out, kind);
        word(&mut out, segment.flags);
        let Segment { address, memory_bytes, file_offset, file_bytes, mapping, .. } = *segment;
        for value in [file_offset, address, mapping, file_bytes, memory_bytes, align] {
            long(&mut out, value);
        }
    };
    let bytes = u64::try_from(notes.len()).unwrap_or_default();
    let place = Segment { file_offset: notes_offset(places), file_bytes: bytes, ..Segment::default() };
    program(4, &place, 4);
    for segment in segments {
        program(1, segment, PAGE);
    }
    out.resize(usize::try_from(notes_offset(places)).unwrap_or(out.len()), 0);
    out.extend(notes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Memory;
    use crate::memory::address::Address;
    use crate::memory::copy_note::CopiedContent;
    use crate::memory::core_file::CoreFile;
    use crate::unwind::registers::Register;

    const COPY: CopyNote = CopyNote {
        content: CopiedContent::MINI,
        size_limit: Some(1 << 20),
        time_limit: None,
        size_reached: true,
        time_reached: false,
        omitted_bytes: 12_288,
        unreadable_bytes: 0,
    };

    fn thread(tid: u32, ip: u64) -> ThreadNote {
        let mut registers = vec![0; 216];
        put(&mut registers, 128, &ip.to_le_bytes());
        put(&mut registers, 152, &7_u64.to_le_bytes());
        put(&mut registers, 112, &9_u64.to_le_bytes());
        ThreadNote { tid, registers, floating_registers: vec![1; 512], ..ThreadNote::default() }
    }

    fn core(places: u64) -> CoreFile {
        let file = |start: u64, path: &str| MappedFile {
            start: Address::new(start),
            end: Address::new(start + 0x2000),
            file_offset: 0x3000,
            path: path.into(),
        };
        let process = ProcessNote {
            pid: 42,
            name: b"a name longer than fits".to_vec(),
            arguments: b"dotnet app.dll".to_vec(),
            auxiliary: vec![0; 32],
            files: vec![file(0x1000, "/a"), file(0x9000, "/b c")],
            ..ProcessNote::default()
        };
        let mut first = thread(5, 0x1111);
        first.signal = 11;
        let mut info = [0; 128];
        put(&mut info, 0, &11_u32.to_le_bytes());
        put(&mut info, 8, &1_u32.to_le_bytes());
        put(&mut info, 16, &0xbad_u64.to_le_bytes());
        first.signal_info = Some(info);
        let notes = notes(&process, &[first, thread(4, 0x2222)], &COPY);
        let at = memory_offset(notes.len(), places);
        let segment = Segment {
            address: 0x10_0000,
            memory_bytes: PAGE,
            file_offset: at,
            file_bytes: PAGE,
            flags: 6,
            mapping: 0x10_0000,
        };
        let mut bytes = beginning(62, &notes, places, &[segment]);
        bytes.resize(usize::try_from(at).unwrap(), 0);
        bytes.extend([3; 4096]);
        CoreFile::open(bytes).unwrap()
    }

    #[test]
    fn a_written_core_is_read() {
        let core = core(3);
        assert_eq!(core.machine().0, 62);
        let threads: Vec<_> = core.threads().iter().map(|thread| (thread.tid, thread.signal)).collect();
        assert_eq!(threads, [(5, 11), (4, 0)]);
        let registers = core.registers(4).unwrap();
        assert_eq!((registers.ip, registers.sp, registers.get(Register::RDI)), (0x2222, 7, Some(9)));
        assert_eq!(core.process().unwrap().name, "a name longer t");
        assert_eq!(
            (core.process().unwrap().pid, &*core.process().unwrap().arguments),
            (42, "dotnet app.dll")
        );
        let signal = core.signal().unwrap();
        assert_eq!((signal.number, signal.code, signal.address.get()), (11, 1, 0xbad));
        assert_eq!(core.files()[1].path.as_ref(), "/b c");
        assert_eq!((core.files()[1].file_offset, core.files()[1].end), (0x3000, Address::new(0xb000)));
        let memory: &dyn Memory = &core;
        assert_eq!(memory.u16(0x10_0ffe), Ok(0x0303));
        assert!(memory.u16(0x10_0fff).is_err());
        assert_eq!(core.missing_bytes(), 0);
        assert_eq!(core.copy(), Some(&COPY));
    }

    #[test]
    fn more_segments_than_the_header_can_count_are_written() {
        let core = core(70_000);
        let memory: &dyn Memory = &core;
        assert_eq!((core.threads().len(), memory.u8(0x10_0000)), (2, Ok(3)));
    }
}
