//! `dipc counters monitor`: the counters of a process on a screen, or as lines without a terminal.

mod detail;
mod model;
mod screen;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

use clap::Args;
use clr_counters::Sample;
use nettrace::TraceInfo;

use crate::command::counters::live::{self, LiveArgs, SampleConsumer};
use crate::exit::{Failure, Outcome};
use crate::inspect::counters::{Clock, label};
use crate::record::watch::WatchedProcess;
use crate::render::escape::escape_controls;
use crate::render::screen::Screen;
use crate::render::{list_screen, output, units};
use model::Model;

#[derive(Debug, Args)]
pub(crate) struct MonitorArgs {
    #[command(flatten)]
    live: LiveArgs,
    /// Print one line per value, as when standard output is not a terminal
    #[arg(long)]
    plain: bool,
    /// Request histograms with buckets of exponential width instead of three quantiles: .NET 10 and later
    ///
    /// Such histograms accumulate from the session's start, and give any quantile, as the upper bound of its
    /// bucket.
    #[arg(long)]
    exponential_histograms: bool,
}

pub(crate) fn run(args: &MonitorArgs) -> Outcome {
    if args.plain || !output::stream().is_terminal() {
        let mut lines = Lines {
            clocks: BTreeMap::new(),
            names_processes: args.live.may_be_many(),
            wants_exponential: args.exponential_histograms,
        };
        return live::run(&args.live, &mut lines);
    }
    let mut counters = CountersScreen {
        screen: None,
        model: Model::new(args.live.refresh_interval),
        wants_exponential: args.exponential_histograms,
    };
    live::run(&args.live, &mut counters)
}

/// Samples as lines: time, process if there are several, provider, counter and value.
struct Lines {
    /// The clock of each process, by process number.
    clocks: BTreeMap<usize, Clock>,
    names_processes: bool,
    wants_exponential: bool,
}

impl SampleConsumer for Lines {
    fn wants_exponential_histograms(&self) -> bool {
        self.wants_exponential
    }

    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure> {
        self.clocks.insert(process.number, Clock::of(info));
        Ok(())
    }

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure> {
        let clock = self.clocks.get(&process.number);
        let mut time = clock.map_or_else(String::new, |clock| clock.time_of_day(sample.time));
        if self.names_processes {
            time = format!("{time}  {}", process.title());
        }
        let provider = &sample.series.provider;
        let mut text = String::new();
        for aspect in sample.series.aspects() {
            if let Some(number) = sample.number(*aspect) {
                let value = units::quantity(number, &sample.series.unit_of(*aspect));
                let line = format!("{time}  {provider}  {}  {value}", label(sample.series, *aspect));
                let _ = writeln!(text, "{}", escape_controls(&line));
            }
        }
        output::print(text)
    }

    fn flush(&mut self) -> Result<(), Failure> {
        if output::is_closed() { Err(Failure::closed_output()) } else { Ok(()) }
    }
}

/// Samples on a screen that is redrawn as they arrive, and as keys are pressed.
struct CountersScreen {
    /// `None` until the session runs, so that a failure to start it is printed where the user typed the
    /// command.
    screen: Option<Screen>,
    model: Model,
    wants_exponential: bool,
}

impl SampleConsumer for CountersScreen {
    fn wants_exponential_histograms(&self) -> bool {
        self.wants_exponential
    }

    fn begin(&mut self, process: &WatchedProcess, info: Option<&TraceInfo>) -> Result<(), Failure> {
        self.model.begin(process, Clock::of(info));
        if self.screen.is_none() {
            self.screen = Some(Screen::open()?);
        }
        Ok(())
    }

    fn sample(&mut self, process: &WatchedProcess, sample: &Sample<'_>) -> Result<(), Failure> {
        self.model.add(process, sample);
        Ok(())
    }

    fn end(&mut self, process: &WatchedProcess) -> Result<(), Failure> {
        self.model.end(process);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Failure> {
        let Some(screen) = &mut self.screen else { return Ok(()) };
        self.model.look_at_clock();
        list_screen::update(screen, &mut self.model, screen::draw)
    }

    fn finish(&mut self) -> Result<(), Failure> {
        // Returns the terminal to the user, and to the program that was started.
        self.screen = None;
        Ok(())
    }

    fn is_satisfied(&self) -> bool {
        self.model.list.is_done()
    }
}
