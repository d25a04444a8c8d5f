//! Where the sampled threads of a recording spent their time:
//! `cargo run -p clr-events --example top -- FILE`.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;

use clr_events::{ClrEvent, CodeFrames, CodeMap, Intervals, StackTree};
use nettrace::Reader;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: top FILE")?;
    // Most methods are named at the end of a recording: it is read twice.
    let mut code = CodeMap::default();
    Reader::new(File::open(&path)?)?.for_each(|event| code.add(&event))?;

    let mut frames = CodeFrames::new(code.symbolizer());
    let mut stacks = StackTree::default();
    let mut intervals = Intervals::default();
    let mut ticks = BTreeMap::new();
    let mut events = Reader::new(File::open(&path)?)?.in_time_order();
    while let Some(event) = events.next()? {
        if let Ok(Some(ClrEvent::ThreadSample(_))) = ClrEvent::of(&event) {
            let stack = frames.add_stack(&event, &mut stacks);
            if let Some(interval) = intervals.mark(&event, stack) {
                *ticks.entry(interval.mark).or_insert(0) += interval.ticks();
            }
        }
    }

    // Exclusive: at the leaf. Inclusive: anywhere in the stack, once however often.
    let mut rows: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for (stack, ticks) in &ticks {
        if let Some(leaf) = stacks.leaf(*stack) {
            rows.entry(leaf).or_default().0 += ticks;
        }
        for frame in stacks.frames(*stack).collect::<BTreeSet<_>>() {
            rows.entry(frame).or_default().1 += ticks;
        }
    }
    let total: u64 = ticks.values().sum();
    // In thousandths of a percent.
    let percent = |ticks: u64| {
        let thousandths = u128::from(ticks) * 100_000 / u128::from(total.max(1));
        format!("{:4}.{:03}%", thousandths / 1000, thousandths % 1000)
    };
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, (exclusive, inclusive))| std::cmp::Reverse((*exclusive, *inclusive)));
    for (frame, (exclusive, inclusive)) in rows {
        let code = frames.get(frame).ok_or("no such frame")?;
        println!("{} {} {code}", percent(inclusive), percent(exclusive));
    }
    Ok(())
}
