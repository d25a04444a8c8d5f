//! Recordings that follow one another, by one sampler: each is complete, and what was read for one is not
//! read again for the next.

use nettrace::Ticks;
use nettrace_writer::{Error, EventKindId, ThreadIndex};

use super::{KernelFunctions, RecordingWriter};
use crate::config::SamplerConfig;
use crate::threads::folder;

/// The time after which the names of the kernel's functions are read again: modules may have been loaded.
const KERNEL_SYMBOLS_LIFETIME_NS: u64 = 600_000_000_000;

/// Maximum number of bytes of unwind information of an image, and of all images.
const MAX_IMAGE_UNWIND_BYTES: u64 = 6 << 20;
const MAX_UNWIND_BYTES: u64 = 16 << 20;

impl RecordingWriter {
    /// Begins a recording of many processes that is the first of several: processes that exist are described
    /// with their first samples, not in a list of all, and only what was sampled of images stays in memory.
    ///
    /// # Errors
    /// As [`of_many_processes`](Self::of_many_processes).
    pub fn of_sampled_processes(self, config: &SamplerConfig) -> Result<Self, Error> {
        let unwinder = self.unwinder.with_limits(MAX_IMAGE_UNWIND_BYTES, MAX_UNWIND_BYTES);
        Self { unwinder, ..self }.continued(config)
    }

    fn continued(self, config: &SamplerConfig) -> Result<Self, Error> {
        let mut recording = self.of_many_processes(config)?;
        if let Some(many) = &mut recording.many {
            many.is_continued = true;
        }
        Ok(recording)
    }

    /// Begins the recording that follows this one, which was [finished](Self::finish). It takes over the
    /// mappings, images and unwind information of the processes that still exist, and the names of the
    /// kernel's functions. The arguments are those of [`new`](Self::new).
    ///
    /// # Errors
    /// As [`of_many_processes`](Self::of_many_processes).
    pub fn following(
        self,
        start_unix_ms: u64,
        start_ns: u64,
        config: &SamplerConfig,
        sampling: &str,
    ) -> Result<Self, Error> {
        let Self { mut processes, mut unwinder, mut kernel_functions, .. } = self;
        // The record of an end may have been lost.
        let exists = |pid: i32| folder(pid, pid).exists();
        processes.retain(exists);
        unwinder.retain(exists);
        if start_ns.saturating_sub(kernel_functions.since_ns) >= KERNEL_SYMBOLS_LIFETIME_NS {
            kernel_functions = KernelFunctions { since_ns: start_ns, ..KernelFunctions::default() };
        }
        let next = Self::new(start_unix_ms, start_ns, None, config, sampling)?;
        Self { processes, unwinder, kernel_functions, ..next }.continued(config)
    }

    /// Returns true if a process that is not described may have existed before the recording.
    pub(super) fn is_continued(&self) -> bool {
        self.many.as_ref().is_some_and(|many| many.is_continued)
    }

    /// Adds a thread for events about a process, which has this id in the recording.
    ///
    /// # Errors
    /// As [`EventWriter::thread`](nettrace_writer::EventWriter::thread).
    pub fn process_thread(&mut self, id: u64) -> Result<ThreadIndex, Error> {
        self.writer.thread(id, 0, None)
    }

    /// Adds an event about a process, such as the name of a method, at the time of the last record.
    ///
    /// # Errors
    /// As [`EventWriter::event`](nettrace_writer::EventWriter::event).
    pub fn process_description(
        &mut self,
        thread: ThreadIndex,
        kind: EventKindId,
        payload: &[u8],
    ) -> Result<(), Error> {
        self.writer.event(kind, Ticks(self.last_ns), thread, None, &[], payload)
    }
}

#[cfg(test)]
mod tests {
    use nettrace::SliceReader;

    use super::*;
    use crate::config::Scope;
    use crate::record::{CONTEXT_USER, Record, RecordKind, Sample, SampleEvent, ThreadKey};

    fn sampled(recording: &mut RecordingWriter, pid: i32, time_ns: u64) {
        let ip = sampled as *const () as u64;
        let chain: Vec<u8> = [CONTEXT_USER, ip].iter().flat_map(|frame| frame.to_ne_bytes()).collect();
        let sample = Sample {
            event: SampleEvent::Cpu,
            ip,
            period: 1_000_000,
            chain: &chain,
            registers: None,
            stack: &[],
        };
        let thread = ThreadKey { pid, tid: pid };
        let record = Record { thread, time_ns, cpu: 0, kind: RecordKind::Sample(sample) };
        recording.record(&record).unwrap();
    }

    fn names(recording: &RecordingWriter) -> Vec<String> {
        let mut events = SliceReader::new(recording.bytes()).unwrap();
        let mut names = Vec::new();
        while let Some(event) = events.next().unwrap() {
            names.push(event.name().to_owned());
        }
        names
    }

    #[test]
    fn each_recording_describes_its_sampled_processes_and_code() {
        let config = SamplerConfig::new(Scope::Machine);
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut recording = RecordingWriter::new(0, 0, None, &config, "test").unwrap();
        recording = recording.of_sampled_processes(&config).unwrap();
        for round in 1..3 {
            sampled(&mut recording, pid, round * 10);
            let counts = recording.finish(round * 10 + 5).unwrap();
            assert_eq!((counts.cpu_samples, counts.processes, counts.born), (1, 1, 0));
            let names = names(&recording);
            for name in ["ExistingProcess", "ProcessMapping", "ProcessSymbol", "cpu"] {
                assert_eq!(names.iter().filter(|other| *other == name).count(), 1, "{round}: {names:?}");
            }
            recording = recording.following(round, round * 10 + 5, &config, "test").unwrap();
        }
        // One without samples is a recording as well.
        recording.finish(40).unwrap();
        assert!(names(&recording).is_empty());
    }

    #[test]
    fn ended_processes_are_not_taken_over() {
        let config = SamplerConfig::new(Scope::Machine);
        let recording = RecordingWriter::new(0, 0, None, &config, "test").unwrap();
        let mut recording = recording.of_sampled_processes(&config).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        // Beyond the largest number of a process.
        let ended = 5_000_000;
        for pid in [own, ended] {
            sampled(&mut recording, pid, 10);
        }
        recording.finish(20).unwrap();
        let mut recording = recording.following(0, 20, &config, "test").unwrap();
        let mut left = Vec::new();
        recording.processes.retain(|pid| {
            left.push(pid);
            true
        });
        assert_eq!(left, [own]);
    }
}
