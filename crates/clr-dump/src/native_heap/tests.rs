use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::memory::mapping::parse_mappings;
use crate::memory::tests::TestMemory;

const DATA: u64 = 0x7f00_0000_0000;
const MAIN: u64 = DATA + 0x200;
const HEAP: u64 = 0x5500_0000_0000;
/// A heap of another arena, and its arena.
const OTHER: u64 = 0x7e00_0000_0000;
const ARENA: u64 = OTHER + 0x30;

const MAPS: &[u8] = b"550000000000-550000010000 rw-p 00000000 00:00 0 [heap]\n\
    7e0000000000-7e0000010000 rw-p 00000000 00:00 0 \n\
    7f0000000000-7f0000002000 rw-p 001d0000 08:01 42 /usr/lib/x86_64-linux-gnu/libc.so.6\n";

/// Words at a place of an image.
struct Image {
    start: u64,
    words: Vec<u64>,
}

impl Image {
    fn new(start: u64, bytes: usize) -> Self {
        Self { start, words: vec![0; bytes / 8] }
    }

    fn put(&mut self, address: u64, word: u64) {
        self.words[usize::try_from((address - self.start) / 8).unwrap()] = word;
    }

    /// The description of an arena with empty lists.
    fn put_arena(&mut self, arena: u64, next: u64, top: u64, system: u64) {
        for list in 0..127 {
            let at = arena + 112 + list * 16;
            self.put(at, at - 16);
            self.put(at + 8, at - 16);
        }
        self.put(arena + 96, top);
        self.put(arena + 112 + 2048, next);
        self.put(arena + 112 + 2072, system);
    }

    /// Chunks one after another, the last up to `end`: sizes, and whether they are free.
    fn put_chunks(&mut self, start: u64, end: u64, chunks: &[(u64, bool)]) {
        let (mut at, mut is_previous_used) = (start, true);
        for (size, is_free) in chunks {
            self.put(at + 8, size | u64::from(is_previous_used));
            (at, is_previous_used) = (at + size, !is_free);
        }
        self.put(at + 8, (end - at) | u64::from(is_previous_used));
    }
}

/// A process with a main arena of 64 KB and another one.
struct Process {
    data: Image,
    main: Image,
    other: Image,
}

impl Process {
    fn new() -> Self {
        let [mut data, mut main, mut other] =
            [(DATA, 0x2000), (HEAP, 0x1_0000), (OTHER, 0x1_0000)].map(|(at, size)| Image::new(at, size));
        data.put_arena(MAIN, ARENA, HEAP + 0xf000, 0x1_0000);
        main.put_chunks(HEAP, HEAP + 0x1_0000, &[(0x1000, false), (0x6000, true), (0x8000, false)]);
        other.put(OTHER, ARENA);
        other.put(OTHER + 16, 0x1_0000);
        other.put_arena(ARENA, MAIN, OTHER + 0x8000, 0x1_0000);
        let first = OTHER + 0x8d0;
        other.put_chunks(first, OTHER + 0x1_0000, &[(0x8000 - 0x8d0 - 0x2000, false), (0x2000, true)]);
        Self { data, main, other }
    }

    fn memory(&self) -> TestMemory {
        let mut memory = TestMemory::default();
        for image in [&self.data, &self.main, &self.other] {
            memory.put_words(image.start, &image.words);
        }
        memory
    }

    fn read(&self) -> Result<NativeHeap, NativeHeapError> {
        NativeHeap::read(&self.memory(), &parse_mappings(MAPS), None, None)
    }

    /// The numbers of the arenas: taken from the kernel, free, at the end, unread.
    fn numbers(&self) -> Vec<[u64; 4]> {
        let arenas = self.read().unwrap().arenas;
        arenas.iter().map(|arena| [arena.system, arena.free, arena.top, arena.unread]).collect()
    }
}

#[test]
fn free_chunks_are_counted_in_all_arenas() {
    let heap = Process::new().read().unwrap();
    let [main, other] = heap.arenas[..] else { panic!("{heap:?}") };
    assert_eq!((main.is_main, main.free, main.top, main.unread), (true, 0x6000, 0x1000, 0));
    assert_eq!((main.used(), main.held(), main.largest_free), (0x9000, 0x7000, 0x6000));
    assert_eq!((other.is_main, other.free, other.top, other.unread), (false, 0x2000, 0x8000, 0));
    assert_eq!((heap.held(), heap.resident(), heap.mapped), (0x1_1000, 0x2_0000, None));
}

#[test]
fn caches_of_threads_and_lists_of_small_chunks_are_free() {
    let mut process = Process::new();
    // A cache of a thread with two chunks of 48 bytes.
    process.main.put_chunks(HEAP, HEAP + 0x1_0000, &[(0x290, false), (0xed70, false)]);
    process.main.put(HEAP + 16, 2 << 16);
    process.main.put(HEAP + 16 + 128 + 8, HEAP + 0x400);
    assert_eq!(process.numbers()[0], [0x1_0000, 96, 0x1000, 0]);
    // A count without chunks is that of another structure.
    process.main.put(HEAP + 16, (2 << 16) | 1);
    assert_eq!(process.numbers()[0], [0x1_0000, 0, 0x1000, 0]);
    // Two chunks of 64 bytes, with links that are combined with their addresses.
    let (first, second) = (HEAP + 0x1000, HEAP + 0x2000);
    process.data.put(MAIN + 16 + 16, first);
    for (chunk, next) in [(first, second), (second, 0)] {
        process.main.put(chunk + 8, 0x41);
        process.main.put(chunk + 16, ((chunk + 16) >> 12) ^ next);
    }
    assert_eq!(process.numbers()[0], [0x1_0000, 128, 0x1000, 0]);
    // A list that leads back, with plain links, has no more than the arena.
    process.main.put(second + 16, first);
    assert_eq!(process.numbers()[0], [0x1_0000, 0xf000, 0x1000, 0]);
}

