//! A page that shows a heap: treemap, dominator tree, types, and paths from roots, in one file that loads
//! nothing.
//!
//! It looks like the page of a recording, whose style it shares ([`nettrace_export::page::STYLE`]).

mod data;
mod growth;

use std::io::{self, Write};

use nettrace_export::page::STYLE;

use crate::dominators::Dominators;
use crate::graph::{HeapGraph, HeapType, TypeId};
use crate::paths::{HeapPath, PathTree};
use crate::report::{Grouping, HeapReport};
use crate::retained_sets::RetainedSets;
use crate::type_tree::TypeTree;
use data::PageData;
pub use growth::HeapDiffPage;

/// The pieces of the page, between which style, data and script are inserted.
const HEAD: &str = include_str!("page/assets/page.html");
const BODY: &str = include_str!("page/assets/body.html");
const OWN_STYLE: &str = include_str!("page/assets/page.css");
const SCRIPT: &str = include_str!("page/assets/page.js");

/// Bytes of a page by default.
const BUDGET: usize = 5_000_000;
/// Maximum number of nodes of a dominator tree by types that a page or a profile shows.
pub const MAX_TREE_NODES: usize = 1 << 20;
/// Maximum number of types with paths.
const MAX_TYPES_WITH_PATHS: usize = 200;
/// Maximum number of objects to visit for paths: each type visits all objects.
const MAX_PATH_VISITS: u64 = 200_000_000;
/// Maximum number of paths of a type.
const PATHS: usize = 3;

/// A heap, with the data that a page shows of it.
///
/// ```no_run
/// use gcdump::file;
/// use gcdump::page::HeapPage;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let graph = file::read(&std::fs::read("app.gcdump")?)?;
/// HeapPage::new(&graph, "app.gcdump").write(&mut std::fs::File::create("app.html")?)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct HeapPage<'g> {
    graph: &'g HeapGraph,
    has_full_names: bool,
    budget: usize,
    title: String,
    tree: TypeTree,
    report: HeapReport,
    /// The paths to the objects of the first rows.
    paths: Vec<Vec<HeapPath>>,
}

impl<'g> HeapPage<'g> {
    /// A page that shows a heap, with names in C#. Computes the dominators, and paths from roots.
    pub fn new(graph: &'g HeapGraph, title: &str) -> Self {
        let dominators = Dominators::new(graph);
        let report = HeapReport::new(graph, Grouping::Type, Some(&dominators));
        Self {
            graph,
            has_full_names: false,
            budget: BUDGET,
            title: title.to_owned(),
            tree: TypeTree::new(graph, &dominators, MAX_TREE_NODES),
            paths: paths(graph, &dominators, &report),
            report,
        }
    }

    /// With names as dotnet-gcdump writes them, instead of C#.
    #[must_use]
    pub fn with_full_names(self, has_full_names: bool) -> Self {
        Self { has_full_names, ..self }
    }

    /// With this many bytes as its largest size; 5 MB by default. Small items are left out until it fits, but
    /// style, script and a thousandth of the items always stay.
    #[must_use]
    pub fn with_budget(self, bytes: usize) -> Self {
        Self { budget: bytes, ..self }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let own = [HEAD, BODY, STYLE, OWN_STYLE, SCRIPT].into_iter().map(str::len).sum::<usize>();
        let room = self.budget.saturating_sub(own).saturating_sub(1000);
        let mut parts = 1_usize;
        let data = loop {
            let data = PageData::new(self, parts).to_json()?;
            // A thousandth leaves only a few numbers and names of limited length.
            if data.len() <= room || parts >= 1000 {
                break data;
            }
            parts = parts.saturating_mul(2);
        };
        write!(out, "{HEAD}<style>\n{STYLE}{OWN_STYLE}</style>\n{BODY}")?;
        writeln!(out, "<script type=\"application/json\" id=\"data\">{data}</script>")?;
        write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
    }
}

/// Finds the paths to the objects of the rows with the most bytes.
fn paths(graph: &HeapGraph, dominators: &Dominators<'_>, report: &HeapReport) -> Vec<Vec<HeapPath>> {
    let affordable = MAX_PATH_VISITS.checked_div(report.objects).and_then(|rows| usize::try_from(rows).ok());
    let tree = PathTree::new(graph);
    let rows = report.rows.iter().take(MAX_TYPES_WITH_PATHS.min(affordable.unwrap_or(MAX_TYPES_WITH_PATHS)));
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
