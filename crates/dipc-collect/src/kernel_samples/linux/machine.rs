//! The samples of many processes, in one recording.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use linux_proc_stat::{Status, control_groups};
use linux_sampler::{
    OffCpu, RecordingCounts, RecordingWriter, SampledProcess, Sampler, SamplerConfig, Scope, Trial,
};

use super::drain::Drain;
use super::process_filter::ProcessFilter;
use super::{FEW_STACK_BYTES, MAX_MACHINE_RATE, MAX_RATE_WITH_DEEP_STACKS, PAGES_FOR_BURSTS, describe};
use crate::kernel_samples::scope::{GroupName, SampleScope};
use crate::kernel_samples::{KernelRecording, MachineRecording, SampleError, SampleSettings};
use crate::names::SampledNames;
use crate::observer::{Note, Observer};
use crate::staged::StagedFile;

/// Maximum number of bytes of samples: the recording ends with them.
const MAX_BYTES: u64 = 4 << 30;
/// Maximum number of bytes of records that wait to be decoded.
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// Maximum time until the kernel takes no more samples.
const MAX_STOP_TIME: Duration = Duration::from_secs(2);
/// The time between two looks at the end of the samples.
const TICK: Duration = Duration::from_millis(5);

/// A sampler of many processes that writes their samples into one file.
#[derive(Debug)]
pub struct MachineSampler {
    stop: Arc<AtomicBool>,
    /// True once the kernel takes no more samples.
    is_sampled: Arc<AtomicBool>,
    description: String,
    left_out: Vec<u32>,
    thread: JoinHandle<Result<MachineRecording, SampleError>>,
}

impl MachineSampler {
    /// Opens the kernel's events of these processes and starts to sample them, into a temporary file in
    /// `folder`. Where the kernel does not permit all of them, the processes of this user are sampled, and
    /// [`left_out`](Self::left_out) has the others.
    ///
    /// # Errors
    /// If the kernel permits none of them, or the file cannot be created.
    pub fn start(
        scope: &SampleScope,
        settings: SampleSettings,
        folder: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        let opened = OpenMachine::open(scope, settings, observer)?;
        let (file, staged) = StagedFile::create(folder)
            .map_err(|error| SampleError::Create { folder: folder.to_owned(), error })?;
        let (description, left_out) = (opened.description.clone(), opened.left_out.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let is_sampled = Arc::new(AtomicBool::new(false));
        let (until, over) = (Arc::clone(&stop), Arc::clone(&is_sampled));
        let thread = thread::spawn(move || opened.record(file, staged, &until, over));
        Ok(Self { stop, is_sampled, description, left_out, thread })
    }

    /// The kind of samples and the right to take them, in words.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The processes that this user may not sample.
    pub fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// Returns true if all processes have ended, or the limit of bytes is reached.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends the sampling, and waits at most 2 s until the kernel takes no more samples: what is done in the
    /// processes afterwards is in none of them.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let deadline = Instant::now() + MAX_STOP_TIME;
        let is_over = || self.is_sampled.load(Ordering::Acquire) || self.is_over();
        while !is_over() && Instant::now() < deadline {
            thread::sleep(TICK);
        }
    }

    /// Ends the sampling, and returns the recording once all samples are written.
    ///
    /// # Errors
    /// If the kernel's events could not be read, or the samples not be written.
    pub fn finish(self) -> Result<MachineRecording, SampleError> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or(Err(SampleError::EndedEarly))
    }
}

/// A sampler of many processes, and the writer of its records.
struct OpenMachine {
    sampler: Sampler,
    recording: RecordingWriter,
    filter: Option<ProcessFilter>,
    /// True if the recording ends with its processes.
    ends: bool,
    description: String,
    left_out: Vec<u32>,
}

/// A sampler of a scope.
pub(super) struct OpenScope {
    pub(super) sampler: Sampler,
    pub(super) config: SamplerConfig,
    filter: Option<ProcessFilter>,
    left_out: Vec<u32>,
}

