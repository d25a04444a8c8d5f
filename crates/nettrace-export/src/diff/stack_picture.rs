//! A differential flame graph as a picture, which needs no script.

use std::io::{self, Write};

use crate::diff::sides::Noise;
use crate::diff::stack_comparison::{StackComparison, StackNode};
use crate::diff::subject::{Basis, Kind};
use crate::diff::verdict::Verdict;
use crate::format::svg::{label, text};
use crate::profile::measure::Unit;

/// The width of the picture, and the height of a frame, in pixels.
const WIDTH: f64 = 1200.0;
const ROW: usize = 17;
/// The height of a graph's heading.
const HEAD: usize = 24;
/// The height of what stands above the graphs.
const TOP: usize = 62;
/// Frames narrower than this are left out, with all that they call.
const MIN_WIDTH: f64 = 0.3;

/// Minimum relative change of each colour step.
const STEPS: [f64; 4] = [0.0, 0.15, 0.4, 1.0];

/// Colours in light and dark: of worse and better by step, of noise, of unjudged frames.
const STYLE: &str = "\
.diff{--w1:#fbdcd2;--w2:#f7b9a5;--w3:#f29578;--w4:#ec7350;--b1:#d6e6fa;--b2:#b0cff5;--b3:#8ab7ee;--b4:#669fe6;\
--n:#e2e4e8;--u:#f0f1f3;--ink:#15181d;--back:#fff}
@media (prefers-color-scheme:dark){.diff{--w1:#5a332a;--w2:#75392a;--w3:#933e28;--w4:#b04325;--b1:#293f5c;--b2:#2a4c7a;\
--b3:#2a5998;--b4:#2966b6;--n:#3d424b;--u:#2a2e35;--ink:#f2f4f7;--back:#16181d}}
.diff .back{fill:var(--back)}.diff text{fill:var(--ink)}
.diff .w1{fill:var(--w1)}.diff .w2{fill:var(--w2)}.diff .w3{fill:var(--w3)}.diff .w4{fill:var(--w4)}
.diff .b1{fill:var(--b1)}.diff .b2{fill:var(--b2)}.diff .b3{fill:var(--b3)}.diff .b4{fill:var(--b4)}
.diff .n{fill:var(--n)}.diff .u{fill:var(--u)}
";

/// A picture of a [`StackComparison`]: two flame graphs with the roots at their top, where a page opens, each
/// as wide as its side's sum. In the first, frames are as wide as on the new side, so that it has what the
/// base lacks; in the second as wide as on the base. The colour of a frame is its change; changes within the
/// noise are grey.
///
/// ```
/// # use nettrace_export::diff::Run;
/// # use nettrace_export::nettrace::RelativeTime;
/// # use nettrace_export::{Format, Measure, StackProfileBuilder, Unit, WriteOptions};
/// # let run = |weight: u64| -> Result<Run, Box<dyn std::error::Error>> {
/// #     let mut builder = StackProfileBuilder::new(Measure::new("cpu", "samples", Unit::Nanoseconds));
/// #     for sample in 0..1000 {
/// #         let time = RelativeTime::from_nanos(sample * 1_000_000);
/// #         builder.add_sample(42, 7, time, 1_000_000, ["Shop!Program.Main()", "Shop!Cart.Load()"]);
/// #         builder.add_sample(42, 7, time, weight, ["Shop!Program.Main()", "Shop!Tax.Rate()"]);
/// #     }
/// #     let mut pprof = Vec::new();
/// #     nettrace_export::write(&builder.finish(), Format::Pprof, WriteOptions::new("a", "b"), &mut pprof)?;
/// #     Ok(Run::of_pprof(&pprof)?)
/// # };
/// # let base = [run(1_000_000)?, run(1_010_000)?, run(990_000)?, run(1_000_000)?];
/// # let new = [run(3_000_000)?, run(3_010_000)?, run(2_990_000)?, run(3_000_000)?];
/// use nettrace_export::diff::{ComparisonOptions, Picture, StackComparison};
///
/// let options = ComparisonOptions::default();
/// let comparison = StackComparison::new(&base, &new, &options, None).ok_or("no stacks")?;
/// let mut svg = Vec::new();
/// Picture::new(&comparison, "before and after").write(&mut svg)?;
/// assert!(svg.starts_with(b"<svg"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    comparison: &'a StackComparison,
    title: &'a str,
}

/// The place of a node: its left edge and width in pixels, and its row, 0 for the root.
#[derive(Debug, Clone, Copy)]
struct Place {
    left: f64,
    width: f64,
    row: usize,
}

impl<'a> Picture<'a> {
    /// A picture of a comparison with a title.
    pub const fn new(comparison: &'a StackComparison, title: &'a str) -> Self {
        Self { comparison, title }
    }

    pub(super) const fn comparison(&self) -> &'a StackComparison {
        self.comparison
    }

    pub(super) const fn title(&self) -> &'a str {
        self.title
    }

    /// Writes it as SVG.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let graphs = [true, false].map(|is_new| (is_new, places(self.comparison, is_new)));
        let rows =
            |places: &[Option<Place>]| places.iter().flatten().map(|place| place.row + 1).max().unwrap_or(0);
        let heights = graphs.iter().map(|(_, places)| HEAD + rows(places) * ROW + 8);
        let height = TOP + heights.sum::<usize>();
        write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"monospace\" font-size=\"12\" class=\"diff\">\n<title>"
        )?;
        text(out, self.title)?;
        writeln!(
            out,
            "</title>\n<style>\n{STYLE}</style>\n<rect class=\"back\" width=\"100%\" height=\"100%\"/>"
        )?;
        write!(out, "<text x=\"4\" y=\"18\" font-size=\"15\">")?;
        text(out, self.title)?;
        writeln!(out, "</text>")?;
        self.legend(out)?;
        let mut top = TOP;
        for (is_new, places) in &graphs {
            self.graph(*is_new, places, top, out)?;
            top += HEAD + rows(places) * ROW + 8;
        }
        writeln!(out, "</svg>")
    }

    fn legend(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { comparison, .. } = self;
        let least = comparison.options.least_change * 100.0;
        let noise = if comparison.noise == Noise::Unknown { "little change" } else { "within the noise" };
        let items: [(&[&str], String); 4] = [
            (&["w1", "w2", "w3", "w4"], format!("more: {least:.0}, 15, 40, 100 %")),
            (&["b1", "b2", "b3", "b4"], "less".to_owned()),
            (&["n"], noise.to_owned()),
            (&["u"], "too little to judge".to_owned()),
        ];
        let mut x = 4;
        for (classes, words) in &items {
            for class in *classes {
                write!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"28\" width=\"14\" height=\"12\"/>")?;
                x += 15;
            }
            write!(out, "<text x=\"{}\" y=\"38\">{words}</text>", x + 4)?;
            x += 26 + 8 * words.len();
        }
        writeln!(out)?;
        let values = match comparison.options.basis {
            Basis::Share => "shares of each side's sum",
            Basis::Second => "amounts for each second",
            Basis::Request => "amounts for each request",
            Basis::Run => "amounts for each recording",
        };
        let known = match comparison.noise {
            Noise::Unknown => "; noise is not known, so that colours show any difference",
            _ => "",
        };
        writeln!(out, "<text x=\"4\" y=\"56\">Compared are {values}{known}.</text>")
    }

    fn graph(
        &self,
        is_new: bool,
        places: &[Option<Place>],
        top: usize,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Self { comparison, .. } = self;
        let (side, other) = if is_new { ("new", "base") } else { ("base", "new") };
        let of = if comparison.kind == Kind::Allocations { "allocated" } else { "CPU time" };
        let all = comparison.nodes.first().map_or(0.0, |root| root.amounts[usize::from(is_new)]);
        write!(out, "<g id=\"{side}\"><text x=\"4\" y=\"{}\" font-weight=\"bold\">", top + 15)?;
        writeln!(
            out,
            "As wide as in {side} ({of} {}): has what {other} lacks</text>",
            amount(all, comparison.unit)
        )?;
        for (node, place) in comparison.nodes.iter().zip(places) {
            let Some(place) = place else { continue };
            let y = top + HEAD + place.row * ROW;
            write!(out, "<g><title>")?;
            for (index, line) in self.lines(node).iter().enumerate() {
                out.write_all(if index == 0 { b"" } else { b"\n" })?;
                text(out, line)?;
            }
            let class = class(node);
            write!(
                out,
                "</title><rect class=\"{class}\" x=\"{:.1}\" y=\"{y}\" width=\"{:.1}\" height=\"{}\" rx=\"1\"/>",
                place.left,
                (place.width - 0.3).max(0.2),
                ROW - 1,
            )?;
            let label = label(&frame_label(node), place.width);
            if !label.is_empty() {
                write!(out, "<text x=\"{:.1}\" y=\"{}\">", place.left + 3.0, y + 12)?;
                text(out, &label)?;
                write!(out, "</text>")?;
            }
            writeln!(out, "</g>")?;
        }
        writeln!(out, "</g>")
    }

    /// The title of a frame: its name, both sides, and the judgement.
    fn lines(&self, node: &StackNode) -> [String; 4] {
        let Self { comparison, .. } = self;
        let name = if node.name.is_empty() { "all" } else { &node.name };
        let side = |is_new: bool| {
            let share = comparison.share(node, is_new) * 100.0;
            format!("{share:.2} %, {}", amount(node.amounts[usize::from(is_new)], comparison.unit))
        };
        let word =
            if node.values.iter().all(|value| *value <= 0.0) { "no change".to_owned() } else { change(node) };
        let interval = match (node.judged_interval, node.values[0] > 0.0) {
            (Some(interval), true) => {
                let percent = |value: f64| value / node.values[0] * 100.0;
                format!(" (range {:+.0} % to {:+.0} %)", percent(interval.low), percent(interval.high))
            }
            _ => String::new(),
        };
        let verdict = match (node.verdict, comparison.noise) {
            (Verdict::Worse, Noise::Unknown) => "more",
            (Verdict::Better, Noise::Unknown) => "less",
            (Verdict::Worse, _) => "more, beyond noise",
            (Verdict::Better, _) => "less, beyond noise",
            (Verdict::Same, Noise::Unknown) => "little change",
            (Verdict::Same, _) => "no change of interest",
            (Verdict::Undecided, _) => "cannot tell from noise",
            _ => "too little to judge",
        };
        [
            name.to_owned(),
            format!("base {}", side(false)),
            format!("new {}", side(true)),
            format!("{word}{interval}: {verdict}"),
        ]
    }
}

