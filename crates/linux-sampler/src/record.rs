//! The kernel's records: `perf_event_header` and what follows it.

use std::collections::HashMap;
use std::ops::Range;

use linux_proc_stat::FileId;

use crate::allocation_function::{self, ALLOCATED, FREED};
use crate::attributes::{REGISTERS, SAMPLE_TYPE, sample};

/// The bytes of a record's header: kind, bits, size.
pub(crate) const HEADER: usize = 8;

/// Marks in a chain: the frames that follow are the kernel's, or the program's.
const CONTEXT_KERNEL: u64 = (-128_i64).cast_unsigned();
pub(crate) const CONTEXT_USER: u64 = (-512_i64).cast_unsigned();
/// Values from here on are marks, not addresses.
const CONTEXT_FIRST: u64 = (-4095_i64).cast_unsigned();

const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
const PROT_EXEC: u32 = 4;

/// A thread of a process, by ids in this program's pid namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::exhaustive_structs, reason = "a pair of ids")]
pub struct ThreadKey {
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
}

/// A record, with its thread and its time.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Record<'a> {
    /// The thread that ran when the record was written. Both numbers are -1 for a thread that has ended.
    pub thread: ThreadKey,
    /// `CLOCK_MONOTONIC` in nanoseconds, the clock of .NET's recordings on Linux.
    pub time_ns: u64,
    /// The processor.
    pub cpu: u32,
    /// The kind of record, with its content.
    pub kind: RecordKind<'a>,
}

/// The content of a record.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum RecordKind<'a> {
    /// The stack of a thread.
    Sample(Sample<'a>),
    /// An allocation that is followed, or its end: see
    /// [`native_allocations`](crate::SamplerConfig::native_allocations).
    NativeAllocation(AllocationRecord<'a>),
    /// An event of one of the [`tracepoints`](crate::SamplerConfig::tracepoints).
    Tracepoint(TracepointEvent<'a>),
    /// A thread was switched onto the processor.
    SwitchIn,
    /// A thread left the processor.
    SwitchOut {
        /// True if it was runnable: another thread took its place.
        preempted: bool,
    },
    /// Memory was mapped executable.
    Map(MapRecord<'a>),
    /// A thread has a new name; after `exec`, a process has a new program, without its earlier mappings.
    Name {
        /// The new name; it need not be UTF-8.
        name: &'a [u8],
        /// True if `exec` caused the record.
        exec: bool,
    },
    /// A thread or process began.
    Started {
        /// The new thread.
        thread: ThreadKey,
        /// The thread that started it.
        parent: ThreadKey,
    },
    /// A thread ended.
    Ended {
        /// The thread.
        thread: ThreadKey,
    },
    /// Records were lost because the buffer was full.
    Lost {
        /// The number of records.
        count: u64,
    },
    /// Stacks of switches were lost because their buffer was full. The switches themselves have their times.
    LostStacks {
        /// The number of stacks.
        count: u64,
    },
    /// Samples were lost in the kernel.
    LostSamples {
        /// The number of samples.
        count: u64,
    },
    /// The kernel takes fewer samples than requested, until [`Unthrottled`](Self::Unthrottled).
    Throttled,
    /// The kernel takes all samples again.
    Unthrottled,
    /// An unknown kind.
    Unknown(u32),
}

/// A stack of a thread.
///
/// ```no_run
/// use linux_sampler::{RecordKind, Sampler, SamplerConfig};
/// use std::time::Duration;
///
/// let mut sampler = Sampler::open(&SamplerConfig::of_process(4711))?;
/// for record in sampler.read(Duration::from_secs(1))? {
///     if let RecordKind::Sample(sample) = record.kind {
///         let kernel = sample.kernel_frames().count();
///         println!("{} ran {} ns, {kernel} frames in the kernel", record.thread.tid, sample.period);
///     }
/// }
/// # Ok::<(), linux_sampler::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// The event of the sample.
    pub event: SampleEvent,
    /// The current instruction: in the kernel if the thread was there.
    pub ip: u64,
    /// For [`Cpu`](SampleEvent::Cpu) the nanoseconds that the sample represents; for
    /// [`Switch`](SampleEvent::Switch) the number of switches.
    pub period: u64,
    /// The chain by frame pointers, leaf first, kernel and program, with the kernel's marks.
    pub(crate) chain: &'a [u8],
    /// The registers of the program's part, if they were recorded.
    pub(crate) registers: Option<Registers>,
    /// The copied bytes of the stack, from the stack pointer upwards.
    pub(crate) stack: &'a [u8],
}

/// An allocation that is followed, or its end.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AllocationRecord<'a> {
    /// The address of the memory.
    pub address: u64,
    /// The allocation, or its end.
    pub change: AllocationChange,
    /// The stack that the allocating function returned to; of little use at an end.
    pub sample: Sample<'a>,
}

/// An allocation, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "memory is allocated or freed")]
pub enum AllocationChange {
    /// A function has returned the memory.
    Allocated {
        /// The requested bytes.
        size: u64,
        /// The name of the function.
        function: &'static str,
    },
    /// The memory is about to be freed.
    Freed {
        /// The bytes of the range that is freed, which can be a part of an allocation, or several; zero for
        /// the allocation at the address.
        size: u64,
    },
}

/// An event of a tracepoint.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct TracepointEvent<'a> {
    /// The index of the tracepoint in the settings.
    pub tracepoint: usize,
    /// The bytes of the event, which [`Tracepoint::value`](crate::Tracepoint::value) reads. The kernel may
    /// have added zeros at the end.
    pub data: &'a [u8],
    /// The stack of the thread, without the frames in the kernel.
    pub sample: Sample<'a>,
}

