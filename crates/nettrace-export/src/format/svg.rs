//! A flame graph as a picture without a script: rectangles as wide as their frames weigh, the root at the
//! bottom.

use std::io::{self, Write};

use clr_events::code::CodeOrigin;

use crate::profile::Profile;
use crate::profile::frame_kind::FrameKind;
use crate::profile::measure::Unit;
use crate::tree::{Name, Tree};
use crate::write_options::WriteOptions;
use clr_events::is_control;

/// The width of the picture, and the height of a frame, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: usize = 16;
/// The height of the title.
const HEAD: usize = 32;
/// The width of a character.
const CHARACTER: f64 = 7.3;
/// Frames narrower than this are left out, with all that they call.
const MIN_WIDTH: f64 = 0.1;

/// The place of a node: its left edge and width in pixels, and its row, 0 for the root.
#[derive(Debug, Clone, Copy)]
struct Place {
    left: f64,
    width: f64,
    row: usize,
}

pub(super) fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut dyn Write) -> io::Result<()> {
    let tree = Tree::new(profile, options.by_thread);
    let places = places(profile, &tree);
    let rows = places.iter().flatten().map(|place| place.row + 1).max().unwrap_or(0);
    let height = HEAD + rows * ROW + ROW;
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"monospace\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"15\">",
        WIDTH / 2.0
    )?;
    text(out, options.title)?;
    writeln!(out, "</text>")?;
    let total = tree.nodes.first().map_or(0, |root| root.inclusive);
    for (node, place) in tree.nodes.iter().zip(&places) {
        let Some(place) = place else { continue };
        let name = name(profile, node.name);
        let y = height - (place.row + 1) * ROW - ROW / 2;
        write!(out, "<g><title>")?;
        text(out, name)?;
        write!(out, " (")?;
        weight(profile, node.inclusive, total, out)?;
        write!(
            out,
            ")</title><rect x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" rx=\"1\" fill=\"hsl({},75%,70%)\"/>",
            place.left,
            place.width,
            ROW - 1,
            hue(profile, node.name)
        )?;
        let label = label(name, place.width);
        if !label.is_empty() {
            write!(out, "<text x=\"{:.1}\" y=\"{}\">", place.left + 3.0, y + 12)?;
            text(out, &label)?;
            write!(out, "</text>")?;
        }
        writeln!(out, "</g>")?;
    }
    writeln!(out, "</svg>")
}

/// Returns the place of each node that is wide enough to be seen. Siblings are in the order of their names.
fn places(profile: &Profile, tree: &Tree) -> Vec<Option<Place>> {
    let key = |index: &usize| tree.nodes.get(*index).map(|node| (node.parent, name(profile, node.name)));
    let mut order: Vec<usize> = (1..tree.nodes.len()).collect();
    order.sort_by(|a, b| key(a).cmp(&key(b)));
    let mut places = vec![None; tree.nodes.len()];
    let total = tree.nodes.first().map_or(0, |root| root.inclusive);
    if let Some(root) = places.first_mut().filter(|_| total > 0) {
        *root = Some(Place { left: 0.0, width: WIDTH, row: 0 });
    }
    // Callers precede their callees, so the position of a parent is known. `left` is the position of the next
    // sibling.
    let (mut siblings_of, mut left) = (None, 0.0);
    for index in order {
        let Some(node) = tree.nodes.get(index) else { continue };
        let Some(parent) = places.get(node.parent).copied().flatten() else { continue };
        if siblings_of != Some(node.parent) {
            (siblings_of, left) = (Some(node.parent), parent.left);
        }
        let width = WIDTH * share(node.inclusive, total);
        if let Some(place) = places.get_mut(index).filter(|_| width >= MIN_WIDTH) {
            *place = Some(Place { left, width, row: parent.row + 1 });
        }
        left += width;
    }
    places
}

fn name(profile: &Profile, name: Name) -> &str {
    match name {
        Name::None => "all",
        Name::Frame(frame) => profile.frames.name(frame),
        Name::Thread(thread) => profile.threads.get(thread.index()).map_or("", |thread| &thread.frame),
    }
}

#[allow(clippy::cast_precision_loss, reason = "pixels and percents")]
fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A weight in its unit, and its share.
fn weight(profile: &Profile, weight: u64, total: u64, out: &mut dyn Write) -> io::Result<()> {
    match profile.measure.unit {
        Unit::Nanoseconds => write!(out, "{}.{:03} ms", weight / 1_000_000, weight % 1_000_000 / 1_000)?,
        Unit::Bytes => write!(out, "{weight} bytes")?,
        Unit::Count => {
            write!(out, "{weight} ")?;
            text(out, profile.measure.sample)?;
        }
    }
    write!(out, ", {:.2} %", share(weight, total) * 100.0)
}

/// As much of a name as a frame of that width has room for; nothing if that is less than three characters.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the width of the picture"
)]
pub(crate) fn label(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / CHARACTER).max(0.0) as usize;
    if room < 3 {
        String::new()
    } else if name.chars().nth(room).is_none() {
        name.to_owned()
    } else {
        name.chars().take(room - 1).chain(['…']).collect()
    }
}

