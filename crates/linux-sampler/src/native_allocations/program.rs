//! The programs that the kernel runs at each probe.
//!
//! At the entry of an allocating function, a program decides whether the allocation is followed, and notes it
//! for the thread. At its return, another one adds the address to the table of followed ones and writes a
//! record with the stack. At the entry of a freeing function, a third one writes a record if the address is
//! in that table: memory that is not followed costs no record. `munmap`, and `mmap` at a fixed address, can
//! free a part of a mapping, or several of them: each such call is a record.
//!
//! # Source
//! `include/uapi/linux/bpf.h` and `bpf_common.h` of Linux: instructions, and numbers of the kernel's
//! functions.

use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::allocation_function::{ALLOCATED, AllocatingFunction, FREED, FreeingFunction};

/// The first rows of the table of counts; hits of each probe follow.
pub(super) mod count {
    /// Records of allocations that did not fit into the buffer.
    pub(in crate::native_allocations) const LOST_ALLOCATIONS: u32 = 0;
    /// Records of freed memory that did not fit into the buffer: it looks like memory in use.
    pub(in crate::native_allocations) const LOST_FREES: u32 = 1;
    /// Allocations that are not followed because the table is full.
    pub(in crate::native_allocations) const LEFT_OUT: u32 = 2;
    /// Records, lost ones included.
    pub(in crate::native_allocations) const RECORDS: u32 = 3;
    /// The rows of the table.
    pub(in crate::native_allocations) const ROWS: u32 = 64;
    /// The hits of the first probe.
    pub(in crate::native_allocations) const HITS: u32 = 4;
}

/// The bytes of a record: kind and function, size, address.
const RECORD_BYTES: i32 = 24;

/// The bytes of a row of the table of calls: stack pointer, number of the probe, size or zero, pointer.
pub(super) const CALL_BYTES: u32 = 32;

/// The tables of the programs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables<'t> {
    /// Counts, by number.
    pub(super) counts: BorrowedFd<'t>,
    /// Calls of allocating functions that have not returned, by thread.
    pub(super) calls: BorrowedFd<'t>,
    /// The sizes of followed allocations, by address.
    pub(super) followed: BorrowedFd<'t>,
    /// Events of records with the stack, by processor.
    pub(super) stacks: BorrowedFd<'t>,
    /// Events of records without it.
    pub(super) plain: BorrowedFd<'t>,
}

/// Registers. The result of a call is in the first, its arguments are in the next five, and the others keep
/// their values over it. The last one is the end of the program's own memory.
const R0: u8 = 0;
const R1: u8 = 1;
const R2: u8 = 2;
const R3: u8 = 3;
const R4: u8 = 4;
const R5: u8 = 5;
const CONTEXT: u8 = 6;
const SIZE: u8 = 7;
const ADDRESS: u8 = 8;
const FRAME: u8 = 10;

/// Places in the program's memory.
const KEY: i16 = -8;
const SMALL_KEY: i16 = -16;
const VALUE: i16 = -24;
/// A row of the table of calls, or a record.
const ROW: i16 = -64;

/// The kernel's functions.
const LOOKUP: i32 = 1;
const UPDATE: i32 = 2;
const DELETE: i32 = 3;
const RANDOM: i32 = 7;
const THREAD: i32 = 14;
const OUTPUT: i32 = 25;
const READ_USER: i32 = 112;

/// The place of the thread's registers in the context, in the order of arguments.
#[cfg(target_arch = "x86_64")]
mod context {
    pub(super) const ARGUMENTS: [i16; 4] = [112, 104, 96, 88];
    pub(super) const RESULT: i16 = 80;
    pub(super) const STACK_POINTER: i16 = 152;
}
#[cfg(target_arch = "aarch64")]
mod context {
    pub(super) const ARGUMENTS: [i16; 4] = [0, 8, 16, 24];
    pub(super) const RESULT: i16 = 0;
    pub(super) const STACK_POINTER: i16 = 248;
}

