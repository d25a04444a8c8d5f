//! The data of a page: one JSON object, compressed.
//!
//! Samples are summed up by bin, thread, stack and state. A thread's are one flat array: for each bin with
//! samples the distance from the bin before, the number of pairs, and the pairs of a number in the thread's
//! own list of stacks and a weight.

use std::io::{self, BufWriter, Write};

use clr_events::{StackId, ThreadState};
use flate2::Compression;
use flate2::write::GzEncoder;
use hashbrown::HashMap;
use nettrace::RelativeTime;

use super::Page;
use super::bins::BinWidth;
use super::frame_color::FrameColor;
use super::text::text;
use crate::bounds::{Limited, TooLarge};
use crate::profile::index::TotalIndex;
use crate::profile::track::Track;
use crate::profile::{Profile, StackTotal, Thread, pseudo_frames};

/// Bytes of JSON, which a browser has to hold.
const MAX_JSON: u64 = 96 << 20;

/// Bins that are left when weights are made coarser rather than bins wider.
const MIN_BINS: u32 = 500;

/// Nanoseconds in a unit of weight where weights are time.
const MICROSECOND: u64 = 1000;

/// Returns the data of a page, in as many bytes as `limit`: bins get wider until it fits, then weights
/// coarser, then light stacks are left out.
pub(super) fn compressed(page: &Page<'_>, limit: u64) -> io::Result<Vec<u8>> {
    let profile = page.profile;
    let end = end(profile);
    let inclusive = inclusive(profile);
    let total = inclusive.first().copied().unwrap_or(0);
    let has_tracks = profile.threads.iter().any(|thread| thread.track.is_some());
    let mut width = BinWidth::up_to(end);
    #[cfg(feature = "html")]
    if let Some((reports, _)) = &page.reports {
        width = width.max(BinWidth::up_to(reports.end())).max(reports.width());
    }
    let mut scale = if profile.measure.unit.is_time() { MICROSECOND } else { 1 };
    let mut threshold = 0;
    loop {
        let bins = if has_tracks { Some(width) } else { None };
        let stacks = KeptStacks::new(profile, &inclusive, threshold);
        match attempt(page, &Layout { bins, width, scale, end, stacks }, limit) {
            Err(error) if is_too_large(&error) && threshold <= total => {}
            result => return result,
        }
        if has_tracks && width.bin(end) >= MIN_BINS {
            width = width.wider();
        } else if has_tracks && scale.saturating_mul(MIN_UNITS) < coarsest(profile, width, total) {
            scale = scale.saturating_mul(10);
        } else {
            threshold = threshold.saturating_mul(4).max(total >> 16).max(1);
        }
    }
}

/// Units of weight in the samples of a thread in a bin, or of all threads if weights are not time: fewer
/// would show little.
const MIN_UNITS: u64 = 100;

fn coarsest(profile: &Profile, width: BinWidth, total: u64) -> u64 {
    if profile.measure.unit.is_time() { width.nanoseconds() } else { total >> 10 }
}

fn is_too_large(error: &io::Error) -> bool {
    error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLarge>)
}

/// Returns the end of the last sample.
fn end(profile: &Profile) -> RelativeTime {
    let is_time = profile.measure.unit.is_time();
    let tracks = profile.threads.iter().filter_map(|thread| thread.track.as_ref());
    let ends = tracks.filter_map(Track::last).map(|span| span.end(is_time));
    ends.max().unwrap_or(RelativeTime::START)
}

/// Returns the weight of each stack with all that it called, by [`StackId::index`].
fn inclusive(profile: &Profile) -> Vec<u64> {
    let mut weights = profile.exclusive();
    // Callers precede their callees.
    for stack in profile.stacks.stacks().rev() {
        let weight = weights.get(stack.index()).copied().unwrap_or(0);
        let caller = profile.stacks.caller(stack).and_then(|caller| weights.get_mut(caller.index()));
        if let Some(sum) = caller {
            *sum = sum.saturating_add(weight);
        }
    }
    weights
}

/// The form of the data.
struct Layout {
    /// `None` if the times of samples are unknown.
    bins: Option<BinWidth>,
    width: BinWidth,
    /// Nanoseconds, bytes or things in a unit of weight.
    scale: u64,
    end: RelativeTime,
    stacks: KeptStacks,
}

/// The stacks that are kept, with new numbers.
struct KeptStacks {
    /// By stack, the number of the longest part of it that is kept; 0 is the empty stack.
    numbers: Vec<u32>,
    /// The kept stacks, in the order of their numbers.
    kept: Vec<StackId>,
    /// Stacks that weigh less were left out.
    threshold: u64,
    /// The weight of these, which their callers have.
    left_out: u64,
}

