//! Reading of a recording into its profile, in the order that does.

use std::io::{Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;

use clr_events::CodeMap;
use nettrace::{Error, Event, Interest, Metadata, Reader, RelativeTime};

use crate::profile::Profile;
use crate::profile::async_callers::AsyncCallers;
use crate::profile::builder::{Omissions, ProfileBuilder};
use crate::profile::kernel_times::KernelTimes;
use crate::profile::lines::SourceLines;
use crate::profile::metric::Metric;
use crate::profile::options::{NeedsTimeOrder, Options, Order};

/// Reads a recording and builds its profile.
///
/// Reading starts at the current position of `recording`: in [file order](Order::File), and if that leaves a
/// question open, again in [time order](Order::Time). [`Options::order`] is ignored.
///
/// ```
/// # let mut recording = nettrace_synth::clr::Recording::new();
/// # for time in [1_000_000, 2_000_000] {
/// #     recording.at(time).thread(7).exception("System.TimeoutException", "no answer");
/// # }
/// # let recording = recording.bytes();
/// use std::io::Cursor;
/// use nettrace_export::{Metric, Options};
///
/// // `std::fs::File` is the usual input.
/// let (profile, _) = nettrace_export::profile(Cursor::new(&recording), Options::new(Metric::Exception))?;
/// assert_eq!(profile.total(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the bytes are not a recording, or reading them failed. Damage is not an error: [`ProfileReader`] also
/// reports it.
pub fn profile<R: Read + Seek>(mut recording: R, options: Options) -> Result<(Profile, Omissions), Error> {
    let cannot_seek = |error| Error::Io { offset: 0, error };
    let start = recording.stream_position().map_err(cannot_seek)?;
    let mut reader = ProfileReader::new(options).with_interest(|_| Interest::None);
    if reader.may_use_file_order() {
        let (read, outcome) = reader.attempt(Order::File, Reader::new(&mut recording)?, |_| {})?;
        if outcome.is_ok() {
            return Ok((read.profile, read.omissions));
        }
        recording.seek(SeekFrom::Start(start)).map_err(cannot_seek)?;
    }
    let read = reader.read(Reader::new(recording)?, |_| {})?;
    Ok((read.profile, read.omissions))
}

/// A reader of recordings that makes profiles of them and chooses the order: see also
/// [`profile`](fn@profile).
///
/// ```no_run
/// use nettrace_export::{Metric, Options, ProfileReader};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // From a pipe, which can be read once.
/// let recording = nettrace::Reader::new(std::io::stdin().lock())?;
/// let read = ProfileReader::new(Options::new(Metric::Wall)).read(recording, |_| {})?;
/// println!("{} events were lost", read.events.loss().total());
/// # Ok(())
/// # }
/// ```
#[allow(missing_debug_implementations, reason = "those who know lines need none")]
pub struct ProfileReader<'l> {
    options: Options,
    others: Vec<Options>,
    lines: Option<&'l mut dyn SourceLines>,
    code: Option<&'l mut (dyn FnMut(&mut CodeMap) + Send)>,
    kernel_times: Option<KernelTimes>,
    async_callers: Option<Arc<AsyncCallers>>,
    interest: Arc<InterestOf>,
}

type InterestOf = dyn Fn(&Metadata) -> Interest + Send + Sync;

/// A recording that was read to its end, and its profile.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProfiledRecording<R> {
    /// The profile.
    pub profile: Profile,
    /// The profile's omissions.
    pub omissions: Omissions,
    /// The [others](ProfileReader::with_others) of the same reading, with their omissions.
    pub others: Vec<(Profile, Omissions)>,
    /// The reader at the end of the recording: its loss, damage and metadata.
    pub events: Reader<R>,
    /// The time of its last event; `None` without events.
    pub last_time: Option<RelativeTime>,
    /// The number of events of each kind, by the index of its metadata, if it was read in time order.
    pub counts: Vec<(usize, u64)>,
}

impl<'l> ProfileReader<'l> {
    /// A reader with these options, except [`Options::order`], which is ignored.
    pub fn new(options: Options) -> Self {
        Self {
            options,
            others: Vec::new(),
            lines: None,
            code: None,
            kernel_times: None,
            async_callers: None,
            interest: Arc::new(|_| Interest::All),
        }
    }

    /// The options of the first profile.
    #[cfg(feature = "html")]
    pub(crate) const fn options(&self) -> &Options {
        &self.options
    }

    /// Limits the events for which `each` is called to events of interest and events that the profile needs:
    /// others are not brought into time order.
    #[must_use]
    pub fn with_interest(self, interest: impl Fn(&Metadata) -> Interest + Send + Sync + 'static) -> Self {
        Self { interest: Arc::new(interest), ..self }
    }

    /// Also builds profiles with these options in the same reading, such as of other metrics. They have the
    /// code of the first one, but not its [lines](Self::with_lines).
    #[must_use]
    pub fn with_others(self, others: Vec<Options>) -> Self {
        Self { others, ..self }
    }

    /// Calls `add` before each reading of the recording, to add code known from other sources. Later
    /// descriptions in the recording take precedence.
    #[must_use]
    pub fn with_code(mut self, add: &'l mut (dyn FnMut(&mut CodeMap) + Send)) -> Self {
        self.code = Some(add);
        self
    }

