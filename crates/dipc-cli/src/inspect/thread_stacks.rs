//! The stacks of threads in a recording.

use std::path::Path;

use dipc_collect::stacks::{StackOptions, ThreadStacks};
use nettrace_export::Metric;
use nettrace_export::report::{Contention, ContentionReport};

use crate::exit::{Exit, Failure};
use crate::inspect::profile::{self, ProfileOptions, ProfileRequest};
use crate::inspect::recording::Recording;

/// Reads the first samples of each thread, `most` at most, from a recording.
pub(crate) fn read(file: &Path, options: StackOptions, most: u64) -> Result<(ThreadStacks, Exit), Failure> {
    let request = ProfileRequest { metric: Some(Metric::Wall), tracks: true, kinds: true, idle_stacks: true };
    let profile_options = ProfileOptions {
        names: options.names,
        grouping: options.grouping,
        idle: options.keeps_types,
        charges_gc_pauses: true,
        ..ProfileOptions::default()
    };
    let read = profile::read(file, &profile_options, request)?;
    let stacks = ThreadStacks::of_profile(read.profile, read.unverified, locks(file)?, options, most);
    Ok((stacks, read.exit))
}

/// Reads the lock waits of a recording in a second pass, which only files allow.
fn locks(file: &Path) -> Result<ContentionReport, Failure> {
    let mut contention = Contention::default();
    if file.is_file() {
        let (events, origin) = Recording::open(file)?.into_parts();
        nettrace_export::report::read_kinds(events, Contention::needs, |event| contention.add(event))
            .map_err(|error| origin.failed(&error))?;
    }
    Ok(contention.finish())
}
