//! The mappings of a hostile process, with any memory in them: their text, and the account of their owners.
//!
//! An input that begins with an odd byte is the text of `smaps`. Of another one, each ten bytes are a
//! mapping: its first page (four bytes), its pages (two), its permissions, its name, and its resident
//! kilobytes (two). The memory at every address is the input, again and again.

#![no_main]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clr_dump::{AccountSources, Memory, MemoryAccount, MemoryResult, Missing, ResidentPages};
use libfuzzer_sys::fuzz_target;
use linux_proc_stat::{MappingSizes, Smaps, ThreadStackPointer};

/// Bytes that claims on addresses may hold, whatever the input.
const CLAIMS: usize = 64 << 20;
/// The time for the blocks of malloc; an account takes at least half a second for endless ones.
const TIME: Duration = Duration::from_millis(20);
/// Names that lead to readers of their own.
const NAMES: [&str; 8] = [
    "",
    "[heap]",
    "[stack]",
    "/lib/libc.so.6",
    "/lib/ld-musl-x86_64.so.1",
    "/memfd:doublemapper (deleted)",
    "/app/Shop.dll",
    "/dev/shm/queue",
];

fuzz_target!(|input: &[u8]| {
    dipc_fuzz::bounded_beyond(CLAIMS, input.len(), || read(input));
});

fn read(input: &[u8]) {
    let text = match input.split_first() {
        Some((first, rest)) if first % 2 == 1 => rest.to_vec(),
        _ => text(input).into_bytes(),
    };
    let smaps = Smaps::parse(&text[..], None).expect("memory can be read");
    // Stacks in mappings, at their ends, and elsewhere.
    let pointers = smaps.mappings.iter().map(|of| of.mapping.end.wrapping_sub(8)).chain([0, u64::MAX]);
    let threads = pointers.zip(1..).take(64).map(|(pointer, tid)| {
        ThreadStackPointer::new(tid, "a\u{1b}".to_owned(), (tid % 3 != 0).then_some(pointer))
    });
    let threads: Vec<_> = threads.collect();
    let memory = Repeated(input);
    for pages in [None, Some(&Half as &dyn ResidentPages)] {
        let end = Instant::now().checked_add(TIME);
        let sources = AccountSources { memory: &memory, dump: None, pages, end };
        let account = MemoryAccount::of_process(sources, &smaps, &threads);
        let mut sum = MappingSizes::default();
        for owned in &account.owners {
            sum.add(&owned.sizes);
        }
        assert_eq!(account.total, smaps.total());
        assert_eq!(sum, account.total);
    }
}

/// The text of the mappings that bytes stand for.
fn text(input: &[u8]) -> String {
    let mut text = String::new();
    for &[a, b, c, d, e, f, permissions, name, g, h] in input.as_chunks::<10>().0 {
        let start = u64::from(u32::from_le_bytes([a, b, c, d])) << 12;
        let end = start + (u64::from(u16::from_le_bytes([e, f])) << 12);
        let permission = |bit: u8, letter: char| if permissions >> bit & 1 == 1 { letter } else { '-' };
        let permissions: String =
            [(0, 'r'), (1, 'w'), (2, 'x')].map(|(bit, of)| permission(bit, of)).iter().collect();
        let name = NAMES[usize::from(name) % NAMES.len()];
        let resident = u16::from_le_bytes([g, h]);
        let _ = writeln!(
            text,
            "{start:x}-{end:x} {permissions}p 0 00:00 0 {name}\nRss: {resident} kB\nSwap: {g} kB"
        );
    }
    text
}

/// The same bytes at all addresses.
struct Repeated<'i>(&'i [u8]);

impl Memory for Repeated<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let from = usize::try_from(address).ok().and_then(|address| address.checked_rem(self.0.len()));
        let from = from.ok_or(Missing { address })?;
        for (byte, own) in buffer.iter_mut().zip(self.0.iter().cycle().skip(from)) {
            *byte = *own;
        }
        Ok(())
    }
}

/// Every other page takes memory.
struct Half;

impl ResidentPages for Half {
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64> {
        Some(end.checked_sub(start)? / 2)
    }
}
