//! Weighted stacks of the threads of a recording: what every format is written from.

use crate::frame::{FrameId, Frames};
use crate::measure::Measure;
use crate::track::Track;
use crate::tree::{NodeId, Tree};

/// A process of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u64,
    /// Its program's name, if the recording says so.
    pub name: Option<String>,
    /// The frame that stands for it, as dotnet-trace writes it: `Process64 NAME (ID) Args: ARGUMENTS`.
    pub frame: String,
}

/// A thread of a recording.
#[derive(Debug)]
pub struct Thread {
    /// Its process: an index of [`Profile::processes`].
    pub process: usize,
    /// Its number.
    pub id: u64,
    /// The frame that stands for it: `Thread (ID)`, with a name or what it does for the runtime behind that.
    pub frame: String,
    /// What it did; `None` where only [`Profile::sites`] were wanted.
    pub track: Option<Track>,
}

/// A stack that some thread had, and what all its samples weigh together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Site {
    /// The thread: an index of [`Profile::threads`].
    pub thread: u32,
    /// The stack; `None` if it is not to be shown.
    pub stack: Option<NodeId>,
    /// What its samples weigh.
    pub weight: u64,
    /// How many there are.
    pub samples: u64,
}

/// Weighted stacks.
#[derive(Debug)]
pub struct Profile {
    /// What the weights are.
    pub measure: Measure,
    /// When the recording began, in milliseconds since 1970-01-01T00:00:00Z; `None` if it does not say.
    pub start_unix_ms: Option<i64>,
    /// The names of frames.
    pub frames: Frames,
    /// The stacks. They have the frames of methods and of what a sample is about, not of processes and threads.
    pub tree: Tree,
    /// The processes.
    pub processes: Vec<Process>,
    /// The threads, in the order of their first sample.
    pub threads: Vec<Thread>,
    /// Which stacks there were on which thread.
    pub sites: Vec<Site>,
}

impl Profile {
    /// The process of a thread.
    pub fn process_of(&self, thread: &Thread) -> Option<&Process> {
        self.processes.get(thread.process)
    }

    /// A site whose stack is shown.
    pub fn shown(&self, site: u32) -> Option<(&Site, NodeId)> {
        let site = self.sites.get(site as usize)?;
        Some((site, site.stack?))
    }

    /// What everything that is shown weighs.
    pub fn total(&self) -> u64 {
        self.sites.iter().filter(|site| site.stack.is_some()).map(|site| site.weight).sum()
    }

    /// How many samples are shown.
    pub fn samples(&self) -> u64 {
        self.sites.iter().filter(|site| site.stack.is_some()).map(|site| site.samples).sum()
    }

    /// What each stack weighs, over all threads: an entry for each node of [`tree`](Self::tree), without what it called.
    pub fn exclusive(&self) -> Vec<u64> {
        let mut weights = vec![0u64; self.tree.len()];
        for site in &self.sites {
            if let Some(weight) = site.stack.and_then(|stack| weights.get_mut(stack.0 as usize)) {
                *weight = weight.saturating_add(site.weight);
            }
        }
        weights
    }

    /// The frames of a stack, root first, as text.
    pub fn names(&self, stack: NodeId) -> Vec<&str> {
        let mut names: Vec<_> = self.tree.path(stack).map(|(_, node)| self.frames.name(node.frame)).collect();
        names.reverse();
        names
    }

    /// The frames of a stack, root first.
    pub(crate) fn frames_of(&self, stack: NodeId, into: &mut Vec<FrameId>) {
        into.clear();
        into.extend(self.tree.path(stack).map(|(_, node)| node.frame));
        into.reverse();
    }
}
