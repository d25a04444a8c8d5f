//! A runtime that describes its data, read by its description with the facts of its version, and by its
//! description alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clr_dump::contracts::Contracts;
use clr_dump::{Address, CoreFile, Dump, Memory, MemoryResult, Runtime, TypeHandle};

/// A dump of .NET 10.0.12 with a deadlock, stripped, and cut down to the memory that its analysis reads.
fn core() -> CoreFile {
    CoreFile::open(testdata::bytes("cores/deadlock-10.core.xz")).unwrap()
}

/// The same of .NET 10.0.9 on arm64.
fn arm64_core() -> CoreFile {
    CoreFile::open(testdata::bytes("cores/deadlock-10-arm64.core.xz")).unwrap()
}

/// The parts that a description of .NET 10 covers, as text: threads, stacks, exceptions, modules, types,
/// static fields and monitors.
fn covered(core: &CoreFile, memory: &dyn Memory, runtime: &Runtime) -> String {
    let dump = Dump::new(memory, runtime);
    let mut text = String::new();
    let threads = dump.threads().list().unwrap();
    let mut types = Vec::new();
    for thread in &threads {
        writeln!(text, "{thread:?} {:?}", dump.threads().name(thread)).unwrap();
        let stack = dump.threads().stack(thread, core.registers(thread.os_id));
        writeln!(text, "{:?}", stack.gaps).unwrap();
        for (frame, code) in stack.managed() {
            writeln!(text, "{:#x} {code:?} {:?}", frame.ip, dump.types().method(code)).unwrap();
        }
        writeln!(text, "{:?}", dump.exceptions().of_thread(thread)).unwrap();
    }
    let monitors = dump.locks().monitors();
    for monitor in &monitors.monitors {
        let type_handle = TypeHandle::new(memory_word(memory, monitor.object));
        types.push(type_handle);
        writeln!(text, "{monitor:?} {:?}", dump.types().name(type_handle)).unwrap();
    }
    for module in dump.types().modules() {
        writeln!(text, "{} {:?} {:#x} {}", module.address, module.path, module.base, module.size).unwrap();
    }
    for field in dump.statics().fields(types.iter().copied(), &threads) {
        writeln!(text, "{:?}", dump.statics().value(&field)).unwrap();
    }
    text
}

fn memory_word(memory: &dyn Memory, address: Address) -> u64 {
    memory.u64(address.get()).unwrap_or_default()
}

#[test]
fn a_description_alone_gives_what_the_facts_of_the_version_give() {
    for (core, version) in [(core(), "10.0.12"), (arm64_core(), "10.0.9")] {
        check_description_alone(&core, version);
    }
}

fn check_description_alone(core: &CoreFile, version: &str) {
    let described = Runtime::find(core, core.files()).unwrap();
    let alone = Runtime::find_described(core, core.files()).unwrap();
    assert!(described.is_described() && alone.is_described());
    assert_eq!((described.version(), alone.version()), (version, version));
    // Without the header, the facts of the version are all there is.
    let header = contracts(core).descriptors()[0].address.get();
    let undescribed = Changed { core, parts: BTreeMap::from([(header, vec![0; 40])]) };
    let measured = Runtime::find(&undescribed, core.files()).unwrap();
    assert!(!measured.is_described());
    let by_version = covered(core, core, &measured);
    assert_eq!(by_version, covered(core, core, &described));
    assert_eq!(by_version, covered(core, core, &alone));
    for part in [
        "Bank",
        "Transfer2",
        "owner: Some(Owner",
        "recursion: 1",
        "deadlock10.dll",
        "type_name: Some(\"Gate\")",
    ] {
        assert!(by_version.contains(part), "{part}: {by_version}");
    }
}

fn contracts(core: &CoreFile) -> Contracts {
    Contracts::find(core, core.files()).unwrap().unwrap()
}

/// A core dump with other bytes in some places.
struct Changed<'c> {
    core: &'c CoreFile,
    parts: BTreeMap<u64, Vec<u8>>,
}

impl Memory for Changed<'_> {
    fn read(&self, address: u64, buffer: &mut [u8]) -> MemoryResult<()> {
        let end = address.saturating_add(buffer.len() as u64);
        // The new text of the description is where nothing was.
        if address < NEW_TEXT {
            self.core.read(address, buffer)?;
        }
        for (start, bytes) in self.parts.range(..end) {
            let (from, to) = (address.max(*start), end.min(start + bytes.len() as u64));
            if from < to {
                let place = |at: u64, base: u64| usize::try_from(at - base).unwrap();
                buffer[place(from, address)..place(to, address)]
                    .copy_from_slice(&bytes[place(from, *start)..place(to, *start)]);
            }
        }
        Ok(())
    }
}

