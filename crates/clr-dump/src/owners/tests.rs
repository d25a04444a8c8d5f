use std::time::Instant;

use linux_proc_stat::{Smaps, ThreadStackPointer};

use super::account::{AccountSources, MemoryAccount};
use super::owner::MemoryOwner;
use crate::dump::Dump;
use crate::heap::regions::FROZEN;
use crate::memory::core_file::CoreFile;
use crate::memory::resident::ResidentPages;
use crate::memory::tests::TestMemory;

/// A process without a runtime: each kind of mapping once.
const MAPPINGS: &[(&str, &str, u64)] = &[
    ("000000010000-000000014000", "r--p 00000000 08:01 1 /usr/bin/shop", 16),
    ("000000020000-000000024000", "r--p 00000000 08:01 2 /app/Shop.dll", 12),
    ("000000030000-000000034000", "r--p 00001000 08:01 3 /usr/lib/locale/locale-archive", 8),
    ("000000040000-000000050000", "rw-p 00000000 00:00 0 [heap]", 64),
    ("000000060000-000000070000", "rw-s 00000000 00:01 4 /memfd:doublemapper (deleted)", 40),
    ("000000080000-000000090000", "rw-s 00000000 00:01 5 /dev/shm/queue", 4),
    ("0000000a0000-0000000b0000", "rw-p 00000000 00:00 0 ", 20),
    ("0000000c0000-0000000c1000", "---p 00000000 00:00 0 ", 0),
    ("0000000c1000-0000000d1000", "rw-p 00000000 00:00 0 ", 24),
    ("0000000e0000-0000000e1000", "---p 00000000 00:00 0 ", 0),
    ("0000000e1000-0000000f1000", "rw-p 00000000 00:00 0 ", 28),
    ("000000100000-000000101000", "---p 00000000 00:00 0 ", 0),
    ("000000101000-000000105000", "rw-p 00000000 00:00 0 ", 32),
    ("000000110000-000000112000", "rwxp 00000000 00:00 0 ", 4),
    ("000000120000-000000140000", "rw-p 00000000 00:00 0 [stack]", 36),
    ("000000150000-000000152000", "r-xp 00000000 00:00 0 [vdso]", 8),
];

fn smaps(mappings: &[(&str, &str, u64)]) -> Smaps {
    let line = |(addresses, rest, resident): &(&str, &str, u64)| {
        format!(
            "{addresses} {rest}\nRss: {resident} kB\nPss: {resident} kB\nPrivate_Dirty: {} kB\n",
            resident / 2
        )
    };
    let text: String = mappings.iter().map(line).collect();
    Smaps::parse(text.as_bytes(), None).unwrap()
}

fn thread(tid: u32, name: &str, stack_pointer: Option<u64>) -> ThreadStackPointer {
    ThreadStackPointer::new(tid, name.to_owned(), stack_pointer)
}

fn account(
    smaps: &Smaps,
    threads: &[ThreadStackPointer],
    pages: Option<&dyn ResidentPages>,
) -> MemoryAccount {
    let mut memory = TestMemory::default();
    memory.put(0x1_0000, b"\x7fELF").put(0x2_0000, b"MZ\0\0");
    let sources = AccountSources { memory: &memory, dump: None, pages, end: None };
    let account = MemoryAccount::of_process(sources, smaps, threads);
    assert_sums(&account);
    assert_eq!(account.total, smaps.total());
    account
}

/// The shares of the owners sum to the total, and those of parts to their owner's.
fn assert_sums(account: &MemoryAccount) {
    let mut sum = linux_proc_stat::MappingSizes::default();
    for owned in &account.owners {
        sum.add(&owned.sizes);
        let parts = owned.parts.iter().map(|part| part.sizes.resident).sum::<u64>();
        assert!(owned.parts.is_empty() || parts <= owned.sizes.resident, "{owned:?}");
    }
    assert_eq!(sum, account.total, "{account:?}");
}

