//! `dipc sim`: simulated runtimes, to test tools with.

use std::fs;
use std::io::{self, Read as _};
use std::sync::mpsc;
use std::thread;

use dipc_sim::{Builder, Fault, Runtime, Speed};
use dipc_wire::PortKind;

use crate::args::SimArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::render::output;

pub(crate) fn run(args: &SimArgs) -> Outcome {
    if args.list_faults {
        return list_faults();
    }
    // Watched before the start, so that a signal during it removes the sockets too.
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
    // Each runtime takes a few descriptors. If the limit stays too low, the first runtime above it fails with its own error.
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

/// Prints the line by which callers see that a simulated runtime is ready.
pub(crate) fn announce(runtime: &Runtime) -> Result<(), Failure> {
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
    Ok(args.fault.iter().fold(builder, |builder, fault| builder.fault(*fault)))
}

/// A watcher for the end of a simulation: a signal such as Ctrl-C, or the end of standard input.
struct EndWatcher(mpsc::Receiver<()>);

impl EndWatcher {
    fn start() -> Result<Self, Failure> {
        let (ended, end) = mpsc::channel();
        let by_signal = ended.clone();
        interrupt::on_each_signal(move || {
            // It fails once the simulation has ended.
            let _ = by_signal.send(());
        })?;
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Only the end of standard input counts.
            while matches!(io::stdin().lock().read(&mut buffer), Ok(1..)) {}
            ended.send(())
        });
        Ok(Self(end))
    }

    fn wait(&self) {
        // An error means that both senders have gone: standard input has ended.
        let _ = self.0.recv();
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("sim: {error}"))
}
