//! Requests: activities that an EventSource starts and stops.

use std::fmt::Write as _;

use clr_activity::{Step, Worker};
use clr_events::{ActivityPath, EventName, Provider, StackId, StackTree, event_name};
use hashbrown::HashMap;
use nettrace::{Event, Value};
use uuid::Uuid;

use crate::profile::frame::{FrameId, Frames};

type Key = (Option<u64>, Uuid);

#[derive(Debug, Clone, Copy)]
struct Request {
    frames: StackId,
    within: Option<Uuid>,
    has_ended: bool,
}

/// The requests that began last: at least [`KEPT`], and at most twice as many.
#[derive(Debug, Default)]
struct KnownRequests {
    new: HashMap<Key, Request>,
    old: HashMap<Key, Request>,
}

/// The number of newer requests up to which a request is never forgotten.
const KEPT: usize = 1 << 17;

impl KnownRequests {
    fn insert(&mut self, key: Key, request: Request) {
        if self.new.len() >= KEPT {
            self.old = std::mem::take(&mut self.new);
        }
        self.old.remove(&key);
        self.new.insert(key, request);
    }

    fn get(&self, key: &Key) -> Option<&Request> {
        self.new.get(key).or_else(|| self.old.get(key))
    }

    fn get_mut(&mut self, key: &Key) -> Option<&mut Request> {
        self.new.get_mut(key).or_else(|| self.old.get_mut(key))
    }
}

/// Requests that have begun, and their names.
#[derive(Debug)]
pub(super) struct Requests {
    known: KnownRequests,
    names: Frames,
    stacks: StackTree<FrameId>,
    text: String,
    were_met: bool,
}

/// The number of distinct names.
const MAX_NAMES: usize = 1 << 14;
/// Bytes of a name.
const MAX_LENGTH: usize = 256;
/// Requests within requests that are followed.
const MAX_DEPTH: usize = 16;

impl Default for Requests {
    fn default() -> Self {
        Self {
            known: KnownRequests::default(),
            names: Frames::default(),
            stacks: StackTree::with_limit(1 << 18),
            text: String::new(),
            were_met: false,
        }
    }
}

impl Requests {
    /// Takes in an event, which carries the activity that its thread is in.
    pub(super) fn add(&mut self, event: &Event<'_>, step: Step, worker: &mut Worker) {
        let process = event.process_id();
        let Some(id) = event.activity() else {
            // The code that begins and ends tasks runs outside of them: its lack of an activity says nothing
            // about theirs.
            if !step.is_of_scheduler() {
                worker.request = None;
            }
            return;
        };
        match step {
            Step::RequestStart => {
                let related = event.related_activity().and_then(|id| self.innermost(process, id));
                let within = related.or(worker.request).filter(|within| *within != id);
                let frames = self.name(event, within.and_then(|id| self.frames(process, id)));
                self.known.insert((process, id), Request { frames, within, has_ended: false });
                worker.request = Some(id);
                self.were_met = true;
            }
            Step::RequestStop => {
                if let Some(request) = self.known.get_mut(&(process, id)) {
                    request.has_ended = true;
                    worker.request = request.within;
                }
            }
            _ => match self.innermost(process, id) {
                Some(request) => worker.request = Some(request),
                // The runtime has activities of its own, loading assemblies for one, within the program's
                // activities.
                None if Provider::of(event.metadata()) == Some(Provider::Runtime) => {}
                // The activity began before the recording.
                None => worker.request = None,
            },
        }
    }

    /// The innermost request that is or encloses an activity: activities that are not recorded, or are not
    /// requests, may lie between.
    fn innermost(&self, process: Option<u64>, id: Uuid) -> Option<Uuid> {
        let is_known = |id: &Uuid| self.known.get(&(process, *id)).is_some();
        if is_known(&id) {
            return Some(id);
        }
        ActivityPath::new(id, process)?.ancestors().find(is_known)
    }

    /// The frames of a request, or of the one around it that has not ended.
    pub(super) fn frames(&self, process: Option<u64>, id: Uuid) -> Option<StackId> {
        let mut id = id;
        for _ in 0..MAX_DEPTH {
            let request = self.known.get(&(process, id))?;
            if !request.has_ended {
                return Some(request.frames);
            }
            id = request.within?;
        }
        None
    }

    /// Two frames: the kind of request, and its own description.
    fn name(&mut self, event: &Event<'_>, within: Option<StackId>) -> StackId {
        let within = within.unwrap_or(StackId::EMPTY);
        if self.stacks.frames(within).count() >= 2 * MAX_DEPTH {
            return within;
        }
        let Self { names, stacks, text, .. } = self;
        text.clear();
        // Writing into a `String` does not fail.
        let _ = match event_name(event) {
            EventName::Phase { task, .. } => write!(text, "{}/{task}", event.provider()),
            // The kind of request is its provider's only one.
            EventName::Plain("Start") => write!(text, "{}", event.provider()),
            name => write!(text, "{}/{name}", event.provider()),
        };
        let kind = stacks.push(within, names.intern_within(MAX_NAMES, MAX_LENGTH, text));
        text.clear();
        for (field, value) in event.fields().flatten() {
            if let Value::String(value) = value {
                let gap = if text.is_empty() { "" } else { " " };
                let _ = write!(text, "{gap}{field}=");
                text.extend(
                    value.chars().take(MAX_LENGTH).map(|char| if char.is_control() { ' ' } else { char }),
                );
            }
            if text.len() > MAX_LENGTH {
                break;
            }
        }
        if text.is_empty() {
            kind
        } else {
            stacks.push(kind, names.intern_within(MAX_NAMES, MAX_LENGTH, text))
        }
    }

    /// The names of a request's frames, root first.
    pub(super) fn names(&self, request: StackId) -> Vec<&str> {
        let mut names: Vec<_> = self.stacks.frames(request).map(|frame| self.names.name(frame)).collect();
        names.reverse();
        names
    }

    pub(super) const fn were_met(&self) -> bool {
        self.were_met
    }
}