impl KeptStacks {
    fn new(profile: &Profile, inclusive: &[u64], threshold: u64) -> Self {
        let mut numbers = vec![0u32; profile.stacks.len() + 1];
        let mut kept = Vec::new();
        let mut left_out = 0u64;
        let number_of = |numbers: &[u32], stack: StackId| numbers.get(stack.index()).copied().unwrap_or(0);
        for stack in profile.stacks.stacks() {
            let weight = inclusive.get(stack.index()).copied().unwrap_or(0);
            let caller = profile.stacks.caller(stack).unwrap_or(StackId::EMPTY);
            let number = if weight > 0 && weight >= threshold {
                kept.push(stack);
                u32::try_from(kept.len()).unwrap_or(u32::MAX)
            } else {
                let is_first = inclusive.get(caller.index()).is_none_or(|weight| *weight >= threshold);
                left_out = left_out.saturating_add(if is_first { weight } else { 0 });
                number_of(&numbers, caller)
            };
            if let Some(place) = numbers.get_mut(stack.index()) {
                *place = number;
            }
        }
        Self { numbers, kept, threshold, left_out }
    }

    fn number(&self, stack: StackId) -> u32 {
        self.numbers.get(stack.index()).copied().unwrap_or(0)
    }
}

/// Writes the data in one form. Fails with [`TooLarge`] if that takes more bytes than `limit`.
fn attempt(page: &Page<'_>, layout: &Layout, limit: u64) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    let mut limited = Limited::new(&mut compressed, limit);
    let mut gzip = GzEncoder::new(&mut limited, Compression::default());
    let mut json = Limited::new(&mut gzip, MAX_JSON);
    let mut buffer = BufWriter::with_capacity(1 << 16, &mut json);
    let written = write_json(page, layout, &mut buffer).and_then(|()| buffer.flush());
    // Otherwise its drop would write the rest of its content.
    let _ = buffer.into_parts();
    written?;
    gzip.finish()?;
    Ok(compressed)
}

fn write_json(page: &Page<'_>, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let (profile, options) = (page.profile, page.options);
    write!(out, "{{\"title\":")?;
    text(out, options.title)?;
    write!(out, ",\"exporter\":")?;
    text(out, options.exporter)?;
    write!(out, ",\"metric\":\"{}\",\"measure\":", profile.metric.name())?;
    text(out, profile.measure.name)?;
    let (unit, scale) = (profile.measure.unit.symbol(), layout.scale);
    write!(out, ",\"sample\":\"{}\",\"unit\":\"{unit}\",\"scale\":{scale}", profile.measure.sample)?;
    write!(out, ",\"samples\":{},\"byThread\":{}", profile.samples(), options.by_thread)?;
    if let Some(start) = profile.start_unix_ms {
        write!(out, ",\"startUnixMs\":{start}")?;
    }
    #[cfg(feature = "html")]
    let end = page.reports.as_ref().map_or(layout.end, |(reports, _)| reports.end().max(layout.end));
    #[cfg(not(feature = "html"))]
    let end = layout.end;
    let (bins, width) = if layout.bins.is_some() || page.has_reports() {
        (layout.width.bin(end).saturating_add(1), layout.width.nanoseconds())
    } else {
        (1, 0)
    };
    write!(out, ",\"binNs\":{width},\"bins\":{bins},\"endNs\":{}", end.as_nanos().max(0))?;
    write!(out, ",\"idleKept\":{}", page.has_idle_stacks)?;
    write!(out, ",\"idleLeftOut\":{}", idle_left_out(profile))?;
    write!(out, ",\"leftOutBelow\":{},\"leftOut\":{}", layout.stacks.threshold, layout.stacks.left_out)?;
    list(out, "notes", page.notes.iter(), |out, note| text(out, note))?;
    list(out, "findings", page.findings.iter(), |out, finding| {
        write!(out, "{{\"problem\":{},\"text\":", finding.is_problem)?;
        text(out, &finding.text)?;
        write!(out, "}}")
    })?;
    list(out, "processes", profile.processes.iter(), |out, process| text(out, &process.frame))?;
    let groups =
        profile.processes.iter().map(|process| process.container.as_ref().or(process.control_group.as_ref()));
    list(out, "groups", groups, |out, group| text(out, group.map_or("", String::as_str)))?;
    let frames = write_stacks(profile, &layout.stacks, out)?;
    write_frames(profile, &frames, out)?;
    write_threads(profile, layout, out)?;
    #[cfg(feature = "html")]
    if let Some((reports, collections)) = &page.reports {
        let number = |stack| layout.stacks.number(stack);
        reports.write(collections, layout.width, &number, out)?;
    }
    write!(out, "}}")
}

