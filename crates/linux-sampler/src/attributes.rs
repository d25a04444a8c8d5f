//! The settings of an event, `perf_event_attr` of `linux/perf_event.h`.

/// Events counted by the kernel itself, without the processor's counters.
const TYPE_SOFTWARE: u32 = 1;
/// Tracepoints, by number.
const TYPE_TRACEPOINT: u32 = 2;

/// The size of the structure up to `sample_max_stack`: version 5, supported since Linux 4.8.
const SIZE: u8 = 112;

/// The events of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    /// The time that threads run, by a timer on each processor.
    CpuClock,
    /// The times at which threads leave a processor.
    ContextSwitches,
    /// No samples; it carries the kernel's other records.
    Dummy,
    /// A tracepoint by its number, with its data.
    Tracepoint(u32),
    /// Records that programs in the kernel write.
    ProgramOutput,
}

impl Counter {
    const fn kind(self) -> u32 {
        if let Self::Tracepoint(_) = self { TYPE_TRACEPOINT } else { TYPE_SOFTWARE }
    }

    const fn config(self) -> u64 {
        match self {
            Self::CpuClock => 0,
            Self::ContextSwitches => 3,
            Self::Dummy => 9,
            Self::ProgramOutput => 10,
            Self::Tracepoint(id) => id as u64,
        }
    }
}

/// The parts of a sample, in the kernel's numbers.
pub(crate) mod sample {
    pub(crate) const IP: u64 = 1;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const REGS_USER: u64 = 1 << 12;
    pub(crate) const STACK_USER: u64 = 1 << 13;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// The parts of every sample. Samples have the identifier first, so that they can be read, and all events the
/// same parts at the end of their other records: thread, time, processor, identifier.
pub(crate) const SAMPLE_TYPE: u64 = sample::IDENTIFIER
    | sample::IP
    | sample::TID
    | sample::TIME
    | sample::CPU
    | sample::PERIOD
    | sample::CALLCHAIN
    | sample::REGS_USER
    | sample::STACK_USER;

/// The parts of a record with data: of a program in the kernel, and of a tracepoint.
pub(crate) const OUTPUT_TYPE: u64 = SAMPLE_TYPE | sample::RAW;

/// The registers for the start of unwinding: bp, sp, ip.
#[cfg(target_arch = "x86_64")]
pub(crate) const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// The registers for the start of unwinding: fp, lr, sp, pc.
#[cfg(target_arch = "aarch64")]
pub(crate) const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) const REGISTERS: u64 = 0;

/// Bits of the flags.
mod flag {
    pub(super) const DISABLED: u64 = 1;
    pub(super) const INHERIT: u64 = 1 << 1;
    pub(super) const EXCLUDE_KERNEL: u64 = 1 << 5;
    pub(super) const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    pub(super) const MMAP: u64 = 1 << 8;
    pub(super) const COMM: u64 = 1 << 9;
    pub(super) const FREQUENCY: u64 = 1 << 10;
    pub(super) const TASK: u64 = 1 << 13;
    pub(super) const WATERMARK: u64 = 1 << 14;
    pub(super) const SAMPLE_ID_ALL: u64 = 1 << 18;
    pub(super) const EXCLUDE_CALLCHAIN_KERNEL: u64 = 1 << 21;
    pub(super) const MMAP2: u64 = 1 << 23;
    pub(super) const COMM_EXEC: u64 = 1 << 24;
    pub(super) const USE_CLOCK_ID: u64 = 1 << 25;
    pub(super) const CONTEXT_SWITCH: u64 = 1 << 26;
    pub(super) const INHERIT_THREAD: u64 = 1 << 35;
}

/// The settings that differ between the events of a sampler.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "they are bits of the kernel's structure")]
pub(crate) struct EventSettings {
    pub(crate) counter: Counter,
    /// Samples a second for [`Counter::CpuClock`], occurrences between two samples for the others.
    pub(crate) rate: u64,
    /// Bytes of the thread's stack in each sample.
    pub(crate) stack_bytes: u32,
    /// Maximum number of frames in a chain.
    pub(crate) max_frames: u16,
    pub(crate) kernel: bool,
    pub(crate) kernel_stacks: bool,
    pub(crate) inherit: Inherit,
    /// True if the event reports threads and mappings.
    pub(crate) side_band: bool,
    /// True if the event reports when threads leave a processor and return to one.
    pub(crate) switches: bool,
    /// Bytes in the buffer at which a reader is woken.
    pub(crate) watermark: u32,
}

/// The tasks that inherit an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherit {
    No,
    /// New threads of the same process; since Linux 5.13.
    Threads,
    /// New threads and child processes.
    Children,
}

/// `perf_event_attr`, as words of 8 bytes.
pub(crate) struct EventAttributes([u64; SIZE as usize / 8]);

