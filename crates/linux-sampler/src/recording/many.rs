//! The processes of a recording of many: their births and ends, their control groups, and ids that no other
//! of them has.

use std::collections::HashMap;

use linux_proc_stat::Container;
use nettrace::TypeCode;
use nettrace_writer::{Error, EventKind, EventKindId, EventWriter, FieldKind};

use super::events::number;
use super::{KnownProcess, RecordingWriter};
use crate::config::{SamplerConfig, Scope};
use crate::record::ThreadKey;

/// The provider of the events about processes that `Universal.System` does not have.
///
/// | event | payload |
/// |---|---|
/// | `Dipc-Machine/1 Process` | ParentId: the process that started it, or 0; ControlGroup: the path of its control group; Container: the id of its container, or empty |
///
/// The number is an unsigned integer of variable length, the strings are UTF-16 up to a NUL.
pub const MACHINE_PROVIDER: &str = "Dipc-Machine";

/// The distance between the ids of processes that had the same number one after the other. Linux ids do not
/// exceed 4,194,304.
const ID_STEP: u64 = 10_000_000;

/// Maximum number of addresses in code outside native images to keep of a process.
const MAX_OTHER_CODE: usize = 1 << 16;

/// Maximum number of UTF-16 code units of a text.
const MAX_TEXT: usize = 4096;

/// Returns the number of the process with this id in a recording of many.
///
/// ```
/// assert_eq!((linux_sampler::pid_of_id(4711), linux_sampler::pid_of_id(20_004_711)), (4711, 4711));
/// ```
pub fn pid_of_id(id: u64) -> u32 {
    u32::try_from(id % ID_STEP).unwrap_or_default()
}

/// A process of a recording of many that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SampledProcess {
    /// The process.
    pub pid: i32,
    /// Its id in the recording.
    pub id: u64,
    /// Its samples and stacks of waits.
    pub samples: u64,
    /// True if code outside native images was sampled, such as that of a JIT compiler: its names are not in
    /// the recording.
    pub has_other_code: bool,
}

/// The state of a recording of many processes.
#[derive(Debug)]
pub(super) struct ManyProcesses {
    kind: EventKindId,
    /// True if processes that are started are in the scope.
    has_births: bool,
    /// True if the stacks of threads that wait already are read: of all threads of a machine that takes so
    /// long that records would be lost.
    pub(super) has_existing_stacks: bool,
    /// True if existing processes are described with their first samples.
    pub(super) is_continued: bool,
    /// The number of described processes of each number that have ended.
    reused: HashMap<i32, u64>,
}

impl ManyProcesses {
    fn define(writer: &mut EventWriter, config: &SamplerConfig) -> Result<Self, Error> {
        let text = FieldKind::Scalar(TypeCode::STRING16);
        let fields =
            [("ParentId", FieldKind::Scalar(TypeCode::VARUINT)), ("ControlGroup", text), ("Container", text)];
        let kind = writer.define(&EventKind::new(MACHINE_PROVIDER, 1, "Process", &fields))?;
        let has_births = config.children || matches!(config.scope, Scope::Machine | Scope::Cgroup(_));
        let has_existing_stacks = config.scope != Scope::Machine;
        Ok(Self { kind, has_births, has_existing_stacks, is_continued: false, reused: HashMap::new() })
    }

    /// The id of a process in the recording: its number, or another if that was a process's before.
    pub(super) fn id(&self, pid: i32) -> u64 {
        let reused = self.reused.get(&pid).copied().unwrap_or(0);
        u64::from(pid.unsigned_abs()).saturating_add(reused.saturating_mul(ID_STEP))
    }
}

impl RecordingWriter {
    /// Makes it a recording of many processes. They have the ids of this process's pid namespace, and a
    /// number that is used again becomes another id. Each is described with its control group, and only the
    /// mappings with sampled code are listed. Processes that are started or end meanwhile are in it even
    /// without samples, if they are in the scope.
    ///
    /// # Errors
    /// As [`EventWriter::define`].
    pub fn of_many_processes(mut self, config: &SamplerConfig) -> Result<Self, Error> {
        self.many = Some(ManyProcesses::define(&mut self.writer, config)?);
        Ok(self)
    }