/// The change in a word, if it is a finding: for readers who cannot distinguish the colours.
pub(super) fn change(node: &StackNode) -> String {
    match node.relative_change() {
        Some(change) if change <= -1.0 => "gone".to_owned(),
        Some(change) if change.abs() < 9.995 => format!("{:+.0}%", change * 100.0),
        Some(change) => format!("×{:.0}", change + 1.0),
        None => "new".to_owned(),
    }
}

/// Returns the label of a frame: the change of a finding, then the name without module and namespace.
fn frame_label(node: &StackNode) -> String {
    let name = if node.name.is_empty() { "all" } else { short(&node.name) };
    if is_finding(node) { format!("{} {name}", change(node)) } else { name.to_owned() }
}

/// The class of a frame's colour.
fn class(node: &StackNode) -> String {
    if !is_finding(node) {
        return if node.verdict == Verdict::Unknown { "u" } else { "n" }.to_owned();
    }
    let change = node.relative_change().map_or(f64::INFINITY, f64::abs);
    // A halved time counts as large a change as a doubled one.
    let change = if node.verdict == Verdict::Better { change / (1.0 - change).max(1e-9) } else { change };
    let step = STEPS.iter().filter(|step| change >= **step).count().max(1);
    format!("{}{step}", if node.verdict == Verdict::Worse { 'w' } else { 'b' })
}

