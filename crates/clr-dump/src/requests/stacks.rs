//! The objects and methods on the stacks of threads.

use std::cell::OnceCell;

use hashbrown::HashSet;

use crate::analysis::ThreadSnapshot;
use crate::dump::Dump;
use crate::memory::address::Address;

/// Bytes of the outermost frame to search.
const OUTERMOST_FRAME: u64 = 512;

/// The stacks of threads.
pub(super) struct ThreadObjects<'d> {
    dump: &'d Dump<'d>,
    threads: Vec<OnStack<'d>>,
}

/// The stack of a thread.
pub(super) struct OnStack<'d> {
    thread: &'d ThreadSnapshot,
    objects: OnceCell<HashSet<Address>>,
}

impl<'d> ThreadObjects<'d> {
    pub(super) fn new(dump: &'d Dump<'d>, threads: &[&'d ThreadSnapshot]) -> Self {
        let threads = threads.iter().map(|thread| OnStack { thread, objects: OnceCell::new() });
        Self { dump, threads: threads.collect() }
    }

    /// The threads with a method of a type on their stack, with its beginning of a name.
    pub(super) fn with_type(&self, prefix: &str) -> impl Iterator<Item = &OnStack<'d>> {
        self.threads.iter().filter(move |thread| thread.types().any(|name| name.starts_with(prefix)))
    }

    /// The objects that a thread has on its stack; the code there need not still use them.
    pub(super) fn objects<'t>(&self, thread: &'t OnStack<'_>) -> &'t HashSet<Address> {
        thread.objects.get_or_init(|| self.ordered(thread).collect())
    }

    /// The same objects in the order of the stack, the innermost first.
    pub(super) fn ordered(&self, thread: &OnStack<'_>) -> impl Iterator<Item = Address> {
        let of = thread.thread;
        let range = || Some((of.stack_start()?, of.stack.frames.last()?.sp.saturating_add(OUTERMOST_FRAME)));
        let objects = range().map(|(start, end)| self.dump.heap().objects_between(start, end));
        objects.unwrap_or_default().into_iter()
    }

    /// The thread that has one of some objects on its stack, and a method of a type with this beginning of a
    /// name; `None` if no or several threads do.
    pub(super) fn running(&self, objects: &[Address], prefix: &str) -> Option<&OnStack<'d>> {
        let has = |thread: &&OnStack<'_>| objects.iter().any(|of| self.objects(thread).contains(of));
        let mut threads = self.with_type(prefix).filter(has);
        threads.next().filter(|_| threads.next().is_none())
    }
}

impl OnStack<'_> {
    /// The id of the thread in the system.
    pub(super) fn id(&self) -> u64 {
        self.thread.thread.os_id
    }

    /// The types of the methods on the stack, the innermost first.
    pub(super) fn types(&self) -> impl Iterator<Item = &str> {
        let methods = self.thread.frames.iter().filter_map(|frame| frame.method.as_ref()?.name.as_ref());
        methods.map(|name| &*name.type_name)
    }
}