/// Memory that is mapped for writing, and backed by no file: `PROT_WRITE`, `MAP_ANONYMOUS`.
const WRITABLE: i32 = 2;
const ANONYMOUS: i32 = 0x20;
/// A mapping that replaces what is at its address: `MAP_FIXED`.
const FIXED: i32 = 0x10;
/// Results from here on are errors of a system call.
const FIRST_ERROR: i32 = -4095;

/// Conditions of jumps.
#[derive(Debug, Clone, Copy)]
enum If {
    Equal = 0x10,
    NotEqual = 0x50,
    AtLeast = 0x30,
    Less = 0xa0,
    /// Less than a number with a sign.
    SignedLess = 0xc0,
    /// Any of the bits is set.
    AnyOf = 0x40,
}

/// A place to jump to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Label {
    End,
    NotFreed,
    New,
    Followed,
    Stored,
    Kept,
    Mapped,
    Freed,
}

/// A program in the making.
#[derive(Debug, Default)]
struct Assembler {
    instructions: Vec<[u8; 8]>,
    /// Jumps, by the instruction, and the places.
    jumps: Vec<(usize, Label)>,
    labels: Vec<(Label, usize)>,
}

impl Assembler {
    fn add(&mut self, operation: u8, to: u8, from: u8, offset: i16, value: i32) {
        let [low, high] = offset.to_ne_bytes();
        let [first, second, third, fourth] = value.to_ne_bytes();
        self.instructions.push([operation, to | from << 4, low, high, first, second, third, fourth]);
    }

    fn copy(&mut self, to: u8, from: u8) {
        self.add(0xbf, to, from, 0, 0);
    }

    fn set(&mut self, to: u8, value: i32) {
        self.add(0xb7, to, 0, 0, value);
    }

    fn add_value(&mut self, to: u8, value: i32) {
        self.add(0x07, to, 0, 0, value);
    }

    /// Sets a register to an address in the program's memory.
    fn set_place(&mut self, to: u8, place: i16) {
        self.copy(to, FRAME);
        self.add_value(to, place.into());
    }

    fn load(&mut self, to: u8, base: u8, offset: i16) {
        self.add(0x79, to, base, offset, 0);
    }

    fn store(&mut self, base: u8, offset: i16, from: u8) {
        self.add(0x7b, base, from, offset, 0);
    }

    fn store_value(&mut self, offset: i16, value: i32) {
        self.add(0x7a, FRAME, 0, offset, value);
    }

    fn call(&mut self, function: i32) {
        self.add(0x85, 0, 0, 0, function);
    }

    /// Sets a register to a table.
    fn set_table(&mut self, to: u8, table: BorrowedFd<'_>) {
        // Two instructions, of which the kernel replaces the values.
        self.add(0x18, to, 1, 0, table.as_raw_fd());
        self.add(0, 0, 0, 0, 0);
    }

    fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add(0x05, 0, 0, 0, 0);
    }

    fn jump_value(&mut self, of: If, register: u8, value: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add(of as u8 | 0x05, register, 0, 0, value);
    }

    fn jump_register(&mut self, of: If, register: u8, other: u8, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.add(of as u8 | 0x0d, register, other, 0, 0);
    }

    fn place(&mut self, label: Label) {
        self.labels.push((label, self.instructions.len()));
    }

    /// Calls a function of the kernel with a table and the key at a place.
    fn with_key(&mut self, table: BorrowedFd<'_>, key: i16, function: i32) {
        self.set_table(R1, table);
        self.set_place(R2, key);
        self.call(function);
    }

    /// Adds one to a row of counts.
    fn count(&mut self, counts: BorrowedFd<'_>, row: u32) {
        self.store_value(SMALL_KEY, row.cast_signed());
        self.with_key(counts, SMALL_KEY, LOOKUP);
        // The kernel wants to see what happens without a row: the next three are skipped.
        self.add(If::Equal as u8 | 0x05, R0, 0, 3, 0);
        self.load(R1, R0, 0);
        self.add_value(R1, 1);
        self.store(R0, 0, R1);
    }

    /// Writes a record of the size and address in their registers. A record that does not fit is counted.
    fn write(&mut self, tables: Tables<'_>, kind: u32, function: u32) {
        let (events, lost) = if kind == ALLOCATED {
            (tables.stacks, count::LOST_ALLOCATIONS)
        } else {
            (tables.plain, count::LOST_FREES)
        };
        self.store_value(ROW, (kind | function << 16).cast_signed());
        self.store(FRAME, ROW + 8, SIZE);
        self.store(FRAME, ROW + 16, ADDRESS);
        self.copy(R1, CONTEXT);
        self.set_table(R2, events);
        // The current processor, in 32 bits.
        self.add(0xb4, R3, 0, 0, -1);
        self.set_place(R4, ROW);
        self.set(R5, RECORD_BYTES);
        self.call(OUTPUT);
        self.jump_value(If::Equal, R0, 0, Label::Stored);
        self.count(tables.counts, lost);
        self.place(Label::Stored);
        self.count(tables.counts, count::RECORDS);
    }

    /// Removes the address in its register from the followed ones, and writes a record if it was among them.
    fn free(&mut self, tables: Tables<'_>, function: u32) {
        self.jump_value(If::Equal, ADDRESS, 0, Label::NotFreed);
        self.store(FRAME, KEY, ADDRESS);
        self.with_key(tables.followed, KEY, DELETE);
        self.jump_value(If::NotEqual, R0, 0, Label::NotFreed);
        self.set(SIZE, 0);
        self.write(tables, FREED, function);
        self.place(Label::NotFreed);
    }

    /// Writes a record of the range in the registers, and removes its address from the followed ones.
    fn free_range(&mut self, tables: Tables<'_>, function: u32) {
        self.store(FRAME, KEY, ADDRESS);
        self.with_key(tables.followed, KEY, DELETE);
        self.write(tables, FREED, function);
    }

    fn finish(mut self) -> Vec<u64> {
        self.place(Label::End);
        self.set(R0, 0);
        self.add(0x95, 0, 0, 0, 0);
        for (at, label) in &self.jumps {
            // The next place with this label: parts of programs occur twice.
            let place = self.labels.iter().find(|(other, place)| other == label && place > at);
            let place = place.map_or(*at, |(_, place)| *place);
            // From the instruction after the jump.
            let distance = i16::try_from(place.saturating_sub(*at).saturating_sub(1)).unwrap_or(0);
            if let Some([_, _, first, second, ..]) = self.instructions.get_mut(*at) {
                [*first, *second] = distance.to_ne_bytes();
            }
        }
        self.instructions.into_iter().map(u64::from_ne_bytes).collect()
    }
}

