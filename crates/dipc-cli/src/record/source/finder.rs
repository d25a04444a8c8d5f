//! The search for any number of sources, including later ones.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use dipc_client::{Address, PortRuntime, PortServer, Target};
use dipc_transport::Endpoint;

use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::process::candidates;
use crate::process::info::timeouts;
use crate::process::target::{self, FoundTarget, TargetSelector};
use crate::record::source::{Child, PortWatcher, Source, SourceSelector};

/// The time between two searches for processes.
const LOOK: Duration = Duration::from_secs(1);
/// The time limit for probing an address for a runtime.
const ANSWER: Duration = Duration::from_secs(1);

/// The sources that the user named.
#[derive(Debug, Clone)]
pub(crate) enum SourcesSelector {
    One(SourceSelector),
    Pids(Vec<u32>),
    /// All processes of a name, or all there are.
    All {
        name: Option<String>,
    },
    /// All runtimes that connect to a port at the address.
    Port(Address),
}

/// The search for sources: [`open`](Self::open) finds the first, [`poll`](Self::poll) later ones.
#[derive(Debug)]
pub(crate) struct SourceFinder {
    search: Search,
    timeout: Duration,
    next_look: Instant,
    /// The program that was started.
    pub(crate) child: Option<Child>,
}

/// The object of the search.
#[derive(Debug)]
enum Search {
    /// No other process.
    Nothing { _watcher: Option<PortWatcher> },
    /// The process of this name that replaces an ended one.
    Successor(String),
    /// The runtime that listens at an address after another has ended.
    Listener(Address),
    /// Processes with a name, or any, except those already found.
    All { name: Option<String>, found: BTreeSet<(u32, PathBuf)> },
    /// Runtimes that connect.
    Port { arrivals: Receiver<PortRuntime>, _watcher: PortWatcher },
}

impl SourceFinder {
    /// Finds the existing processes, or waits for the first that connects.
    ///
    /// # Errors
    /// Fails if no process is found, or if one among several pids lacks an endpoint.
    pub(crate) fn open(
        selector: &SourcesSelector,
        timeout: Duration,
        interrupts: &Interrupts,
    ) -> Result<(Self, Vec<Source>), Failure> {
        let mut child = None;
        let (search, sources) = match selector {
            SourcesSelector::One(selector) => {
                let mut source = Source::open(selector, timeout, interrupts)?;
                child = source.child.take();
                (Search::after(selector, source.port.take()), vec![source])
            }
            SourcesSelector::Pids(pids) => {
                let find = |pid: &u32| FoundTarget::find(&TargetSelector::Pid(*pid), timeout);
                let found = pids.iter().map(find).collect::<Result<Vec<_>, _>>()?;
                (Search::Nothing { _watcher: None }, found.into_iter().map(Source::from_target).collect())
            }
            SourcesSelector::All { name } => {
                let mut search = Search::All { name: name.clone(), found: BTreeSet::new() };
                let sources = search.look(timeout, Some(timeout))?;
                if sources.is_empty() {
                    return Err(nothing_found(name.as_deref()));
                }
                (search, sources)
            }
            SourcesSelector::Port(address) => {
                let mut source = Source::open(&SourceSelector::Port(address.clone()), timeout, interrupts)?;
                let (sender, arrivals) = mpsc::channel();
                let serve = |port| {
                    // The receiver is gone when the program ends.
                    PortWatcher::start(port, move |runtime| drop(sender.send(runtime)))
                };
                let search = match source.port.take().map(serve) {
                    Some(watcher) => Search::Port { arrivals, _watcher: watcher },
                    None => Search::Nothing { _watcher: None },
                };
                (search, vec![source])
            }
        };
        Ok((Self { search, timeout, next_look: Instant::now() + LOOK, child }, sources))
    }

    /// Returns the processes that have appeared since the last call. `is_idle` says that none of the earlier
    /// ones is left: only then is a successor of an ended process searched for.
    pub(crate) fn poll(&mut self, is_idle: bool) -> Result<Vec<Source>, Failure> {
        if let Search::Port { arrivals, .. } = &self.search {
            return Ok(arrivals.try_iter().map(|it| Source::from_runtime(&it, self.timeout)).collect());
        }
        let is_of_interest = is_idle || matches!(self.search, Search::All { .. });
        if !is_of_interest || Instant::now() < self.next_look {
            return Ok(Vec::new());
        }
        self.next_look = Instant::now() + LOOK;
        self.search.look(self.timeout, None)
    }

    /// Returns true if more may appear after the last process has ended.
    pub(crate) const fn may_find_more(&self) -> bool {
        !matches!(self.search, Search::Nothing { .. })
    }
}

impl Search {
    /// Returns the search for a successor of the one process that was named.
    fn after(selector: &SourceSelector, port: Option<PortServer>) -> Self {
        match selector {
            SourceSelector::Process(TargetSelector::Name(name)) => Self::Successor(name.clone()),
            SourceSelector::Process(TargetSelector::Endpoint { address, reach }) => {
                match target::parse_endpoint(address, *reach) {
                    Ok(address) => Self::Listener(address),
                    Err(_) => Self::Nothing { _watcher: None },
                }
            }
            SourceSelector::Runtime(address) => Self::Listener(address.clone()),
            // Kept to the end: no runtime may wait forever, and commands for the first one go through the
            // port.
            _ => Self::Nothing { _watcher: port.map(PortWatcher::resuming) },
        }
    }

    /// Searches once. `lookup` is the time limit for querying runtimes with names that are not otherwise
    /// visible.
    fn look(&mut self, timeout: Duration, lookup: Option<Duration>) -> Result<Vec<Source>, Failure> {
        match self {
            Self::Nothing { .. } | Self::Port { .. } => Ok(Vec::new()),
            Self::Successor(name) => match target::endpoint_of_name(name, lookup) {
                Ok(endpoint) => Ok(vec![Source::from_endpoint(&endpoint, timeout)]),
                Err(failure) if failure.exit == Exit::NotReachable => Ok(Vec::new()),
                Err(failure) => Err(failure),
            },
            Self::Listener(address) => {
                let target = Target::at(address.clone());
                let answers = target.clone().with_timeouts(timeouts(ANSWER)).answers();
                let target = target.with_timeouts(timeouts(timeout));
                Ok(answers.then(|| Source::at(target)).into_iter().collect())
            }
            Self::All { name, found } => {
                let endpoints = match name {
                    Some(name) => target::endpoints_of_name(name, lookup),
                    None => dipc_transport::discover().endpoints,
                };
                let key = |endpoint: &Endpoint| (endpoint.pid, endpoint.path.clone());
                let sources = endpoints.iter().filter(|endpoint| !found.contains(&key(endpoint)));
                let sources = sources.map(|endpoint| Source::from_endpoint(endpoint, timeout)).collect();
                *found = endpoints.iter().map(key).collect();
                Ok(sources)
            }
        }
    }
}

/// Returns the failure for `--all` without any process.
fn nothing_found(name: Option<&str>) -> Failure {
    let of_name = name.map(|name| format!(" process '{name}'")).unwrap_or_default();
    Failure::new(Exit::NotReachable, format_args!("find{of_name}: no such .NET process"))
        .with_candidates(candidates::lines(&dipc_transport::discover().endpoints))
        .with_help("dipc ps lists the processes that can be reached")
}
