//! A page with a flame graph: text, style and program in one file, nothing is loaded.

use std::io::{self, Write};

use crate::format::Labels;
use crate::format::text::script_string;
use crate::profile::Profile;
use crate::profile::measure::Unit;
use crate::tree::{Name, Tree};

const HEAD: &str = include_str!("flamegraph/head.html");
const TAIL: &str = include_str!("flamegraph/tail.html");

pub(super) fn write(profile: &Profile, labels: Labels<'_>, out: &mut dyn Write) -> io::Result<()> {
    let tree = Tree::new(profile, labels.by_thread);
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
    let (samples, idle) = (profile.samples(), profile.idle());
    write!(out, ",\"unit\":\"{unit}\",\"samples\":{samples},\"idle\":{idle},\n\"names\":[")?;
    let threads = profile.threads.iter().map(|thread| &*thread.frame);
    for (index, name) in profile.frames.iter().map(|(_, name)| name).chain(threads).enumerate() {
        out.write_all(if index == 0 { b"" } else { b",\n" })?;
        script_string(out, name)?;
    }
    write!(out, "],\n\"nodes\":[")?;
    // Three numbers a node: parent, name, its own weight. Parents come first; the root is not written and has the number 0.
    let mut numbers = vec![0usize; tree.nodes.len()];
    let mut written = 0usize;
    for (index, node) in tree.nodes.iter().enumerate() {
        let name = match node.name {
            Name::None => continue,
            Name::Frame(frame) => frame.0 as usize,
            Name::Thread(thread) => profile.frames.len() + thread as usize,
        };
        if node.inclusive == 0 {
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
        write!(out, "{separator}{parent},{name},{}", node.exclusive)?;
    }
    write!(out, "],\n\"rootWeight\":{}}};</script>\n", tree.nodes.first().map_or(0, |root| root.exclusive))?;
    out.write_all(TAIL.as_bytes())
}
