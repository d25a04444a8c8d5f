//! The heap of the C library of this process, with blocks of known sizes.

#![cfg(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]

use clr_dump::{NativeArena, NativeHeap, PageMap, ProcessMemory};

/// A block with malloc's header takes a chunk of 1,008 bytes.
const BLOCK: usize = 1000;
const CHUNK: u64 = 1008;
const BLOCKS: u64 = 100_000;
/// One of so many blocks is kept.
const KEPT: u64 = 100;
/// The program's other blocks, such as those of the reader, which come and go.
const OTHERS: u64 = 256 << 10;

fn read() -> NativeHeap {
    let pid = std::process::id();
    let memory = ProcessMemory::open(pid).unwrap();
    let pages = PageMap::open(pid).unwrap();
    let heap = NativeHeap::read(&memory, &memory.mappings().unwrap(), Some(&pages), None).unwrap();
    assert_eq!(heap.sum(|arena| arena.unread), 0, "{heap:?}");
    heap
}

#[track_caller]
fn assert_near(value: u64, expected: u64) {
    assert!(value.abs_diff(expected) < OTHERS, "{value}, not {expected}");
}

#[test]
fn known_blocks_are_used_and_then_free() {
    let before = read();
    let mut blocks: Vec<_> = (0..BLOCKS).map(|_| Some(vec![1_u8; BLOCK].into_boxed_slice())).collect();
    let full = read();
    let used = |heap: &NativeHeap| heap.sum(NativeArena::used);
    assert_near(used(&full) - used(&before), BLOCKS * CHUNK);
    for (number, block) in (0..BLOCKS).zip(&mut blocks) {
        block.take_if(|_| number % KEPT > 0);
    }
    let free = read();
    let freed = (BLOCKS - BLOCKS / KEPT) * CHUNK;
    assert_near(used(&full) - used(&free), freed);
    assert_near(free.held() - full.held(), freed);
    // A block with a mapping of its own.
    let large = vec![1_u8; 64 << 20];
    let mapped = read().mapped.unwrap() - free.mapped.unwrap();
    assert_near(mapped, 64 << 20);
    drop((large, blocks));
}
