//! Tasks: their creators, and the threads that run them.

use uuid::Uuid;

use crate::bounded_map::BoundedMap;
use crate::causes::CauseId;
use crate::step::{Step, WorkId};

/// Tasks that have been created and have not run.
///
/// ```
/// use clr_activity::{CauseId, Step, Tasks, WorkId, Worker};
/// use nettrace::Uuid;
///
/// let (mut tasks, task) = (Tasks::default(), WorkId::Task(7));
/// let (mut creator, mut runner) = (Worker::default(), Worker::default());
/// creator.request = Some(Uuid::from_u128(1));
/// tasks.add(None, Step::Create(task), &mut creator, |_| CauseId::NONE);
/// // Another thread runs the task, for the same request.
/// tasks.add(None, Step::Start(task), &mut runner, |_| CauseId::NONE);
/// assert_eq!(runner.request, creator.request);
/// ```
#[derive(Debug, Default)]
pub struct Tasks {
    waiting: BoundedMap<(Option<u64>, WorkId), Created>,
    /// Asynchronous operations that have begun and not ended, with the cause and the request of each.
    operations: BoundedMap<(Option<u64>, u32), Created>,
    were_met: bool,
    had_operations: bool,
}

#[derive(Debug, Clone, Copy)]
struct Created {
    cause: CauseId,
    request: Option<Uuid>,
}

/// The work of a thread.
#[derive(Debug, Default)]
pub struct Worker {
    /// The cause of its work.
    pub cause: CauseId,
    /// The activity that it works for.
    pub request: Option<Uuid>,
    /// Work that has begun and not ended, innermost last.
    open: Vec<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// `None` between [`Enter`](Step::Enter) and [`Leave`](Step::Leave).
    key: Option<WorkId>,
    /// The thread's previous cause and request.
    before: (CauseId, Option<Uuid>),
}

/// Maximum number of nested pieces of work of a thread.
const MAX_DEPTH: usize = 256;

impl Tasks {
    /// Adds a step of a worker; `cause` is the cause of the work that it creates.
    pub fn add(
        &mut self,
        process: Option<u64>,
        step: Step,
        worker: &mut Worker,
        cause: impl FnOnce(&Worker) -> CauseId,
    ) {
        match step {
            Step::Create(key) => self.create((process, key), cause(worker), worker.request),
            Step::Start(key) => self.start((process, key), worker),
            Step::Dequeue(key) => {
                worker.rest();
                self.start((process, key), worker);
            }
            Step::Stop(key) => worker.stop(Some(key)),
            Step::Resume(key) => self.resume((process, key), worker),
            Step::OperationStart(id) => {
                self.had_operations = true;
                let created = Created { cause: cause(worker), request: worker.request };
                self.operations.insert((process, id), created);
            }
            Step::EnterOperation(id) => {
                worker.enter(None);
                if let Some(begun) = self.operations.get(&(process, id)) {
                    worker.request = begun.request;
                    // The cause is set if operations are followed. Otherwise the cause that resumed the
                    // thread is the same.
                    if begun.cause != CauseId::NONE {
                        worker.cause = begun.cause;
                    }
                }
            }
            Step::OperationStop(id) => _ = self.operations.remove(&(process, id)),
            Step::Enter => worker.enter(None),
            Step::Leave => worker.stop(None),
            Step::Rest => worker.rest(),
            Step::RequestStart | Step::RequestStop | Step::Nothing => {}
        }
    }

    fn create(&mut self, key: (Option<u64>, WorkId), cause: CauseId, request: Option<Uuid>) {
        self.were_met = true;
        self.waiting.insert(key, Created { cause, request });
    }

    /// The worker begins created work; the creator is unknown if the work was created before the recording
    /// began.
    fn start(&mut self, key: (Option<u64>, WorkId), worker: &mut Worker) {
        let created = self.waiting.remove(&key);
        worker.enter(Some(key.1));
        worker.cause = created.map_or(CauseId::NONE, |created| created.cause);
        worker.request = created.and_then(|created| created.request);
    }

    /// The worker continues after a wait, within the work that it has begun.
    fn resume(&mut self, key: (Option<u64>, WorkId), worker: &mut Worker) {
        if let Some(created) = self.waiting.remove(&key) {
            worker.cause = created.cause;
            worker.request = created.request;
        }
    }

    /// Returns true if any asynchronous operation was seen to begin.
    pub const fn had_operations(&self) -> bool {
        self.had_operations
    }

    /// Returns true if any task creation was seen.
    pub const fn were_met(&self) -> bool {
        self.were_met
    }
}

impl Worker {
    fn enter(&mut self, key: Option<WorkId>) {
        if self.open.len() >= MAX_DEPTH {
            self.open.remove(0);
        }
        self.open.push(Open { key, before: (self.cause, self.request) });
    }

    /// Ends the innermost work with that key, and the work begun within it.
    fn stop(&mut self, key: Option<WorkId>) {
        if let Some(at) = self.open.iter().rposition(|open| open.key == key)
            && let Some(open) = self.open.drain(at..).next()
        {
            (self.cause, self.request) = open.before;
        }
    }

    /// Ends all work: the worker is idle.
    fn rest(&mut self) {
        self.open.clear();
        (self.cause, self.request) = (CauseId::NONE, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_inherits_the_cause_of_its_creation() {
        let id = Uuid::from_u128;
        let mut tasks = Tasks::default();
        let (mut one, mut other) = (Worker::default(), Worker::default());
        one.request = Some(id(1));
        tasks.create((None, WorkId::Task(5)), CauseId::NONE, one.request);
        tasks.create((None, WorkId::Wait(5)), CauseId::NONE, Some(id(2)));
        tasks.start((None, WorkId::Task(5)), &mut other);
        assert_eq!(other.request, Some(id(1)));
        other.enter(None);
        tasks.resume((None, WorkId::Wait(5)), &mut other);
        assert_eq!(other.request, Some(id(2)));
        // A wait can be resumed only once.
        tasks.resume((None, WorkId::Wait(5)), &mut one);
        assert_eq!(one.request, Some(id(1)));
        other.stop(None);
        assert_eq!(other.request, Some(id(1)));
        // Another process's task.
        tasks.start((Some(1), WorkId::Task(5)), &mut other);
        assert_eq!(other.request, None);
        other.stop(Some(WorkId::Task(6)));
        assert_eq!(other.open.len(), 2);
        other.stop(Some(WorkId::Task(5)));
        assert_eq!((other.request, other.open.len()), (Some(id(1)), 1));
        for _ in 0..1000 {
            other.enter(None);
        }
        assert_eq!(other.open.len(), MAX_DEPTH);
        other.rest();
        assert_eq!((other.request, other.open.len()), (None, 0));
    }
}
