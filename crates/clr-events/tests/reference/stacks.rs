//! Stacks with names.

use std::collections::{BTreeMap, HashMap};

use clr_events::CodeMap;
use clr_events::code::Code;
use nettrace::SliceReader;
use serde::Deserialize;

use crate::differences;

/// One stack as the other reader writes it.
#[derive(Debug, Deserialize)]
struct Line {
    time_ms: f64,
    tid: u64,
    /// Leaf first: name, `@`, address in hexadecimal.
    frames: Vec<String>,
}

/// The number of comparisons.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) stacks: u64,
    frames: u64,
    nameless: u64,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stacks, frames, nameless } = self;
        write!(f, "{stacks} stacks equal, {frames} frames, {nameless} of them without a name")
    }
}

/// Holds every stack against the other reader's: all frames of all of them are to be equal.
pub(crate) fn compare(recording: &[u8], reference: &[u8]) -> Result<Tally, String> {
    let mut code = CodeMap::default();
    let mut events = SliceReader::new(recording).map_err(|error| error.to_string())?;
    events.for_each(|event| code.add(&event)).map_err(|error| error.to_string())?;
    let symbolizer = code.symbolizer();

    let mut lines: HashMap<_, Vec<Line>> = HashMap::new();
    for line in reference.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        #[allow(clippy::cast_possible_truncation, reason = "recordings last less than 2^53 nanoseconds")]
        lines.entry(((line.time_ms * 1e6).round() as i64, line.tid)).or_default().push(line);
    }
    let mut tally = Tally::default();
    let mut different = BTreeMap::new();
    let mut events = SliceReader::new(recording).map_err(|error| error.to_string())?;
    while let Some(event) = events.next().map_err(|error| error.to_string())? {
        let Some(lines) = lines.get_mut(&(event.relative_time().as_nanos(), event.thread_id().0)) else {
            continue;
        };
        let is_of_event = |line: &Line| event.stack().eq(line.frames.iter().map(|frame| address(frame)));
        let Some(found) = lines.iter().position(is_of_event) else { continue };
        let line = lines.swap_remove(found);
        for (address, theirs) in event.stack().zip(line.frames) {
            let ours = symbolizer.resolve(event.process_id(), address, event.time());
            tally.frames += 1;
            tally.nameless += u64::from(!ours.is_named());
            if !same(&ours, &theirs) {
                different.entry(theirs).or_insert_with(|| format!("{ours:?}"));
            }
        }
        tally.stacks += 1;
    }
    let missing: usize = lines.values().map(Vec::len).sum();
    if missing > 0 {
        return Err(format!("{missing} stacks were not found"));
    }
    if different.is_empty() { Ok(tally) } else { Err(format!("{tally}; {different:#?}")) }
}

fn address(frame: &str) -> u64 {
    let digits = frame.rsplit('@').next().unwrap_or_default();
    u64::from_str_radix(digits, 16).unwrap_or(0)
}

fn same(ours: &Code<'_>, theirs: &str) -> bool {
    let theirs = theirs.rsplit_once('@').map_or(theirs, |(name, _)| name);
    let (module, name) = theirs.split_once('!').unwrap_or(("", theirs));
    if let Code::Unresolved(nameless) = ours {
        let is_same = differences::is_same_module(ours.module(), module);
        return name.is_empty() && is_same || nameless.file.is_empty() && theirs == "!";
    }
    let text = ours.to_string();
    let (our_module, our_name) = text.split_once('!').unwrap_or_default();
    our_name == name && differences::is_same_module(our_module, module)
}
