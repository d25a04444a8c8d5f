//! Any bytes as a recording, converted to a profile by any metric, with and without causal grouping, lines
//! and filters, added up with others, in every format.

#![no_main]

use clr_events::StackId;
use clr_events::code::Method;
use libfuzzer_sys::fuzz_target;
use nettrace::SliceReader;
use nettrace_export::{
    CausalGrouping, Format, Metric, Options, Order, Pattern, Profile, ProfileBuilder, ProfileSum, SourceLine,
    SourceLines, StackFilter, WriteOptions, otlp_request,
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
const FORMATS: [Format; 9] = [
    Format::Speedscope,
    Format::Chromium,
    Format::Firefox,
    Format::Pprof,
    Format::Folded,
    Format::Flamegraph,
    Format::Svg,
    Format::Perfetto,
    Format::Csv,
];

fuzz_target!(|input: &[u8]| {
    let Some((&[by, flags, ..], bytes)) = input.split_first_chunk::<4>() else { return };
    let options = Options::new(WEIGHTS[usize::from(by) % WEIGHTS.len()]);
    let plain = dipc_fuzz::bounded(bytes.len(), || profile_of(bytes, &options).inspect(check));
    let Some(plain) = plain else { return };
    let grouping = CausalGrouping::NONE.with_tasks(flags & 2 != 0).with_requests(flags & 4 != 0);
    let joined = options.clone().with_grouping(grouping).with_lines(flags & 8 != 0);
    dipc_fuzz::bounded(bytes.len(), || {
        let joined = profile_of(bytes, &joined).expect("it was read before");
        // Frames above a stack do not change its weight.
        assert_eq!((joined.total(), joined.samples()), (plain.total(), plain.samples()));
        check(&joined);
    });
    let filtered = options.with_filter(filter(&plain, flags));
    dipc_fuzz::bounded(bytes.len(), || {
        let filtered = profile_of(bytes, &filtered).expect("it was read before");
        assert!(filtered.total() <= plain.total());
        check(&filtered);
    });
    dipc_fuzz::bounded(bytes.len(), || check_sum(&plain, if flags & 16 == 0 { 3 } else { 1 << 16 }));
});

/// Returns a filter by names of the profile's own frames.
fn filter(profile: &Profile, flags: u8) -> StackFilter {
    let pattern = |number: usize, begin: &str, end: &str| {
        let name = profile.frames.iter().nth(number).map_or("", |(_, name)| name);
        let middle = name.char_indices().nth(5).map_or(name, |(at, _)| &name[at..]);
        vec![Pattern::new(&format!("{begin}{middle}{end}"))]
    };
    StackFilter::default()
        .with_roots(if flags & 32 == 0 { Vec::new() } else { pattern(3, "", "") })
        .with_hidden(pattern(5, if flags & 64 == 0 { "" } else { "^" }, "*$"))
        .with_fold_recursion(flags & 128 != 0)
}

/// Checks that a sum has the weight of what was added, whatever there is room for.
fn check_sum(profile: &Profile, most_stacks: u32) {
    let mut sum = ProfileSum::new(profile.metric, most_stacks);
    for count in 1..=2u64 {
        sum.add(profile);
        let totals = profile.stack_totals.iter();
        let exact = totals.fold(0u64, |sum, total| sum.saturating_add(total.weight.saturating_mul(count)));
        let of_sum = sum.profile().stack_totals.iter();
        assert_eq!(of_sum.fold(0u64, |sum, total| sum.saturating_add(total.weight)), exact);
    }
    assert!(sum.profile().stacks.len() <= most_stacks as usize);
    assert!(sum.left_out() > 0 || sum.profile().stacks.len() <= profile.stacks.len());
    check(&sum.into_profile());
}

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
        let options = WriteOptions::new("t", "e").with_by_thread(true).with_for_spreadsheets(true);
        nettrace_export::write(profile, format, options, &mut std::io::sink()).expect("a sink takes all");
    }
    let resource = [("service.name".to_owned(), profile.leaf_name(StackId::EMPTY).to_owned())];
    assert!(!otlp_request(profile, &resource, "e 1").is_empty());
}
