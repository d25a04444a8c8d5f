//! `dipc ports`: listens on a diagnostic port, and shows the runtimes that connect and exit.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint};
use dipc_client::{Deadline, PortEvent, PortRuntime, PortServer};
use jiff::Timestamp;
use serde::Serialize;

use crate::args::target::ReachArgs;
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::process::info::timeouts;
use crate::process::target;
use crate::render::messages;
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct PortsArgs {
    /// Address to listen on: the path of a socket to create, or 127.0.0.1:PORT
    #[arg(value_name = "ADDRESS", value_hint = ValueHint::FilePath)]
    pub(crate) address: String,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Resume each runtime as it arrives
    #[arg(long)]
    pub(crate) resume: bool,
    /// Format of the arrivals
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PortsFormat,
    /// Time limit for resuming a runtime
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    pub(crate) timeout: Duration,
}

/// The format of the events at a port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PortsFormat {
    /// For people, one line each
    #[default]
    Table,
    /// One object per line
    Jsonl,
}

/// The number of runtimes resumed at once. One that does not answer holds up a few others at most. With the
/// threads of the port, the signals and the program, there are seven threads.
const RESUMERS: usize = 4;
/// The longest wait between checks for the other reasons to end.
const TICK: Duration = Duration::from_millis(50);

pub(crate) fn run(args: &PortsArgs) -> Outcome {
    let interrupts = Interrupts::watch()?;
    let port = PortServer::bind(target::parse_address(&args.address, args.reach.tcp())?)?;
    messages::note(format_args!(
        "Listening at {0}; start programs with DOTNET_DiagnosticPorts={0}",
        port.address()
    ));
    let (done, resumed) = mpsc::channel();
    let resumers = args.resume.then(|| Resumers::start(args.timeout, &done));
    drop(done);
    while interrupts.count() == 0 {
        match port.next(Deadline::after(TICK)) {
            Ok(PortEvent::Connected(runtime)) => {
                show(args.format, "connected", &runtime)?;
                if let Some(resumers) = &resumers {
                    resumers.resume(runtime);
                }
            }
            Ok(PortEvent::Exited(runtime)) => show(args.format, "gone", &runtime)?,
            Ok(PortEvent::Error(error)) => messages::warning(error),
            Ok(_) => {}
            Err(error) if error.is_deadline() => {}
            Err(error) => return Err(error.into()),
        }
        for runtime in resumed.try_iter() {
            show(args.format, "resumed", &runtime)?;
        }
    }
    Ok(Exit::Done)
}

/// Threads that resume runtimes, so that one that does not answer does not hold up the port.
struct Resumers {
    queue: Sender<PortRuntime>,
}

impl Resumers {
    fn start(timeout: Duration, done: &Sender<PortRuntime>) -> Self {
        let (queue, waiting) = mpsc::channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..RESUMERS {
            let (waiting, done) = (Arc::clone(&waiting), done.clone());
            thread::spawn(move || resume_queued(&waiting, &done, timeout));
        }
        Self { queue }
    }

    fn resume(&self, runtime: PortRuntime) {
        // Sending cannot fail: the threads live as long as the queue.
        let _ = self.queue.send(runtime);
    }
}

/// Resumes the runtimes of the queue until it is closed.
fn resume_queued(waiting: &Mutex<Receiver<PortRuntime>>, done: &Sender<PortRuntime>, timeout: Duration) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(runtime) = next else { return };
        match runtime.target().with_timeouts(timeouts(timeout)).resume() {
            // Sending fails only when the program is ending.
            Ok(()) => drop(done.send(runtime)),
            Err(error) => messages::warning(error),
        }
    }
}

/// An event at the port, as it is printed.
#[derive(Serialize)]
struct Line<'e> {
    event: &'e str,
    time: String,
    cookie: String,
    pid: Option<u32>,
    namespace_pid: u64,
    reconnects: u64,
}

fn show(format: PortsFormat, event: &str, runtime: &PortRuntime) -> Result<(), Failure> {
    let now = Timestamp::now();
    let line = Line {
        event,
        time: now.to_string(),
        cookie: runtime.cookie().to_string(),
        pid: runtime.pid(),
        namespace_pid: runtime.namespace_pid(),
        reconnects: runtime.reconnects(),
    };
    let text = match format {
        PortsFormat::Jsonl => serde_json::to_string(&line)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("write: standard output: {error}")))?,
        PortsFormat::Table => {
            let pid = line.pid.map_or_else(|| line.namespace_pid.to_string(), |pid| pid.to_string());
            format!("{now:.3}  {:<9}  {pid:>7}  {}", line.event, line.cookie)
        }
    };
    output::print(format_args!("{text}\n"))
}