/// The program at the entry of an allocating function with the number `probe`. Allocations of at least
/// `interval` bytes are followed, and smaller ones with the probability of their share of it.
pub(super) fn entry(tables: Tables<'_>, function: AllocatingFunction, probe: u32, interval: u32) -> Vec<u64> {
    let mut program = Assembler::default();
    let argument = |number: u8| context::ARGUMENTS.get(usize::from(number)).copied().unwrap_or(0);
    program.copy(CONTEXT, R1);
    program.count(tables.counts, count::HITS.saturating_add(probe));
    let arguments = function.arguments();
    // Before old memory is freed, no other thread can have it.
    match (arguments.old, arguments.old_size) {
        (Some(old), Some(old_size)) => {
            program.load(ADDRESS, CONTEXT, argument(old));
            program.load(SIZE, CONTEXT, argument(old_size));
            program.store(FRAME, KEY, ADDRESS);
            program.with_key(tables.followed, KEY, DELETE);
            program.jump_value(If::Equal, R0, 0, Label::Mapped);
            // So much memory would be followed if it were of the kind that is. A smaller one was not drawn.
            program.add(0xb4, R1, 0, 0, interval.cast_signed());
            program.jump_register(If::AtLeast, SIZE, R1, Label::End);
            program.jump(Label::NotFreed);
            program.place(Label::Mapped);
            program.write(tables, FREED, function as u32);
            program.place(Label::NotFreed);
        }
        (Some(old), None) => {
            program.load(ADDRESS, CONTEXT, argument(old));
            program.free(tables, function as u32);
        }
        _ => {}
    }
    if function == AllocatingFunction::Mmap {
        program.load(R1, CONTEXT, argument(3));
        // Skips the jump over the record.
        program.add(If::AnyOf as u8 | 0x05, R1, 0, 1, FIXED);
        program.jump(Label::NotFreed);
        program.load(ADDRESS, CONTEXT, argument(0));
        program.load(SIZE, CONTEXT, argument(arguments.size));
        program.free_range(tables, function as u32);
        program.place(Label::NotFreed);
        for (number, bits) in [(2, WRITABLE), (3, ANONYMOUS)] {
            program.load(R1, CONTEXT, argument(number));
            // Skips the jump to the end.
            program.add(If::AnyOf as u8 | 0x05, R1, 0, 1, bits);
            program.jump(Label::End);
        }
    }
    program.load(SIZE, CONTEXT, argument(arguments.size));
    if let Some(count) = arguments.count {
        program.load(R1, CONTEXT, argument(count));
        program.add(0x2f, SIZE, R1, 0, 0);
    }
    program.call(THREAD);
    program.store(FRAME, KEY, R0);
    program.with_key(tables.calls, KEY, LOOKUP);
    program.jump_value(If::Equal, R0, 0, Label::New);
    // A call from within another one: its memory is the other's. Calls that never returned are above it.
    program.load(R1, R0, 0);
    program.load(R2, CONTEXT, context::STACK_POINTER);
    program.jump_register(If::Less, R2, R1, Label::End);
    program.place(Label::New);
    // In a register: values of instructions have a sign.
    program.add(0xb4, R1, 0, 0, interval.cast_signed());
    program.jump_register(If::AtLeast, SIZE, R1, Label::Followed);
    program.call(RANDOM);
    program.add(0xb4, R1, 0, 0, interval.cast_signed());
    program.add(0x9f, R0, R1, 0, 0);
    program.jump_register(If::Less, R0, SIZE, Label::Followed);
    program.set(SIZE, 0);
    program.place(Label::Followed);
    program.load(R1, CONTEXT, context::STACK_POINTER);
    program.store(FRAME, ROW, R1);
    program.store_value(ROW + 8, probe.cast_signed());
    program.store(FRAME, ROW + 16, SIZE);
    match arguments.result {
        Some(result) => {
            program.load(R1, CONTEXT, argument(result));
            program.store(FRAME, ROW + 24, R1);
        }
        None => program.store_value(ROW + 24, 0),
    }
    program.set_table(R1, tables.calls);
    program.set_place(R2, KEY);
    program.set_place(R3, ROW);
    program.set(R4, 0);
    program.call(UPDATE);
    program.finish()
}

