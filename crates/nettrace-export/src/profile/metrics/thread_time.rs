//! Time of threads, by the sampler's samples alone.

use clr_events::enums::ThreadSampleType;
use clr_events::view::ThreadSample;
use clr_events::{ClrEvent, KernelSample, StackId};
use nettrace::{Event, RelativeTime};

use crate::profile::frame::FrameId;
use crate::profile::metrics::rounds::Rounds;
use crate::profile::metrics::{Leaves, PendingSample, Sample, SampleContext};
use crate::profile::pseudo_frames;

/// From a thread's sample to its next. The last sample of a thread weighs nothing: its duration is unknown.
///
/// If [idle time](crate::Options::idle) is distinguished, a sample holds until the first round of the
/// sampler that lacks the thread, and the thread is absent from there to its next sample; and from a
/// contention's start to its end the thread is blocked.
///
/// From the first of a thread's samples of the kernel on, only the kernel's samples count: they have all of
/// its time, which would count twice.
#[derive(Debug)]
pub(super) struct ThreadTime {
    /// By thread.
    open: Vec<Option<OpenSample>>,
    /// By thread: whether the kernel sampled it.
    by_kernel: Vec<bool>,
    /// By thread.
    contention: Vec<Contention>,
    leaves: KindLeaves,
    kind: TimeKind,
    /// The rounds, and the leaf of time in which a thread was absent; `None` if absence is not distinguished.
    absence: Option<(Rounds, FrameId)>,
    samples: Samples,
}

/// The rank of the kernel's samples of time on the processors, above that of all other samples.
pub(in crate::profile) const BY_KERNEL: u8 = 1;

/// The time that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeKind {
    /// All time of threads.
    All,
    /// The kernel's samples of running threads if there are any, else all time of threads.
    CpuFirst,
    /// The kernel's samples of running threads if there are any, else managed code.
    Managed,
    /// The kernel's samples of running threads if there are any, else all samples: it is known otherwise
    /// which of them ran.
    Ran,
}

impl TimeKind {
    const fn ranks_cpu(self) -> bool {
        !matches!(self, Self::All)
    }
}

/// The leaves of kinds of time.
#[derive(Debug, Clone, Copy)]
struct KindLeaves {
    managed: FrameId,
    other: FrameId,
    contended: FrameId,
    on_cpu: FrameId,
    off_cpu: FrameId,
    ready: FrameId,
}

/// The last sample of a thread.
#[derive(Debug, Clone, Copy)]
struct OpenSample {
    mark: PendingSample,
    is_managed: bool,
    /// Nanoseconds since then in which the thread waited for locks, and the beginning of a wait that
    /// continues.
    contended: u64,
    contended_since: Option<RelativeTime>,
}

/// The state of a thread's wait for a lock, from the events of contention.
#[derive(Debug, Clone, Copy, Default)]
enum Contention {
    #[default]
    None,
    /// The wait began, and the thread was not sampled since then.
    Begun,
    /// The thread was sampled with this stack, which stays the same as long as it waits.
    Sampled(StackId),
}

/// Samples of threads, by the runtime's type of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Samples {
    /// Samples in managed code.
    pub managed: u64,
    /// All others: waiting, in native code, or unknown.
    pub other: u64,
    /// The kernel's samples of running threads.
    pub on_cpu: u64,
}

impl ThreadTime {
    /// A leaf distinguishes managed code from the rest.
    pub(super) fn new(kind: TimeKind, idle: bool, leaves: &mut Leaves) -> Self {
        Self {
            open: Vec::new(),
            by_kernel: Vec::new(),
            contention: Vec::new(),
            leaves: KindLeaves {
                managed: leaves.intern(pseudo_frames::MANAGED),
                other: leaves.intern(pseudo_frames::UNMANAGED),
                contended: leaves.intern(pseudo_frames::CONTENDED),
                on_cpu: leaves.intern(pseudo_frames::ON_CPU),
                off_cpu: leaves.intern(pseudo_frames::OFF_CPU),
                ready: leaves.intern(pseudo_frames::READY),
            },
            kind,
            absence: (!idle).then(|| (Rounds::default(), leaves.intern(pseudo_frames::ABSENT))),
            samples: Samples::default(),
        }
    }

