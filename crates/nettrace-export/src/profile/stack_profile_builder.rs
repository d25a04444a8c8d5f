//! Profiles of a program's own measurements.

use std::time::Duration;

use clr_events::{StackId, StackTree, ThreadState};
use hashbrown::HashMap;
use nettrace::RelativeTime;

use crate::bounds::MAX_NAME_LENGTH;
use crate::profile::frame::Frames;
use crate::profile::index::{ProcessIndex, ThreadIndex, TotalIndex};
use crate::profile::measure::Measure;
use crate::profile::metric::Metric;
use crate::profile::track::{Span, Track};
use crate::profile::{Process, Profile, StackTotal, Thread};

/// Frames of a stack that are kept, from the root on.
const MAX_DEPTH: usize = 1024;
/// Names of frames; further ones are `(others)`.
const MAX_NAMES: usize = 1 << 22;

/// A builder of profiles from samples of any metric: stacks of names, each with a weight, a thread and a
/// time.
///
/// Processes and threads are listed in the order in which samples or names first refer to them. Stacks
/// are cut after 1,024 frames from the root, names after 2,048 bytes.
///
/// ```
/// use nettrace_export::nettrace::RelativeTime;
/// use nettrace_export::{Format, Measure, StackProfileBuilder, Unit, WriteOptions};
///
/// let mut builder = StackProfileBuilder::new(Measure::new("query time", "queries", Unit::Nanoseconds));
/// builder.name_process(42, "Shop");
/// builder.name_thread(42, 7, "worker");
/// let mut start = RelativeTime::START;
/// for (method, nanoseconds) in [("Shop!Cart.Load()", 5_000_000), ("Shop!Cart.Pay()", 2_500_000)] {
///     builder.add_sample(42, 7, start, nanoseconds, ["Shop!Program.Main()", method]);
///     start = RelativeTime::from_nanos(start.as_nanos() + i64::try_from(nanoseconds)?);
/// }
/// let profile = builder.finish();
/// assert_eq!((profile.total(), profile.samples()), (7_500_000, 2));
///
/// let (mut pprof, mut speedscope) = (Vec::new(), Vec::new());
/// let options = WriteOptions::new("queries", "my-tool");
/// nettrace_export::write(&profile, Format::Pprof, options, &mut pprof)?;
/// nettrace_export::write(&profile, Format::Speedscope, options, &mut speedscope)?;
/// assert!(String::from_utf8(speedscope)?.contains("Shop!Cart.Pay()"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StackProfileBuilder {
    profile: Profile,
    process_indices: HashMap<u64, ProcessIndex>,
    /// Indices of [`Profile::threads`], by process and thread.
    thread_indices: HashMap<(u64, u64), ThreadIndex>,
    /// Indices of [`Profile::stack_totals`], by thread and stack.
    total_indices: HashMap<(ThreadIndex, StackId), TotalIndex>,
    /// By thread, in the order in which they were added.
    spans: Vec<Vec<Span>>,
}

impl StackProfileBuilder {
    /// Begins a profile with weights of this name and unit.
    pub fn new(measure: Measure) -> Self {
        let profile = Profile {
            metric: Metric::Other,
            measure,
            start_unix_ms: None,
            duration: Duration::ZERO,
            frames: Frames::default(),
            stacks: StackTree::default(),
            processes: Vec::new(),
            threads: Vec::new(),
            stack_totals: Vec::new(),
            recorded_bytes: 0,
        };
        Self {
            profile,
            process_indices: HashMap::new(),
            thread_indices: HashMap::new(),
            total_indices: HashMap::new(),
            spans: Vec::new(),
        }
    }