const NEW_TEXT: u64 = 0xffff_8000_0000_0000;

/// A structure of the process with two fields that change places: their offsets and width.
type Exchange = (u64, [u64; 2], usize);

/// Exchanges fields in memory, and replaces parts of the text of the description.
fn exchanged<'c>(core: &'c CoreFile, exchanges: &[Exchange], texts: &[(&str, &str)]) -> Changed<'c> {
    let memory: &dyn Memory = core;
    let header = contracts(core).descriptors()[0].address.get();
    let size = usize::try_from(memory.u32(header + 12).unwrap()).unwrap();
    let mut text = String::from_utf8(memory.bytes(memory.u64(header + 16).unwrap(), size).unwrap()).unwrap();
    for (old, new) in texts {
        assert_eq!(text.matches(old).count(), 1, "{old}");
        text = text.replace(old, new);
    }
    let mut parts = BTreeMap::new();
    parts.insert(header + 12, u32::try_from(text.len()).unwrap().to_le_bytes().to_vec());
    parts.insert(header + 16, NEW_TEXT.to_le_bytes().to_vec());
    parts.insert(NEW_TEXT, text.into_bytes());
    for (at, [one, other], width) in exchanges {
        parts.insert(at + one, memory.bytes(at + other, *width).unwrap());
        parts.insert(at + other, memory.bytes(at + one, *width).unwrap());
    }
    Changed { core, parts }
}

/// Structures in which fields have changed places are read if the description says so: nothing but the
/// description says where they are.
#[test]
fn fields_at_other_offsets_are_read_where_the_description_has_them() {
    let core = core();
    let runtime = Runtime::find(&core, core.files()).unwrap();
    let dump = Dump::new(&core, &runtime);
    let expected = covered(&core, &core, &runtime);
    let mut exchanges: Vec<Exchange> = Vec::new();
    for thread in dump.threads().list().unwrap() {
        let at = thread.address.get();
        exchanges.extend([(at, [0, 4], 4), (at, [296, 352], 8), (at, [8, 304], 8)]);
        // Modules without code of their own are known by their methods.
        for (_, code) in dump.threads().stack(&thread, core.registers(thread.os_id)).managed() {
            dump.types().method(code);
        }
    }
    for module in dump.types().modules() {
        exchanges.push((module.address.get(), [208, 224], 8));
    }
    let texts = [
        (
            r#""OSId":296,"State":0,"PreemptiveGCDisabled":4,"#,
            r#""OSId":352,"State":4,"PreemptiveGCDisabled":0,"#,
        ),
        (
            r#""Frame":8,"ExceptionTracker":352,"GCHandle":[304,"#,
            r#""Frame":304,"ExceptionTracker":296,"GCHandle":[8,"#,
        ),
        (r#""Base":224,"#, r#""Base":208,"#),
        (r#""FileName":208,"#, r#""FileName":224,"#),
    ];
    let changed = exchanged(&core, &exchanges, &texts);
    for find in [Runtime::find, Runtime::find_described] {
        let runtime = find(&changed, core.files()).unwrap();
        assert_eq!(covered(&core, &changed, &runtime), expected);
    }
    // The facts of the version alone are wrong there.
    let mut undescribed = exchanged(&core, &exchanges, &texts);
    let header = contracts(&core).descriptors()[0].address.get();
    undescribed.parts.insert(header, vec![0; 8]);
    let runtime = Runtime::find(&undescribed, core.files()).unwrap();
    assert_ne!(covered(&core, &undescribed, &runtime), expected);
}

#[test]
fn newer_contracts_are_read_and_said_and_others_are_refused_with_a_name() {
    let core = core();
    let of = |texts: &[(&str, &str)]| Runtime::find_described(&exchanged(&core, &[], texts), core.files());
    let newer = of(&[(r#""Thread":1}"#, r#""Thread":3}"#), (r#""Loader":1"#, r#""Loader":"c1""#)]).unwrap();
    assert_eq!(newer.newer_contracts(), ["contract Thread 3, read as 1"]);
    let rows = [
        // Neither the descriptor nor a reader has the field where the other has it.
        (
            r#""EEClassOrCanonMT":40"#,
            r#""EEClassOrCanonMT":48"#,
            "MethodTable.EEClassOrCanonMT is at 48, and not at 40",
        ),
        (r#""FirstThreadLink":88,"#, "", "its description of its data lacks ThreadStore.FirstThreadLink"),
        (
            r#""StringMethodTable":[[12],"pointer"],"#,
            "",
            "its description of its data lacks StringMethodTable",
        ),
        (r#""Module":24"#, r#""Module":24"x""#, "types.MethodTable at 0xffff8000"),
    ];
    for (old, new, problem) in rows {
        let error = of(&[(old, new)]).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
