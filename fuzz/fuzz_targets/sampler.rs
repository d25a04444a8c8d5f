//! Any bytes as the kernel's records, the text of mappings, the names of its functions, or a program with
//! symbols and unwind information.
//!
//! The readers of records are not public: they are the source files of linux-sampler.

#![no_main]
#![allow(dead_code, unused_imports, reason = "modules of another crate, of which a part is used")]

#[path = "../../crates/linux-sampler/src/access.rs"]
mod access;
#[path = "../../crates/linux-sampler/src/allocation_function.rs"]
mod allocation_function;
#[path = "../../crates/linux-sampler/src/attributes.rs"]
mod attributes;
#[path = "../../crates/linux-sampler/src/error.rs"]
mod error;
#[path = "../../crates/linux-sampler/src/image.rs"]
mod image;
#[path = "../../crates/linux-sampler/src/kernel.rs"]
mod kernel;
#[path = "../../crates/linux-sampler/src/maps.rs"]
mod maps;
#[path = "../../crates/linux-sampler/src/native_unwind.rs"]
mod native_unwind;
#[path = "../../crates/linux-sampler/src/nearest_symbols.rs"]
mod nearest_symbols;
#[path = "../../crates/linux-sampler/src/obstacle.rs"]
mod obstacle;
#[path = "../../crates/linux-sampler/src/off_cpu.rs"]
mod off_cpu;
#[path = "../../crates/linux-sampler/src/record.rs"]
mod record;
#[path = "../../crates/linux-sampler/src/runtime_code.rs"]
mod runtime_code;
#[path = "../../crates/linux-sampler/src/stack_base.rs"]
mod stack_base;
#[path = "../../crates/linux-sampler/src/sys.rs"]
mod sys;
#[path = "../../crates/linux-sampler/src/threads.rs"]
mod threads;
#[path = "../../crates/linux-sampler/src/unwind.rs"]
mod unwind;
#[path = "../../crates/linux-sampler/src/waiting.rs"]
mod waiting;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process;

use libfuzzer_sys::fuzz_target;
use maps::{Mapping, ProcessMaps, Processes};
use obstacle::Obstacle;
use off_cpu::OffCpuTracker;
use record::{
    EventIds, EventSource, MapRecord, Record, RecordKind, Registers, Sample, SampleEvent, ThreadKey,
};
use unwind::Unwinder;

/// Not one of this machine's processes: their mappings and their memory are no part of the input.
const THREAD: ThreadKey = ThreadKey { pid: -1, tid: -1 };

/// Where a program is mapped.
const START: u64 = 0x1_0000;

fuzz_target!(|input: &[u8]| {
    let Some((format, input)) = input.split_first() else { return };
    match format % 3 {
        0 => dipc_fuzz::bounded(input.len(), || read_records(input)),
        1 => dipc_fuzz::bounded(input.len(), || read_texts(input)),
        _ => dipc_fuzz::bounded(input.len(), || read_program(input)),
    }
});

/// A buffer of the kernel, whose events have the identifiers 1 and 2.
fn read_records(input: &[u8]) {
    let mut ids = EventIds::default();
    ids.insert(1, EventSource { event: SampleEvent::Cpu, thread: Some(1) });
    ids.insert(2, EventSource { event: SampleEvent::Switch, thread: None });
    let (mut processes, mut unwinder) = (Processes::new(), Unwinder::new());
    let mut off_cpu = OffCpuTracker::new();
    let (mut at, mut frames, mut switches) = (0, Vec::new(), 0_usize);
    while let Some(place) = record::record_range(input, at) {
        assert!(place.end > at && place.end <= input.len());
        at = place.end;
        record::time_of(&input[place.clone()]);
        let Some((record, _)) = record::parse(&input[place], &ids) else { continue };
        if let RecordKind::Sample(sample) = record.kind {
            unwinder.user_stack(THREAD, &sample, &mut processes, &mut frames);
            assert!(frames.len() <= input.len() / 8 + 512);
            sample.kernel_frames().for_each(drop);
            off_cpu.stack(record.thread, frames.len());
        }
        if let RecordKind::Map(_) = record.kind {
            processes.handle(&Record { thread: ThreadKey { pid: -1, tid: -1 }, ..record });
        }
        switches += usize::from(matches!(record.kind, RecordKind::SwitchOut { .. }));
        if let Some(interval) = off_cpu.handle(&record) {
            assert!(interval.from_ns <= interval.to_ns);
        }
    }
    assert!(off_cpu.finish(u64::MAX).count() <= switches);
}

fn read_texts(input: &[u8]) {
    let maps = ProcessMaps::parse(input);
    let mut end = 0;
    for mapping in maps.iter() {
        assert!(end <= mapping.start && mapping.start < mapping.end);
        assert_eq!(maps.at(mapping.start), Some(mapping));
        end = mapping.end;
    }
    kernel::parse(input).unwrap();
}

/// The last bytes are the stack of a thread in the program.
fn read_program(input: &[u8]) {
    thread_local! {
        static FILE: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    }
    let path = FILE.with_borrow_mut(|path| {
        path.get_or_insert_with(|| std::env::temp_dir().join(format!("dipc-fuzz-sampler-{}", process::id())))
            .clone()
    });
    fs::write(&path, input).unwrap();
    let pid = i32::try_from(process::id()).unwrap();
    let name = path.to_str().unwrap();
    let mapping = Mapping::new(START, START + (1 << 20), 0, name);
    let Some(image) = mapping.image(pid) else { return };
    let symbols = image.symbols().unwrap_or_default();
    let stack = &input[input.len().saturating_sub(512)..];
    let mut processes = Processes::new();
    let thread = ThreadKey { pid: -1, tid: -1 };
    let end = START + (1 << 20);
    let map = MapRecord { start: START, end, file_offset: 0, file: None, name: name.as_bytes() };
    processes.handle(&Record { thread, time_ns: 0, cpu: 0, kind: RecordKind::Map(map) });
    // The mapping has this process's view of the file.
    processes.of(-1).at(START).unwrap().image(pid);
    let (mut unwinder, mut frames) = (Unwinder::new(), Vec::new());
    for offset in (0..4096).step_by(64) {
        let ip = START + offset;
        if let Some(symbol) = mapping.address_in(image, ip).and_then(|own| symbols.at(own)) {
            assert!(symbol.start < symbol.end);
        }
        let registers = Some(Registers { ip, sp: 0x8000, fp: 0x8010, lr: ip });
        let sample = Sample { event: SampleEvent::Cpu, ip, period: 1, chain: &[], registers, stack };
        unwinder.user_stack(THREAD, &sample, &mut processes, &mut frames);
        assert!(frames.len() <= 512);
    }
}
