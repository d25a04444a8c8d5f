//! Events that were recorded beside the session of a process, merged into its recording in one pass.

use std::fs::File;
use std::path::Path;

use clr_findings::Readings;
use dipc_collect::kernel_samples::{KernelRecording, SampleError};
use dipc_collect::names::{StackAddresses, UnloadableCode};
use nettrace_export::report::EventGroup;
use nettrace_writer::MergerOptions;

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::merging::Merging;
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::warn_of_omissions;
use crate::record::kernel_samples::{self, announce, loss_exit, unwritten};
use crate::record::readings::{self, recording_of};
use crate::record::requested_events::to_header;
use crate::render::destination::Destination;
use crate::render::messages;
use crate::render::output_file::{NameOrigin, OutputFile};

/// The name of the exceptions in messages.
const EXCEPTIONS: &str = "exceptions";
/// The name of the methods' names in messages.
const NAMES: &str = "names of methods";

/// The events that were recorded beside the session of a process.
#[derive(Debug)]
pub(crate) struct Additions {
    /// The kernel's samples, or the reason why there are none.
    pub(crate) samples: Option<Result<KernelRecording, SampleError>>,
    /// The exceptions of a session of their own.
    pub(crate) exceptions: Option<File>,
    /// The code with the names of the methods that the recording lacks.
    pub(crate) code: Option<UnloadableCode>,
    /// The readings of the process.
    pub(crate) readings: Option<Readings>,
}

impl Additions {
    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self, Self { samples: None, exceptions: None, code: None, readings: None })
    }

    /// Merges the events into the recording, which becomes a V6 recording and states the groups of events
    /// that its session requested. If that fails, the recording stays as it is, and the samples get a file of
    /// their own: what belongs to the samples is a failure, other events missing are a warning.
    pub(crate) fn merge_into(
        self,
        recording: &Path,
        requested: &[EventGroup],
        fail_on_loss: bool,
    ) -> Outcome {
        let Self { samples, exceptions, code, readings } = self;
        let samples = samples.transpose().map_err(Failure::from);
        let (mut samples, failure) = match samples {
            Ok(samples) => (samples, None),
            Err(failure) => (None, Some(failure)),
        };
        let summary = samples.as_ref().map(KernelRecording::summary);
        summary.into_iter().for_each(announce);
        let others = Others { exceptions, code, readings };
        let merged = merge(recording, samples.as_ref(), others, requested);
        match (merged, &mut samples) {
            (Ok(()), _) => {}
            (Err(failure), None) => messages::warning(failure),
            (Err(failure), Some(samples)) => {
                let kept = recording.with_extension("kernel.nettrace");
                samples.name_new(&kept).map_err(|error| unwritten(&kept, &error))?;
                return Err(failure.with_help(format_args!(
                    "the samples are in {}, and dipc merge --same-process puts them into the recording",
                    kept.display()
                )));
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(summary.map_or(Exit::Done, |summary| loss_exit(summary, fail_on_loss))),
        }
    }
}

/// The additions but the kernel's samples.
struct Others {
    exceptions: Option<File>,
    code: Option<UnloadableCode>,
    readings: Option<Readings>,
}

fn merge(
    recording: &Path,
    samples: Option<&KernelRecording>,
    Others { exceptions, code, readings }: Others,
    requested: &[EventGroup],
) -> Result<(), Failure> {
    let mut options = MergerOptions::default()
        .with_same_processes(true)
        .with_same_clock(true)
        .with_requested_events(to_header(requested));
    let mut parts = vec![Recording::open(recording)?];
    if let Some(samples) = samples {
        let name = kernel_samples::NAME;
        let file = samples.file().map_err(|error| unwritten(Path::new(name), &error))?;
        parts.push(Recording::of_file(file, name)?);
        options = options.with_sampling_rate_of(1);
    }
    if let Some(exceptions) = exceptions {
        parts.push(Recording::of_file(exceptions, EXCEPTIONS)?);
    }
    let header = parts.first().and_then(|recording| recording.events.info());
    let readings = readings.zip(header).map(|(readings, header)| recording_of(readings, header));
    match readings {
        Some(Ok(readings)) => parts.push(Recording::of_file(readings, readings::NAME)?),
        Some(Err(failure)) => messages::warning(failure),
        None => {}
    }
    if let Some(code) = &code {
        match names(&parts, code) {
            Ok(names) => parts.push(Recording::of_file(names, NAMES)?),
            Err(failure) => messages::warning(failure),
        }
    }
    if parts.len() == 1 {
        return Ok(());
    }
    let mut merging = Merging::of(parts, options)?;
    let mut out = Destination::File(OutputFile::beside(recording, NameOrigin::Derived)?);
    merging.write(&mut out)?;
    warn_of_omissions(merging.merged.merger().omissions());
    out.close()
}

/// Returns the names of the methods on the stacks of all events, as a recording. Samples have stacks, too.
fn names(parts: &[Recording], code: &UnloadableCode) -> Result<File, Failure> {
    let mut stacks = StackAddresses::default();
    let mut process = None;
    // Each file is read once more for the merge.
    for file in parts.iter().filter_map(Recording::file) {
        let (mut events, origin) = file.open()?.into_parts();
        events.for_each(|event| stacks.add(&event)).map_err(|error| origin.failed(&error))?;
        process = process.or_else(|| events.info().and_then(|info| info.process_id));
    }
    let failed = |error| Failure::new(Exit::Failed, format_args!("{NAMES}: {error}"));
    code.names_for(process, stacks).map_err(failed)
}