    /// With this time of [`RelativeTime::START`], in milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn with_start(mut self, unix_ms: i64) -> Self {
        self.profile.start_unix_ms = Some(unix_ms);
        self
    }

    /// Names a process.
    pub fn name_process(&mut self, process: u64, name: &str) {
        let index = self.process(process);
        if let Some(known) = self.profile.processes.get_mut(index.index()) {
            *known = Process {
                id: process,
                name: Some(name.to_owned()),
                frame: process_frame(process, Some(name)),
                ..Process::default()
            };
        }
    }

    /// Names a thread of a process.
    pub fn name_thread(&mut self, process: u64, thread: u64, name: &str) {
        let index = self.thread(process, thread);
        if let Some(known) = index.and_then(|index| self.profile.threads.get_mut(index.index())) {
            known.name = Some(name.to_owned());
            known.frame = format!("Thread ({thread}) ({name})");
        }
    }

    /// Adds a sample of a thread: its time, its weight in the unit of the measure, and its stack, root first.
    ///
    /// If weights are time, a sample lasts as long as its weight, from `start` on, which is at least
    /// [`RelativeTime::START`]. Samples of a thread may be added in any order; a sample that begins before
    /// the previous one has ended is shown after it.
    pub fn add_sample<N: AsRef<str>>(
        &mut self,
        process: u64,
        thread: u64,
        start: RelativeTime,
        weight: u64,
        stack: impl IntoIterator<Item = N>,
    ) {
        let Some(thread) = self.thread(process, thread) else { return };
        let profile = &mut self.profile;
        let mut id = StackId::EMPTY;
        // Bytes that a recording has for a sample and each address at least.
        let mut bytes = 8u64;
        for name in stack.into_iter().take(MAX_DEPTH) {
            let names = profile.frames.len();
            let frame = profile.frames.intern_within(MAX_NAMES, MAX_NAME_LENGTH, name.as_ref());
            if profile.frames.len() > names {
                bytes = bytes.saturating_add(name.as_ref().len().min(MAX_NAME_LENGTH) as u64);
            }
            id = profile.stacks.push(id, frame);
            bytes = bytes.saturating_add(8);
        }
        profile.recorded_bytes = profile.recorded_bytes.saturating_add(bytes);
        let totals = &mut profile.stack_totals;
        let known = self.total_indices.get(&(thread, id)).copied();
        let next = || u32::try_from(totals.len()).ok().map(TotalIndex);
        let Some(index) = known.or_else(next) else { return };
        if known.is_none() {
            totals
                .push(StackTotal { state: ThreadState::Working, ..StackTotal::new(thread, Some(id), 0, 0) });
            self.total_indices.insert((thread, id), index);
        }
        if let Some(total) = totals.get_mut(index.index()) {
            total.weight = total.weight.saturating_add(weight);
            total.samples = total.samples.saturating_add(1);
        }
        if let Some(spans) = self.spans.get_mut(thread.index()) {
            spans.push(Span { start: start.max(RelativeTime::START), weight, samples: 1, total: index });
        }
    }

    /// Returns the profile.
    pub fn finish(mut self) -> Profile {
        let is_time = self.profile.measure.unit.is_time();
        for (thread, mut spans) in self.profile.threads.iter_mut().zip(self.spans) {
            spans.sort_by_key(|span| span.start);
            let end = spans.iter().map(|span| span.end(is_time)).max().unwrap_or_default();
            self.profile.duration = self.profile.duration.max(end.since_start());
            let mut track = Track::new(is_time);
            for span in spans {
                track.push(span);
            }
            thread.track = Some(track);
        }
        self.profile
    }

    /// Returns the index of a process, which is added if it is new.
    fn process(&mut self, id: u64) -> ProcessIndex {
        let processes = &mut self.profile.processes;
        *self.process_indices.entry(id).or_insert_with(|| {
            processes.push(Process { id, frame: process_frame(id, None), ..Process::default() });
            ProcessIndex::of(processes.len() - 1)
        })
    }

    /// Returns the index of a thread, which is added if it is new; `None` if there are 2^32 threads.
    fn thread(&mut self, process: u64, id: u64) -> Option<ThreadIndex> {
        if let Some(known) = self.thread_indices.get(&(process, id)) {
            return Some(*known);
        }
        let index = ThreadIndex(u32::try_from(self.profile.threads.len()).ok()?);
        let thread = Thread {
            process: self.process(process),
            id,
            name: None,
            role: None,
            frame: format!("Thread ({id})"),
            track: None,
        };
        self.profile.threads.push(thread);
        self.spans.push(Vec::new());
        self.thread_indices.insert((process, id), index);
        Some(index)
    }
}

fn process_frame(id: u64, name: Option<&str>) -> String {
    format!("Process {} ({id})", name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::measure::Unit;

    fn at(nanoseconds: i64) -> RelativeTime {
        RelativeTime::from_nanos(nanoseconds)
    }

    fn spans(profile: &Profile, thread: usize) -> Vec<(i64, u64, String)> {
        let track = profile.threads[thread].track.as_ref().unwrap();
        let shown = |span: Span| {
            let (_, stack) = profile.shown(span.total).unwrap();
            (span.start.as_nanos(), span.weight, profile.names(stack).join(" "))
        };
        track.iter().map(shown).collect()
    }

    #[test]
    fn samples_in_any_order_are_shown_in_the_order_of_time() {
        let mut builder = StackProfileBuilder::new(Measure::new("latency", "calls", Unit::Nanoseconds));
        builder.add_sample(1, 5, at(300), 100, ["main", "b"]);
        builder.add_sample(1, 5, at(-7), 100, ["main", "a"]);
        builder.add_sample(1, 5, at(350), 10, ["main", "a"]);
        builder.add_sample(1, 6, at(0), 1, ["main", "a"]);
        builder.add_sample(2, 5, at(0), 2, [""; 0]);
        builder.name_thread(1, 6, "pump");
        let profile = builder.finish();
        let expected = [(0, 100, "main a"), (300, 100, "main b"), (400, 10, "main a")];
        assert_eq!(spans(&profile, 0), expected.map(|(start, weight, stack)| (start, weight, stack.into())));
        let threads: Vec<_> = profile.threads.iter().map(|it| (it.process.0, it.id, &*it.frame)).collect();
        assert_eq!(threads, [(0, 5, "Thread (5)"), (0, 6, "Thread (6) (pump)"), (1, 5, "Thread (5)")]);
        let totals: Vec<_> =
            profile.stack_totals.iter().map(|it| (it.thread.0, it.weight, it.samples)).collect();
        assert_eq!(totals, [(0, 100, 1), (0, 110, 2), (1, 1, 1), (2, 2, 1)]);
        assert_eq!((profile.total(), profile.samples()), (213, 5));
    }

    #[test]
    fn every_format_writes_samples_without_time() {
        let mut builder = StackProfileBuilder::new(Measure::new("cache misses", "misses", Unit::Count));
        builder.add_sample(1, 5, at(10), u64::MAX, ["main", "a"]);
        builder.add_sample(1, 5, at(10), 3, vec![String::from("x\u{1b}]0;"); 2_000]);
        let profile = builder.finish();
        assert_eq!(profile.names(profile.stack_totals[1].stack.unwrap()).len(), 1_024);
        assert_eq!(profile.total(), u64::MAX);
        for format in crate::format::tests::EVERY {
            let mut out = Vec::new();
            crate::write(&profile, format, crate::WriteOptions::new("t", "tests"), &mut out).unwrap();
            assert!(!out.is_empty(), "{format:?}");
        }
    }
}
