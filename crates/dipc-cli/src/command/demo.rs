//! `dipc demo`: the way from a process to the contents of its recording, on a machine without .NET.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use dipc_client::SessionConfig;
use dipc_sim::{Runtime, Speed, Version};
use dipc_transport::Endpoint;

use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::stat::Stat;
use crate::interrupt::Interrupts;
use crate::process::candidates::application_name;
use crate::process::target::{FoundTarget, TargetSelector};
use crate::process::{query, table};
use crate::record::recorder::{self, Limits};
use crate::record::selection::{Selection, SelectionRequest};
use crate::record::session::start_unless_interrupted;
use crate::record::sink::Sink;
use crate::render::escape::escape_controls;
use crate::render::messages;
use crate::render::output;
use crate::render::shell;
use crate::render::width;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Path of the recording [default: a temporary file]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoRuntimeArgs {
    /// Folder of the runtime's socket
    folder: PathBuf,
}

/// A recording of .NET 10: a program that throws, allocates, waits, starts tasks and emits events of its own.
const RECORDING: &[u8] = include_bytes!("demo.nettrace.xz");
/// The duration of the simulated session.
const DURATION: Duration = Duration::from_secs(2);
/// The time limit for operations that normally take a moment.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &DemoArgs) -> Outcome {
    let folder = tempfile::Builder::new()
        .prefix("dipc-demo-")
        .tempdir()
        .map_err(|error| failed("temporary folder", &error))?;
    let simulated = Simulated::start(folder.path())?;
    let pid = simulated.child.id();

    step(
        "1. A simulated runtime is running: a process that answers from a recording of .NET 10. Real runtimes are found the same way.",
        "dipc ps",
    )?;
    let all = dipc_transport::discover().endpoints;
    let (mine, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|endpoint| endpoint.pid == pid);
    output::print(table::fitted(&query::ask_all(&mine, TIMEOUT)))?;

    let path = args.output.clone().unwrap_or_else(|| folder.path().join("demo.nettrace"));
    let shown = path.display();
    let word = shell::path(&path);
    step("\n2. Its events are recorded.", format_args!("dipc trace -p {pid} --duration 2s -o {word}"))?;
    let exit = record(pid, &path)?;

    step("\n3. The recording is read back.", format_args!("dipc stat {word}"))?;
    let (stat, _) = Stat::read(&path)?;
    output::print(stat.table(width::of_output()))?;
    let whole = fs::read(&path).map_err(|error| failed(&shown, &error))? == demo_recording()?;
    if !whole && exit == Exit::Done {
        return Err(Failure::new(
            Exit::Failed,
            format_args!("demo: {shown}: differs from what the simulated runtime sent"),
        ));
    }
    drop(simulated);

    output::print(next_steps(args.output.as_deref(), others.first()))?;
    Ok(exit)
}

/// Prints the heading of a step, and the command that does the same.
fn step(heading: &str, command: impl std::fmt::Display) -> Result<(), Failure> {
    let bold = anstyle::Style::new().bold();
    output::print(format_args!("{bold}{heading}{bold:#}\n$ {command}\n"))
}

/// Records the simulated process as `dipc trace` does.
fn record(pid: u32, path: &Path) -> Outcome {
    let found = FoundTarget::find(&TargetSelector::Pid(pid), TIMEOUT)?;
    let mut sink = Sink::open(path)?;
    let interrupts = Interrupts::watch()?;
    let collect = SessionConfig::new(Selection::new(&SelectionRequest::default())?.configs());
    let session = start_unless_interrupted(&found.target, &collect, &interrupts)?;
    sink.begin()?;
    let limits = Limits::new(&found.target, None, TIMEOUT, &interrupts).with_duration(Some(DURATION));
    let recorded = recorder::record(session, &mut sink, &limits, None)?;
    messages::note(recorded.summary(&sink, 0, None));
    recorded.report(false)
}

pub(crate) fn next_steps(kept: Option<&Path>, real: Option<&Endpoint>) -> String {
    let bold = anstyle::Style::new().bold();
    let pid = real.map_or_else(|| "PID".to_owned(), |endpoint| endpoint.pid.to_string());
    let name = real.map_or_else(
        || "one of them".to_owned(),
        |it| escape_controls(&application_name(it.pid, &it.name)).into_owned(),
    );
    let kept = kept.map_or_else(
        || ("dipc demo -o demo.nettrace".to_owned(), "the same, keeping the recording".to_owned()),
        |path| (format!("dipc events {} --head 20", shell::path(path)), "the events themselves".to_owned()),
    );
    let steps = [
        kept,
        ("dipc ps".to_owned(), "the .NET processes here".to_owned()),
        (format!("dipc trace -p {pid} --duration 10s -o app.nettrace"), format!("record {name}")),
        ("dipc stat app.nettrace".to_owned(), "the contents of the recording".to_owned()),
        (
            "dipc events app.nettrace --format jsonl --head 20".to_owned(),
            "its events, for programs".to_owned(),
        ),
    ];
    // Side by side they would exceed 80 columns, and wrapped commands cannot be copied.
    let lines: Vec<_> = steps.iter().map(|(command, what)| format!("# {what}\n$ {command}\n")).collect();
    format!("\n{bold}Next steps{bold:#}\n{}", lines.concat())
}

/// The simulated process; ended when dropped.
struct Simulated {
    child: Child,
}

impl Simulated {
    /// Starts this program again as the simulated runtime: a process of its own has a pid and a `TMPDIR`, by
    /// which it is discovered like any other.
    fn start(folder: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| failed("this program", &error))?;
        let child = Command::new(program)
            .arg("demo-runtime")
            .arg(folder)
            .env("TMPDIR", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed("start the simulated runtime", &error))?;
        let mut simulated = Self { child };
        let mut line = String::new();
        let ready = simulated.child.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut line));
        if ready.is_none_or(|ready| ready.is_err()) || line.is_empty() {
            return Err(Failure::new(Exit::Failed, "demo: the simulated runtime did not start"));
        }
        Ok(simulated)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        // The process ends at the end of its input; it is killed if it takes longer than a second.
        self.child.stdin = None;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the simulated runtime: announces it, and returns when standard input ends.
pub(crate) fn run_runtime(args: &DemoRuntimeArgs) -> Outcome {
    // Ctrl-C at the terminal reaches this process too, and must not end it before the recording is complete.
    let _interrupts = Interrupts::watch()?;
    let runtime = Runtime::builder()
        .version(Version::NET10)
        .replay(demo_recording()?)
        .speed(Speed::Over(DURATION))
        .start_in(&args.folder)
        .map_err(|error| failed("simulated runtime", &error))?;
    output::print(format_args!("ready {} {}\n", runtime.pid(), runtime.endpoint_path().display()))?;
    let mut end = Vec::new();
    io::stdin().lock().read_to_end(&mut end).map_err(|error| failed("standard input", &error))?;
    Ok(Exit::Done)
}

fn demo_recording() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    lzma_rust2::XzReader::new(RECORDING, false)
        .read_to_end(&mut bytes)
        .map_err(|error| failed("unpack the recording", &error))?;
    Ok(bytes)
}

fn failed(what: impl std::fmt::Display, error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("demo: {what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_has_a_header_and_more_than_a_megabyte() {
        let bytes = demo_recording().unwrap();
        assert!(bytes.starts_with(b"Nettrace") && bytes.len() > 1_000_000);
    }
}
