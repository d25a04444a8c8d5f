//! Any bytes as a recording, converted to a profile by any metric, with and without causal grouping and lines, in every format.

#![no_main]

use clr_events::code::Method;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_export::{
    CausalGrouping, Format, Labels, Metric, Options, Order, Profile, ProfileBuilder, SourceLine, SourceLines,
};

const WEIGHTS: [Metric; 7] = [
    Metric::Wall,
    Metric::Cpu,
    Metric::Alloc,
    Metric::Contention,
    Metric::Exception,
    Metric::Wait,
    Metric::Gc,
];
const FORMATS: [Format; 8] = [
    Format::Speedscope,
    Format::Chromium,
    Format::Firefox,
    Format::Pprof,
    Format::Folded,
    Format::Flamegraph,
    Format::Perfetto,
    Format::Csv,
];

fuzz_target!(|input: &[u8]| {
    let Some((&[by, flags, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let options = Options::new(WEIGHTS[usize::from(by) % WEIGHTS.len()]);
    let plain = dipc_fuzz::bounded(bytes.len(), || profile_of(bytes, &options).inspect(check));
    let Some(plain) = plain else { return };
    let grouping = CausalGrouping::new(flags & 2 != 0, flags & 4 != 0);
    let lines = flags & 8 != 0;
    if let Some(joined) = profile_of(bytes, &options.with_grouping(grouping).with_lines(lines)) {
        // Frames above a stack do not change its weight.
        assert_eq!((joined.total(), joined.samples()), (plain.total(), plain.samples()));
        check(&joined);
    }
});

/// Source lines in which each IL offset is a line.
struct EveryOffset;

impl SourceLines for EveryOffset {
    fn line(&mut self, _: &Method<'_>, il_offset: u32) -> Option<SourceLine<'_>> {
        Some(SourceLine::new("a/il", il_offset))
    }
}

fn profile_of(bytes: &[u8], options: &Options) -> Option<Profile> {
    assert_eq!(options.order, Order::Time);
    let mut builder = ProfileBuilder::new(options.clone());
    let mut events = SliceReader::new(bytes).ok()?.in_time_order();
    let _ = events.for_each(|event| builder.add(&event));
    let info = events.events().info();
    let finished =
        if options.lines { builder.finish_with_lines(info, &mut EveryOffset) } else { builder.finish(info) };
    Some(finished.expect("time order").0)
}

fn check(profile: &Profile) {
    for format in FORMATS {
        let labels = Labels::new("t", "e").with_by_thread(true).with_for_spreadsheets(true);
        nettrace_export::write(profile, format, labels, &mut std::io::sink()).expect("a sink takes all");
    }
}
