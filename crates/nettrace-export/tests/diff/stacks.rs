//! Comparisons of stacks, and their pictures.

use std::collections::BTreeMap;

use nettrace_export::diff::{
    Basis, ComparisonOptions, Noise, Picture, Run, StackComparison, StackNode, Verdict,
};
use nettrace_export::{Format, Metric, NameForm, Options, WriteOptions};

use crate::recording::Program;
use crate::runs;

fn compare(base: &[Run], new: &[Run], basis: Option<Basis>) -> StackComparison {
    StackComparison::new(base, new, &ComparisonOptions::default(), basis).unwrap()
}

/// The names of a node and its callers, root first, separated by semicolons.
fn path(comparison: &StackComparison, node: &StackNode) -> String {
    let mut names = Vec::new();
    let mut at = node;
    while !at.name.is_empty() {
        names.push(at.name.as_str());
        at = &comparison.nodes[at.parent];
    }
    names.reverse();
    names.join(";")
}

/// The amount of each stack with all that it called, by the lines of the folded format.
fn by_folded_lines(program: Program) -> BTreeMap<String, f64> {
    let options = Options::new(Metric::Wall)
        .with_kinds(false)
        .with_idle(false)
        .with_blocked(false)
        .with_names(NameForm::CSharp);
    let recording = program.recording();
    let (profile, _) = nettrace_export::profile(std::io::Cursor::new(recording), options).unwrap();
    let mut folded = Vec::new();
    nettrace_export::write(&profile, Format::Folded, WriteOptions::default(), &mut folded).unwrap();
    let mut sums = BTreeMap::new();
    for line in String::from_utf8(folded).unwrap().lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        let weight: f64 = weight.parse().unwrap();
        let ends = stack.match_indices(';').map(|(at, _)| at).chain([stack.len()]);
        for end in std::iter::once(0).chain(ends) {
            *sums.entry(stack[..end].to_owned()).or_default() += weight;
        }
    }
    sums
}

#[test]
fn amounts_are_the_sums_of_the_folded_stacks() {
    let programs = [Program::new(1, 20), Program { price: 2.0, ..Program::new(2, 20) }];
    let [base, new] = programs.map(|program| [program.run()]);
    let comparison = compare(&base, &new, None);
    let expected = programs.map(by_folded_lines);
    let mut found = [BTreeMap::new(), BTreeMap::new()];
    for node in &comparison.nodes {
        for (side, amounts) in found.iter_mut().enumerate() {
            if node.amounts[side] > 0.0 {
                amounts.insert(path(&comparison, node), node.amounts[side]);
            }
        }
    }
    for side in 0..2 {
        let names = |map: &BTreeMap<String, f64>| map.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found[side]), names(&expected[side]));
        for (stack, amount) in &found[side] {
            // The folded format has microseconds.
            let expected = expected[side][stack];
            assert!((amount / expected - 1.0).abs() < 1e-3, "{stack}: {amount} {expected}");
        }
        assert!(found[side].len() > 8);
    }
    for node in &comparison.nodes {
        let whole = comparison.nodes[0].amounts;
        let shares = [0, 1].map(|side: usize| node.amounts[side] / whole[side]);
        assert!((0..2).all(|side| (shares[side] - node.values[side]).abs() < 1e-9), "{node:?}");
    }
}

fn findings(comparison: &StackComparison) -> Vec<(String, Verdict)> {
    let is_finding = |node: &&StackNode| matches!(node.verdict, Verdict::Worse | Verdict::Better);
    comparison
        .nodes
        .iter()
        .filter(is_finding)
        .map(|node| (path(comparison, node).rsplit('.').next().unwrap_or_default().to_owned(), node.verdict))
        .collect()
}

#[test]
fn a_slower_stack_is_found_and_equal_programs_are_grey() {
    let long = |seeds: std::ops::Range<u64>, price: f64| -> Vec<Run> {
        seeds.map(|seed| Program { price, ..Program::new(seed, 60) }.of_run().run()).collect()
    };
    let base = long(1..9, 1.0);
    let comparison = compare(&base, &long(101..109, 1.5), Some(Basis::Second));
    assert_eq!(comparison.noise, Noise::Runs);
    let found = findings(&comparison);
    assert!(found.iter().any(|(name, verdict)| name.starts_with("Price") && *verdict == Verdict::Worse));
    // Its callers take longer, too.
    let is_planted =
        |name: &str| ["Price", "Handle", "WorkerThreadStart", ""].iter().any(|it| name.starts_with(it));
    assert!(found.iter().all(|(name, verdict)| is_planted(name) && *verdict == Verdict::Worse), "{found:?}");

    let same = compare(&base, &long(201..209, 1.0), None);
    assert_eq!(findings(&same), []);
    assert!(same.tested > 3);
}