    /// Adds an event of any thread, wanted or not, to the rounds of the sampler.
    #[inline]
    pub(super) fn add_to_rounds(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>, thread: u32) {
        if let (Some((rounds, _)), Some(ClrEvent::ThreadSample(_))) = (&mut self.absence, view) {
            rounds.add(event.process_id(), thread, event.relative_time().max(RelativeTime::START));
        }
    }

    pub(super) fn count_all_samples(&mut self) {
        if self.kind == TimeKind::Managed {
            self.kind = TimeKind::Ran;
        }
    }

    pub(super) const fn samples(&self) -> Samples {
        self.samples
    }

    #[inline]
    pub(super) fn add(&mut self, sample_context: &mut SampleContext<'_, '_>, mut emit: impl FnMut(Sample)) {
        if let Some(kind) = sample_context.kernel_sample {
            let sample = kind.read(sample_context.event);
            self.samples.on_cpu += u64::from(matches!(sample, KernelSample::OnCpu(_)));
            let mut sample = self.kernel_sample(sample, sample_context);
            let open = match self.kind {
                TimeKind::All | TimeKind::CpuFirst => self.begin_kernel_time(sample_context.thread),
                TimeKind::Managed | TimeKind::Ran => None,
            };
            if let Some(open) = open {
                let thread = sample_context.thread;
                // The time before the runtime's last sample has counted.
                sample.split_off_until(open.mark.start);
                let end = sample.start.max(open.mark.start);
                self.close(open, end, thread, &mut emit);
            }
            emit(sample);
            return;
        }
        match sample_context.view {
            Some(ClrEvent::ThreadSample(sample)) => self.add_sample(*sample, sample_context, emit),
            Some(ClrEvent::ContentionStart(_)) => self.set_contention(Contention::Begun, sample_context),
            Some(ClrEvent::ContentionStop(_)) => self.set_contention(Contention::None, sample_context),
            _ => {}
        }
    }

    /// Notes that the kernel samples a thread, and returns the runtime's last sample of it if it is the first
    /// time.
    fn begin_kernel_time(&mut self, thread: u32) -> Option<OpenSample> {
        let index = thread as usize;
        if self.by_kernel.len() <= index {
            self.by_kernel.resize(index.saturating_add(1), false);
        }
        let is_known = self.by_kernel.get_mut(index).is_none_or(|place| std::mem::replace(place, true));
        let open = self.open.get_mut(index).filter(|_| !is_known);
        open.and_then(Option::take)
    }

    /// Adds the time that a sample of the kernel represents. For CPU time it replaces all other samples of
    /// all threads, and lacks a leaf.
    fn kernel_sample(&self, sample: KernelSample, sample_context: &mut SampleContext<'_, '_>) -> Sample {
        match sample {
            // A part of a recording has the samples that were taken in it, whole.
            KernelSample::OnCpu(nanoseconds) => {
                let (leaf, rank) =
                    if self.kind.ranks_cpu() { (None, BY_KERNEL) } else { (Some(self.leaves.on_cpu), 0) };
                let taken_at = Some(sample_context.now());
                Sample { rank, taken_at, ..sample_context.before(nanoseconds, leaf) }
            }
            KernelSample::OffCpu { nanoseconds, preempted: false } => {
                sample_context.before(nanoseconds, Some(self.leaves.off_cpu))
            }
            KernelSample::OffCpu { nanoseconds, preempted: true } => {
                sample_context.before(nanoseconds, Some(self.leaves.ready))
            }
        }
    }

