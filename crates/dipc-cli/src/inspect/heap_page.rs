//! A page that shows a heap: treemap, dominator tree, types, and paths from roots, in one file that loads
//! nothing.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io::{self, Write};

use gcdump::{
    Dominators, Grouping, HeapGraph, HeapReport, HeapType, PathStep, PathTree, RetainedSets, RootGroup,
    TypeId, TypeTree,
};
use indexmap::IndexSet;
use nettrace_export::NameForm;
use nettrace_export::page::STYLE;
use serde::Serialize;

use crate::inspect::heap::missing_in_words;
use crate::render::escape::escape_controls;
use crate::render::width;

/// The pieces of the page, between which style, data and script are inserted.
const HEAD: &str = include_str!("heap_page/assets/page.html");
const BODY: &str = include_str!("heap_page/assets/body.html");
const OWN_STYLE: &str = include_str!("heap_page/assets/page.css");
const SCRIPT: &str = include_str!("heap_page/assets/page.js");

/// Maximum size of a page in bytes.
pub(crate) const BUDGET: usize = 5_000_000;
/// Maximum number of nodes to build of the dominator tree by types, and of nodes of a page.
pub(crate) const MAX_TREE_NODES: usize = 1 << 20;
const MAX_NODES: usize = 20_000;
/// Maximum number of types of a page, and of types with paths.
const MAX_TYPES: usize = 5_000;
const MAX_TYPES_WITH_PATHS: usize = 200;
/// Maximum number of objects to visit for paths: each type visits all objects.
const MAX_PATH_VISITS: u64 = 200_000_000;
/// Maximum number of paths of a type, and of steps of a path.
const PATHS: usize = 3;
const STEPS: usize = 50;
/// Maximum number of columns kept of a name.
const WIDEST: usize = 500;

/// The data of a page.
#[derive(Debug, Serialize)]
struct PageData {
    title: String,
    notes: Vec<String>,
    objects: u64,
    bytes: u64,
    references: u64,
    names: Vec<String>,
    /// For each node: the index of its holder, that of its name, objects, own bytes and retained bytes.
    nodes: Vec<u64>,
    types: Vec<TypeRow>,
    #[serde(rename = "typesLeftOut")]
    types_left_out: usize,
}

#[derive(Debug, Serialize)]
struct TypeRow {
    name: String,
    module: String,
    bytes: u64,
    retained: u64,
    /// True if `retained` is a lower bound.
    more: bool,
    objects: u64,
    paths: Vec<PathRow>,
}

#[derive(Debug, Serialize)]
struct PathRow {
    objects: u64,
    bytes: u64,
    retained: u64,
    /// True if `retained` is a lower bound.
    more: bool,
    /// Indexes of names, starting at the root.
    steps: Vec<usize>,
}

/// A heap, with the data that a page shows of it.
pub(crate) struct HeapPage<'g> {
    graph: &'g HeapGraph,
    names: NameForm,
    title: String,
    tree: TypeTree,
    report: HeapReport,
    /// The paths to the objects of the first rows.
    paths: Vec<Vec<gcdump::HeapPath>>,
}

impl<'g> HeapPage<'g> {
    pub(crate) fn new(graph: &'g HeapGraph, title: &str, names: NameForm) -> Self {
        let dominators = Dominators::new(graph);
        let report = HeapReport::new(graph, Grouping::Type, Some(&dominators));
        Self {
            graph,
            names,
            title: title.to_owned(),
            tree: TypeTree::new(graph, &dominators, MAX_TREE_NODES),
            paths: paths(graph, &dominators, &report),
            report,
        }
    }

