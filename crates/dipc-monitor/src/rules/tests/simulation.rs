//! A process with scripted events, counters and clock, one step a line.

use std::sync::Arc;
use std::time::Duration;

use clr_counters::{EventCounterValue, Measurement, MeterMeasurement, Sample, Series, SeriesId};
use nettrace::RelativeTime;
use nettrace_synth::clr::Recording;

use crate::rules::{Rule, RuleEngine, Trigger};

/// The interval of counters.
const INTERVAL: Duration = Duration::from_secs(5);

/// A rule in a process.
pub(super) struct Simulation {
    pub(super) engine: RuleEngine,
    rule: Arc<Rule>,
    /// The time that the actions take.
    actions: Duration,
    /// The end of the actions that run.
    actions_end: Option<Duration>,
    /// The start of the session of counters.
    session: Duration,
    now: Duration,
    /// The times at which the actions started.
    pub(super) fired: Vec<f64>,
}

impl Simulation {
    /// Starts a rule with actions that take `actions` seconds.
    pub(super) fn new(rule: &Arc<Rule>, actions: f64) -> Self {
        let engine = RuleEngine::of_rules([rule].into_iter(), |_| INTERVAL, Duration::ZERO);
        let mut simulation = Self {
            engine,
            rule: Arc::clone(rule),
            actions: Duration::from_secs_f64(actions),
            actions_end: None,
            session: Duration::ZERO,
            now: Duration::ZERO,
            fired: Vec::new(),
        };
        simulation.poll();
        simulation
    }

    /// Carries out steps, separated by semicolons. Each begins with its time in seconds:
    ///
    /// - `start ID PATH`, `stop ID STATUS`: a request to ASP.NET.
    /// - `mean X`, `sum X`: a value of an EventCounter. `gauge X`, `total X`, `increment X`, `p95 X`: a value
    ///   of an instrument; further words are its tags.
    /// - `session`: another session of counters. `events`: another session of events.
    /// - `tick`: only time passes.
    pub(super) fn run(&mut self, steps: &str) -> &mut Self {
        let steps: Vec<Vec<&str>> = steps
            .split(';')
            .map(|step| step.split_whitespace().collect())
            .filter(|it: &Vec<_>| !it.is_empty())
            .collect();
        let recording = requests(&steps);
        let mut remaining = steps.iter();
        nettrace::Reader::new(&*recording)
            .unwrap()
            .for_each(|event| {
                for step in remaining.by_ref() {
                    if is_request(step) {
                        let time = time(step);
                        assert_eq!(event.relative_time().since_start(), time);
                        self.pass(time);
                        self.engine.event(&event, time);
                        self.poll();
                        return;
                    }
                    self.step(step);
                }
                panic!("an event without a step");
            })
            .unwrap();
        for step in remaining {
            self.step(step);
        }
        self
    }

    fn step(&mut self, step: &[&str]) {
        let time = time(step);
        self.pass(time);
        match &step[1..] {
            ["tick"] => self.engine.advance(time),
            ["session"] => {
                self.session = time;
                self.engine.restart_counters(0, Some(time));
            }
            ["events"] => self.engine.restart_events(),
            [kind, value, tags @ ..] => self.sample(time, kind, value.parse().unwrap(), &tags.join(",")),
            _ => panic!("{step:?}"),
        }
        self.poll();
    }

    /// Ends the actions that are due.
    fn pass(&mut self, time: Duration) {
        assert!(time >= self.now, "the clock never goes back");
        self.now = time;
        if let Some(end) = self.actions_end.filter(|end| *end <= time) {
            self.actions_end = None;
            self.engine.actions_ended(0, end);
        }
    }

    fn poll(&mut self) {
        while let Some(execution) = self.engine.poll() {
            self.fired.push(self.now.as_secs_f64());
            assert_eq!(execution.number, self.fired.len() as u64);
            assert!(self.actions_end.is_none(), "the actions still run");
            if self.actions.is_zero() {
                self.engine.actions_ended(0, self.now);
            } else {
                self.actions_end = Some(self.now + self.actions);
            }
        }
    }

    fn sample(&mut self, time: Duration, kind: &str, value: f64, tags: &str) {
        let Trigger::Counter(counter) = &self.rule.trigger else { panic!("{:?}", self.rule) };
        let (kind, measurement) = match kind {
            "mean" => (
                clr_counters::Kind::Mean,
                Measurement::EventCounter(EventCounterValue::Mean {
                    mean: value,
                    standard_deviation: 0.0,
                    count: 1,
                    min: value,
                    max: value,
                }),
            ),
            "sum" => (
                clr_counters::Kind::Sum,
                Measurement::EventCounter(EventCounterValue::Sum { increment: value }),
            ),
            "gauge" => (
                clr_counters::Kind::Gauge,
                Measurement::Meter(MeterMeasurement::Gauge { value: Some(value) }),
            ),
            "total" | "increment" => {
                let total = (kind == "total").then_some(value);
                // A total is sent with an increment, which does not count.
                let increment = Some(if kind == "total" { 0.0 } else { value });
                (
                    clr_counters::Kind::Counter,
                    Measurement::Meter(MeterMeasurement::Counter { increment, total }),
                )
            }
            percentile => {
                let percent: f64 = percentile.strip_prefix('p').unwrap().parse().unwrap();
                // The others are far beyond all bounds.
                let quantiles = [0.5, 0.95, 0.99].map(|quantile| {
                    (quantile, if (quantile * 100.0 - percent).abs() < 0.5 { value } else { 1e9 })
                });
                let quantiles = quantiles.to_vec();
                (
                    clr_counters::Kind::Histogram,
                    Measurement::Meter(MeterMeasurement::Histogram {
                        quantiles,
                        count: Some(1),
                        sum: Some(value),
                    }),
                )
            }
        };
        let mut series = Series::new(&*counter.provider, &*counter.counter, kind);
        tags.clone_into(&mut series.tags);
        // Numbers of series belong to a session.
        let id =
            SeriesId(u32::try_from(tags.len()).unwrap() + u32::try_from(self.session.as_secs()).unwrap());
        let time_in_session = RelativeTime::after_start(time.checked_sub(self.session).unwrap());
        let sample = Sample::new(time_in_session, id, &series, &measurement);
        let sample = if kind.is_meter() { sample } else { sample.with_interval(INTERVAL) };
        self.engine.sample(0, &sample, time);
    }
}

fn time(step: &[&str]) -> Duration {
    Duration::from_secs_f64(step[0].parse().unwrap())
}

fn is_request(step: &[&str]) -> bool {
    matches!(step[1], "start" | "stop")
}

/// Records the requests among the steps, as the runtime reports them for dotnet-monitor's filter.
fn requests(steps: &[Vec<&str>]) -> Vec<u8> {
    let mut recording = Recording::new();
    recording.thread(7);
    for step in steps.iter().filter(|step| is_request(step)) {
        let (id, value) = (step[2], step[3]);
        recording.at(u64::try_from(time(step).as_nanos()).unwrap());
        if step[1] == "start" {
            recording.bridged_request(true, &[("Path", value), ("Method", "GET"), ("ActivityId", id)]);
        } else {
            recording.bridged_request(false, &[("StatusCode", value), ("ActivityId", id)]);
        }
    }
    recording.bytes()
}