/// Returns the weight of idle threads with stacks that the profile leaves out.
fn idle_left_out(profile: &Profile) -> u64 {
    let idle = profile.stack_totals.iter().filter(|total| total.state == ThreadState::Idle);
    idle.filter(|total| total.stack.is_none()).map(|total| total.weight).fold(0, u64::saturating_add)
}

/// Writes `,"name":[…]`.
pub(super) fn list<T>(
    out: &mut dyn Write,
    name: &str,
    items: impl Iterator<Item = T>,
    mut each: impl FnMut(&mut dyn Write, T) -> io::Result<()>,
) -> io::Result<()> {
    write!(out, ",\"{name}\":[")?;
    for (index, item) in items.enumerate() {
        out.write_all(if index == 0 { b"" } else { b"," })?;
        each(out, item)?;
    }
    out.write_all(b"]")
}

/// Writes two numbers for each stack: how far back its caller is, and its frame. Returns the frames, in the
/// order of their new numbers.
fn write_stacks(profile: &Profile, stacks: &KeptStacks, out: &mut dyn Write) -> io::Result<Vec<u32>> {
    let mut numbers = vec![u32::MAX; profile.frames.len()];
    let mut frames = Vec::new();
    list(out, "stacks", (1u32..).zip(&stacks.kept), |out, (number, stack)| {
        let caller = profile.stacks.caller(*stack).map_or(0, |caller| stacks.number(caller));
        let frame = profile.stacks.leaf(*stack).map_or(0, |frame| frame.0);
        let place = numbers.get_mut(frame as usize);
        let new = place.map_or(0, |place| {
            if *place == u32::MAX {
                *place = u32::try_from(frames.len()).unwrap_or(u32::MAX);
                frames.push(frame);
            }
            *place
        });
        write!(out, "{},{new}", number.saturating_sub(caller))
    })?;
    Ok(frames)
}

/// Writes the names of frames, their colours, and their form when the plumbing of `async` is folded: hidden
/// (-1), themselves (0), or a name of `written` (from 1 on).
fn write_frames(profile: &Profile, frames: &[u32], out: &mut dyn Write) -> io::Result<()> {
    let id = |frame: &u32| crate::FrameId(*frame);
    list(out, "frames", frames.iter(), |out, frame| text(out, profile.frames.name(id(frame))))?;
    let kind = |frame: &u32| FrameColor::of(&profile.frames, id(frame)) as u8;
    list(out, "kinds", frames.iter(), |out, frame| write!(out, "{}", kind(frame)))?;
    let mut written = Vec::new();
    list(out, "folded", frames.iter(), |out, frame| {
        if let Some(method) = profile.frames.state_machine_method(id(frame)) {
            written.push(method);
            write!(out, "{}", written.len())
        } else {
            write!(out, "{}", -i32::from(profile.frames.is_async_plumbing(id(frame))))
        }
    })?;
    list(out, "written", written.iter(), |out, method| text(out, method))
}

fn write_threads(profile: &Profile, layout: &Layout, out: &mut dyn Write) -> io::Result<()> {
    let keys = SampleKeys::new(profile, &layout.stacks);
    let mut sums = BinSums {
        keys: &keys,
        sums: vec![0; keys.keys.len()],
        rests: vec![0; keys.keys.len()],
        locals: vec![u32::MAX; keys.keys.len()],
        touched: Vec::new(),
        list: Vec::new(),
        scale: layout.scale,
        before: 0,
        is_first: true,
    };
    let mut without_tracks: Vec<Vec<TotalIndex>> = vec![Vec::new(); profile.threads.len()];
    if layout.bins.is_none() {
        for (index, total) in (0..).map(TotalIndex).zip(&profile.stack_totals) {
            if let Some(totals) = without_tracks.get_mut(total.thread.index()) {
                totals.push(index);
            }
        }
    }
    list(out, "threads", profile.threads.iter().zip(&without_tracks), |out, (thread, totals)| {
        write!(out, "{{\"id\":{},\"process\":{},\"name\":", thread.id, thread.process.0)?;
        text(out, &thread.frame)?;
        write!(out, ",\"samples\":[")?;
        if let Some(width) = layout.bins {
            write_track(profile, thread, width, &mut sums, out)?;
        } else {
            for total in totals {
                let weight = profile.stack_totals.get(total.index()).map_or(0, |total| total.weight);
                sums.add(*total, weight);
            }
            sums.write(0, out)?;
        }
        write!(out, "],\"stacks\":[")?;
        for (index, key) in sums.list.iter().enumerate() {
            let (stack, state) = keys.keys.get(*key as usize).copied().unwrap_or_default();
            write!(out, "{}{stack},{state}", if index == 0 { "" } else { "," })?;
        }
        sums.end_thread();
        write!(out, "]}}")
    })
}