impl EventAttributes {
    pub(crate) fn new(settings: &EventSettings) -> Self {
        let mut flags = flag::DISABLED
            | flag::EXCLUDE_HYPERVISOR
            | flag::WATERMARK
            | flag::SAMPLE_ID_ALL
            | flag::USE_CLOCK_ID;
        flags |= match settings.inherit {
            Inherit::No => 0,
            Inherit::Threads => flag::INHERIT | flag::INHERIT_THREAD,
            Inherit::Children => flag::INHERIT,
        };
        if settings.counter == Counter::CpuClock {
            flags |= flag::FREQUENCY;
        }
        let parts = match settings.counter {
            Counter::Tracepoint(_) | Counter::ProgramOutput => OUTPUT_TYPE,
            _ => SAMPLE_TYPE,
        };
        if !settings.kernel {
            flags |= flag::EXCLUDE_KERNEL;
        }
        // Later kernels refuse chains with the kernel's frames also where its samples are left out: seen in
        // Debian's 6.12, not in 6.1.
        if !settings.kernel || !settings.kernel_stacks {
            flags |= flag::EXCLUDE_CALLCHAIN_KERNEL;
        }
        if settings.side_band {
            flags |= flag::MMAP | flag::MMAP2 | flag::COMM | flag::COMM_EXEC | flag::TASK;
        }
        if settings.switches {
            flags |= flag::CONTEXT_SWITCH;
        }
        let monotonic = 1;
        Self([
            halves(settings.counter.kind(), u32::from(SIZE)),
            settings.counter.config(),
            settings.rate,
            parts,
            0, // read_format
            flags,
            halves(settings.watermark, 0), // bp_type
            0,                             // config1
            0,                             // config2
            0,                             // branch_sample_type
            REGISTERS,
            halves(settings.stack_bytes, monotonic),
            0, // sample_regs_intr
            max_stack(settings.max_frames),
        ])
    }

    /// A probe in the memory of a process: `kind` is the number of the kernel's `uprobe` events, and `path`
    /// the address of the file's path. It makes no records of its own.
    pub(crate) fn of_probe(kind: u32, at_return: bool, path: u64, offset: u64) -> Self {
        let mut words = [0; SIZE as usize / 8];
        words[0] = halves(kind, u32::from(SIZE));
        words[1] = u64::from(at_return);
        words[2] = 1; // A period, which the kernel wants.
        words[7] = path; // config1
        words[8] = offset; // config2
        Self(words)
    }

    /// The structure, aligned as the kernel's.
    pub(crate) const fn as_words(&self) -> &[u64] {
        &self.0
    }
}

/// Two fields of 4 bytes in the order of memory.
pub(crate) const fn halves(first: u32, second: u32) -> u64 {
    let (low, high) = if cfg!(target_endian = "little") { (first, second) } else { (second, first) };
    low as u64 | (high as u64) << 32
}

/// `aux_watermark`, 4 bytes of zero; `sample_max_stack`; 2 reserved bytes.
const fn max_stack(frames: u16) -> u64 {
    (frames as u64) << if cfg!(target_endian = "little") { 32 } else { 16 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tracepoint_has_its_number_and_its_data() {
        let attributes = EventAttributes::new(&EventSettings {
            counter: Counter::Tracepoint(1700),
            rate: 1,
            stack_bytes: 0,
            max_frames: 127,
            kernel: true,
            kernel_stacks: false,
            inherit: Inherit::No,
            side_band: false,
            switches: false,
            watermark: 4096,
        });
        let words = attributes.as_words();
        assert_eq!(words[0], halves(TYPE_TRACEPOINT, 112));
        assert_eq!((words[1], words[2]), (1700, 1), "number and period");
        assert_eq!(words[3], SAMPLE_TYPE | sample::RAW, "parts");
        assert_eq!(words[5] & flag::FREQUENCY, 0);
    }

    #[test]
    fn samples_of_user_mode_ask_for_nothing_of_the_kernel() {
        let settings = EventSettings {
            counter: Counter::CpuClock,
            rate: 99,
            stack_bytes: 8192,
            max_frames: 127,
            kernel: false,
            kernel_stacks: true,
            inherit: Inherit::Threads,
            side_band: true,
            switches: false,
            watermark: 4096,
        };
        let of_kernel = flag::EXCLUDE_KERNEL | flag::EXCLUDE_CALLCHAIN_KERNEL;
        let excluded = |settings: &EventSettings| EventAttributes::new(settings).as_words()[5] & of_kernel;
        assert_eq!(excluded(&settings), of_kernel);
        assert_eq!(excluded(&EventSettings { kernel: true, ..settings }), 0);
    }

    #[test]
    fn fields_stand_where_the_kernels_header_has_them() {
        let attributes = EventAttributes::new(&EventSettings {
            counter: Counter::ContextSwitches,
            rate: 1,
            stack_bytes: 8192,
            max_frames: 127,
            kernel: true,
            kernel_stacks: false,
            inherit: Inherit::Threads,
            side_band: true,
            switches: true,
            watermark: 0x1234,
        });
        let bytes: Vec<u8> = attributes.as_words().iter().flat_map(|word| word.to_ne_bytes()).collect();
        let u32_at = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(bytes.len(), 112);
        assert_eq!((u32_at(0), u32_at(4)), (1, 112), "type and size");
        assert_eq!((u64_at(8), u64_at(16)), (3, 1), "config and period");
        assert_eq!(u64_at(40) & 0b11, 0b11, "disabled, inherited");
        assert_eq!(u32_at(48), 0x1234, "watermark");
        assert_eq!((u32_at(88), u32_at(92)), (8192, 1), "bytes of stack, clock");
        assert_eq!(u16::from_ne_bytes(bytes[108..110].try_into().unwrap()), 127, "frames");
    }
}