/// The resident kilobytes of an owner, and its parts.
fn share(account: &MemoryAccount, of: MemoryOwner) -> (u64, Vec<String>) {
    let owned = account.owners.iter().find(|owned| owned.owner == of);
    let name = |part: &super::owner::OwnedPart| match part.tid {
        Some(tid) => format!("{tid} {} {}", part.name, part.sizes.resident >> 10),
        None => format!("{} {}", part.name, part.sizes.resident >> 10),
    };
    owned
        .map_or((0, Vec::new()), |owned| (owned.sizes.resident >> 10, owned.parts.iter().map(name).collect()))
}

#[test]
fn each_mapping_has_the_owner_that_its_name_and_place_show() {
    let threads = [
        thread(1, "shop", Some(0x13_8000)),
        thread(7, "clerk", Some(0xc_8000)),
        thread(8, "runs", None),
        thread(9, "elsewhere", Some(0x7_0000_0000)),
    ];
    let account = account(&smaps(MAPPINGS), &threads, None);
    let of = |owner| share(&account, owner);
    let named = |name: &str| vec![name.to_owned()];
    assert_eq!(of(MemoryOwner::NativeLibraries), (16, named("/usr/bin/shop 16")));
    assert_eq!(of(MemoryOwner::Assemblies), (12, named("/app/Shop.dll 12")));
    assert_eq!(of(MemoryOwner::MappedFiles), (8, named("/usr/lib/locale/locale-archive 8")));
    assert_eq!(of(MemoryOwner::NativeHeap), (64, vec![]));
    // Code by two addresses, and code that is written in place.
    assert_eq!(of(MemoryOwner::LoaderHeaps), (44, vec![]));
    assert_eq!(of(MemoryOwner::SharedMemory), (4, named("/dev/shm/queue 4")));
    assert_eq!(of(MemoryOwner::Kernel), (8, named("[vdso] 8")));
    // The stack of a thread that runs has the size of another one.
    let stacks =
        ["1 shop 36", "stacks for signals 32", "stacks of threads that run or have ended 28", "7 clerk 24"];
    assert_eq!(of(MemoryOwner::ThreadStacks), (120, stacks.map(str::to_owned).to_vec()));
    assert_eq!(of(MemoryOwner::Unknown), (20, named(" 20")));
    assert_eq!((account.unattributed(), account.running_threads), (20 << 10, 2));
    let unknown = account.owners.iter().find(|owned| owned.owner == MemoryOwner::Unknown).unwrap();
    // With the pages before stacks that nobody may touch.
    assert_eq!((unknown.parts[0].address.get(), unknown.mapped), (0xa_0000, 0x1_3000));
}

/// Pages that take memory: of each range so many bytes.
struct Pages(fn(u64, u64) -> Option<u64>);

impl ResidentPages for Pages {
    fn resident_bytes(&self, start: u64, end: u64) -> Option<u64> {
        (self.0)(start, end)
    }
}

/// A stack at the lower end of a mapping of 32 MB, of which the rest is another's.
const JOINED: &[(&str, &str, u64)] = &[("7f0000000000-7f0002000000", "rw-p 00000000 00:00 0 ", 1000)];

#[test]
fn a_mapping_of_two_owners_is_divided_by_its_pages() {
    let threads = [thread(1, "shop", Some(0x7f00_0000_0000))];
    let smaps = smaps(JOINED);
    let kilobytes = |pages: Option<&dyn ResidentPages>| {
        let account = account(&smaps, &threads, pages);
        [MemoryOwner::ThreadStacks, MemoryOwner::Unknown].map(|owner| share(&account, owner).0)
    };
    assert_eq!(
        kilobytes(Some(&Pages(|start, _| Some(if start == 0x7f00_0000_0000 { 4096 } else { 12288 })))),
        [250, 750]
    );
    // By addresses, if the pages are not known, or are gone.
    for pages in [None, Some(&Pages(|_, _| None)), Some(&Pages(|_, _| Some(0)))] {
        assert_eq!(kilobytes(pages.map(|pages| pages as &dyn ResidentPages)), [250, 750]);
    }
    // Thirds of bytes are lost nowhere.
    kilobytes(Some(&Pages(|start, _| Some(if start == 0x7f00_0000_0000 { 1 } else { 6 }))));
    kilobytes(Some(&Pages(|_, _| Some(u64::MAX))));
}

