//! `dipc sim`: simulated runtimes, to test tools with.

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use clap::{Args, ValueHint};
use dipc_sim::{Builder, Fault, Runtime, ScopedFault, Speed, Version};
use dipc_wire::{PortConfig, PortKind};

use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::render::output;

#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// Folder of the socket [default: as for runtimes, $TMPDIR or /tmp]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "connect")]
    pub(crate) dir: Option<PathBuf>,
    /// Connect to a port that a tool listens on, instead of listening; append ',nosuspend' if the runtime
    /// should not wait to be resumed
    #[arg(long, value_name = "ADDRESS[,nosuspend]", conflicts_with = "suspend")]
    pub(crate) connect: Option<PortConfig>,
    /// Wait at the start to be resumed
    #[arg(long)]
    pub(crate) suspend: bool,
    /// Number of runtimes, with one pid and different keys
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Recording to send to each session
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "rate")]
    pub(crate) replay: Option<PathBuf>,
    /// Speed as a multiple of the recorded one, or 'max' for no delays [default: 1]
    #[arg(long, value_name = "X|max", value_parser = parse_speed, requires = "replay")]
    pub(crate) speed: Option<Speed>,
    /// Play the recording over and over until the session is stopped
    #[arg(long, requires = "replay")]
    pub(crate) r#loop: bool,
    /// Generate this many events per second: Dipc-Simulated/Tick, and samples, for sessions that request them
    #[arg(long, value_name = "EVENTS_PER_S", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Version of .NET: 3.1, 6, 8, 9, 10, 11 or nativeaot-9
    #[arg(long, value_name = "VERSION", default_value = "10")]
    pub(crate) version: Version,
    /// Misbehave in this way on all requests, on the requests of one command, or on the nth; may be given
    /// several times
    #[arg(long, value_name = "NAME[@COMMAND][#N]")]
    pub(crate) fault: Vec<ScopedFault>,
    /// List the ways to misbehave
    #[arg(long)]
    pub(crate) list_faults: bool,
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let factor = text.parse().ok().filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    factor.map(Speed::Recorded).ok_or_else(|| "a speed is a number above 0, or 'max'".into())
}

pub(crate) fn run(args: &SimArgs) -> Outcome {
    if args.list_faults {
        return list_faults();
    }
    // Signals are watched before the start, so that one during the start also removes the sockets.
    let end = EndWatcher::start()?;
    let _runtimes = start(args)?;
    end.wait();
    Ok(Exit::Done)
}

fn list_faults() -> Outcome {
    let width = Fault::SYNTAX.iter().map(|fault| fault.example.len()).max().unwrap_or_default();
    let lines: Vec<_> =
        Fault::SYNTAX.iter().map(|fault| format!("{:<width$}  {}\n", fault.example, fault.effect)).collect();
    output::print(lines.concat())?;
    Ok(Exit::Done)
}

/// Starts the runtimes, and announces each.
fn start(args: &SimArgs) -> Result<Vec<Runtime>, Failure> {
    let builder = builder(args)?;
    let pid = std::process::id();
    let key = dipc_transport::start_key(pid).map_err(|error| failed(&error))?;
    // Each runtime takes a few descriptors. If the limit stays too low, the first runtime above it fails with
    // its own error.
    let _ = dipc_transport::raise_descriptor_limit();
    let mut runtimes = Vec::new();
    for number in 0..u64::from(args.count) {
        let builder = builder.clone().key(key.saturating_add(number));
        let runtime = match &args.connect {
            Some(port) => builder.connect(port),
            None => builder.start_in(&args.dir.clone().unwrap_or_else(std::env::temp_dir)),
        };
        let runtime = runtime.map_err(|error| failed(&error))?;
        announce(&runtime)?;
        runtimes.push(runtime);
    }
    Ok(runtimes)
}

/// Prints the line that signals that a simulated runtime is ready.
fn announce(runtime: &Runtime) -> Result<(), Failure> {
    output::print(format_args!("ready {} {}\n", runtime.pid(), runtime.endpoint_path().display()))
}

fn builder(args: &SimArgs) -> Result<Builder, Failure> {
    if args.connect.as_ref().is_some_and(|port| port.kind == PortKind::Listen) {
        return Err(Failure::new(Exit::Usage, "sim: --connect connects; without it the runtime listens"));
    }
    let mut builder = Runtime::builder().version(args.version);
    if args.suspend {
        builder = builder.suspended();
    }
    if let Some(path) = &args.replay {
        let bytes = fs::read(path)
            .map_err(|error| Failure::new(Exit::Failed, format_args!("sim: {}: {error}", path.display())))?;
        builder = builder.replay(bytes).speed(args.speed.unwrap_or(Speed::Recorded(1.0)));
    }
    if args.r#loop {
        builder = builder.looped();
    }
    if let Some(rate) = args.rate {
        builder = builder.rate(rate);
    }
    Ok(args.fault.iter().fold(builder, |builder, fault| builder.scoped_fault(*fault)))
}

/// A watcher for the end of a simulation: a signal such as Ctrl-C, or the end of standard input.
struct EndWatcher(mpsc::Receiver<()>);

impl EndWatcher {
    fn start() -> Result<Self, Failure> {
        let (ended, end) = mpsc::channel();
        let by_signal = ended.clone();
        interrupt::on_each_signal(move || {
            // Sending fails once the simulation has ended.
            let _ = by_signal.send(());
        })?;
        if input_can_end() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                // Only the end of standard input counts.
                while matches!(io::stdin().lock().read(&mut buffer), Ok(1..)) {}
                let _ = ended.send(());
            });
        }
        Ok(Self(end))
    }

    fn wait(&self) {
        // The signal watcher keeps its sender, so this never fails.
        let _ = self.0.recv();
    }
}

/// Returns true if standard input is a pipe or a file, so its end counts. A background job that reads from
/// the terminal is stopped, and a job that a script starts has `/dev/null`, which is at its end from the
/// start: `dipc sim &` has to run in both cases.
#[cfg(unix)]
fn input_can_end() -> bool {
    use rustix::fs::{FileType, fstat};
    !fstat(io::stdin()).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_char_device())
}

#[cfg(not(unix))]
fn input_can_end() -> bool {
    use std::io::IsTerminal as _;
    !io::stdin().is_terminal()
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("sim: {error}"))
}
