//! The facts of a source that views share. Those of a core dump are read once, and those of a process for
//! each view: it changes.

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clr_dump::Runtime;

use crate::exit::Failure;
use crate::inspect::core_dump::Analysis;
use crate::inspect::core_source::Source;
use crate::inspect::heap::Heap;

/// The threads and the heap of a source.
pub(crate) struct CoreReads<'s> {
    pub(crate) source: &'s Source,
    runtime: &'s OnceCell<Runtime>,
    symbol_path: &'s [PathBuf],
    analysis: RefCell<Option<Rc<Analysis<'s>>>>,
    heap: RefCell<Option<Rc<Heap>>>,
}

impl<'s> CoreReads<'s> {
    /// The reads of a source; `runtime` is filled when it is needed.
    pub(crate) const fn new(
        source: &'s Source,
        runtime: &'s OnceCell<Runtime>,
        symbol_path: &'s [PathBuf],
    ) -> Self {
        Self { source, runtime, symbol_path, analysis: RefCell::new(None), heap: RefCell::new(None) }
    }

    /// The runtime.
    pub(crate) fn runtime(&self) -> Result<&'s Runtime, Failure> {
        if let Some(runtime) = self.runtime.get() {
            return Ok(runtime);
        }
        let found = self.source.runtime()?;
        Ok(self.runtime.get_or_init(|| found))
    }

    /// The threads with their stacks.
    pub(crate) fn analysis(&self) -> Result<Rc<Analysis<'s>>, Failure> {
        let read = || Ok(Rc::new(Analysis::new(self.source, self.runtime()?, self.symbol_path)?));
        self.kept(&self.analysis, read)
    }

    /// The heap. A process is stopped meanwhile, for `stop` at most.
    pub(crate) fn heap(&self, stop: Option<Duration>) -> Result<Rc<Heap>, Failure> {
        self.kept(&self.heap, || Ok(Rc::new(Heap::of_memory(self.source, stop)?)))
    }

    /// Forgets all that was read, because a part of it was interrupted.
    pub(crate) fn forget(&self) {
        self.analysis.take();
        self.heap.take();
    }

    fn kept<T>(
        &self,
        place: &RefCell<Option<Rc<T>>>,
        read: impl FnOnce() -> Result<Rc<T>, Failure>,
    ) -> Result<Rc<T>, Failure> {
        if let Some(kept) = &*place.borrow() {
            return Ok(Rc::clone(kept));
        }
        let read = read()?;
        if self.source.core().is_some() {
            place.replace(Some(Rc::clone(&read)));
        }
        Ok(read)
    }
}
