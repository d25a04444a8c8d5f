//! The kernel's samples of many processes in one recording, with the names of each runtime's methods and the
//! events of processes that have a session.

mod sessions;

use std::collections::HashMap;
use std::fs::File;
use std::io::Seek as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dipc_client::Target;
use dipc_collect::kernel_samples::{GroupError, KernelRecording, MachineRecording};
use dipc_collect::names::{StackAddresses, UnloadableCode};
use nettrace_writer::MergerOptions;

use crate::exit::{Exit, Failure};
use crate::inspect::merging::Merging;
use crate::inspect::recording::Recording;
use crate::inspect::rewrite::warn_of_omissions;
use crate::process::info::timeouts;
use crate::record::kernel_samples::{self, announce, save, unwritten};
use crate::record::names::{ANSWER, record_list};
use crate::render::destination::Destination;
use crate::render::messages;
use crate::render::output_file::{NameOrigin, OutputFile};
use crate::render::units::{count, counted};

/// Maximum number of runtimes that list their methods for a recording.
const MAX_NAMED: usize = 256;
/// The time for all of them.
const ALL_NAMES: Duration = Duration::from_secs(120);
/// The name of the methods' names in messages.
const NAMES: &str = "names of methods";

pub(crate) use sessions::{MAX_SESSIONS, ProcessEvents, SessionRequest, Sessions};

impl From<GroupError> for Failure {
    fn from(error: GroupError) -> Self {
        let failure = Self::new(Exit::NotReachable, format_args!("find: {error}"));
        failure.with_help(
            "--cgroup takes the id of a container, a folder below /sys/fs/cgroup, or a path as /proc/PID/cgroup shows it",
        )
    }
}

/// The names of the methods of many processes.
#[derive(Default)]
struct Names {
    /// A recording with names, and the id of its process in the recording of all.
    lists: Vec<(File, u64)>,
    /// Processes with names from their memory, by their id there.
    memory: HashMap<u64, UnloadableCode>,
    /// The number of processes without any.
    missing: usize,
}

/// Writes the samples and the events into the file `path`, or one with a similar name if that is taken and
/// the user did not choose it, with the names of methods of the processes that run.
pub(crate) fn write(
    recording: &MachineRecording,
    events: &mut [ProcessEvents],
    path: &Path,
    is_chosen: bool,
) -> Result<PathBuf, Failure> {
    let names = names_of(&recording.without_names, events);
    let summary = recording.samples.summary();
    let listed = events.iter().filter(|of| of.has_list).count();
    let (lists, missing) = (names.lists.len() + listed, names.missing);
    let memory = names.memory.len() + recording.ended_named;
    let written = if names.lists.is_empty() && names.memory.is_empty() && events.is_empty() {
        save(&recording.samples, path, is_chosen)?
    } else {
        match merge(&recording.samples, events, names, path, is_chosen) {
            Ok(path) => {
                announce(summary);
                messages::note(format_args!("Output File    : {}", path.display()));
                path
            }
            Err(failure) => {
                messages::warning(failure);
                for events in events {
                    events.keep(path);
                }
                messages::effect("the samples are written without the names of methods");
                save(&recording.samples, path, is_chosen)?
            }
        }
    };
    let MachineRecording { processes, born, ended, .. } = recording;
    messages::note(format_args!(
        "Processes      : {}, {born} of them started and {ended} ended meanwhile",
        count(*processes)
    ));
    if lists + memory + missing > 0 {
        messages::note(format_args!(
            "Names          : of {} by their runtimes, of {memory} from memory; {}",
            counted(lists as u64, "process", "processes"),
            match missing {
                0 => "none is without".to_owned(),
                _ => format!("{missing} without, or not of .NET"),
            }
        ));
    }
    Ok(written)
}

/// Warns of what a recording lacks.
pub(crate) fn warn(recording: &MachineRecording) {
    if recording.outside > 0 {
        messages::warning(format_args!(
            "{} of processes outside this container are left out: they have no number here",
            counted(recording.outside, "sample", "samples")
        ));
        messages::help("run dipc on the host, or in the pid namespace of the host");
    }
    if recording.is_full {
        messages::warning("the recording has ended early: it has as many bytes as it may have");
        messages::help("a lower --frequency takes longer to fill it");
    }
}