/// The event of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SampleEvent {
    /// The thread had run for a period.
    Cpu,
    /// The thread is about to leave the processor.
    Switch,
    /// A tracepoint, by its index in the settings.
    Tracepoint(usize),
    /// A followed allocation.
    NativeAllocation,
    /// An event that this sampler did not open.
    Unknown,
}

/// The registers that a frame is unwound from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "those by which frames are unwound")]
pub struct Registers {
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer: rbp on x86-64.
    pub fp: u64,
    /// The link register of aarch64; zero elsewhere.
    pub lr: u64,
}

/// Memory that was mapped executable.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct MapRecord<'a> {
    /// The addresses of the mapping.
    pub start: u64,
    /// The address past its last byte.
    pub end: u64,
    /// The offset of `start` in the file.
    pub file_offset: u64,
    /// The mapped file; `None` for memory without one.
    pub file: Option<FileId>,
    /// The path, or the kernel's name for a mapping without a file.
    pub name: &'a [u8],
}

impl<'a> Sample<'a> {
    /// The chain's frames in the kernel, leaf first.
    pub fn kernel_frames(&self) -> impl Iterator<Item = u64> + 'a {
        frames(self.chain, CONTEXT_KERNEL)
    }

    /// The chain's frames in the program by frame pointers, leaf first.
    pub fn user_frames(&self) -> impl Iterator<Item = u64> + 'a {
        frames(self.chain, CONTEXT_USER)
    }

    /// The number of frames and marks in the chain.
    pub const fn chain_len(&self) -> usize {
        self.chain.len() / 8
    }
}

/// The addresses of a chain after the mark `context`.
fn frames(chain: &[u8], context: u64) -> impl Iterator<Item = u64> + '_ {
    let words = chain.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes));
    let mut now = 0;
    words.filter(move |&word| {
        if word >= CONTEXT_FIRST {
            now = word;
            return false;
        }
        now == context
    })
}

/// The events of a sampler by the identifier in their records.
#[derive(Debug, Default)]
pub(crate) struct EventIds {
    sources: HashMap<u64, EventSource>,
    has_switches: bool,
}

/// The source event of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventSource {
    pub(crate) event: SampleEvent,
    /// The thread that it was opened for; threads that inherited it have the same identifier. `None` for all
    /// threads of a processor.
    pub(crate) thread: Option<i32>,
}

