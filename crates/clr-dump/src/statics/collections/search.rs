//! The search for collections: from static fields and objects on stacks through objects of the program's
//! types.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashSet;

use crate::memory::address::Address;
use crate::runtime::module::Module;
use crate::statics::Statics;
use crate::statics::collections::HeldCollection;
use crate::statics::collections::counting::{Counting, Counts};
use crate::types::field::ValueKind;

/// Maximum number of objects to read.
const MAX_OBJECTS: usize = 20_000;
/// Maximum number of fields from a static field to a collection.
const MAX_DEPTH: usize = 4;
/// Maximum number of bytes of the names of these fields together.
const MAX_PATH: usize = 1024;

/// An object that a static field leads to.
struct Reached {
    object: Address,
    holder: Arc<str>,
    path: String,
    depth: usize,
}

impl Reached {
    /// The object of a field; `None` if the way is too long.
    fn through(&self, field: &str, object: Address) -> Option<Self> {
        if self.depth >= MAX_DEPTH || self.path.len().saturating_add(field.len()) >= MAX_PATH {
            return None;
        }
        let path = match &*self.path {
            "" => field.to_owned(),
            path => [path, ".", field].concat(),
        };
        let depth = self.depth.saturating_add(1);
        Some(Self { object, holder: Arc::clone(&self.holder), path, depth })
    }
}

/// The objects of a search that are still to be read. Each comes once, and at most [`MAX_OBJECTS`] do.
#[derive(Default)]
struct Frontier {
    seen: HashSet<Address>,
    queue: VecDeque<Reached>,
}

impl Frontier {
    fn push(&mut self, reached: Reached) {
        if self.seen.len() < MAX_OBJECTS && self.seen.insert(reached.object) {
            self.queue.push_back(reached);
        }
    }
}

pub(super) struct Search<'s> {
    statics: Statics<'s>,
    is_holder: &'s dyn Fn(&Module) -> bool,
    counts: Counts<'s>,
    frontier: Frontier,
    pub(super) found: Vec<HeldCollection>,
}

impl<'s> Search<'s> {
    pub(super) fn new(statics: Statics<'s>, is_holder: &'s dyn Fn(&Module) -> bool) -> Self {
        let counts = Counts::new(statics, is_holder);
        Self { statics, is_holder, counts, frontier: Frontier::default(), found: Vec::new() }
    }

    pub(super) fn add_module(&mut self, module: &Module, types_left: &mut usize) {
        let types = self.statics.dump.types();
        let count = types.metadata(module).map_or(0, |metadata| metadata.type_count());
        for row in 1..=count {
            let Some(left) = types_left.checked_sub(1) else { return };
            *types_left = left;
            let Some(of) = types.defined_type(module.address, row) else { continue };
            for place in self.statics.fields_of(of, &[]) {
                if place.field.kind != ValueKind::REFERENCE {
                    continue;
                }
                let Some((object, _)) = self.statics.dump.heap().reference_at(place.address) else {
                    continue;
                };
                let Some(holder) = types.name(of) else { continue };
                self.follow(Reached { object, holder, path: place.field.name, depth: 0 });
            }
        }
    }

    /// Finds the collections of an object on a stack.
    pub(super) fn add_object(&mut self, object: Address) {
        let types = self.statics.dump.types();
        let Some(found) = self.statics.dump.heap().object_at(object) else { return };
        let of = found.type_handle;
        if types.module(of).is_some_and(|module| (self.is_holder)(&module))
            && let Some(holder) = types.name(of)
        {
            self.follow(Reached { object, holder, path: String::new(), depth: 0 });
        }
    }

    /// Finds the collections that an object leads to.
    fn follow(&mut self, first: Reached) {
        self.frontier.push(first);
        while let Some(reached) = self.frontier.queue.pop_front() {
            self.read(reached);
        }
    }

    /// Reads an object: a collection is found, and another object leads to those of its fields.
    fn read(&mut self, reached: Reached) {
        let heap = self.statics.dump.heap();
        let Some(of) = heap.type_of(reached.object) else { return };
        let counting = self.counts.counting(of);
        if let Counting::Fields(fields) = &*counting {
            for (name, at) in fields {
                let object = heap.reference_at(Address::new(reached.object.at(*at)));
                let next = object.and_then(|(object, _)| reached.through(name, object));
                if let Some(next) = next {
                    self.frontier.push(next);
                }
            }
        } else if let (Ok(count), Some(type_name)) =
            (self.counts.count(reached.object, &counting), self.statics.dump.types().name(of))
        {
            let Reached { holder, path, .. } = reached;
            self.found.push(HeldCollection { holder, path, type_name, count });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every object refers to a hundred others, each of which no other object refers to.
    #[test]
    fn a_hostile_graph_is_left_after_a_number_of_objects() {
        let mut frontier = Frontier::default();
        frontier.push(Reached {
            object: Address::new(8),
            holder: Arc::from("Shop"),
            path: String::new(),
            depth: 0,
        });
        let (mut read, mut most, mut next) = (0, 0, 8);
        while let Some(reached) = frontier.queue.pop_front() {
            read += 1;
            for _ in 0..100 {
                next += 8;
                reached.through("next", Address::new(next)).into_iter().for_each(|next| frontier.push(next));
            }
            most = most.max(frontier.queue.len());
        }
        assert_eq!(read, MAX_OBJECTS);
        assert!(most < MAX_OBJECTS, "{most}");
    }

    #[test]
    fn objects_come_once_although_they_refer_to_each_other() {
        let mut frontier = Frontier::default();
        let first =
            Reached { object: Address::new(8), holder: Arc::from("Shop"), path: String::new(), depth: 0 };
        frontier.push(first);
        let mut paths = Vec::new();
        while let Some(reached) = frontier.queue.pop_front() {
            for (field, object) in [("a", 8), ("b", 16), ("c", 24)] {
                let next = reached.through(field, Address::new(object));
                if let Some(next) = next {
                    frontier.push(next);
                }
            }
            paths.push(reached.path);
        }
        assert_eq!(paths, ["", "b", "c"]);
    }

    #[test]
    fn long_ways_end() {
        let first =
            || Reached { object: Address::new(8), holder: Arc::from(""), path: String::new(), depth: 0 };
        let mut reached = first();
        let mut length = 0;
        while let Some(next) = reached.through("f", Address::new(8)) {
            (reached, length) = (next, length + 1);
        }
        assert_eq!((&*reached.path, length), ("f.f.f.f", MAX_DEPTH));
        assert!(first().through(&"f".repeat(MAX_PATH), Address::new(8)).is_none());
    }
}