/// The hue of a frame: frames of a module have the same one. Managed code is from red to yellow, the kernel
/// green, other native code blue and that of the runtime purple.
fn hue(profile: &Profile, of: Name) -> u32 {
    let name = name(profile, of);
    let (module, origin) = match of {
        Name::Frame(frame) => (profile.frames.parts(frame).0, profile.frames.kind(frame)),
        Name::None | Name::Thread(_) => ("", FrameKind::Pseudo),
    };
    let text = if module.is_empty() { name } else { module };
    // FNV-1a: colours stay the same from one version of this program to the next.
    let hash =
        text.bytes().fold(0x811c_9dc5u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    match origin {
        FrameKind::Code(CodeOrigin::Kernel) => 100 + hash % 40,
        FrameKind::Code(CodeOrigin::Native) => 190 + hash % 40,
        FrameKind::Code(origin) if origin.is_native_runtime() => 265 + hash % 40,
        FrameKind::Code(_) | FrameKind::Pseudo => hash % 60,
    }
}

/// Text of XML: marks are escaped as entities; controls, which XML cannot have or would be obeyed, as in
/// JSON.
pub(crate) fn text(out: &mut dyn Write, text: &str) -> io::Result<()> {
    for c in text.chars() {
        match c {
            '<' => out.write_all(b"&lt;")?,
            '>' => out.write_all(b"&gt;")?,
            '&' => out.write_all(b"&amp;")?,
            '"' => out.write_all(b"&quot;")?,
            '\n' => out.write_all(b"\\n")?,
            '\r' => out.write_all(b"\\r")?,
            '\t' => out.write_all(b"\\t")?,
            c if is_control(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                write!(out, "\\u{:04x}", u32::from(c))?;
            }
            c => write!(out, "{c}")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nettrace::RelativeTime;

    use super::*;
    use crate::{Measure, StackProfileBuilder};

    fn svg(stacks: &[(&[&str], u64)], by_thread: bool) -> String {
        let mut builder = StackProfileBuilder::new(Measure::new("time", "calls", Unit::Nanoseconds));
        for (thread, (stack, weight)) in (1..).zip(stacks) {
            builder.add_sample(1, thread, RelativeTime::START, *weight, *stack);
        }
        let options = WriteOptions::new("a \"title\" </svg>", "tests").with_by_thread(by_thread);
        let mut out = Vec::new();
        write(&builder.finish(), options, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// The title, left edge and width of each frame.
    fn frames(svg: &str) -> Vec<(&str, &str, &str)> {
        let between = |text: &'static str, end: &'static str, line| {
            let (_, rest): (&str, &str) = str::split_once(line, text).unwrap();
            rest.split_once(end).unwrap().0
        };
        let lines = svg.lines().filter(|line| line.starts_with("<g>"));
        lines
            .map(|line| {
                (
                    between("<title>", "</title>", line),
                    between(" x=\"", "\"", line),
                    between("width=\"", "\"", line),
                )
            })
            .collect()
    }

    #[test]
    fn frames_are_as_wide_as_they_weigh_and_siblings_go_by_name() {
        let shown =
            svg(&[(&["main", "b"], 750_000), (&["main", "a"], 250_000), (&["main", "tiny"], 10)], false);
        assert_eq!(
            frames(&shown),
            [
                ("all (1.000 ms, 100.00 %)", "0.0", "1200.0"),
                ("main (1.000 ms, 100.00 %)", "0.0", "1200.0"),
                ("b (0.750 ms, 75.00 %)", "300.0", "900.0"),
                ("a (0.250 ms, 25.00 %)", "0.0", "300.0"),
            ]
        );
        let threads = svg(&[(&["main"], 1), (&["main"], 3)], true);
        let titles: Vec<_> =
            frames(&threads).iter().map(|(title, ..)| title.split_once(" (0").unwrap().0).collect();
        assert_eq!(titles, ["all", "Thread (1)", "main", "Thread (2)", "main"]);
    }

    #[test]
    fn hostile_names_stay_text() {
        let hostile = "</title><script>alert(1)</script>&\"\u{1b}]0;x\u{7}\u{ffff}\u{202e}";
        let shown = svg(&[(&[hostile], 5)], false);
        assert!(!shown.contains("<script") && shown.matches("</svg>").count() == 1, "{shown}");
        assert!(shown.contains(
            r"&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;&amp;&quot;\u001b]0;x\u0007\uffff\u202e"
        ));
        assert!(shown.contains("a &quot;title&quot; &lt;/svg&gt;"));
    }

    #[test]
    fn names_are_cut_to_the_width_of_their_frame() {
        assert_eq!(label("Program.Main", 1200.0), "Program.Main");
        assert_eq!(label("Program.Main", 70.0), "Program…");
        assert_eq!(label("Program.Main", 20.0), "");
        assert_eq!(svg(&[], false).matches("<g>").count(), 0);
    }
}
