//! Any bytes as a profile of pprof, and its comparison with itself, in which nothing differs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nettrace_export::diff::{Comparison, ComparisonOptions, Picture, Run, StackComparison};

fuzz_target!(|input: &[u8]| {
    // What a compressed profile unpacks to is not bounded by its length.
    if !input.starts_with(&[0x1f, 0x8b]) {
        dipc_fuzz::bounded(input.len(), || check(input));
    }
});

fn check(input: &[u8]) {
    let run = match Run::of_pprof(input) {
        Ok(run) => [run],
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let comparison = Comparison::new(&run, &run, &ComparisonOptions::default());
    assert!(comparison.changes.iter().all(|change| change.difference().is_none_or(|it| it == 0.0)));
    if let Some(stacks) = StackComparison::new(&run, &run, &ComparisonOptions::default(), None) {
        assert!(stacks.nodes.iter().all(|node| node.values[0] == node.values[1]));
        let written = Picture::new(&stacks, "fuzz").write(&mut std::io::sink());
        assert!(written.is_ok());
    }
}