    #[inline]
    fn add_sample(
        &mut self,
        ThreadSample { kind, .. }: ThreadSample,
        sample_context: &mut SampleContext<'_, '_>,
        mut emit: impl FnMut(Sample),
    ) {
        if kind == ThreadSampleType::ERROR {
            // A mark of a round of the sampler, which `dipc edit --tid` leaves of samples of other threads.
            return;
        }
        let is_by_kernel = self.by_kernel.get(sample_context.thread as usize).copied().unwrap_or(false);
        if is_by_kernel {
            return;
        }
        let is_managed = kind == ThreadSampleType::MANAGED;
        *(if is_managed { &mut self.samples.managed } else { &mut self.samples.other }) += 1;
        let thread = sample_context.thread;
        let index = thread as usize;
        let mut mark = sample_context.pending(None);
        let contention = self.contention.get(index).copied().unwrap_or_default();
        let is_contended = match contention {
            Contention::None => false,
            Contention::Begun => true,
            Contention::Sampled(stack) => stack == mark.stack,
        };
        if let Some(contention) = self.contention.get_mut(index) {
            *contention = if is_contended { Contention::Sampled(mark.stack) } else { Contention::None };
        }
        mark.leaf = Some(if is_managed { self.leaves.managed } else { self.leaves.other });
        if self.open.len() <= index {
            self.open.resize(index.saturating_add(1), None);
        }
        let contended_since = is_contended.then_some(mark.start);
        let open = OpenSample { mark, is_managed, contended: 0, contended_since };
        let before = self.open.get_mut(index).and_then(|place| place.replace(open));
        let absence =
            self.absence.as_mut().and_then(|(rounds, leaf)| Some((rounds.take_absence(thread)?, *leaf)));
        let is_managed_only = self.kind == TimeKind::Managed;
        let counts = |before: &OpenSample| before.is_managed || !is_managed_only;
        let Some(before) = before.filter(counts) else { return };
        let Some((from, leaf)) = absence else {
            self.close(before, mark.start, thread, emit);
            return;
        };
        self.close(before, from, thread, &mut emit);
        let absent = PendingSample { start: from, leaf: Some(leaf), ..before.mark }.until(mark.start, thread);
        emit(Sample { samples: 0, ..absent });
    }

    /// A thread begins to wait for a lock, or ends.
    fn set_contention(&mut self, now: Contention, sample_context: &SampleContext<'_, '_>) {
        let index = sample_context.thread as usize;
        if self.contention.len() <= index {
            self.contention.resize(index.saturating_add(1), Contention::None);
        }
        if let Some(contention) = self.contention.get_mut(index) {
            *contention = now;
        }
        let Some(open) = self.open.get_mut(index).and_then(Option::as_mut) else { return };
        let time = sample_context.now().max(open.mark.start);
        if matches!(now, Contention::Begun) {
            open.contended_since.get_or_insert(time);
        } else {
            open.end_contention(time);
        }
    }

    /// Ends a sample: its time for locks is a part of its own, at the end.
    fn close(&self, mut open: OpenSample, end: RelativeTime, thread: u32, mut emit: impl FnMut(Sample)) {
        open.end_contention(end);
        let whole = open.mark.until(end, thread);
        let contended = open.contended.min(whole.weight);
        if contended == 0 {
            emit(whole);
            return;
        }
        let mut rest = whole;
        let left = whole.weight.saturating_sub(contended);
        let worked = RelativeTime::from_nanos(whole.start.as_nanos().saturating_add_unsigned(left));
        rest.split_off_until(worked).into_iter().for_each(&mut emit);
        emit(Sample { leaf: Some(self.leaves.contended), ..rest });
    }
}

impl OpenSample {
    fn end_contention(&mut self, time: RelativeTime) {
        if let Some(since) = self.contended_since.take().filter(|since| *since < time) {
            self.contended = self.contended.saturating_add(time.as_nanos().abs_diff(since.as_nanos()));
        }
    }
}
