//! Events of a process as they happen.

use std::path::Path;
use std::time::Duration;

use dipc_client::{LiveReader, OptionalFeature, Rundown, SessionConfig};
use dipc_collect::live_stream::{EventConsumer, LiveStream};

use crate::command::events::{EventsArgs, Order, live_selection};
use crate::exit::{Failure, Outcome};
use crate::inspect::event_list::LiveList;
use crate::inspect::recording::start_time;
use crate::interrupt::Interrupts;
use crate::record::recorder::{self, Limits, StreamEnd};
use crate::record::session::{resume, start_unless_interrupted, warn_without_sampler};
use crate::record::source::{Child, PortWatcher, Source, SourceSelector};
use crate::record::stopping_event::StoppingEventSearch;
use crate::record::stream_stats;
use crate::render::destination::Destination;
use crate::render::{messages, output};

const BUFFER_MB: u32 = 256;
const TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum delay of an event that waits for older events of other threads.
const MAX_DELAY: Duration = Duration::from_millis(500);

pub(super) fn run(args: &EventsArgs) -> Outcome {
    if args.filter.times.range().has_dates() {
        return Err(Failure::usage("--from and --to with a date are for recordings")
            .with_help("for a process, times count from the session's start: 30s"));
    }
    let list = args.list(Path::new("-"))?;
    if list.symbols || list.lines.are_wanted {
        return Err(Failure::usage(
            "--symbols and --lines: a runtime names its methods only at the end of a recording",
        )
        .with_help(
            "--stacks shows addresses; dipc trace makes a recording, which dipc events FILE --symbols shows",
        ));
    }
    if !list.in_time_order {
        return Err(Failure::usage(format_args!(
            "--order {:?}: events of a process are shown in time order",
            Order::File
        )));
    }
    let (live, interrupts) = (&args.live, Interrupts::watch()?);
    let selection = live_selection::selection(&live.selection.request(), &list.criteria)?;
    let stopping_event = live.stopping.event_among(&selection);
    let timeout = live.timeout.unwrap_or(TIMEOUT);
    let selector = args.process.selector(live.show_child_io)?;
    // At a port, print the selection before waiting; elsewhere, steps that can fail at once run first.
    let waits_at_port = matches!(selector, SourceSelector::Port(_));
    if waits_at_port {
        selection.announce();
    }
    let mut source = Source::open(&selector, timeout, &interrupts)?;
    if !waits_at_port {
        selection.announce();
    }
    let mut child = source.child.take();
    // Kept to the end: no runtime may wait forever, and commands for this one go through the port.
    let _watcher = source.port.take().map(PortWatcher::resuming);
    warn_without_sampler(&source.target, &selection);
    let collect = SessionConfig::new(selection.configs())
        .with_buffer_mb(live.buffersize.unwrap_or(BUFFER_MB))
        .with_rundown(Rundown::Off)
        .with_stackwalk(list.stacks)
        .with_optional(vec![OptionalFeature::NoStacks]);
    let session = match start_unless_interrupted(&source.target, &collect, &interrupts) {
        Ok(session) => session,
        Err(failure) => {
            // The program waits to be resumed, which will not happen.
            child.iter_mut().for_each(Child::kill);
            return Err(failure);
        }
    };
    resume(&source.target);
    source.announce();
    let mut out = Destination::open(None)?;
    let events = LiveEvents {
        list: LiveList::new(list, &mut out)?,
        stopping_event: StoppingEventSearch::new(stopping_event),
        is_start_said: false,
    };
    let mut stream = LiveStream::new(LiveReader::new(MAX_DELAY), events);
    // As with trace, a duration of zero means no limit.
    let duration = live.duration.filter(|duration| !duration.is_zero());
    let limits = Limits::new(&source.target, source.pid, timeout, &interrupts).with_duration(duration);
    let exit = recorder::run(session, &mut stream, &limits);
    let (reader, mut events) = stream.into_parts();
    let exit = exit.and_then(|end| events.report(&reader, end));
    let code = child.map(|child| child.wait(&interrupts)).transpose();
    Ok(exit?.or_program(code?))
}

/// Events that are shown as they arrive.
struct LiveEvents<'o> {
    list: LiveList<'o>,
    stopping_event: StoppingEventSearch,
    /// True if the start time, which the times of events are relative to, was printed.
    is_start_said: bool,
}

impl LiveEvents<'_> {
    /// Prints a summary of the session, and returns the exit code.
    fn report(&mut self, reader: &LiveReader, end: StreamEnd) -> Outcome {
        self.stopping_event.report();
        self.list.warn_of_misses(reader);
        let events = reader.events();
        let lost = stream_stats::lost_in_words(events.loss());
        let shown = self.list.shown();
        messages::note(format_args!(
            "Showed {shown} event{}, {lost} lost, in {}",
            if shown == 1 { "" } else { "s" },
            crate::duration::display(end.elapsed()),
        ));
        if events.loss().total() > 0 {
            stream_stats::warn_of_loss(&lost);
        }
        let done = "the readable part was shown";
        let inside = stream_stats::report_damage(events, reader.unreadable(), done);
        Ok(end.report(&format!("{shown} events were shown"), "shown")?.join(inside))
    }
}

impl EventConsumer for LiveEvents<'_> {
    type Error = Failure;

    fn read(&mut self, reader: &mut LiveReader, is_end: bool) -> Result<(), Failure> {
        if output::is_closed() {
            return Err(Failure::closed_output());
        }
        let Self { list, stopping_event, .. } = self;
        list.read(reader, |event| stopping_event.add(event))?;
        if is_end {
            list.end()?;
        }
        if !self.is_start_said
            && let Some(start) = reader.info().map(|info| info.start)
        {
            self.is_start_said = true;
            if let Some(start) = start_time(start) {
                messages::note(format_args!(
                    "Started        : {start}, from which the times of events count"
                ));
            }
        }
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.stopping_event.found().is_some() || self.list.is_complete()
    }
}