    /// Lets the kernel's account of the process's threads decide how long they worked: see
    /// [`ProfileBuilder::with_kernel_times`].
    #[must_use]
    pub fn with_kernel_times(self, times: Option<KernelTimes>) -> Self {
        Self { kernel_times: times, ..self }
    }

    /// Makes each line of a method a frame, where `lines` knows it.
    #[must_use]
    pub fn with_lines(mut self, lines: &'l mut dyn SourceLines) -> Self {
        self.options.lines = true;
        self.lines = Some(lines);
        self
    }

    /// Reads a recording that can be read once, in [time order](Order::Time). `each` is called with every
    /// event [of interest](Self::with_interest).
    ///
    /// # Errors
    /// If reading failed.
    pub fn read<R: Read>(
        mut self,
        recording: Reader<R>,
        each: impl FnMut(&Event<'_>),
    ) -> Result<ProfiledRecording<R>, Error> {
        let (read, outcome) = self.attempt(Order::Time, recording, each)?;
        debug_assert!(outcome.is_ok(), "time order leaves nothing open");
        Ok(read)
    }

    /// Reads a recording that can be opened again: in [file order](Order::File), which is twice as fast, and
    /// only if that leaves something open again in time order. `each` is called with every event [of
    /// interest](Self::with_interest), of both readings; the first one ends when it is known not to suffice.
    ///
    /// # Errors
    /// Returns the errors of `open`, and of reading.
    pub fn read_file<R: Read, E: From<Error>>(
        mut self,
        mut open: impl FnMut() -> Result<Reader<R>, E>,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<ProfiledRecording<R>, E> {
        if self.may_use_file_order() {
            let (read, outcome) = self.attempt(Order::File, open()?, &mut each)?;
            if outcome.is_ok() {
                return Ok(read);
            }
        }
        Ok(self.read(open()?, each)?)
    }

    /// Returns true if file order may be enough: causes and the objects in use are known only in time order.
    /// Awaits may lack causes.
    fn may_use_file_order(&self) -> bool {
        let needs_time_order = |options: &Options| options.metric.is_some_and(Metric::needs_time_order);
        !self.options.grouping.tasks
            && !self.options.grouping.requests
            && !needs_time_order(&self.options)
            && !self.others.iter().any(needs_time_order)
    }

    /// Reads a recording once, in that order.
    fn attempt<R: Read>(
        &mut self,
        order: Order,
        mut events: Reader<R>,
        mut each: impl FnMut(&Event<'_>),
    ) -> Result<(ProfiledRecording<R>, Result<(), NeedsTimeOrder>), Error> {
        let options = Options { order, ..self.options.clone() };
        let mut builder = ProfileBuilder::new(options.clone());
        if let Some(times) = &self.kernel_times {
            builder = builder.with_kernel_times(times.clone());
        }
        builder = builder.with_async_callers(self.async_callers.clone());
        let others: Vec<_> = self.others.iter().map(|others| Options { order, ..others.clone() }).collect();
        let mut builders: Vec<_> = others.iter().map(|options| self.other(options)).collect();
        if let Some(add) = &mut self.code {
            add(builder.code_mut());
        }
        let (mut last_time, mut counts) = (None, Vec::new());
        match order {
            Order::File => {
                // Operations are gathered for the second reading.
                let may_end_early = !options.collects_async_callers();
                let _ = events.try_for_each(|event| {
                    each(&event);
                    builder.add(&event);
                    for other in &mut builders {
                        other.add(&event);
                    }
                    if may_end_early && builder.needs_time_order() {
                        return ControlFlow::Break(());
                    }
                    ControlFlow::Continue(())
                })?;
            }
            Order::Time => {
                let interest = Arc::clone(&self.interest);
                let mut in_time_order = events.in_time_order_by(move |kind| {
                    let mut all = others.iter().chain([&options]);
                    let is_needed = all.any(|options| ProfileBuilder::needs(options, kind));
                    interest(kind).max(Interest::all_if(is_needed))
                });
                in_time_order.for_each(|event| {
                    each(&event);
                    builder.add(&event);
                    for other in &mut builders {
                        other.add(&event);
                    }
                })?;
                last_time = in_time_order.last_time();
                counts = in_time_order.counts().collect();
                events = in_time_order.into_events();
            }
        }
        match last_time {
            Some(last) => builders.iter_mut().chain([&mut builder]).for_each(|it| it.extend_to(last)),
            None => last_time = builder.last_time(),
        }
        let lines = self.lines.as_mut().map(|lines| &mut **lines as &mut dyn SourceLines);
        let (profile, omissions, mut outcome) = builder.build(events.info(), lines);
        if order == Order::File {
            self.async_callers = builder.take_async_callers();
            outcome = if self.async_callers.is_some() { Err(NeedsTimeOrder) } else { outcome };
        }
        let mut others = Vec::new();
        for other in builders {
            match other.finish_with_code_of(events.info(), &mut builder) {
                Ok(built) => others.push(built),
                Err(error) => outcome = Err(error),
            }
        }
        Ok((ProfiledRecording { profile, omissions, others, events, last_time, counts }, outcome))
    }

    /// Returns the builder of another profile of the same reading.
    fn other(&self, options: &Options) -> ProfileBuilder {
        let builder = ProfileBuilder::new(options.clone()).without_code();
        match &self.kernel_times {
            Some(times) if options.is_of_time() => builder.with_kernel_times(times.clone()),
            _ => builder,
        }
    }
}
