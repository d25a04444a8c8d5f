use std::time::Instant;

use clr_dump::{Generation, NativeArena, NativeHeap};
use linux_proc_stat::ProcessUsage;

use crate::memory_counts::{CollectionCount, FragmentedGeneration, MemoryCounts};
use crate::{Diagnosis, Evidence, Finding, FindingKind, ProcessIdentity, diagnose};

const MB: u64 = 1_000_000;

/// The kernel's account of a process with this resident memory.
fn usage(resident: u64) -> [ProcessUsage; 1] {
    let mut usage = ProcessUsage::read(std::process::id()).unwrap();
    usage.memory.as_mut().unwrap().resident = Some(resident);
    [usage]
}

fn judge(counts: &[MemoryCounts], resident: u64) -> Vec<Finding> {
    diagnose(&Evidence::default().with_usage(&usage(resident)).with_counts(counts))
}

/// A reading with an arena for each pair of bytes: in all, and free.
fn arenas(arenas: &[[u64; 2]]) -> MemoryCounts {
    let arena = |[system, free]: &[u64; 2]| {
        let mut arena = NativeArena::default();
        (arena.system, arena.free) = (*system, *free);
        arena
    };
    let mut heap = NativeHeap::default();
    heap.arenas = arenas.iter().map(arena).collect();
    MemoryCounts::at(Instant::now()).with_native_heap(Ok(heap))
}

/// A reading with a generation.
fn generation(number: u64, bytes: u64, free: u64, pinned: u64) -> MemoryCounts {
    let mut generation = Generation::default();
    (generation.number, generation.bytes, generation.free) = (number, bytes, Some(free));
    let fragmented =
        FragmentedGeneration { generation, pinned: Some(pinned), type_name: Some("byte[]".to_owned()) };
    MemoryCounts { fragmented: vec![fragmented], ..MemoryCounts::at(Instant::now()) }
}

#[test]
fn native_memory_that_is_free_and_kept_is_a_cause() {
    let counts = [arenas(&[[310 * MB, 270 * MB]]), arenas(&[[310 * MB, 260 * MB]])];
    let findings = judge(&counts, 400 * MB);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.kind, FindingKind::NativeFree);
    let cause = "260 MB of the 310 MB of the native heap are free and not given back to the system; 400 MB resident in all";
    assert_eq!(finding.cause, cause);
    let advice = "blocks in use are between it: malloc_trim gives the pages between them back";
    assert_eq!(finding.evidence, [advice]);
    let many = judge(&[arenas(&[[100 * MB, 90 * MB], [200 * MB, 180 * MB]])], 400 * MB);
    let advice = "2 arenas keep it, the first of them 180 MB: malloc_trim gives it back, and with MALLOC_ARENA_MAX=2 \
                  threads share arenas";
    assert_eq!(many[0].evidence, [advice]);
}

/// A reading that was cut short has less free memory than there is.
#[test]
fn a_reading_that_was_cut_short_does_not_hide_free_memory() {
    let cut = || {
        let mut counts = arenas(&[[310 * MB, 20 * MB]]);
        counts.native_heap.as_mut().unwrap().as_mut().unwrap().arenas[0].unread = 280 * MB;
        counts
    };
    let whole = || arenas(&[[310 * MB, 260 * MB]]);
    for counts in [[whole(), cut()], [cut(), whole()]] {
        assert!(judge(&counts, 400 * MB)[0].cause.starts_with("260 MB of the 310 MB of the native heap"));
        assert_eq!(super::missing(&counts), None);
    }
    // What nobody has read may be free, and this is said.
    let counts = [cut(), cut()];
    assert_eq!(judge(&counts, 400 * MB), []);
    let usage = usage(400 * MB);
    let evidence = Evidence::default().with_usage(&usage).with_counts(&counts);
    let diagnosis = Diagnosis::new(ProcessIdentity::default(), &evidence);
    assert_eq!(diagnosis.missing, ["280 MB of the native heap: there was no time to read them"]);
}

#[test]
fn core_dumps_have_no_resident_memory() {
    let counts = [MemoryCounts { dump_bytes: Some(400 * MB), ..arenas(&[[310 * MB, 260 * MB]]) }];
    let findings = diagnose(&Evidence::default().with_counts(&counts));
    assert!(findings[0].cause.ends_with("not given back to the system; 400 MB in the dump"), "{findings:?}");
}

#[test]
fn free_memory_that_is_little_or_used_again_is_healthy() {
    for (readings, resident) in [
        // Less than half of the heap, and less than a quarter of the process.
        (vec![arenas(&[[310 * MB, 150 * MB]])], 400 * MB),
        (vec![arenas(&[[310 * MB, 260 * MB]])], 2_000 * MB),
        (vec![arenas(&[[70 * MB, 63 * MB]])], 100 * MB),
        (vec![arenas(&[[310 * MB, 260 * MB]]), arenas(&[[310 * MB, 20 * MB]])], 400 * MB),
        (vec![MemoryCounts::at(Instant::now())], 400 * MB),
    ] {
        assert_eq!(judge(&readings, resident), [], "{readings:?}");
    }
}

#[test]
fn large_objects_leave_free_memory() {
    let findings = judge(&[generation(3, 600 * MB, 500 * MB, 0)], 700 * MB);
    let [finding] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(finding.kind, FindingKind::HeapFragmentation);
    let cause = "500 MB of the 600 MB of the large object heap are free between objects; most of what is in use is of \
                 byte[]";
    assert_eq!(finding.cause, cause);
}

#[test]
fn pinned_objects_keep_free_memory() {
    let cause = |pinned| judge(&[generation(2, 400 * MB, 380 * MB, pinned)], 500 * MB)[0].cause.clone();
    let sentence = "380 MB of the 400 MB of generation 2 are free between objects; 2,500 objects of byte[] between it \
                    cannot be moved, as handles pin them";
    assert_eq!(cause(2500), sentence);
    assert_eq!(cause(3), "380 MB of the 400 MB of generation 2 are free between objects");
    let held = CollectionCount {
        holder: "Receiver.pins".to_owned(),
        type_name: "List<GCHandle>".to_owned(),
        count: 2500,
    };
    let other = CollectionCount { type_name: "List<string>".to_owned(), count: 9000, ..held.clone() };
    let reading = MemoryCounts { collections: vec![held, other], ..generation(2, 400 * MB, 380 * MB, 2500) };
    assert_eq!(
        judge(&[reading], 500 * MB)[0].evidence[0],
        "List<GCHandle> in Receiver.pins has 2,500 elements"
    );
    let readings = [generation(2, 400 * MB, 380 * MB, 2500), generation(2, 400 * MB, 60 * MB, 2500)];
    assert_eq!(judge(&readings, 500 * MB), []);
}