#[test]
fn recordings_that_are_too_short_show_any_difference() {
    let [base, new] =
        [1, 2].map(|seed| [Program { price: seed as f64 * 2.0, ..Program::new(seed, 3) }.run()]);
    let comparison = compare(&base, &new, None);
    assert_eq!((comparison.noise, comparison.tested), (Noise::Unknown, 0));
    assert!(!findings(&comparison).is_empty());
    assert!(svg(&comparison).contains("noise is not known"));
}

fn svg(comparison: &StackComparison) -> String {
    let mut out = Vec::new();
    Picture::new(comparison, "base & new").write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The title, class and width of each frame of a graph.
fn frames<'s>(svg: &'s str, graph: &str) -> Vec<(&'s str, &'s str, f64)> {
    let (_, graph) = svg.split_once(&format!("<g id=\"{graph}\">")).unwrap();
    let (graph, _) = graph.split_once("\n</g>").unwrap();
    let between =
        |line: &'s str, start: &str, end: &str| line.split_once(start).unwrap().1.split_once(end).unwrap().0;
    // A title has lines of its own.
    let frames = graph.split("<g>").skip(1);
    frames
        .map(|line| {
            let width: f64 = between(line, "width=\"", "\"").parse().unwrap();
            (between(line, "<title>", "</title>"), between(line, "<rect class=\"", "\""), width)
        })
        .collect()
}

#[test]
fn each_graph_has_the_width_and_the_frames_of_its_side() {
    let [base, new] = [1, 2].map(|seed| [Program { price: seed as f64, ..Program::new(seed, 20) }.run()]);
    let comparison = compare(&base, &new, None);
    let svg = svg(&comparison);
    assert!(svg.contains("<title>base &amp; new</title>") && svg.contains("prefers-color-scheme:dark"));
    assert!(!svg.contains("<script") && svg.trim_end().ends_with("</svg>"));
    for (side, graph) in ["base", "new"].into_iter().enumerate() {
        let frames = frames(&svg, graph);
        let wide = |node: &&StackNode| comparison.share(node, side == 1) * 1200.0 >= 0.3;
        assert_eq!(frames.len(), comparison.nodes.iter().filter(wide).count());
        for node in comparison.nodes.iter().filter(wide).filter(|node| !node.name.is_empty()) {
            let width = comparison.share(node, side == 1) * 1200.0 - 0.3;
            let is_it = |(title, _, shown): &&(&str, &str, f64)| {
                title.starts_with(&node.name.replace('<', "&lt;").replace('>', "&gt;"))
                    && (shown - width.max(0.2)).abs() < 0.1
            };
            assert!(frames.iter().any(|frame| is_it(&frame)), "{graph}: {} {width}", node.name);
        }
    }
    let of = |name: &str| frames(&svg, "new").into_iter().find(|(title, ..)| title.contains(name)).unwrap();
    let all = frames(&svg, "new").into_iter().find(|(title, ..)| title.starts_with("all\n")).unwrap();
    // A page opens on the roots: the first frame is the highest.
    let (_, graph) = svg.split_once("<g id=\"new\">").unwrap();
    let rows: Vec<f64> =
        graph.split(" y=\"").skip(1).filter_map(|y| y.split('"').next()?.parse().ok()).collect();
    assert!(rows[1..].iter().take(20).all(|y| *y >= rows[1]), "{rows:?}");
    assert_eq!(all.0.lines().count(), 4, "{all:?}");
    // A frame that ran twice as long: the change in words, and in colour if it is beyond the noise.
    assert!(of("Price").0.contains('+'), "{:?}", of("Price"));
    let same = runs(1..3, |it| it);
    let grey = self::svg(&compare(&same, &same, None));
    assert!(frames(&grey, "new").iter().all(|(_, class, _)| ["n", "u"].contains(class)));
}

#[test]
fn sides_without_stacks_are_not_compared() {
    let run = [Program::new(1, 6).run()];
    assert!(StackComparison::new(&run, &[], &ComparisonOptions::default(), None).is_none());
}
