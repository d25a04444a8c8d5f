//! The reader of requests: the parts of a dump in which those of all kinds are found.

use std::sync::Arc;

use crate::awaits::graph::{AwaitKind, AwaitLinks, AwaitNode};
use crate::awaits::machine::Machines;
use crate::dump::Dump;
use crate::memory::address::Address;
use crate::requests::stacks::{OnStack, ThreadObjects};
use crate::requests::work::{RequestWork, method_type};

/// The namespace of methods that wait.
const WAITS: &str = "System.Threading.";
/// Maximum number of objects that a suspended call refers to.
const MAX_VARIABLES: usize = 256;

/// The reader of requests.
pub(super) struct RequestReader<'r, 'm> {
    pub(super) dump: &'r Dump<'m>,
    pub(super) links: &'r AwaitLinks,
    pub(super) threads: &'r ThreadObjects<'r>,
    machines: Machines<'r, 'm>,
}

impl<'r, 'm> RequestReader<'r, 'm> {
    pub(super) fn new(dump: &'r Dump<'m>, links: &'r AwaitLinks, threads: &'r ThreadObjects<'r>) -> Self {
        Self { dump, links, threads, machines: Machines::new(dump) }
    }

    /// Returns the methods that have not ended and that are of types with this beginning of a name, with
    /// their indexes.
    pub(super) fn methods(&self, prefix: &str) -> impl Iterator<Item = (usize, &'r AwaitNode)> {
        let is_of = move |node: &AwaitNode| -> Option<Arc<str>> {
            let name = method_type(self.dump, node).filter(|_| node.kind.is_method())?;
            name.starts_with(prefix).then_some(name)
        };
        self.links.nodes.iter().enumerate().filter(move |(_, node)| is_of(node).is_some())
    }

    /// Returns the objects that the variables of a method refer to, with their names; the names of a
    /// suspended call's variables are not recorded.
    pub(super) fn variables(&mut self, node: &AwaitNode) -> Vec<(String, Address)> {
        match node.kind {
            AwaitKind::SuspendedCall { .. } => {
                let objects = self.dump.heap().references_of(node.address, MAX_VARIABLES);
                objects.into_iter().map(|object| (String::new(), object)).collect()
            }
            _ => self.machines.of(node).map(|machine| self.machines.references(&machine)).unwrap_or_default(),
        }
    }

    /// Adds the thread that waits for the end of a chain.
    pub(super) fn with_waiting_thread(&self, mut work: RequestWork) -> RequestWork {
        if let Some(event) = work.chain.last().filter(|last| last.kind == AwaitKind::Thread) {
            work.waiting_thread = self.threads.running(&[event.address], WAITS).map(OnStack::id);
        }
        work
    }

    /// Returns true if an object is of a type, or of one that is derived from it.
    pub(super) fn is_a(&self, object: Address, type_name: &str) -> bool {
        let types = self.dump.types();
        let bases = self.dump.heap().type_of(object).map(|of| types.type_and_bases(of)).unwrap_or_default();
        bases.iter().any(|of| types.name(*of).as_deref() == Some(type_name))
    }
}
