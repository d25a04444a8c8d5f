//! The target process of a command.

use std::time::Duration;

use dipc_client::Target;
use dipc_transport::{Address, Endpoint, TcpReach};

use crate::exit::{Exit, Failure};
use crate::process::info::{Process, timeouts};
use crate::process::{candidates, query, socket};

/// The process that the user named.
#[derive(Debug, Clone)]
pub(crate) enum TargetSelector {
    Pid(u32),
    /// The name of the process, or else of its entry assembly.
    Name(String),
    /// The address of its diagnostic socket.
    Endpoint {
        address: String,
        reach: TcpReach,
    },
}

/// A process that was found.
#[derive(Debug)]
pub(crate) struct FoundTarget {
    pub(crate) target: Target,
    /// The endpoint that discovery found; `None` if the user named the socket itself.
    pub(crate) endpoint: Option<Endpoint>,
}

impl FoundTarget {
    /// Finds the process.
    pub(crate) fn find(selector: &TargetSelector, timeout: Duration) -> Result<Self, Failure> {
        let (target, endpoint) = match selector {
            TargetSelector::Pid(pid) => found(dipc_transport::find(*pid)?),
            TargetSelector::Name(name) => found(endpoint_of_name(name, Some(timeout))?),
            TargetSelector::Endpoint { address, reach } => {
                (Target::at(parse_endpoint(address, *reach)?), None)
            }
        };
        Ok(Self { target: target.with_timeouts(timeouts(timeout)), endpoint })
    }
}

/// Parses an address that the user wrote.
pub(crate) fn parse_address(text: &str, reach: TcpReach) -> Result<Address, Failure> {
    Address::parse(text, reach).map_err(|error| Failure::usage(error).with_help("--any-host allows it"))
}

/// Parses the address of a runtime that the user wrote; a socket may also be given as its folder, or as a
/// pattern of its name.
pub(crate) fn parse_endpoint(text: &str, reach: TcpReach) -> Result<Address, Failure> {
    let address = parse_address(text, reach)?;
    match address.path() {
        Some(path) => Ok(Address::from(&*socket::resolve(path)?)),
        None => Ok(address),
    }
}

fn found(endpoint: Endpoint) -> (Target, Option<Endpoint>) {
    (Target::from_endpoint(&endpoint), Some(endpoint))
}

/// The time limit for the names of the runtimes' entry assemblies.
const LOOKUP: Duration = Duration::from_secs(2);

/// The endpoints of the processes with that name, or else of those with an entry assembly of that name.
/// `lookup` is the time limit for querying runtimes with command lines that do not show it.
pub(crate) fn endpoints_of_name(name: &str, lookup: Option<Duration>) -> Vec<Endpoint> {
    let endpoints = dipc_transport::discover().endpoints;
    let select = |is_it: &dyn Fn(&Endpoint) -> bool| -> Vec<_> {
        endpoints.iter().filter(|endpoint| is_it(endpoint)).cloned().collect()
    };
    let mut matching = select(&|endpoint| endpoint.name == name);
    if matching.is_empty() {
        let assembly = |pid| dipc_doctor::entry_assembly(pid);
        matching = select(&|endpoint| assembly(endpoint.pid).as_deref() == Some(name));
    }
    if matching.is_empty()
        && let Some(timeout) = lookup
    {
        let processes = query::ask_all(&endpoints, timeout.min(LOOKUP));
        let of_name = |process: &Process| process.entry_assembly.as_deref() == Some(name);
        let pids: Vec<_> = processes.iter().filter(|it| of_name(it)).filter_map(|it| it.pid).collect();
        matching = select(&|endpoint| pids.contains(&endpoint.pid));
    }
    matching
}

/// The only process with that name.
pub(crate) fn endpoint_of_name(name: &str, lookup: Option<Duration>) -> Result<Endpoint, Failure> {
    let mut matching = endpoints_of_name(name, lookup);
    match (matching.pop(), matching.len()) {
        (Some(endpoint), 0) => Ok(endpoint),
        (Some(last), _) => {
            let all: Vec<_> = matching.into_iter().chain([last]).collect();
            let pids: Vec<_> = all.iter().map(|endpoint| endpoint.pid.to_string()).collect();
            Err(Failure::usage(format_args!(
                "find: process '{name}': there are {}: {}",
                pids.len(),
                pids.join(", ")
            ))
            .with_candidates(candidates::lines(&all))
            .with_help("choose one with -p"))
        }
        (None, _) => Err(Failure::new(
            Exit::NotReachable,
            format_args!("find: process '{name}': no .NET process or entry assembly has that name"),
        )
        .with_candidates(candidates::lines(&dipc_transport::discover().endpoints))
        .with_help("dipc ps lists the processes that can be reached")),
    }
}