    /// Writes the page. Small items are left out until it fits the budget.
    pub(crate) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let own = HEAD.len() + BODY.len() + STYLE.len() + OWN_STYLE.len() + SCRIPT.len() + 1000;
        let mut parts = 1;
        let data = loop {
            let data = self.data(parts)?;
            // A thousandth leaves only a few numbers and names of limited length.
            if own + data.len() <= BUDGET || parts >= 1000 {
                break data;
            }
            parts *= 2;
        };
        write!(out, "{HEAD}<style>\n{STYLE}{OWN_STYLE}</style>\n{BODY}")?;
        writeln!(out, "<script type=\"application/json\" id=\"data\">{data}</script>")?;
        write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
    }

    /// Returns the data as JSON that cannot contain markup, with one part in `parts` of the most nodes and
    /// types.
    fn data(&self, parts: usize) -> io::Result<String> {
        let mut names = IndexSet::new();
        let (nodes, smaller) = self.nodes(MAX_NODES / parts, &mut names);
        let mut missing = missing_in_words(self.graph.completeness());
        if smaller > 0 {
            missing.push(format!("{smaller} smaller parts of the tree are summed up with what holds them"));
        }
        if self.tree.folded() > 0 {
            missing.push(format!("{} objects lie deeper than the tree goes, or are more than it has room for: they count for what holds them", self.tree.folded()));
        }
        let types = self.types(MAX_TYPES / parts, MAX_TYPES_WITH_PATHS / parts, &mut names);
        let data = PageData {
            title: text(&self.title),
            notes: missing,
            objects: self.report.objects,
            bytes: self.report.bytes,
            references: self.report.references,
            nodes,
            types_left_out: self.report.rows.len() - types.len(),
            types,
            names: names.into_iter().collect(),
        };
        let json = serde_json::to_string(&data).map_err(io::Error::other)?;
        Ok(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
    }

    /// The nodes that retain the most, each after the node that holds it, and the number of other nodes.
    fn nodes(&self, most: usize, names: &mut IndexSet<String>) -> (Vec<u64>, usize) {
        let all = self.tree.nodes();
        let mut order: Vec<usize> = (0..all.len()).filter(|index| all[*index].retained_bytes > 0).collect();
        // The holder of a node retains at least as much and precedes it.
        order.sort_by_key(|index| (Reverse(all[*index].retained_bytes), *index));
        let left_out = order.len().saturating_sub(most.max(1));
        order.truncate(most.max(1));
        let mut numbers = vec![0_u64; all.len()];
        let mut nodes = Vec::with_capacity(order.len() * 5);
        for (number, index) in (0..).zip(order) {
            let node = &all[index];
            numbers[index] = number;
            let name = match node.step {
                Some(step) => step_name(self.graph, step, self.names),
                None => "(no root reaches)".into(),
            };
            let name = intern(names, &name);
            nodes.extend([numbers[node.holder], name as u64, node.objects, node.bytes, node.retained_bytes]);
        }
        if nodes.is_empty() {
            nodes.extend([0, intern(names, "(empty)") as u64, 0, 0, 0]);
        }
        (nodes, left_out)
    }

    fn types(&self, most: usize, with_paths: usize, names: &mut IndexSet<String>) -> Vec<TypeRow> {
        let rows = self.report.rows.iter().take(most.max(1)).enumerate();
        rows.map(|(number, row)| TypeRow {
            name: text(if self.names == NameForm::Full { &row.name } else { &row.csharp }),
            module: text(&row.module),
            bytes: row.bytes,
            retained: row.retained_bytes.unwrap_or_default(),
            more: row.retains_more,
            objects: row.objects,
            paths: match self.paths.get(number).filter(|_| number < with_paths) {
                Some(paths) => paths.iter().map(|path| self.path_row(path, names)).collect(),
                None => Vec::new(),
            },
        })
        .collect()
    }

    fn path_row(&self, path: &gcdump::HeapPath, names: &mut IndexSet<String>) -> PathRow {
        let (first, left, last) = path.ends(STEPS / 2);
        // The root of all roots carries no information.
        let first = first.iter().skip(1);
        let mut steps: Vec<usize> =
            first.map(|step| intern(names, &step_name(self.graph, *step, self.names))).collect();
        if left > 0 {
            steps.push(intern(names, &format!("… {left} more")));
        }
        steps.extend(last.iter().map(|step| intern(names, &step_name(self.graph, *step, self.names))));
        PathRow {
            objects: path.objects,
            bytes: path.bytes,
            retained: path.retained_bytes.unwrap_or_default(),
            more: path.retains_more,
            steps,
        }
    }
}

/// Finds the paths to the objects of the rows with the most bytes.
fn paths(graph: &HeapGraph, dominators: &Dominators<'_>, report: &HeapReport) -> Vec<Vec<gcdump::HeapPath>> {
    let affordable = usize::try_from(MAX_PATH_VISITS / report.objects.max(1)).unwrap_or(MAX_TYPES_WITH_PATHS);
    let tree = PathTree::new(graph);
    let rows = report.rows.iter().take(MAX_TYPES_WITH_PATHS.min(affordable));
    let mut paths: Vec<_> = rows
        .map(|row| {
            let is_of_row = |of: &HeapType| of.name() == row.name && of.module_name() == row.module;
            let chosen: Vec<bool> = graph.types().iter().map(is_of_row).collect();
            let is_chosen = |of: TypeId| chosen.get(of.index()).copied().unwrap_or_default();
            tree.paths_to(graph, PATHS, is_chosen).paths
        })
        .collect();
    tree.add_retained(&RetainedSets::new(dominators), paths.iter_mut().flatten());
    paths
}

/// The name of a step from a root to an object.
pub(crate) fn step_name(graph: &HeapGraph, step: PathStep, form: NameForm) -> Cow<'_, str> {
    let of_type = |of: TypeId, name: fn(&HeapType) -> &str| {
        graph.types().get(of.index()).map_or_else(Cow::default, |of| name(of).into())
    };
    let of_group = |group: usize| graph.groups().get(group);
    match (step, form) {
        (PathStep::Group(group), NameForm::Full) => {
            of_group(group).map_or_else(Cow::default, |of| of.name().into())
        }
        (PathStep::Group(group), _) => of_group(group).map_or_else(Cow::default, RootGroup::csharp),
        (PathStep::Type(of), NameForm::Full) => of_type(of, HeapType::name),
        (PathStep::Type(of), _) => of_type(of, HeapType::csharp),
        _ => Cow::default(),
    }
}

fn intern(names: &mut IndexSet<String>, name: &str) -> usize {
    names.insert_full(text(name)).0
}

/// A string with bidirectional controls kept from affecting the text around it.
fn text(name: &str) -> String {
    escape_controls(width::prefix(name, WIDEST)).into_owned()
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn lower_bounds_of_retained_bytes_are_marked() {
        let graph = gcdump::file::read(&testdata::bytes("gcdump/files/net10.gcdump.xz")).unwrap();
        let mut page = HeapPage::new(&graph, "heap", NameForm::Full);
        let more = |page: &HeapPage<'_>| {
            let data: serde_json::Value = serde_json::from_str(&page.data(1).unwrap()).unwrap();
            let types = data["types"].as_array().unwrap();
            types.iter().map(|row| row["more"].as_bool().unwrap()).collect::<Vec<_>>()
        };
        assert!(more(&page).len() > 1 && !more(&page).contains(&true));
        page.report.rows[1].retains_more = true;
        assert_eq!(more(&page).iter().position(|more| *more), Some(1));
    }
}
