//! The ways from the end of an operation to the method that awaits it: tasks, their continuations, and the
//! delegates and closures by which a library passes a result on without `async` methods of its own.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use crate::awaits::graph::{AwaitLinks, AwaitNode};
use crate::dump::Dump;
use crate::memory::address::Address;

/// Maximum number of objects of a way.
const MAX_OBJECTS: usize = 512;
/// Maximum number of references of an object.
const MAX_REFERENCES: usize = 64;
/// Maximum number of objects of a chain.
const MAX_CHAIN: usize = 64;
/// The beginnings of the names of types by which a result is passed on.
const PASSED_BY: [&str; 5] =
    ["System.Threading.Tasks.", "System.Action", "System.Func`", "System.AsyncCallback", "System.Tuple`"];
/// The parts of the names of closures, and of the objects that SqlClient has instead of closures.
const CLOSURES: [&str; 2] = ["+<>c__DisplayClass", "CallContext"];

/// The search for the methods that await operations.
pub(super) struct Completions<'r, 'm> {
    dump: &'r Dump<'m>,
    links: &'r AwaitLinks,
    /// The indexes of the objects of chains.
    index: HashMap<Address, usize>,
}

impl<'r, 'm> Completions<'r, 'm> {
    pub(super) fn new(dump: &'r Dump<'m>, links: &'r AwaitLinks) -> Self {
        let index = links.nodes.iter().enumerate().map(|(index, node)| (node.address, index));
        Self { dump, links, index: index.collect() }
    }

    /// The chain of awaits from the object that ends with an operation: the shortest way from one of the
    /// objects by which it goes on to a method, or else to anything that waits.
    pub(super) fn waiters(&self, starts: &[Address]) -> Vec<AwaitNode> {
        let mut seen: HashSet<Address> = starts.iter().copied().collect();
        let mut open: VecDeque<Address> = starts.iter().copied().collect();
        let mut other = Vec::new();
        while let Some(object) = open.pop_front() {
            let chain = self.index.get(&object).map(|index| self.links.waiters_from(*index, MAX_CHAIN));
            if let Some(chain) = chain {
                if chain.iter().any(|node| node.kind.is_method()) {
                    return chain;
                }
                if chain.len() > other.len() && chain.len() > 1 {
                    other = chain;
                }
            }
            for target in self.dump.heap().references_of(object, MAX_REFERENCES) {
                if seen.len() < MAX_OBJECTS && self.passes_on(target) && seen.insert(target) {
                    open.push_back(target);
                }
            }
        }
        other
    }

    fn passes_on(&self, object: Address) -> bool {
        let name = self.dump.heap().type_name(object);
        name.is_some_and(|name| {
            let own = name.split('[').next().unwrap_or_default();
            PASSED_BY.iter().any(|start| own.starts_with(start))
                || CLOSURES.iter().any(|part| own.contains(part))
        })
    }
}