    /// The processes of a recording of many that have not ended.
    pub fn sampled_processes(&self) -> Vec<SampledProcess> {
        let running = self.known.iter().filter(|(_, known)| self.many.is_some() && !known.has_ended);
        let mut processes: Vec<_> = running
            .map(|(&pid, known)| {
                let KnownProcess { own_id: id, samples, ref other_code, .. } = *known;
                SampledProcess { pid, id, samples, has_other_code: !other_code.is_empty() }
            })
            .collect();
        processes.sort_by_key(|process| (std::cmp::Reverse(process.samples), process.pid));
        processes
    }

    /// Takes the sampled addresses in code outside native images that are new since the last call, with each
    /// process and its id in the recording. Return addresses are one less, which is in the calling code.
    pub fn take_other_code(&mut self) -> Vec<(i32, u64, Vec<u64>)> {
        let new = self.known.iter_mut().filter(|(_, known)| !known.new_other_code.is_empty());
        new.map(|(&pid, known)| (pid, known.own_id, std::mem::take(&mut known.new_other_code))).collect()
    }

    /// Describes a process that another has started, with the name and the group of that one.
    pub(super) fn born(&mut self, pid: i32, parent: i32, time: u64) -> Result<(), Error> {
        if !self.many.as_ref().is_some_and(|many| many.has_births) {
            return Ok(());
        }
        self.counts.born = self.counts.born.saturating_add(1);
        let name = self.known.get(&parent).map(|known| known.name.clone());
        self.describe(pid, time, false, name.as_deref())?;
        self.group(pid, Some(parent), time)
    }

    /// Gives a process the name of the program that it has become, without its mappings.
    pub(super) fn became(&mut self, pid: i32, name: &[u8], time: u64) -> Result<(), Error> {
        self.symbols(pid)?;
        let Some(known) = self.known.get_mut(&pid) else { return Ok(()) };
        known.mappings.clear();
        known.frames.clear();
        known.named.clear();
        known.other_code.clear();
        known.new_other_code.clear();
        known.name = name.to_vec();
        self.process_event(pid, time, self.kinds.created)?;
        self.group(pid, None, time)
    }

    /// Ends a process that was described.
    pub(super) fn ended_one(&mut self, pid: i32, time: u64) -> Result<(), Error> {
        self.symbols(pid)?;
        if self.known.get(&pid).is_none_or(|known| known.has_ended) {
            return Ok(());
        }
        self.system_event(pid, time, self.kinds.ended, &[])?;
        self.counts.ended = self.counts.ended.saturating_add(1);
        if let Some(known) = self.known.get_mut(&pid) {
            known.has_ended = true;
        }
        if let Some(many) = &mut self.many {
            let reused = many.reused.entry(pid).or_default();
            *reused = reused.saturating_add(1);
        }
        Ok(())
    }

    /// Writes the control group and the container of a process. One that has ended already has those of the
    /// process that started it.
    pub(super) fn group(&mut self, pid: i32, parent: Option<i32>, time: u64) -> Result<(), Error> {
        let Some(kind) = self.many.as_ref().map(|many| many.kind) else { return Ok(()) };
        let container = Container::of_process(pid.unsigned_abs()).ok();
        let of_known = || Some(self.known.get(&parent.unwrap_or(pid))?.container.clone());
        let container = container.or_else(of_known).unwrap_or_default();
        let parent = parent.and_then(|parent| self.known.get(&parent)).map(|known| known.own_id);
        let Some(known) = self.known.get_mut(&pid) else { return Ok(()) };
        if let Some(parent) = parent {
            known.parent = parent;
        } else if known.container == container {
            // Nothing is known, or the program has become another in the same group.
            return Ok(());
        }
        let mut payload = Vec::new();
        number(&mut payload, known.parent);
        text(&mut payload, &container.group);
        text(&mut payload, container.id.as_deref().unwrap_or_default());
        known.container = container;
        self.system_event(pid, time, kind, &payload)
    }

