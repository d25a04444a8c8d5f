//! `dipc sim`: runtimes that are not there, to test tools against.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc;
use std::thread;

use dipc_sim::{Builder, Fault, Runtime, Speed};
use dipc_wire::PortKind;

use crate::args::SimArgs;
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt;
use crate::output;

pub(crate) fn run(args: &SimArgs) -> Outcome {
    if args.list_faults {
        return list_faults();
    }
    // A signal from now on ends the simulation in good order, also while it starts.
    let end = End::watch()?;
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

/// Starts the runtimes, and says of each that it is ready.
fn start(args: &SimArgs) -> Result<Vec<Runtime>, Failure> {
    let builder = builder(args)?;
    let pid = std::process::id();
    let key = dipc_transport::start_key(pid).map_err(|error| failed(&error))?;
    // Each runtime takes a few descriptors. If the system does not allow so many, the one that gets none will say so.
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

/// The first line that a simulated runtime prints.
pub(crate) fn announce(runtime: &Runtime) -> Result<(), Failure> {
    let mut out = io::stdout();
    writeln!(out, "ready {} {}", runtime.pid(), runtime.endpoint_path().display())
        .and_then(|()| out.flush())
        .map_err(|error| output::failed(&error))
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

/// What ends a simulation: Ctrl-C and its relatives, or the end of standard input.
pub(crate) struct End(mpsc::Receiver<()>);

impl End {
    /// Takes note of them from now on.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let (ended, end) = mpsc::channel();
        let by_signal = ended.clone();
        interrupt::on_each_signal(move || {
            // Nobody is interested any more once one has come.
            let _ = by_signal.send(());
        })?;
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Whatever is written there is of no interest.
            while matches!(io::stdin().lock().read(&mut buffer), Ok(1..)) {}
            ended.send(())
        });
        Ok(Self(end))
    }

    pub(crate) fn wait(&self) {
        // If nobody is left to say it, it has come.
        let _ = self.0.recv();
    }
}

fn failed(error: &dyn std::error::Error) -> Failure {
    Failure::new(Exit::Failed, format_args!("sim: {error}"))
}