/// The program at the return of an allocating function.
pub(super) fn returned(tables: Tables<'_>, function: AllocatingFunction, probe: u32) -> Vec<u64> {
    let mut program = Assembler::default();
    program.copy(CONTEXT, R1);
    program.call(THREAD);
    program.store(FRAME, KEY, R0);
    program.with_key(tables.calls, KEY, LOOKUP);
    program.jump_value(If::Equal, R0, 0, Label::End);
    program.load(R1, R0, 8);
    program.jump_value(If::NotEqual, R1, probe.cast_signed(), Label::End);
    program.load(R1, R0, 0);
    program.load(R2, CONTEXT, context::STACK_POINTER);
    program.jump_register(If::Less, R2, R1, Label::End);
    program.load(SIZE, R0, 16);
    program.load(ADDRESS, R0, 24);
    program.with_key(tables.calls, KEY, DELETE);
    program.jump_value(If::Equal, SIZE, 0, Label::End);
    program.load(R1, CONTEXT, context::RESULT);
    if function.arguments().result.is_some() {
        // The result is an error, and the address where the argument points to.
        program.add(0xbc, R1, R1, 0, 0);
        program.jump_value(If::NotEqual, R1, 0, Label::End);
        program.store_value(VALUE, 0);
        program.set_place(R1, VALUE);
        program.set(R2, 8);
        program.copy(R3, ADDRESS);
        program.call(READ_USER);
        program.load(ADDRESS, FRAME, VALUE);
    } else {
        program.copy(ADDRESS, R1);
    }
    program.jump_value(If::Equal, ADDRESS, 0, Label::End);
    if matches!(function, AllocatingFunction::Mmap | AllocatingFunction::Mremap | AllocatingFunction::Sbrk) {
        program.jump_value(If::AtLeast, ADDRESS, FIRST_ERROR, Label::End);
    }
    if function == AllocatingFunction::Sbrk {
        program.jump_value(If::SignedLess, SIZE, 0, Label::Freed);
    }
    program.store(FRAME, KEY, ADDRESS);
    program.store(FRAME, VALUE, SIZE);
    program.set_table(R1, tables.followed);
    program.set_place(R2, KEY);
    program.set_place(R3, VALUE);
    program.set(R4, 0);
    program.call(UPDATE);
    program.jump_value(If::Equal, R0, 0, Label::Kept);
    program.count(tables.counts, count::LEFT_OUT);
    program.jump(Label::End);
    program.place(Label::Kept);
    program.write(tables, ALLOCATED, function as u32);
    if function == AllocatingFunction::Sbrk {
        program.jump(Label::End);
        program.place(Label::Freed);
        // From the new break to the old one, which is the result.
        program.add(0x0f, ADDRESS, SIZE, 0, 0);
        program.add(0x87, SIZE, 0, 0, 0);
        program.write(tables, FREED, function as u32);
    }
    program.finish()
}

/// The program at the entry of a freeing function.
pub(super) fn freed(tables: Tables<'_>, function: FreeingFunction, probe: u32) -> Vec<u64> {
    let mut program = Assembler::default();
    program.copy(CONTEXT, R1);
    program.count(tables.counts, count::HITS.saturating_add(probe));
    let [address, size, ..] = context::ARGUMENTS;
    program.load(ADDRESS, CONTEXT, address);
    match function {
        FreeingFunction::Free => program.free(tables, function as u32),
        FreeingFunction::Munmap => {
            program.load(SIZE, CONTEXT, size);
            program.free_range(tables, function as u32);
        }
    }
    program.finish()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    /// The kernel's check of a program needs the right to load it; this is what it looks at first.
    #[test]
    fn jumps_stay_in_their_program() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let table = file.as_fd();
        let tables = Tables { counts: table, calls: table, followed: table, stacks: table, plain: table };
        let mut programs: Vec<_> = FreeingFunction::ALL.map(|function| freed(tables, function, 8)).into();
        for function in AllocatingFunction::ALL {
            programs.push(entry(tables, function, 3, 16_384));
            programs.push(returned(tables, function, 3));
        }
        for program in programs {
            let code: Vec<[u8; 8]> = program.iter().map(|word| word.to_ne_bytes()).collect();
            assert_eq!(code.last().unwrap()[0], 0x95, "the exit is last");
            let mut jumps = 0;
            for (at, instruction) in code.iter().enumerate() {
                let [operation, _, low, high, ..] = *instruction;
                let is_jump = operation & 7 == 5 && !matches!(operation, 0x85 | 0x95);
                if is_jump {
                    jumps += 1;
                    let distance = i16::from_ne_bytes([low, high]);
                    // The kernel refuses loops, which these programs do not have.
                    assert!(distance > 0 || operation == 5, "{at}: {instruction:x?}");
                    let to = at + 1 + usize::try_from(distance).unwrap();
                    assert!(to < code.len(), "{at}: {instruction:x?}");
                    assert_ne!(code[to], [0; 8], "the second half of an instruction");
                }
            }
            assert!(jumps > 1, "{code:x?}");
        }
    }
}
