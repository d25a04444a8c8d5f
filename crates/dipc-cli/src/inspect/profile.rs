//! Profiles of recordings.

pub(crate) mod diagnostics;

use std::cell::RefCell;
use std::path::Path;
use std::time::Duration;

use nettrace::{Interest, RelativeTime, TraceInfo};
use nettrace_edit::{Criteria, TrackedCriteria};
use nettrace_export::report::{LiveFacts, MIN_UNVERIFIED, NativeFacts, RUNNING_OR_WAITING};
use nettrace_export::{
    CausalGrouping, Metric, NameForm, NeedsTimeOrder, Options, Pattern, Profile, ProfileBuilder,
    ProfileReader, ProfiledRecording, Selection, StackFilter,
};

use crate::exit::{Exit, Failure};
use crate::inspect::filter::warn_of_misses;
use crate::inspect::lines::LineOptions;
use crate::inspect::names::code_beside;
use crate::inspect::recording::{Input, Origin, Recording};
use crate::inspect::thread_times::kernel_times_beside;
use crate::render::units;
use diagnostics::{
    Share, describe_liveness, no_causality, no_managed_samples, no_samples, note_of_unknown_callers,
    warn_of_omissions, warn_of_unmatched_waits,
};

/// The part of a recording that becomes a profile, and the changes to its stacks.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileOptions {
    pub(crate) selection: Selection,
    /// The requested beginning and end, without the range that a part states itself.
    pub(crate) requested_times: (Option<RelativeTime>, Option<RelativeTime>),
    pub(crate) filter: StackFilter,
    /// True to include the time in which threads waited for work.
    pub(crate) idle: bool,
    /// True to leave out the time in which threads were blocked in the middle of work.
    pub(crate) leaves_out_blocked: bool,
    /// True to charge GC pauses to the methods that they interrupted, without a frame of their own.
    pub(crate) charges_gc_pauses: bool,
    /// Methods that wait for work, besides the known ones.
    pub(crate) waits_for_work: Vec<Pattern>,
    /// The methods that are the user's; empty for the methods of all assemblies but the framework's.
    pub(crate) user_code: Vec<Pattern>,
    /// True if waits for locks end in a frame for the lock.
    pub(crate) locks: bool,
    pub(crate) grouping: CausalGrouping,
    pub(crate) names: NameForm,
    pub(crate) lines: LineOptions,
}

impl ProfileOptions {
    /// Returns true if any option changes the stacks.
    pub(crate) fn changes_stacks(&self) -> bool {
        let StackFilter { roots, hidden, fold_recursion, .. } = &self.filter;
        !roots.is_empty() || !hidden.is_empty() || *fold_recursion || self.grouping.any()
    }

    /// The options of the profile.
    pub(super) fn profile_options(&self, request: ProfileRequest) -> Options {
        let mut options = Options::default()
            .with_tracks(request.tracks)
            .with_kinds(request.kinds)
            .with_selection(self.selection.clone())
            .with_filter(self.filter.clone())
            .with_idle(self.idle)
            .with_idle_stacks(request.idle_stacks)
            .with_blocked(!self.leaves_out_blocked)
            .with_gc_pauses(!self.charges_gc_pauses)
            .with_waits_for_work(self.waits_for_work.clone())
            .with_user_code(self.user_code.clone())
            .with_locks(self.locks)
            .with_lines(self.lines.are_wanted)
            .with_grouping(self.grouping)
            .with_names(self.names);
        // Options about waits ask for the time of threads.
        let asks_for_waits = self.idle || !self.waits_for_work.is_empty();
        options.metric = request.metric.or(asks_for_waits.then_some(Metric::Wall));
        options
    }

    /// The event filters, which apply to the whole recording.
    pub(crate) fn criteria(&self) -> Criteria {
        Criteria::default()
            .with_threads(self.selection.threads.clone())
            .with_processes(self.selection.processes.clone())
            .with_from(self.requested_times.0)
            .with_to(self.requested_times.1)
    }
}

