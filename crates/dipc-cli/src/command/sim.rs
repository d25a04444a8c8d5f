//! `dipc sim`: runtimes that are not there, to test tools against.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::sync::mpsc;
use std::thread;

use dipc_sim::{Builder, Fault, Runtime, Speed};
use dipc_wire::PortKind;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::SimArgs;
use crate::exit::{Exit, Failure, Outcome};
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
    let width = Fault::LIST.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let lines: Vec<_> =
        Fault::LIST.iter().map(|(name, meaning)| format!("{name:<width$}  {meaning}\n")).collect();
    output::print(lines.concat())?;
    Ok(Exit::Done)
}

/// Starts the runtimes, and says of each that it is ready.
fn start(args: &SimArgs) -> Result<Vec<Runtime>, Failure> {
    let builder = builder(args)?;
    let pid = std::process::id();
    let key = dipc_transport::start_key(pid).map_err(|error| failed(&error))?;
    allow_many_files(args.count);
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

/// Each runtime takes a few descriptors. If the system does not allow so many, the one that gets none will say so.
fn allow_many_files(runtimes: u32) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const EACH: u64 = 8;
    const OTHERS: u64 = 64;
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(runtimes).saturating_mul(EACH).saturating_add(OTHERS);
    if limit.current.is_some_and(|current| current < wanted) {
        let current = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: limit.maximum });
    }
}

/// What ends a simulation: Ctrl-C and its relatives, or the end of standard input.
pub(crate) struct End(mpsc::Receiver<()>);

impl End {
    /// Takes note of them from now on.
    pub(crate) fn watch() -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| Failure::new(Exit::Failed, format_args!("watch for signals: {error}")))?;
        let (ended, end) = mpsc::channel();
        let by_signal = ended.clone();
        // Both threads end with the program, or when nobody is interested any more.
        thread::spawn(move || signals.forever().take_while(|_| by_signal.send(()).is_ok()).count());
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