fn write_track(
    profile: &Profile,
    thread: &Thread,
    width: BinWidth,
    sums: &mut BinSums<'_>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let is_time = profile.measure.unit.is_time();
    let mut result = Ok(());
    let mut bin = 0;
    for span in thread.track.iter().flat_map(Track::iter) {
        if profile.shown(span.total).is_none() {
            continue;
        }
        let mut add = |at: u32, weight: u64, out: &mut dyn Write| {
            if at != bin && result.is_ok() {
                result = sums.write(bin, out);
                bin = at;
            }
            sums.add(span.total, weight);
        };
        if is_time {
            width.split(span.start, span.weight, |at, weight| add(at, weight, out));
        } else {
            add(width.bin(span.start), span.weight, out);
        }
        if result.is_err() {
            break;
        }
    }
    result?;
    sums.write(bin, out)
}

/// Returns the stack of a total that is shown, and the number of its state.
pub(super) fn shown_stack(profile: &Profile, total: &StackTotal) -> Option<(StackId, u8)> {
    let mut stack = total.stack?;
    // The page has a colour for it.
    if total.state == ThreadState::Blocked && profile.leaf_name(stack) == pseudo_frames::BLOCKED {
        stack = profile.stacks.caller(stack).unwrap_or(stack);
    }
    let state = match total.state {
        ThreadState::Working => 0,
        ThreadState::Blocked => 1,
        ThreadState::Idle => 2,
        ThreadState::Ready => 3,
    };
    Some((stack, state))
}

/// The key of a sum of samples: stack and state. Totals with stacks that became equal by leaving out frames
/// share a key.
struct SampleKeys {
    /// By total; `u32::MAX` if it is not shown.
    of_total: Vec<u32>,
    /// The number of the stack, and that of the state.
    keys: Vec<(u32, u8)>,
}

impl SampleKeys {
    fn new(profile: &Profile, stacks: &KeptStacks) -> Self {
        let mut known = HashMap::new();
        let mut keys = Vec::new();
        let of_total = profile.stack_totals.iter().map(|total| {
            let Some((stack, state)) = shown_stack(profile, total) else { return u32::MAX };
            let number = stacks.number(stack);
            *known.entry((total.thread, number, state)).or_insert_with(|| {
                keys.push((number, state));
                u32::try_from(keys.len() - 1).unwrap_or(u32::MAX)
            })
        });
        Self { of_total: of_total.collect(), keys }
    }
}

/// The sums of the bin at hand.
struct BinSums<'a> {
    keys: &'a SampleKeys,
    /// By key.
    sums: Vec<u64>,
    /// By key, the remainder of less than a unit: it counts in the next bin, so that sums over bins are
    /// exact.
    rests: Vec<u64>,
    /// By key, its place in `list`.
    locals: Vec<u32>,
    /// The keys with a sum.
    touched: Vec<u32>,
    /// The keys of the thread.
    list: Vec<u32>,
    scale: u64,
    /// The bin that was written last.
    before: u32,
    is_first: bool,
}

impl BinSums<'_> {
    fn add(&mut self, total: TotalIndex, weight: u64) {
        let Some(key) = self.keys.of_total.get(total.index()).filter(|_| weight > 0) else { return };
        let Some(sum) = self.sums.get_mut(*key as usize) else { return };
        if *sum == 0 {
            self.touched.push(*key);
        }
        *sum = sum.saturating_add(weight);
    }

    fn write(&mut self, bin: u32, out: &mut dyn Write) -> io::Result<()> {
        let Self { sums, rests, touched, scale, .. } = self;
        touched.retain(|key| {
            let index = *key as usize;
            let (Some(sum), Some(rest)) = (sums.get_mut(index), rests.get_mut(index)) else { return false };
            let whole = sum.saturating_add(*rest);
            *rest = whole % *scale;
            *sum = whole / *scale;
            *sum > 0
        });
        if self.touched.is_empty() {
            return Ok(());
        }
        let separator = if self.is_first { "" } else { "," };
        self.is_first = false;
        write!(out, "{separator}{},{}", bin.saturating_sub(self.before), self.touched.len())?;
        self.before = bin;
        for key in self.touched.drain(..) {
            let index = key as usize;
            let weight = self.sums.get_mut(index).map_or(0, std::mem::take);
            let Some(local) = self.locals.get_mut(index) else { continue };
            if *local == u32::MAX {
                *local = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
                self.list.push(key);
            }
            write!(out, ",{local},{weight}")?;
        }
        Ok(())
    }

    fn end_thread(&mut self) {
        self.list.clear();
        self.before = 0;
        self.is_first = true;
    }
}