impl OpenMachine {
    fn open(
        scope: &SampleScope,
        settings: SampleSettings,
        observer: &mut dyn Observer,
    ) -> Result<Self, SampleError> {
        let frequency = settings.frequency.min(affordable_frequency());
        let settings = SampleSettings { frequency, ..settings };
        let mut config = SamplerConfig::new(Scope::Machine).with_frequency(frequency);
        // A busy machine reads them late, and while the processes are listed not at all.
        config = config.with_buffer_pages(PAGES_FOR_BURSTS);
        if frequency > MAX_RATE_WITH_DEEP_STACKS {
            config = config.with_stack_bytes(FEW_STACK_BYTES);
        }
        if settings.off_cpu {
            config = config.with_off_cpu(OffCpu::Stacks { every: 1 });
        }
        let OpenScope { sampler, config, filter, left_out } = open_scope(scope, &config)?;
        let access = sampler.access();
        if !access.kernel {
            observer.note(Note::UserModeOnly { off_cpu: settings.off_cpu });
        }
        let by_processor = !matches!(config.scope, Scope::Processes(_));
        let description = describe(settings, false, access, by_processor);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now_ms = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let recording = RecordingWriter::new(now_ms, Sampler::now_ns(), None, &config, &description);
        let recording = recording.and_then(|recording| recording.of_many_processes(&config));
        let recording = recording.map_err(SampleError::Record)?;
        let recording =
            recording.with_runtime_unwinder(Box::new(super::managed_code::ManagedCodes::default()));
        let ends = matches!(scope, SampleScope::Processes(_));
        let mut opened = Self { sampler, recording, filter, ends, description, left_out };
        opened.existing(&config.scope, scope).map_err(SampleError::Record)?;
        Ok(opened)
    }

    /// Lists the processes that there are.
    fn existing(&mut self, scope: &Scope, asked: &SampleScope) -> Result<(), nettrace_writer::Error> {
        let pids: Vec<i32> = match (scope, asked) {
            (Scope::Processes(pids) | Scope::ProcessesByProcessor(pids), _) => pids.clone(),
            (_, SampleScope::Group(group)) => numbers(&group.process_ids()),
            _ => numbers(&linux_proc_stat::process_ids().unwrap_or_default()),
        };
        pids.into_iter().try_for_each(|pid| self.recording.existing_process(pid))
    }

    /// Writes samples until a stop is requested, the processes end, or the limit of bytes is reached.
    fn record(
        self,
        mut file: File,
        staged: StagedFile,
        stop: &Arc<AtomicBool>,
        is_sampled: Arc<AtomicBool>,
    ) -> Result<MachineRecording, SampleError> {
        let Self { sampler, mut recording, mut filter, ends, .. } = self;
        let (reader, mut decoder) = sampler.into_parts();
        let drain = Drain::start_telling(reader, ends, MAX_QUEUED_BYTES, Arc::clone(stop), is_sampled);
        let mut bytes = 0;
        let mut write = |recording: &mut RecordingWriter| {
            bytes += recording.bytes().len() as u64;
            let written = file.write_all(recording.bytes());
            recording.clear_bytes();
            written.map(|()| bytes).map_err(SampleError::Write)
        };
        let mut is_full = false;
        let mut names = SampledNames::default();
        while let Some(batch) = drain.next() {
            let batch = batch?;
            for record in decoder.records(&batch) {
                if filter.as_mut().is_none_or(|filter| filter.takes(&record)) {
                    recording.record(&record).map_err(SampleError::Record)?;
                }
            }
            is_full = write(&mut recording)? >= MAX_BYTES;
            if is_full {
                stop.store(true, Ordering::Release);
            }
            for (pid, id, addresses) in recording.take_other_code() {
                names.add(pid.unsigned_abs(), id, &addresses);
            }
            names.read();
        }
        let processes = recording.sampled_processes();
        names.read_all();
        let has_ended = |id| !processes.iter().any(|process| process.id == id);
        let ended_named = names.write(&mut recording, has_ended).map_err(SampleError::Record)?;
        let counts = recording.finish(Sampler::now_ns()).map_err(SampleError::Record)?;
        write(&mut recording)?;
        let samples = KernelRecording { file, staged, summary: counts.into() };
        Ok(machine_recording(samples, counts, &processes, ended_named, is_full))
    }
}

fn machine_recording(
    samples: KernelRecording,
    counts: RecordingCounts,
    processes: &[SampledProcess],
    ended_named: usize,
    is_full: bool,
) -> MachineRecording {
    let without_names = processes.iter().filter(|process| process.has_other_code);
    MachineRecording {
        samples,
        processes: counts.processes,
        born: counts.born,
        ended: counts.ended,
        outside: counts.outside,
        without_names: without_names.map(|process| (process.pid.unsigned_abs(), process.id)).collect(),
        ended_named,
        is_full,
    }
}

