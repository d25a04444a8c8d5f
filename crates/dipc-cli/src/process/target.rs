//! The process that a command is about.

use std::time::Duration;

use dipc_client::Target;
use dipc_transport::{Address, Endpoint, TcpReach};

use crate::args::{ReachArgs, TargetArgs};
use crate::command::ps;
use crate::exit::{Exit, Failure};
use crate::process::info::{Process, timeouts};

/// A process that the command line names.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) target: Target,
    /// The endpoint that discovery found; `None` if the command line names the socket itself.
    pub(crate) endpoint: Option<Endpoint>,
}

impl Chosen {
    pub(crate) fn new(args: &TargetArgs, timeout: Duration) -> Result<Self, Failure> {
        let (target, endpoint) = match (args.process_id, &args.name, &args.endpoint) {
            (Some(pid), ..) => found(dipc_transport::find(pid)?),
            (None, Some(name), _) => found(by_name(name, timeout)?),
            (None, None, Some(text)) => (Target::at(address(text, args.reach)?), None),
            (None, None, None) => {
                return Err(Failure::usage("one of --process-id, --name and --endpoint is needed"));
            }
        };
        Ok(Self { target: target.with_timeouts(timeouts(timeout)), endpoint })
    }
}

/// An address as the user wrote it.
pub(crate) fn address(text: &str, reach: ReachArgs) -> Result<Address, Failure> {
    let reach = if reach.any_host { TcpReach::Anywhere } else { TcpReach::Loopback };
    Address::parse(text, reach).map_err(|error| Failure::usage(error).with_help("--any-host allows it"))
}

fn found(endpoint: Endpoint) -> (Target, Option<Endpoint>) {
    (Target::from_endpoint(&endpoint), Some(endpoint))
}

/// The time limit for the names of the runtimes' entry assemblies.
const LOOKUP: Duration = Duration::from_secs(2);

/// The process of that name, or else the one with an entry assembly of that name.
fn by_name(name: &str, timeout: Duration) -> Result<Endpoint, Failure> {
    let endpoints = dipc_transport::discover().endpoints;
    let select = |is_it: &dyn Fn(&Endpoint) -> bool| -> Vec<_> {
        endpoints.iter().filter(|endpoint| is_it(endpoint)).cloned().collect()
    };
    let mut matching = select(&|endpoint| endpoint.name == name);
    if matching.is_empty() {
        let assembly = |pid| dipc_doctor::entry_assembly(pid);
        matching = select(&|endpoint| assembly(endpoint.pid).as_deref() == Some(name));
    }
    if matching.is_empty() {
        let processes = ps::ask_all(&endpoints, timeout.min(LOOKUP));
        let of_name = |process: &Process| process.entry_assembly.as_deref() == Some(name);
        let pids: Vec<_> = processes.iter().filter(|it| of_name(it)).filter_map(|it| it.pid).collect();
        matching = select(&|endpoint| pids.contains(&endpoint.pid));
    }
    match (matching.pop(), matching.len()) {
        (Some(endpoint), 0) => Ok(endpoint),
        (Some(last), _) => {
            let pids: Vec<_> =
                matching.iter().chain([&last]).map(|endpoint| endpoint.pid.to_string()).collect();
            Err(Failure::usage(format_args!(
                "find: process '{name}': there are {}: {}",
                pids.len(),
                pids.join(", ")
            ))
            .with_help("choose one with -p"))
        }
        (None, _) => Err(Failure::new(
            Exit::NotReachable,
            format_args!("find: process '{name}': there is no .NET process or entry assembly of that name"),
        )
        .with_help("dipc ps lists the processes that can be reached")),
    }
}