impl EventIds {
    pub(crate) fn insert(&mut self, id: u64, source: EventSource) {
        self.has_switches |= source.event == SampleEvent::Switch;
        self.sources.insert(id, source);
    }

    fn of(&self, id: u64) -> EventSource {
        // If two samplers count the switches of a thread, the kernel puts the identifier of one sampler's
        // event into the samples of both (seen on Linux 6.18). Clock events have their own identifiers
        // always.
        let event = if self.has_switches { SampleEvent::Switch } else { SampleEvent::Unknown };
        self.sources.get(&id).copied().unwrap_or(EventSource { event, thread: None })
    }
}

/// Bytes that are read from the front.
#[derive(Clone, Copy)]
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_ne_bytes(self.bytes(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn i32(&mut self) -> Option<i32> {
        Some(i32::from_ne_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn thread(&mut self) -> Option<ThreadKey> {
        Some(ThreadKey { pid: self.i32()?, tid: self.i32()? })
    }

    /// The number of a chain's frames and marks, and these.
    fn chain(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.u64()?).ok()?;
        self.bytes(count.checked_mul(8)?)
    }

    /// The text at the front, up to its NUL.
    fn text(self) -> &'a [u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        self.0.get(..end).unwrap_or_default()
    }
}

/// The range of the record at offset `at`; `None` if it is incomplete.
pub(crate) fn record_range(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let mut cursor = Cursor(bytes.get(at..)?);
    cursor.bytes(6)?;
    let size = usize::from(cursor.u16()?);
    let end = at.checked_add(size)?;
    (size >= HEADER && end <= bytes.len()).then_some(at..end)
}

/// The kinds of the kernel, `PERF_RECORD_*`.
mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const UNTHROTTLE: u32 = 6;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const SWITCH: u32 = 14;
    pub(super) const SWITCH_CPU_WIDE: u32 = 15;
}

/// The end of each record that is not a sample: thread, time, processor, identifier.
const TRAILER: usize = 32;

