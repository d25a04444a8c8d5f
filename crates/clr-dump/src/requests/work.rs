//! The work on a request: a thread, or a chain of awaits.

use std::sync::Arc;

use crate::awaits::graph::{AwaitKind, AwaitLinks, AwaitNode};
use crate::awaits::machine::RUNNING;
use crate::dump::Dump;

/// Maximum number of objects of a chain.
const MAX_CHAIN: usize = 64;

/// The work on a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestWork {
    /// The id of the thread that runs it; `None` if it awaits something, or the thread is unknown.
    pub thread: Option<u64>,
    /// The id of a thread that does nothing but wait for the end of the chain, as by `Task.Wait`; `None` if
    /// none does, or unknown.
    pub waiting_thread: Option<u64>,
    /// The objects that it awaits, the innermost first: each object waits for its predecessor. Of several
    /// that are awaited at once, the first is followed.
    pub chain: Vec<AwaitNode>,
    /// True if the innermost method of the chain runs, or waits for a thread of the pool.
    pub is_running: bool,
}

impl RequestWork {
    /// Follows the awaits of a method from the method inwards.
    pub(super) fn of(links: &AwaitLinks, method: usize) -> Self {
        let mut indexes = vec![method];
        let next = |of: usize| links.awaited.get(of)?.first().copied();
        let mut at = next(method);
        while let Some(of) = at.filter(|of| indexes.len() < MAX_CHAIN && !indexes.contains(of)) {
            indexes.push(of);
            at = next(of);
        }
        let chain = indexes.iter().rev().filter_map(|index| links.nodes.get(*index).copied());
        Self::of_chain(chain.collect())
    }

    /// Adds the methods that wait for the outermost one, as long as one waits for it.
    pub(super) fn with_waiters(mut self, links: &AwaitLinks, outermost: usize) -> Self {
        let room = MAX_CHAIN.saturating_sub(self.chain.len()).saturating_add(1);
        self.chain.extend(links.waiters_from(outermost, room).into_iter().skip(1));
        self
    }

    pub(super) fn of_chain(chain: Vec<AwaitNode>) -> Self {
        let is_running = matches!(
            chain.first().map(|node| node.kind),
            // The task's own methods run: the runtime has taken the suspended calls from it.
            Some(
                AwaitKind::Method { state: Some(RUNNING), .. }
                    | AwaitKind::Task { action: None, is_running: true, .. }
            )
        );
        Self { chain, is_running, ..Self::default() }
    }

    /// The names of the types of the chain's methods and objects, the innermost first.
    pub(super) fn types(&self, dump: &Dump<'_>) -> Vec<Arc<str>> {
        self.chain.iter().filter_map(|node| method_type(dump, node)).collect()
    }
}

/// Returns the name of a method's type, or of an object's. That of a suspended call, which lacks a state
/// machine, is the beginning of the name that the compiler gives the type of one.
pub(super) fn method_type(dump: &Dump<'_>, node: &AwaitNode) -> Option<Arc<str>> {
    match node.kind {
        AwaitKind::Method { state_machine: Some(machine), .. } => dump.types().name(machine),
        AwaitKind::SuspendedCall { .. } => {
            let name = dump.awaits().suspended_method(node)?.name?;
            Some(format!("{}+<{}>d__", name.type_name, name.name).into())
        }
        _ => dump.types().name(node.type_handle),
    }
}
