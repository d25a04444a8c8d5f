//! The processes of a recording.

use hashbrown::HashMap;

use clr_events::ClrEvent;
use clr_events::ids::event_pipe;
use nettrace::{Event, Value};

use crate::profile::Process;
use crate::profile::index::ProcessIndex;

/// Names longer than this are cut.
const MAX_LENGTH: usize = 32 << 10;

/// The names and command lines of processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// By number: the command line, or in V6 a name.
    labels: HashMap<Option<u64>, ProcessLabel>,
    /// The control group and the container of each, in recordings of many.
    groups: HashMap<Option<u64>, (Option<String>, Option<String>)>,
}

/// The provider of the control groups of processes, as dipc writes them.
pub(super) const MACHINE_PROVIDER: &str = "Dipc-Machine";
/// Its event about a process.
pub(super) const MACHINE_PROCESS: u32 = 1;
/// Maximum number of processes to keep the groups of.
const MAX_GROUPS: usize = 1 << 18;

#[derive(Debug)]
enum ProcessLabel {
    CommandLine(String),
    Name(String),
}

impl Processes {
    pub(super) fn add(&mut self, event: &Event<'_>, view: Option<&ClrEvent<'_>>) {
        let label = match view {
            Some(ClrEvent::ExistingProcess(process) | ClrEvent::ProcessCreate(process)) => {
                let name = process.name.get(..MAX_LENGTH).unwrap_or(process.name);
                let has_command_line =
                    matches!(self.labels.get(&event.process_id()), Some(ProcessLabel::CommandLine(_)));
                // A process that has ended may be described again, without a name.
                if name.is_empty() || has_command_line {
                    return;
                }
                ProcessLabel::Name(String::from_utf8_lossy(name).into_owned())
            }
            Some(_) => return,
            None if event.provider() == MACHINE_PROVIDER => return self.add_group(event),
            None => match event.fields().next() {
                Some(Ok((_, Value::String(text)))) if event.provider() == event_pipe::PROVIDER => {
                    ProcessLabel::CommandLine(text.chars().take(MAX_LENGTH).collect())
                }
                _ => return,
            },
        };
        self.labels.insert(event.process_id(), label);
    }

    /// Adds the control group and the container of a process, which its last program is in.
    fn add_group(&mut self, event: &Event<'_>) {
        if self.groups.len() >= MAX_GROUPS {
            return;
        }
        let (mut control_group, mut container) = (None, None);
        for field in event.fields() {
            let Ok((name, Value::String(text))) = field else { continue };
            let text: String = text.chars().take(MAX_LENGTH).collect();
            let text = Some(text).filter(|text| !text.is_empty());
            match name {
                "ControlGroup" => control_group = text,
                "Container" => container = text,
                _ => {}
            }
        }
        self.groups.insert(event.process_id(), (control_group, container));
    }

    /// Returns the file name of a process's program, or in V6 its name.
    pub(super) fn name(&self, process: Option<u64>) -> Option<&str> {
        Some(match self.labels.get(&process)? {
            ProcessLabel::CommandLine(line) => file_name(split(line).0),
            ProcessLabel::Name(name) => name,
        })
    }

    /// Returns the number of processes that have a label.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }

    /// The processes of these threads, and which each of them has.
    pub(super) fn finish(
        &self,
        of_threads: impl Iterator<Item = Option<u64>>,
        pointer_size: u8,
    ) -> (Vec<Process>, Vec<ProcessIndex>) {
        let mut processes = Vec::new();
        let mut numbers = HashMap::new();
        let of_thread = of_threads
            .map(|process| {
                *numbers.entry(process).or_insert_with(|| {
                    processes.push(self.describe(process, pointer_size));
                    ProcessIndex::of(processes.len() - 1)
                })
            })
            .collect();
        (processes, of_thread)
    }

    fn describe(&self, process: Option<u64>, pointer_size: u8) -> Process {
        let bits = if pointer_size == 4 { 32 } else { 64 };
        let id = process.unwrap_or(0);
        let (name, arguments) = match self.labels.get(&process) {
            Some(ProcessLabel::CommandLine(line)) => (self.name(process), split(line).1),
            Some(ProcessLabel::Name(_)) | None => (self.name(process), ""),
        };
        let name = name.map(str::to_owned);
        let shown = name.clone().unwrap_or_else(|| format!("Process({id})"));
        let frame = format!("Process{bits} {shown} ({id}) Args: {arguments}");
        let (control_group, container) = self.groups.get(&process).cloned().unwrap_or_default();
        Process { id, name, control_group, container, frame }
    }
}

/// A command line in two parts: the program, and the rest after its blank or closing quote; all of it without
/// one.
fn split(line: &str) -> (&str, &str) {
    let end = match line.strip_prefix('"') {
        Some(quoted) => quoted.find('"').map(|end| (&quoted[..end], &quoted[end + 1..])),
        None => line.split_once(' '),
    };
    end.map_or((line, line), |(program, arguments)| (program, arguments.trim_start()))
}

/// The name of a program's file, without `.dll` or `.exe`.
fn file_name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let is_program = |ending: &&str| ending.eq_ignore_ascii_case("dll") || ending.eq_ignore_ascii_case("exe");
    name.rsplit_once('.').filter(|(_, ending)| is_program(ending)).map_or(name, |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines() {
        for (line, name, arguments) in [
            ("/usr/bin/dotnet /srv/app.dll -x", "dotnet", "/srv/app.dll -x"),
            ("\"C:\\My Program\\app.EXE\" -x", "app", "-x"),
            ("/srv/app", "app", "/srv/app"),
            ("", "", ""),
            ("\"broken", "\"broken", "\"broken"),
        ] {
            let (program, rest) = split(line);
            assert_eq!((file_name(program), rest), (name, arguments), "{line}");
        }
    }
}
