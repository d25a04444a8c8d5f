//! Comparison of recordings: finds what became slower, allocates more or waits longer, beyond noise.
//!
//! ```no_run
//! use nettrace_export::diff::{Comparison, ComparisonOptions, RunBuilder, Verdict};
//! use nettrace_export::report;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let run = |file: &str| -> Result<_, Box<dyn std::error::Error>> {
//!     let recording = nettrace::Reader::new(std::fs::File::open(file)?)?;
//!     let mut builder = RunBuilder::new(Default::default(), recording.info());
//!     let events = report::read(recording, |event| builder.add(event))?;
//!     Ok(builder.finish(events.info()))
//! };
//! let (base, new) = ([run("a1.nettrace")?, run("a2.nettrace")?], [run("b1.nettrace")?, run("b2.nettrace")?]);
//! let comparison = Comparison::new(&base, &new, &ComparisonOptions::default());
//! for change in comparison.changes.iter().filter(|change| change.verdict == Verdict::Worse) {
//!     println!("{} {}: {:?}", change.subject.name, change.statistic.name(), change.relative_change());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Method
//!
//! A [`Run`] holds, for each method, type and route, sums over slices of time of at least a second. The units
//! of a comparison are the runs if each side has two or more, else at most 20 stretches of each run.
//!
//! A side's value is a ratio of sums over its units, such as the CPU time of a method per second, or a
//! percentile of all durations. Its standard error is the standard error of a bootstrap over the units, with
//! fixed random numbers, enlarged by the correlation of stretches with their neighbours, and no less than
//! what the number of samples or of requests allows. The difference of the sides is compared with its
//! standard error by Student's t distribution, with Welch's degrees of freedom. The probabilities of all
//! differences that were tested are adjusted together by Holm's method, so that the chance of any false alarm
//! in a comparison is at most [`ComparisonOptions::error_rate`].
//!
//! Stretches of one run do not show how runs differ from each other: caches, code layout, neighbours on the
//! machine. For such a comparison [`ComparisonOptions::allowance`] is part of the noise. It is a convention,
//! not a measurement.

mod allowance;
mod call_tree;
mod comparison;
mod durations;
mod estimate;
mod family;
mod holm;
#[cfg(feature = "pprof")]
mod pprof;
mod random;
mod rule;
mod run;
mod run_builder;
mod series;
mod sides;
mod stack_comparison;
#[cfg(all(feature = "svg", feature = "html"))]
mod stack_page;
#[cfg(feature = "svg")]
mod stack_picture;
mod student;
mod subject;
mod test;
mod verdict;

pub use comparison::{Change, Comparison, ComparisonOptions, OneSided, Side};
pub use estimate::Interval;
#[cfg(feature = "pprof")]
pub use pprof::{PprofError, is_pprof};
pub use rule::{Rule, RuleError, RuleOutcome};
pub use run::Run;
pub use run_builder::{RunBuilder, RunOptions};
pub use sides::Noise;
pub use stack_comparison::{StackComparison, StackNode};
#[cfg(feature = "svg")]
pub use stack_picture::Picture;
pub use subject::{Basis, Kind, Statistic, Subject};
pub use verdict::Verdict;
