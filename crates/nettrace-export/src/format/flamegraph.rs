//! A page with a flame graph: text, style and program in one file, nothing is loaded.

use std::io::{self, Write};

use crate::format::Labels;
use crate::format::text::script_string;
use crate::measure::Unit;
use crate::profile::Profile;
use clr_events::StackId;

const HEAD: &str = include_str!("flamegraph/head.html");
const TAIL: &str = include_str!("flamegraph/tail.html");

pub(super) fn write(profile: &Profile, labels: Labels<'_>, out: &mut dyn Write) -> io::Result<()> {
    let graph = Graph::new(profile, labels.by_thread);
    out.write_all(HEAD.as_bytes())?;
    write!(out, "<script>const profile={{\"title\":")?;
    script_string(out, labels.title)?;
    write!(out, ",\"exporter\":")?;
    script_string(out, labels.exporter)?;
    write!(out, ",\"measure\":")?;
    script_string(out, profile.measure.name)?;
    let unit = match profile.measure.unit {
        Unit::Nanoseconds => "ns",
        Unit::Bytes => "bytes",
        Unit::Count => "",
    };
    write!(out, ",\"unit\":\"{unit}\",\"samples\":{},\n\"names\":[", profile.samples())?;
    let threads = profile.threads.iter().map(|thread| &*thread.frame);
    for (index, name) in profile.frames.iter().map(|(_, name)| name).chain(threads).enumerate() {
        out.write_all(if index == 0 { b"" } else { b",\n" })?;
        script_string(out, name)?;
    }
    write!(out, "],\n\"nodes\":[")?;
    // Three numbers a node: parent, name, its own weight. Parents come first; the root is not written and has the number 0.
    let mut numbers = vec![0usize; graph.nodes.len()];
    let mut written = 0usize;
    for (index, node) in graph.nodes.iter().enumerate() {
        if node.inclusive == 0 || index == 0 {
            continue;
        }
        written += 1;
        if let Some(number) = numbers.get_mut(index) {
            *number = written;
        }
        let parent = numbers.get(node.parent).copied().unwrap_or(0);
        let separator = if written == 1 {
            ""
        } else if written.is_multiple_of(16) {
            ",\n"
        } else {
            ","
        };
        write!(out, "{separator}{parent},{},{}", node.name, node.exclusive)?;
    }
    write!(out, "],\n\"rootWeight\":{}}};</script>\n", graph.root_weight)?;
    out.write_all(TAIL.as_bytes())
}

struct Node {
    parent: usize,
    name: usize,
    exclusive: u64,
    inclusive: u64,
}

/// The tree that is drawn; node 0 is the root.
struct Graph {
    nodes: Vec<Node>,
    /// The weight of samples without frames.
    root_weight: u64,
}

impl Graph {
    fn new(profile: &Profile, by_thread: bool) -> Self {
        let mut graph = Self { nodes: Vec::new(), root_weight: 0 };
        graph.nodes.push(Node { parent: 0, name: 0, exclusive: 0, inclusive: 0 });
        if by_thread {
            for index in 0..profile.threads.len() {
                graph.add_tree(profile, Some(index));
            }
        } else {
            graph.add_tree(profile, None);
        }
        graph.root_weight = graph.nodes.first().map_or(0, |root| root.exclusive);
        for index in (1..graph.nodes.len()).rev() {
            let Some(&Node { parent, exclusive, inclusive, .. }) = graph.nodes.get(index) else { continue };
            let whole = inclusive.saturating_add(exclusive);
            if let Some(node) = graph.nodes.get_mut(index) {
                node.inclusive = whole;
            }
            if let Some(parent) = graph.nodes.get_mut(parent) {
                parent.inclusive = parent.inclusive.saturating_add(whole);
            }
        }
        graph
    }

    /// Adds the stacks of a thread under a frame of its own, or those of all threads.
    fn add_tree(&mut self, profile: &Profile, thread: Option<usize>) {
        let root = if let Some(thread) = thread {
            self.nodes.push(Node {
                parent: 0,
                name: profile.frames.len() + thread,
                exclusive: 0,
                inclusive: 0,
            });
            self.nodes.len() - 1
        } else {
            0
        };
        let mut places = vec![None; profile.stacks.len() + 1];
        if let Some(place) = places.first_mut() {
            *place = Some(root);
        }
        let sites =
            profile.sites.iter().filter(|site| thread.is_none_or(|thread| site.thread as usize == thread));
        for (stack, weight) in sites.filter_map(|site| Some((site.stack?, site.weight))) {
            let place = self.place(profile, &mut places, stack);
            if let Some(node) = self.nodes.get_mut(place) {
                node.exclusive = node.exclusive.saturating_add(weight);
            }
        }
    }

    fn place(&mut self, profile: &Profile, places: &mut [Option<usize>], stack: StackId) -> usize {
        let mut missing = Vec::new();
        let mut parent = 0;
        let path = profile.path(stack).map(|(id, frame)| (id, Some(frame)));
        for (id, frame) in path.chain([(StackId::EMPTY, None)]) {
            if let Some(Some(place)) = places.get(id.index()) {
                parent = *place;
                break;
            }
            missing.extend(frame.map(|frame| (id, frame)));
        }
        for (id, frame) in missing.into_iter().rev() {
            self.nodes.push(Node { parent, name: frame.0 as usize, exclusive: 0, inclusive: 0 });
            parent = self.nodes.len() - 1;
            if let Some(place) = places.get_mut(id.index()) {
                *place = Some(parent);
            }
        }
        parent
    }
}