/// Asks runtimes for the names of their methods, or finds them in their memory: where a list could end the
/// runtime, and where there is none.
fn names_of(processes: &[(u32, u64)], events: &mut [ProcessEvents]) -> Names {
    let deadline = Instant::now() + ALL_NAMES;
    let mut names = Names::default();
    for events in events.iter_mut() {
        if let Some(code) = events.code.take() {
            names.memory.insert(events.pid.into(), code);
        }
    }
    let is_named = |id| events.iter().any(|events| events.has_list && u64::from(events.pid) == id);
    for &(pid, id) in processes.iter().take(MAX_NAMED) {
        if is_named(id) || names.memory.contains_key(&id) {
            continue;
        }
        if Instant::now() >= deadline {
            names.missing += 1;
            continue;
        }
        if let Some(code) = UnloadableCode::find(pid) {
            names.memory.insert(id, code);
            continue;
        }
        match list(pid) {
            Ok(file) => names.lists.push((file, id)),
            Err(failure) => {
                messages::detail(format_args!("process {pid}: {failure}"));
                match UnloadableCode::of_process(pid) {
                    Some(code) => drop(names.memory.insert(id, code)),
                    None => names.missing += 1,
                }
            }
        }
    }
    names.missing += processes.len().saturating_sub(MAX_NAMED);
    names
}

/// Makes the runtime of a process list its methods.
fn list(pid: u32) -> Result<File, Failure> {
    let target = Target::from_pid(pid)?.with_timeouts(timeouts(ANSWER));
    let mut file = record_list(&target)?.into_file();
    file.rewind().map_err(|error| unwritten(Path::new(NAMES), &error))?;
    Ok(file)
}

fn merge(
    samples: &KernelRecording,
    events: &[ProcessEvents],
    Names { lists, memory, .. }: Names,
    path: &Path,
    is_chosen: bool,
) -> Result<PathBuf, Failure> {
    let name = kernel_samples::NAME;
    let file = || samples.file().map_err(|error| unwritten(Path::new(name), &error));
    let mut options =
        MergerOptions::default().with_same_processes(true).with_same_clock(true).with_sampling_rate_of(0);
    let mut parts = vec![Recording::of_file(file()?, name)?];
    let mut add = |file: File, id: u64| match Recording::of_file(file, NAMES) {
        Ok(part) => {
            options = std::mem::take(&mut options).with_process_of(parts.len(), id);
            parts.push(part);
        }
        Err(failure) => messages::warning(failure),
    };
    for events in events {
        add(events.file()?, events.pid.into());
    }
    for (file, id) in lists {
        add(file, id);
    }
    if !memory.is_empty() {
        for (file, id) in from_memory(Recording::of_file(file()?, name)?, events, &memory)? {
            add(file, id);
        }
    }
    let mut merging = Merging::of(parts, options)?;
    let origin = if is_chosen { NameOrigin::User } else { NameOrigin::Chosen };
    let out = OutputFile::beside(path, origin)?;
    let mut out = Destination::File(out);
    merging.write(&mut out)?;
    warn_of_omissions(merging.merged.merger().omissions());
    match out {
        Destination::File(mut file) => {
            // Its name is known once it has one.
            file.close()?;
            Ok(file.path().to_owned())
        }
        Destination::StandardOutput => Ok(path.to_owned()),
    }
}

/// Returns the names of the methods on the stacks of these processes, with the id of each.
fn from_memory(
    samples: Recording,
    events: &[ProcessEvents],
    memory: &HashMap<u64, UnloadableCode>,
) -> Result<Vec<(File, u64)>, Failure> {
    let mut stacks: HashMap<u64, StackAddresses> = HashMap::new();
    // Events have stacks, too.
    let mut recordings = vec![(samples, None)];
    for events in events.iter().filter(|events| memory.contains_key(&events.pid.into())) {
        let recording = Recording::of_file(events.file()?, NAMES).ok();
        recordings.extend(recording.map(|recording| (recording, Some(u64::from(events.pid)))));
    }
    for (recording, of_all) in recordings {
        let (mut events, origin) = recording.into_parts();
        let read = events.for_each(|event| {
            let id = of_all.or_else(|| event.process_id());
            if let Some(id) = id.filter(|id| memory.contains_key(id)) {
                stacks.entry(id).or_default().add(&event);
            }
        });
        read.map_err(|error| origin.failed(&error))?;
    }
    let mut files = Vec::new();
    for (id, stacks) in stacks {
        let Some(code) = memory.get(&id) else { continue };
        match code.names_for(Some(id), stacks) {
            Ok(file) => files.push((file, id)),
            Err(error) => messages::warning(format_args!("{NAMES}: {error}")),
        }
    }
    Ok(files)
}
