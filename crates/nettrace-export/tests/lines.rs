//! Lines change only the names of frames.

#[path = "../../nettrace/tests/reference/files.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod files;

use std::collections::BTreeMap;

use clr_events::code::Method;
use nettrace_export::{
    Format, LineCounts, Metric, Options, Order, ProfileBuilder, SourceLine, SourceLines, StackFilter,
    WriteOptions, write,
};

/// As if every byte of IL were a line.
struct EveryOffset;

impl SourceLines for EveryOffset {
    fn line(&mut self, method: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
        let is_known = method.module()?.name() == "Lines";
        is_known.then_some(SourceLine::new("/src/Il.cs", il_offset + 1))
    }
}

fn recording() -> Vec<u8> {
    files::bytes_of(&files::testdata().join("workload/lines/Lines.nettrace.xz"))
}

/// The weights of stacks, keyed by names, and the outcomes of lines.
fn folded(bytes: &[u8], options: Options, lines: bool) -> (String, LineCounts) {
    let mut events = nettrace::SliceReader::new(bytes).unwrap();
    let mut builder = ProfileBuilder::new(options.with_lines(lines));
    events.for_each(|event| builder.add(&event)).unwrap();
    let finished = if lines {
        builder.finish_with_lines(events.info(), &mut EveryOffset)
    } else {
        builder.finish(events.info())
    };
    let (profile, missing) = finished.unwrap();
    let mut text = Vec::new();
    let options = WriteOptions::default().with_by_thread(true);
    write(&profile, Format::Folded, options, &mut text).unwrap();
    (String::from_utf8(text).unwrap(), missing.lines)
}

/// The stacks without lines.
fn without_lines(folded: &str) -> BTreeMap<String, u64> {
    let mut stacks = BTreeMap::new();
    for row in folded.lines() {
        let (stack, weight) = row.rsplit_once(' ').unwrap();
        let names = stack.split(';').map(|name| match name.split_once(" (Il.cs:") {
            Some((method, _)) => method,
            None => name,
        });
        let stack = names.collect::<Vec<_>>().join(";");
        *stacks.entry(stack).or_default() += weight.parse::<u64>().unwrap();
    }
    stacks
}

#[test]
fn stacks_weigh_the_same_with_lines_and_without() {
    let bytes = recording();
    for (by, fold_recursion) in [(Metric::Wall, false), (Metric::Wall, true), (Metric::Exception, false)] {
        let filter = StackFilter::default().with_fold_recursion(fold_recursion);
        let options = Options::new(by).with_order(Order::File).with_filter(filter);
        let (plain, none) = folded(&bytes, options.clone(), false);
        let (lines, counts) = folded(&bytes, options, true);
        assert_eq!(none, LineCounts::default());
        assert!(counts.found > 20 && counts.without_il > 0, "{counts:?}");
        assert!(lines.contains("Lines!Lines.Main() (Il.cs:"), "{lines}");
        assert!(by != Metric::Wall || lines.lines().count() > plain.lines().count());
        assert_eq!(without_lines(&lines), without_lines(&plain), "{by:?}");
    }
}
