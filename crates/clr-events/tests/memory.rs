//! How much memory half a million methods take.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;

use clr_events::CodeMap;
use nettrace::{SliceReader, Ticks};
use nettrace_synth::clr::{Method, Recording, kind};

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
    let mut recording = Recording::new();
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
        let method = Method {
            id: 0x7f00_0000_0000 + number * 64,
            module: number % 200,
            size: 200,
            signature: &signature,
            ..Method::new(0x7e00_0000_0000 + number * 256, &namespace, &name)
        };
        let values = method.verbose();
        recording.at(number).event(kind::METHOD_LOAD_VERBOSE, &values);
        recording.event(kind::METHOD_DC_END_VERBOSE, &values);
    }
    recording.bytes()
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