/// Reads a whole record, and returns its source event. `None` if the record is shorter than its kind, or for
/// a mapping that is not executable.
pub(crate) fn parse<'a>(record: &'a [u8], ids: &EventIds) -> Option<(Record<'a>, EventSource)> {
    let mut cursor = Cursor(record);
    let kind = cursor.u32()?;
    let misc = cursor.u16()?;
    cursor.u16()?;
    if kind == kind::SAMPLE {
        return sample(cursor, ids);
    }
    let (body, trailer) = cursor.0.split_at_checked(cursor.0.len().checked_sub(TRAILER)?)?;
    let mut trailer = Cursor(trailer);
    let thread = trailer.thread()?;
    let time_ns = trailer.u64()?;
    let cpu = trailer.u32()?;
    trailer.u32()?;
    let source = ids.of(trailer.u64()?);
    let mut body = Cursor(body);
    let mut of = thread;
    let kind = match kind {
        kind::LOST => {
            body.u64()?;
            RecordKind::Lost { count: body.u64()? }
        }
        kind::LOST_SAMPLES => RecordKind::LostSamples { count: body.u64()? },
        kind::COMM => {
            of = body.thread()?;
            RecordKind::Name { name: body.text(), exec: misc & MISC_COMM_EXEC != 0 }
        }
        kind::FORK | kind::EXIT => {
            let (pid, pid_of_parent) = (body.i32()?, body.i32()?);
            let thread = ThreadKey { pid, tid: body.i32()? };
            let parent = ThreadKey { pid: pid_of_parent, tid: body.i32()? };
            if kind == kind::FORK {
                RecordKind::Started { thread, parent }
            } else {
                RecordKind::Ended { thread }
            }
        }
        kind::MMAP2 => {
            of = body.thread()?;
            let (start, length, file_offset) = (body.u64()?, body.u64()?, body.u64()?);
            let file = FileId { major: body.u32()?, minor: body.u32()?, inode: body.u64()? };
            // The generation of the inode.
            body.u64()?;
            let protection = body.u32()?;
            body.u32()?;
            if protection & PROT_EXEC == 0 {
                return None;
            }
            let end = start.checked_add(length)?;
            let file = (file.inode != 0).then_some(file);
            RecordKind::Map(MapRecord { start, end, file_offset, file, name: body.text() })
        }
        kind::SWITCH | kind::SWITCH_CPU_WIDE if misc & MISC_SWITCH_OUT == 0 => RecordKind::SwitchIn,
        kind::SWITCH | kind::SWITCH_CPU_WIDE => {
            RecordKind::SwitchOut { preempted: misc & MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        kind::THROTTLE => RecordKind::Throttled,
        kind::UNTHROTTLE => RecordKind::Unthrottled,
        other => RecordKind::Unknown(other),
    };
    Some((Record { thread: of, time_ns, cpu, kind }, source))
}

fn sample<'a>(mut cursor: Cursor<'a>, ids: &EventIds) -> Option<(Record<'a>, EventSource)> {
    const { assert!(SAMPLE_TYPE & sample::REGS_USER != 0 && SAMPLE_TYPE & sample::STACK_USER != 0) };
    let source = ids.of(cursor.u64()?);
    let ip = cursor.u64()?;
    let thread = cursor.thread()?;
    let time_ns = cursor.u64()?;
    let cpu = cursor.u32()?;
    cursor.u32()?;
    let period = cursor.u64()?;
    let chain = cursor.chain()?;
    let data = if let SampleEvent::NativeAllocation | SampleEvent::Tracepoint(_) = source.event {
        let size = usize::try_from(cursor.u32()?).ok()?;
        Some(cursor.bytes(size)?)
    } else {
        None
    };
    let abi = cursor.u64()?;
    let registers = if abi == 0 { None } else { Some(registers(&mut cursor)?) };
    let size = usize::try_from(cursor.u64()?).ok()?;
    let stack = if size == 0 {
        &[][..]
    } else {
        let copied = cursor.bytes(size)?;
        let used = usize::try_from(cursor.u64()?).ok()?;
        copied.get(..used).unwrap_or(copied)
    };
    // 32-bit programs have other frames; their registers cannot be used here.
    let registers = registers.filter(|_| abi == 2);
    let sample = Sample { event: source.event, ip, period, chain, registers, stack };
    let kind = match (data, source.event) {
        (Some(data), SampleEvent::Tracepoint(tracepoint)) => {
            RecordKind::Tracepoint(TracepointEvent { tracepoint, data, sample })
        }
        (Some(data), _) => RecordKind::NativeAllocation(allocation(Cursor(data), sample)?),
        (None, _) => RecordKind::Sample(sample),
    };
    Some((Record { thread, time_ns, cpu, kind }, source))
}

/// Reads what a program at a probe has written.
fn allocation<'a>(mut cursor: Cursor<'a>, sample: Sample<'a>) -> Option<AllocationRecord<'a>> {
    let (words, size, address) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    // The kind in the lower half of the first four bytes, the function in the upper one.
    let (kind, function) = (u32::try_from(words & 0xffff).ok()?, u32::try_from(words >> 16).ok()?);
    let change = match kind {
        ALLOCATED => {
            AllocationChange::Allocated { size, function: allocation_function::function_name(function) }
        }
        FREED => AllocationChange::Freed { size },
        _ => return None,
    };
    Some(AllocationRecord { address, change, sample })
}

/// The registers in the order of their numbers.
fn registers(cursor: &mut Cursor<'_>) -> Option<Registers> {
    let mut values = [0; 4];
    for value in values.iter_mut().take(REGISTERS.count_ones() as usize) {
        *value = cursor.u64()?;
    }
    Some(if cfg!(target_arch = "aarch64") {
        let [fp, lr, sp, ip] = values;
        Registers { ip, sp, fp, lr }
    } else {
        let [fp, sp, ip, lr] = values;
        Registers { ip, sp, fp, lr }
    })
}

/// The time of a record, for sorting; zero if it is too short.
pub(crate) fn time_of(record: &[u8]) -> u64 {
    let is_sample = Cursor(record).u32() == Some(kind::SAMPLE);
    // In samples, after header, identifier, address and thread; elsewhere in the trailer.
    let at = if is_sample { Some(HEADER + 24) } else { record.len().checked_sub(TRAILER - 8) };
    at.and_then(|at| record.get(at..)).and_then(|bytes| Cursor(bytes).u64()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record with data as the kernel writes it, with two frames and the stack's first bytes.
    fn record_with_data(id: u64, data: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        let add = |body: &mut Vec<u8>, words: &[u64]| {
            body.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        };
        // Identifier, address, process and thread, time, processor, period, a chain of three.
        let thread = 4711 + (4712 << 32);
        add(&mut body, &[id, 0x1000, thread, 99, 1, 1, 3, CONTEXT_USER, 0x1000, 0x2000]);
        // The kernel fills up to 8 bytes, the size included.
        let size = (data.len() + 4).next_multiple_of(8) - 4;
        body.extend(u32::try_from(size).unwrap().to_ne_bytes());
        body.extend(data);
        body.resize(body.len() + size - data.len(), 0);
        add(&mut body, &[2]);
        add(&mut body, &[0x10, 0x20, 0x1000, 0][..REGISTERS.count_ones() as usize]);
        add(&mut body, &[16, 0x55, 0x66, 16]);
        let mut record = kind::SAMPLE.to_ne_bytes().to_vec();
        record.extend(0_u16.to_ne_bytes());
        record.extend(u16::try_from(body.len() + HEADER).unwrap().to_ne_bytes());
        record.extend(body);
        record
    }

    fn allocation_sample(id: u64, words: [u64; 3]) -> Vec<u8> {
        let data: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        record_with_data(id, &data)
    }

    #[test]
    fn records_of_allocations_have_their_size_and_their_stack() {
        let mut ids = EventIds::default();
        ids.insert(7, EventSource { event: SampleEvent::NativeAllocation, thread: None });
        let read = |bytes: &[u8]| {
            let (record, _) = parse(bytes, &ids)?;
            let RecordKind::NativeAllocation(of) = record.kind else { panic!("{record:?}") };
            Some((record.thread.tid, of.address, of.change, of.sample.stack.len(), of.sample.chain_len()))
        };
        let bytes = allocation_sample(7, [1 | 6 << 16, 4096, 0xabc0]);
        let change = AllocationChange::Allocated { size: 4096, function: "mmap" };
        assert_eq!(read(&bytes), Some((4712, 0xabc0, change, 16, 3)));
        assert_eq!(time_of(&bytes), 99);
        let freed = allocation_sample(7, [2 | 16 << 16, 0, 0xabc0]);
        assert_eq!(read(&freed), Some((4712, 0xabc0, AllocationChange::Freed { size: 0 }, 16, 3)));
        assert_eq!(read(&allocation_sample(7, [3, 0, 0])), None, "of another version");
        for length in 0..bytes.len() - 8 {
            assert_eq!(read(&bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn events_of_tracepoints_have_their_data() {
        let mut ids = EventIds::default();
        ids.insert(7, EventSource { event: SampleEvent::Tracepoint(2), thread: None });
        let bytes = record_with_data(7, b"abcdefghijkl");
        assert_eq!(time_of(&bytes), 99);
        let (record, _) = parse(&bytes, &ids).unwrap();
        assert_eq!((record.thread, record.cpu), (ThreadKey { pid: 4711, tid: 4712 }, 1));
        let RecordKind::Tracepoint(event) = record.kind else { panic!("{record:?}") };
        assert_eq!((event.tracepoint, event.data), (2, &b"abcdefghijkl"[..]));
        assert_eq!(event.sample.user_frames().collect::<Vec<_>>(), [0x1000, 0x2000]);
        assert_eq!(event.sample.stack.len(), 16);
        // Cut anywhere, it is not an event.
        for length in 0..bytes.len() - 8 {
            assert!(parse(&bytes[..length], &ids).is_none(), "{length}");
        }
    }
}