#[test]
fn wrong_sizes_end_the_arena_alone() {
    for size in [0x8, 0x18, 0x7fff_ffff_ffff_fff0, !15, 0x1_0000] {
        let mut process = Process::new();
        process.main.put(HEAP + 0x1000 + 8, size | 1);
        let numbers = process.numbers();
        assert_eq!(numbers[0], [0x1_0000, 0, 0x1000, 0xe000], "{size:#x}");
        assert_eq!(numbers[1][1], 0x2000);
    }
}

#[test]
fn loops_of_arenas_and_heaps_end() {
    let mut process = Process::new();
    process.other.put(ARENA + 112 + 2048, ARENA);
    // The ring does not lead back to the main arena.
    assert_eq!(process.read(), Err(NativeHeapError::UnknownLayout));

    let mut process = Process::new();
    process.other.put(OTHER + 8, OTHER);
    assert_eq!(process.numbers()[1], [0x1_0000, 0x2000, 0x8000, 0]);
    // A heap of another arena, and one that is too large.
    for (at, word) in [(OTHER, MAIN), (OTHER + 16, u64::MAX)] {
        let mut process = Process::new();
        process.other.put(at, word);
        assert_eq!(process.numbers()[1], [0x1_0000, 0, 0x8000, 0x8000 - HEADERS]);
    }
}

#[test]
fn sizes_beyond_the_process_overflow_nothing() {
    let mut process = Process::new();
    process.data.put(MAIN + 112 + 2072, u64::MAX);
    process.data.put(MAIN + 96, u64::MAX - 7);
    process.other.put(ARENA + 112 + 2072, u64::MAX);
    process.other.put(ARENA + 96, !15);
    let heap = process.read().unwrap();
    assert_eq!(heap.arenas.len(), 2);
    assert!(heap.held() <= heap.resident());
}

/// Pages of which none takes memory, in ranges that are mapped.
struct NoPages;

impl ResidentPages for NoPages {
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64> {
        let ranges = [(HEAP, HEAP + 0x1_0000), (OTHER, OTHER + 0x1_0000)];
        assert!(ranges.iter().any(|(from, to)| *from <= start && end <= *to), "{start:#x}-{end:#x}");
        Some(0)
    }
}

#[test]
fn pages_are_looked_up_only_in_mappings() {
    let mut process = Process::new();
    process.data.put(MAIN + 112 + 2072, u64::MAX);
    process.main.put(HEAP + 0xf000 + 8, u64::MAX);
    let heap = NativeHeap::read(&process.memory(), &parse_mappings(MAPS), Some(&NoPages), None).unwrap();
    // All whole pages of the free chunk, and none of the one at the end, which has less after its links.
    assert_eq!((heap.arenas[0].top, heap.arenas[0].returned), (HEAP_ALIGNMENT, 0x5000));
}

/// Memory with an end of the main arena that moves after it was read.
struct Moving {
    memory: TestMemory,
    reads: AtomicU32,
    to: u64,
}

impl Memory for Moving {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        self.memory.read(address, buffer)?;
        if address == MAIN + 96 && self.reads.fetch_add(1, Ordering::Relaxed) > 1 {
            buffer.copy_from_slice(&self.to.to_le_bytes());
        }
        Ok(())
    }
}

#[test]
fn ends_that_move_meanwhile_are_followed() {
    // The last chunk before it is freed, or grows in its place: it is free, or used.
    for (to, size, used) in [(HEAP + 0x7000, 0x9000, 0x1000), (HEAP + 0xf800, 0x8800, 0x9000)] {
        let mut process = Process::new();
        process.main.put(HEAP + 0x7000 + 8, size);
        let memory = Moving { memory: process.memory(), reads: AtomicU32::new(0), to };
        let heap = NativeHeap::read(&memory, &parse_mappings(MAPS), None, None).unwrap();
        assert_eq!((heap.arenas[0].unread, heap.arenas[0].used()), (0, used), "{to:#x}");
    }
}

#[test]
fn libraries_other_than_glibc_are_named() {
    let memory = TestMemory::default();
    let musl = parse_mappings(b"7f0000000000-7f0000002000 rw-p 0 08:01 42 /lib/ld-musl-x86_64.so.1\n");
    assert_eq!(NativeHeap::read(&memory, &musl, None, None), Err(NativeHeapError::NotGlibc));
    let unreadable = NativeHeap::read(&memory, &parse_mappings(MAPS), None, None);
    assert_eq!(unreadable, Err(NativeHeapError::UnknownLayout));
}

#[test]
fn sizes_are_read_without_chunks() {
    let heap = NativeHeap::read_sizes(&Process::new().memory(), &parse_mappings(MAPS)).unwrap();
    assert_eq!((heap.sum(|arena| arena.system), heap.sum(|arena| arena.free)), (0x2_0000, 0));
}