/// The options that a command passes on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProfileRequest {
    /// The metric; by default [what the recording shows best](Options::metric).
    pub(crate) metric: Option<Metric>,
    /// True to keep tracks, which hold the times of what happened.
    pub(crate) tracks: bool,
    /// True to record which time was spent in managed code.
    pub(crate) kinds: bool,
    /// True to include the stacks of idle threads, distinguished only by state.
    pub(crate) idle_stacks: bool,
}

/// A profile, and the exit code for the state of its recording.
pub(crate) struct RecordingProfile {
    pub(crate) profile: Profile,
    /// The part of the weight of working threads in which they may actually have been waiting.
    pub(crate) unverified: u64,
    /// The part of blocked time in which threads were runnable but not on a processor.
    pub(crate) without_processor: u64,
    /// The weight of blocked threads; `None` if it is not distinguished or is left out: in metrics other than
    /// thread time, and with idle time.
    pub(crate) blocked: Option<u64>,
    /// The time off the processors that a profile of CPU time leaves out, if no metric was requested.
    pub(crate) off_cpu: u64,
    /// The facts about a profile of live bytes.
    pub(crate) live: Option<LiveFacts>,
    /// The facts about native bytes in use, for a profile of these.
    pub(crate) native: Option<NativeFacts>,
    pub(crate) exit: Exit,
}

/// Returns the waiting part of a profile in words, and the profile's omissions; `None` if that was not
/// requested, or is empty.
pub(crate) fn waiting(read: &RecordingProfile) -> Option<String> {
    let profile = &read.profile;
    let parts = [
        (profile.blocked(), "of it blocked"),
        (profile.blocked_left_out(), "of blocked threads left out"),
        (read.without_processor, "of that ready to run, without a processor"),
        (
            if units::share(read.unverified, profile.total()) >= MIN_UNVERIFIED {
                read.unverified
            } else {
                0
            },
            RUNNING_OR_WAITING,
        ),
        (profile.idle(), "of threads that waited for work left out (--idle shows it)"),
        (read.off_cpu, "off the processors left out (--by wall shows it)"),
    ];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(weight, _)| *weight > 0)
        .map(|(weight, what)| format!("{} {what}", units::time(Duration::from_nanos(*weight))))
        .collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Returns the profile of an ended stream with the header `info`, and the part of it in which working threads
/// may have been waiting. Reports its omissions.
pub(crate) fn finish(builder: ProfileBuilder, info: Option<&TraceInfo>) -> Result<(Profile, u64), Failure> {
    let (profile, omissions) = builder.finish(info)?;
    warn_of_omissions(&omissions);
    Ok((profile, omissions.unverified))
}

impl From<NeedsTimeOrder> for Failure {
    fn from(error: NeedsTimeOrder) -> Self {
        Self::new(Exit::Failed, error)
    }
}

/// Returns the time off the processors of the same selection, without messages: they were given before.
pub(crate) fn read_off_cpu(file: &Path, options: &ProfileOptions) -> Result<Profile, Failure> {
    let request =
        ProfileRequest { metric: Some(Metric::OffCpu), tracks: false, kinds: false, idle_stacks: false };
    let (read, ..) = read_silently(file, options, request)?;
    Ok(read.profile)
}

/// Returns true if a file can be read more than once.
pub(crate) fn is_regular(file: &Path) -> bool {
    std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file())
}

