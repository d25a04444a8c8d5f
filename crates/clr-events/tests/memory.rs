//! How much memory half a million methods take.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;

use clr_events::{CodeMap, Provider};
use nettrace::{SliceReader, Ticks};
use nettrace_synth::nettrace::Trace;
use nettrace_synth::{Event, EventBlock, Metadata, TraceHeader, Value, payload};

const METHODS: u64 = 500_000;
const MAX_MEMORY: u64 = 100 << 20;

/// Peak memory of the process, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A number of methods from `first` on, with names as long as in real programs: 20 methods a type, a quarter
/// of the signatures seen before. Each is reported when it is loaded and again when the recording ends.
fn recording(first: u64, count: u64) -> Vec<u8> {
    let mut trace = Trace::new(&TraceHeader::default());
    let kinds = [(1, Provider::Runtime, 143), (2, Provider::Rundown, 144)];
    let kinds = kinds.map(|(id, provider, event_id)| Metadata {
        id,
        provider: provider.name().into(),
        event_id,
        version: 2,
        ..Metadata::default()
    });
    trace.metadata_block(&kinds);
    let mut block = EventBlock::v4();
    for number in first..first + count {
        let mut namespace = String::new();
        let _ = write!(
            namespace,
            "Company.Product.Component{}.Services.Type{}`1[System.__Canon]",
            number / 20 % 97,
            number / 20
        );
        let name = format!("HandleRequest{number}Async");
        let parameter = number - number % 4;
        let signature = format!(
            "instance class [System.Runtime]System.Threading.Tasks.Task (int32,class Arg{parameter},string)"
        );
        let values = [
            Value::UInt64(0x7f00_0000_0000 + number * 64),
            Value::UInt64(number % 200),
            Value::UInt64(0x7e00_0000_0000 + number * 256),
            Value::UInt32(200),
            Value::UInt32(0x0600_0000),
            Value::UInt32(8),
            Value::string16(&namespace),
            Value::string16(&name),
            Value::string16(&signature),
            Value::UInt16(0),
            Value::UInt64(0),
        ];
        for metadata_id in [1, 2] {
            let payload = payload(&values);
            block.event(&Event {
                metadata_id,
                thread: 1,
                capture_thread: 1,
                timestamp: number,
                payload,
                ..Event::default()
            });
        }
    }
    trace.event_block(&block);
    trace.finish()
}

#[test]
fn half_a_million_methods_take_less_than_100_mb() {
    let mut map = CodeMap::default();
    // Whatever making recordings takes is taken before the measuring begins.
    drop(recording(0, 1000));
    let before = peak();
    for first in (0..METHODS).step_by(1000) {
        SliceReader::new(&recording(first, 1000)).unwrap().for_each(|event| map.add(&event)).unwrap();
    }
    let number = METHODS - 1;
    let address = 0x7e00_0000_0000 + number * 256;
    let name = map.symbolizer().resolve(Some(4242), address, Ticks(number)).to_string();
    let taken = peak() - before;
    assert!(name.ends_with("HandleRequest499999Async(int32,class Arg499996,string)"), "{name}");
    assert_eq!((map.methods() as u64, map.left_out()), (METHODS, 0));
    println!("{} MB for {METHODS} methods, of which {} MB are in use", taken >> 20, map.bytes() >> 20);
    assert!(taken < MAX_MEMORY, "{} MB", taken >> 20);
}