    /// Lists the mappings with the code of a stack.
    pub(super) fn mappings_of(&mut self, pid: i32, time: u64, stack: &[u64]) -> Result<(), Error> {
        if self.many.is_none() {
            return Ok(());
        }
        for (depth, frame) in stack.iter().enumerate() {
            let inside = if depth == 0 { *frame } else { frame.wrapping_sub(1) };
            let Some(mapping) = self.processes.of(pid).at(inside) else { continue };
            let Some(known) = self.known.get_mut(&pid) else { return Ok(()) };
            if !known.other_code.contains(&inside) && known.other_code.len() < MAX_OTHER_CODE {
                let own = mapping.image(pid).and_then(|image| mapping.address_in(image, inside));
                if own.is_none() && !mapping.name.starts_with('[') {
                    known.other_code.insert(inside);
                    known.new_other_code.push(inside);
                }
            }
            if known.mappings.get(&mapping.start).is_none_or(|known| known.mapping != *mapping) {
                let mapping = mapping.clone();
                self.mapping(pid, time, mapping)?;
            }
        }
        Ok(())
    }

    /// Maps the kernel into a process once frames of it are there.
    pub(super) fn kernel_mapping_of(&mut self, pid: i32, time: u64, kernel: &[u64]) -> Result<(), Error> {
        let is_due = self.known.get(&pid).is_some_and(|known| !known.has_kernel_mapping);
        if is_due && !kernel.is_empty() { self.kernel_mapping(pid, time) } else { Ok(()) }
    }

    /// Counts a sample of a process without a number here, unless it is of an idle processor: these have no
    /// frames of a program.
    pub(super) fn outside(&mut self, thread: ThreadKey, mut user_frames: impl Iterator<Item = u64>) {
        if thread.pid <= 0 && user_frames.next().is_some() {
            self.counts.outside = self.counts.outside.saturating_add(1);
        }
    }
}

/// Appends a text up to a NUL.
fn text(out: &mut Vec<u8>, text: &str) {
    let units = text.encode_utf16().filter(|unit| *unit != 0).take(MAX_TEXT).chain([0]);
    out.extend(units.flat_map(u16::to_le_bytes));
}

#[cfg(test)]
mod tests {
    use nettrace::{SliceReader, Value};

    use super::*;
    use crate::record::{Record, RecordKind};

    fn record(thread: (i32, i32), time_ns: u64, kind: RecordKind<'_>) -> Record<'_> {
        Record { thread: ThreadKey { pid: thread.0, tid: thread.1 }, time_ns, cpu: 0, kind }
    }

    #[test]
    fn processes_are_born_become_others_and_end() {
        let config = SamplerConfig::new(Scope::Machine);
        let recording = RecordingWriter::new(0, 0, None, &config, "test").unwrap();
        let mut recording = recording.of_many_processes(&config).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        recording.existing_process(own).unwrap();
        // Beyond the largest number of a process.
        let child = 5_000_000;
        for round in [10, 20] {
            let thread = ThreadKey { pid: child, tid: child };
            let parent = ThreadKey { pid: own, tid: own };
            let started = RecordKind::Started { thread, parent };
            recording.record(&record((own, own), round, started)).unwrap();
            let exec = RecordKind::Name { name: b"tool", exec: true };
            recording.record(&record((child, child), round + 1, exec)).unwrap();
            let ended = RecordKind::Ended { thread };
            recording.record(&record((child, child), round + 2, ended)).unwrap();
        }
        let counts = recording.finish(100).unwrap();
        assert_eq!((counts.processes, counts.born, counts.ended), (3, 2, 2));
        let mut events = SliceReader::new(recording.bytes()).unwrap();
        let mut seen = Vec::new();
        while let Some(event) = events.next().unwrap() {
            let id = event.process_id().unwrap();
            if id != u64::from(own.unsigned_abs()) {
                seen.push((event.time().0, id, event.name().to_owned()));
            }
            if event.provider() == MACHINE_PROVIDER && event.time().0 == 10 {
                let (name, value) = event.fields().next().unwrap().unwrap();
                assert_eq!(name, "ParentId");
                assert!(matches!(value, Value::U64(parent) if parent == u64::from(own.unsigned_abs())));
            }
        }
        let of = |id: u64, time: u64| {
            let names = [(0, "ProcessCreate"), (0, "Process"), (1, "ProcessCreate"), (2, "ProcessExit")];
            names.map(|(after, name)| (time + after, id, name.to_owned()))
        };
        assert_eq!(seen, [of(5_000_000, 10), of(15_000_000, 20)].concat());
    }
}