fn read_silently(
    file: &Path,
    options: &ProfileOptions,
    request: ProfileRequest,
) -> Result<(ProfiledRecording<Input>, TrackedCriteria, Option<Origin>), Failure> {
    let mut lines = options.lines.open();
    let mut reader = ProfileReader::new(options.profile_options(request));
    if let Some(lines) = &mut lines {
        reader = reader.with_lines(lines);
    }
    let mut add_code = code_beside(file);
    reader = reader.with_code(&mut add_code).with_kernel_times(kernel_times_beside(file));
    // The criteria of the last reading: the first one may end early.
    let criteria = RefCell::new(TrackedCriteria::new(options.criteria()));
    if criteria.borrow().is_empty() {
        reader = reader.with_interest(|_| Interest::None);
    }
    let mut origin = None;
    let mut open = || {
        let (events, from) = Recording::open(file).map_err(ReadError::Open)?.into_parts();
        origin = Some(from);
        criteria.replace(TrackedCriteria::new(options.criteria()));
        Ok(events)
    };
    let read: Result<_, ReadError> = if is_regular(file) {
        reader.read_file(open, |event| criteria.borrow_mut().add(event))
    } else {
        open().and_then(|events| Ok(reader.read(events, |event| criteria.borrow_mut().add(event))?))
    };
    match read {
        Ok(read) => Ok((read, criteria.into_inner(), origin)),
        Err(error) => Err(error.into_failure(origin.as_ref())),
    }
}

/// Reads a recording into a profile.
pub(crate) fn read(
    file: &Path,
    options: &ProfileOptions,
    request: ProfileRequest,
) -> Result<RecordingProfile, Failure> {
    let (read, criteria, origin) = read_silently(file, options, request)?;
    warn_of_misses(&criteria.misses(read.events.metadata()));
    let exit = origin.map_or(Exit::Done, |origin| origin.report_damage(&read.events));
    let (profile, omissions) = (read.profile, read.omissions);
    warn_of_omissions(&omissions);
    let lost = read.events.loss().total();
    describe_liveness(&omissions, lost);
    if let Some(failure) = no_causality(file, omissions.grouping, exit.or_failed()) {
        return Err(failure);
    }
    note_of_unknown_callers(omissions.grouping);
    let (metric, share) = (profile.metric, Share::of(omissions.samples));
    // A profile of part of a pause has time but no samples.
    if profile.samples() == 0
        && profile.total() == 0
        && profile.idle() == 0
        && profile.blocked_left_out() == 0
    {
        return Err(match share {
            Share::Few(samples) if metric == Metric::Cpu => {
                no_managed_samples(file, samples, exit.or_failed())
            }
            _ => {
                let are_filtered = !profile.stack_totals.is_empty() || !options.selection.is_all();
                no_samples(file, metric, are_filtered, exit.or_failed())
            }
        });
    }
    let is_by_mark = metric == Metric::Cpu && profile.measure == metric.measure();
    if is_by_mark || (metric == Metric::Wall && request.kinds) {
        share.warn();
    }
    if request.metric.is_none() && metric == Metric::Wall && !request.kinds && !options.idle {
        share.propose_cpu();
    }
    options.lines.warn_if_missing(omissions.lines);
    let has_blocked = matches!(metric, Metric::Wall | Metric::OffCpu);
    let blocked = (has_blocked && !options.idle && !options.leaves_out_blocked).then(|| profile.blocked());
    warn_of_unmatched_waits(&options.waits_for_work, &omissions, metric);
    Ok(RecordingProfile {
        profile,
        unverified: omissions.unverified,
        without_processor: omissions.without_processor,
        blocked,
        off_cpu: omissions.off_cpu,
        live: omissions.live.map(|liveness| LiveFacts::new(&liveness, lost)),
        native: omissions.native.map(|liveness| NativeFacts::new(&liveness, lost)),
        exit,
    })
}

/// The failure to open or read a recording.
enum ReadError {
    Open(Failure),
    Read(nettrace::Error),
}

impl From<nettrace::Error> for ReadError {
    fn from(error: nettrace::Error) -> Self {
        Self::Read(error)
    }
}

impl ReadError {
    fn into_failure(self, origin: Option<&Origin>) -> Failure {
        match (self, origin) {
            (Self::Open(failure), _) => failure,
            (Self::Read(error), Some(origin)) => origin.failed(&error),
            (Self::Read(error), None) => Failure::new(Exit::Failed, error),
        }
    }
}