fn is_finding(node: &StackNode) -> bool {
    matches!(node.verdict, Verdict::Worse | Verdict::Better)
}

/// A name without module and namespace: `Type.Method`, of a file `symbol`.
fn short(name: &str) -> &str {
    let name = name.split_once('!').map_or(name, |(_, rest)| rest);
    let end = name.find(['(', '<', '[']).unwrap_or(name.len());
    let dots = name.get(..end).unwrap_or(name).rmatch_indices('.');
    let start = dots.map(|(at, _)| at).nth(1).map_or(0, |at| at + 1);
    name.get(start..).filter(|short| !short.is_empty()).unwrap_or(name)
}

fn amount(amount: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => format!("{:.3} s", amount / 1e9),
        Unit::Bytes => format!("{amount:.0} bytes"),
        Unit::Count => format!("{amount:.0} samples"),
    }
}

/// Returns the place of each node that is wide enough to be seen. Siblings are in the order of their names.
fn places(comparison: &StackComparison, is_new: bool) -> Vec<Option<Place>> {
    let nodes = &comparison.nodes;
    let mut order: Vec<usize> = (1..nodes.len()).collect();
    order.sort_by(|a, b| {
        let key = |index: &usize| nodes.get(*index).map(|node| (node.parent, &node.name));
        key(a).cmp(&key(b))
    });
    let mut places = vec![None; nodes.len()];
    let has_any = nodes.first().is_some_and(|root| root.amounts[usize::from(is_new)] > 0.0);
    if let Some(root) = places.first_mut().filter(|_| has_any) {
        *root = Some(Place { left: 0.0, width: WIDTH, row: 0 });
    }
    let (mut siblings_of, mut left) = (None, 0.0);
    for index in order {
        let Some(node) = nodes.get(index) else { continue };
        let Some(parent) = places.get(node.parent).copied().flatten() else { continue };
        if siblings_of != Some(node.parent) {
            (siblings_of, left) = (Some(node.parent), parent.left);
        }
        let width = WIDTH * comparison.share(node, is_new);
        if let Some(place) = places.get_mut(index).filter(|_| width >= MIN_WIDTH) {
            *place = Some(Place { left, width, row: parent.row + 1 });
        }
        left += width;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shown_without_module_and_namespace() {
        assert_eq!(
            short("Shop!Shop.Orders.Store.Load(List<System.Int32>)"),
            "Store.Load(List<System.Int32>)"
        );
        assert_eq!(short("App!Program.Main(string[])"), "Program.Main(string[])");
        assert_eq!(short("libc.so.6!malloc"), "malloc");
        assert_eq!(short("(others)"), "(others)");
    }
}