#[test]
fn hostile_mappings_lose_no_memory() {
    let hostile: &[(&str, &str, u64)] = &[
        ("0000000a0000-0000000b0000", "rw-p 00000000 00:00 0 ", 20),
        // The same addresses again, none, and all.
        ("0000000a0000-0000000b0000", "rw-p 00000000 00:00 0 ", 20),
        ("0000000a0000-0000000a0000", "rw-p 00000000 00:00 0 ", 8),
        ("0000000b0000-0000000a0000", "rw-p 00000000 00:00 0 /x", 8),
        ("000000000000-ffffffffffffffff", "rw-p 00000000 00:00 0 ", u64::MAX >> 12),
        ("fffffffffffff000-ffffffffffffffff", "rwxp ffffffffffffffff 00:00 0 /a.so", 4),
        ("000000000001-000000000fff", "---s 00000000 00:00 0 [stack", 4),
    ];
    let threads = [0, 1, 0xa_0000, u64::MAX - 1, u64::MAX].map(|sp| thread(1, "a\u{1b}[0m", Some(sp)));
    let smaps = smaps(hostile);
    account(&smaps, &threads, None);
    account(&smaps, &[], Some(&Pages(|start, end| end.checked_sub(start))));
    assert!(account(&Smaps::default(), &threads, None).owners.is_empty());
}

#[test]
fn small_parts_of_many_are_dropped() {
    let line = |index: u64| {
        let start = 0x10_0000 + index * 0x2000;
        format!("{start:x}-{:x} rw-p 00000000 00:00 0 \nRss: {} kB\n", start + 0x1000, index % 100 * 4)
    };
    let text: String = (0..20_000).map(line).collect();
    let smaps = Smaps::parse(text.as_bytes(), None).unwrap();
    let account = account(&smaps, &[], None);
    let [unknown] = &account.owners[..] else { panic!("{:?}", account.owners.len()) };
    // One in a hundred has no memory.
    assert_eq!((unknown.owner, unknown.part_count), (MemoryOwner::Unknown, 19_800));
    assert!(unknown.parts.len() <= 4096 && unknown.parts[0].sizes.resident == 99 * 4096);
}

/// The owners of the cores of `testdata`, each of another version.
#[test]
fn the_memory_of_core_dumps_has_owners() {
    for name in ["shop-heap", "deadlock-10", "deadlock-3.1", "parked-mini", "native-aot"] {
        let core = CoreFile::open(testdata::bytes(&format!("cores/{name}.core.xz"))).unwrap();
        let dump = Dump::open(&core).ok();
        // The others lack their program's file.
        assert!(dump.is_some() || matches!(name, "native-aot" | "parked-mini"), "{name}");
        let end = Instant::now().checked_add(std::time::Duration::from_secs(60));
        let account = MemoryAccount::of_core(&core, dump.as_ref(), end);
        assert_sums(&account);
        assert_eq!(account.total.resident, core.memory_bytes(), "{name}");
        let Some(Ok(regions)) = dump.as_ref().map(|dump| dump.heap().regions()) else {
            assert!(!account.has_heap, "{name}");
            continue;
        };
        // As the view of the heap counts them.
        let number = |owner: MemoryOwner| match owner {
            MemoryOwner::Generation(number) => Some(number),
            MemoryOwner::FrozenObjects => Some(FROZEN),
            _ => None,
        };
        for generation in regions.generations() {
            let of = account.generations.iter().filter(|of| number(of.owner) == Some(generation.number));
            let bytes = of.map(|of| of.used + of.free.unwrap_or_default()).sum::<u64>();
            assert_eq!(bytes, generation.bytes, "{name}: {generation:?}");
        }
    }
}