/// The highest frequency with which all processors together stay within the limit of samples.
pub(super) fn affordable_frequency() -> u32 {
    let processors = linux_sampler::processors().map_or(1, |all| all.len().max(1) as u64);
    u32::try_from(MAX_MACHINE_RATE / processors).unwrap_or(u32::MAX).max(1)
}

fn numbers(pids: &[u32]) -> Vec<i32> {
    pids.iter().filter_map(|pid| i32::try_from(*pid).ok()).collect()
}

/// Opens the sampler of a scope; where the kernel does not permit it, that of this user's processes in it.
fn open_scope(scope: &SampleScope, config: &SamplerConfig) -> Result<OpenScope, SampleError> {
    let whole = |config: SamplerConfig, filter| {
        let sampler = Sampler::open(&config).map_err(SampleError::Open)?;
        Ok(OpenScope { sampler, config, filter, left_out: Vec::new() })
    };
    let (refused, pids) = match scope {
        SampleScope::Processes(pids) => {
            let by_processor = config.clone().with_scope(Scope::ProcessesByProcessor(numbers(pids)));
            match whole(by_processor, None) {
                Ok(opened) => return Ok(opened),
                Err(error @ SampleError::Open(linux_sampler::Error::NoProcess { .. })) => return Err(error),
                Err(error) => (error, pids.clone()),
            }
        }
        SampleScope::Machine => match whole(config.clone(), None) {
            Ok(opened) => return Ok(opened),
            Err(error) => (error, linux_proc_stat::process_ids().unwrap_or_default()),
        },
        SampleScope::Group(group) => {
            let folders = group.folders.iter().filter(|folder| folder.is_dir());
            let mut of_folder = folders.filter_map(|folder| whole(of_group(config, folder), None).ok());
            if let Some(opened) = of_folder.next() {
                return Ok(opened);
            }
            // The kernel knows no such group of its events, as in version 1 without their controller.
            match whole(config.clone(), Some(of_group_members(group.clone()))) {
                Ok(opened) => return Ok(opened),
                Err(error) => (error, group.process_ids()),
            }
        }
    };
    open_own(refused, &pids, config, matches!(scope, SampleScope::Processes(_)))
}

/// A filter for the records of a control group, where the kernel has none.
fn of_group_members(group: GroupName) -> ProcessFilter {
    ProcessFilter::new(Box::new(move |pid| control_groups(pid).ok().map(|groups| group.has(&groups))))
}

fn of_group(config: &SamplerConfig, folder: &Path) -> SamplerConfig {
    config.clone().with_scope(Scope::Cgroup(folder.to_owned()))
}

/// Opens the sampler of those processes that this user may sample, with their children unless the processes
/// were named.
pub(super) fn open_own(
    refused: SampleError,
    pids: &[u32],
    config: &SamplerConfig,
    are_named: bool,
) -> Result<OpenScope, SampleError> {
    let may = |pid: i32| Trial::of_process(pid).is_ok_and(|trial| trial.user.is_ok());
    let (own, others): (Vec<i32>, Vec<i32>) = numbers(pids).into_iter().partition(|&pid| may(pid));
    let own_pid = i32::try_from(std::process::id()).ok();
    let mut own: Vec<i32> = own.into_iter().filter(|&pid| are_named || Some(pid) != own_pid).collect();
    while !own.is_empty() {
        let config = config.clone().with_scope(Scope::Processes(own.clone())).with_children(!are_named);
        match Sampler::open(&config) {
            Ok(sampler) => {
                // Threads of the kernel, and processes that have ended, are not left out.
                let left_out = others.iter().map(|pid| pid.unsigned_abs()).filter(|pid| has_memory(*pid));
                let left_out = left_out.collect();
                return Ok(OpenScope { sampler, config, filter: None, left_out });
            }
            Err(linux_sampler::Error::NoProcess { pid }) if own.contains(&pid) => {
                own.retain(|other| *other != pid);
            }
            Err(error) => return Err(SampleError::Open(error)),
        }
    }
    // Of named processes, the first says what it needs.
    let first = numbers(pids).first().copied().filter(|_| are_named);
    let of_first = first.map(|pid| Sampler::open(&SamplerConfig::of_process(pid)).map(drop));
    Err(of_first.and_then(Result::err).map_or(refused, SampleError::Open))
}

fn has_memory(pid: u32) -> bool {
    let status = linux_proc_stat::read(&linux_proc_stat::process_folder(pid).join("status"));
    status.is_ok_and(|status| Status::new(&status).has_memory())
}
