//! The data of a page, as JSON that cannot contain markup.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::io;

use clr_events::escape_controls;
use indexmap::IndexSet;
use nettrace_export::units;
use serde::Serialize;

use super::{HeapPage, MAX_TYPES_WITH_PATHS};
use crate::completeness::Completeness;
use crate::paths::{HeapPath, PathStep};

/// Maximum number of nodes of a page.
const MAX_NODES: usize = 20_000;
/// Maximum number of types of a page.
const MAX_TYPES: usize = 5_000;
/// Maximum number of steps of a path.
const STEPS: usize = 50;
/// Maximum number of characters kept of a name.
const MAX_NAME: usize = 500;

/// The data of a page.
#[derive(Debug, Serialize)]
pub(super) struct PageData {
    title: String,
    notes: Vec<String>,
    objects: u64,
    bytes: u64,
    references: u64,
    names: Vec<String>,
    /// For each node: the index of its holder, the index of its name, objects, own bytes and retained bytes.
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

/// The names of a page, each once.
#[derive(Debug, Default)]
struct PageNames(IndexSet<String>);

impl PageNames {
    fn intern(&mut self, name: &str) -> usize {
        self.0.insert_full(text(name)).0
    }
}

impl PageData {
    /// The data with one part in `parts` of the most nodes and types.
    pub(super) fn new(page: &HeapPage<'_>, parts: usize) -> Self {
        let part = |all: usize| all.checked_div(parts).unwrap_or_default();
        let mut names = PageNames::default();
        let (nodes, smaller) = nodes(page, part(MAX_NODES), &mut names);
        let mut remarks = notes(page.graph.completeness());
        if smaller > 0 {
            remarks.push(format!("{smaller} smaller parts of the tree are summed up with what holds them"));
        }
        if page.tree.folded() > 0 {
            remarks.push(format!("{} objects lie deeper than the tree goes, or are more than it has room for: they count for what holds them", page.tree.folded()));
        }
        let types = types(page, part(MAX_TYPES), part(MAX_TYPES_WITH_PATHS), &mut names);
        Self {
            title: text(&page.title),
            notes: remarks,
            objects: page.report.objects,
            bytes: page.report.bytes,
            references: page.report.references,
            nodes,
            types_left_out: page.report.rows.len().saturating_sub(types.len()),
            types,
            names: names.0.into_iter().collect(),
        }
    }

    /// Returns the data as JSON.
    pub(super) fn to_json(&self) -> io::Result<String> {
        let json = serde_json::to_string(self).map_err(io::Error::other)?;
        Ok(json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"))
    }
}

/// Returns sentences about the missing parts of a graph.
fn notes(of: &Completeness) -> Vec<String> {
    let mut notes = Vec::new();
    if of.is_cut {
        notes.push("The recording ends before the dump does: this is a part of the heap.".to_owned());
    }
    if of.lost_events > 0 {
        let lost = units::count(of.lost_events);
        notes.push(format!("The runtime lost {lost} events: this is a part of the heap."));
    }
    if of.conservative_roots > 0 {
        let roots = units::count(of.conservative_roots);
        notes.push(format!(
            "Local variables are {roots} objects that words on stacks point into; not each is in use."
        ));
    }
    if of.truncated_stacks > 0 {
        let threads = units::count(of.truncated_stacks);
        notes.push(format!(
            "Local variables of {threads} threads are missing: their stacks have more references than are read."
        ));
    }
    if !of.is_complete() && notes.is_empty() {
        notes.push("Parts of the heap are missing: dipc gcdump report lists them.".to_owned());
    }
    notes
}

/// Returns the nodes that retain the most, each after the node that holds it, and the number of other nodes.
fn nodes(page: &HeapPage<'_>, most: usize, names: &mut PageNames) -> (Vec<u64>, usize) {
    let all = page.tree.nodes();
    let mut order: Vec<_> = all.iter().enumerate().filter(|(_, node)| node.retained_bytes > 0).collect();
    // The holder of a node retains at least as much and precedes it.
    order.sort_by_key(|(index, node)| (Reverse(node.retained_bytes), *index));
    let left_out = order.len().saturating_sub(most.max(1));
    order.truncate(most.max(1));
    let mut numbers = vec![0_u64; all.len()];
    let mut nodes = Vec::with_capacity(order.len().saturating_mul(5));
    for (number, (index, node)) in (0..).zip(order) {
        if let Some(place) = numbers.get_mut(index) {
            *place = number;
        }
        let name = match node.step {
            Some(step) => step_name(page, step),
            None => "(no root reaches)".into(),
        };
        let name = names.intern(&name);
        let holder = numbers.get(node.holder).copied().unwrap_or_default();
        nodes.extend([holder, name as u64, node.objects, node.bytes, node.retained_bytes]);
    }
    if nodes.is_empty() {
        nodes.extend([0, names.intern("(empty)") as u64, 0, 0, 0]);
    }
    (nodes, left_out)
}

fn types(page: &HeapPage<'_>, most: usize, with_paths: usize, names: &mut PageNames) -> Vec<TypeRow> {
    let rows = page.report.rows.iter().take(most.max(1)).enumerate();
    rows.map(|(number, row)| TypeRow {
        name: text(if page.has_full_names { &row.name } else { &row.csharp }),
        module: text(&row.module),
        bytes: row.bytes,
        retained: row.retained_bytes.unwrap_or_default(),
        more: row.retains_more,
        objects: row.objects,
        paths: match page.paths.get(number).filter(|_| number < with_paths) {
            Some(paths) => paths.iter().map(|path| path_row(page, path, names)).collect(),
            None => Vec::new(),
        },
    })
    .collect()
}

fn path_row(page: &HeapPage<'_>, path: &HeapPath, names: &mut PageNames) -> PathRow {
    let (first, left, last) = path.ends(STEPS / 2);
    // The root of all roots carries no information.
    let first = first.iter().skip(1);
    let mut steps: Vec<usize> = first.map(|step| names.intern(&step_name(page, *step))).collect();
    if left > 0 {
        steps.push(names.intern(&format!("… {left} more")));
    }
    steps.extend(last.iter().map(|step| names.intern(&step_name(page, *step))));
    PathRow {
        objects: path.objects,
        bytes: path.bytes,
        retained: path.retained_bytes.unwrap_or_default(),
        more: path.retains_more,
        steps,
    }
}

/// Returns the name of a step from a root to an object.
fn step_name<'g>(page: &HeapPage<'g>, step: PathStep) -> Cow<'g, str> {
    if page.has_full_names { step.name(page.graph).into() } else { step.csharp(page.graph) }
}

/// A string of limited length, with bidirectional controls kept from affecting the text around it.
fn text(name: &str) -> String {
    let end = name.char_indices().nth(MAX_NAME).map_or(name.len(), |(end, _)| end);
    escape_controls(name.get(..end).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryGraphBuilder, MemoryType, RootKind};

    #[test]
    fn lower_bounds_of_retained_bytes_are_marked() {
        let mut builder = MemoryGraphBuilder::new(8, None);
        builder.add_module(1, "/app/shop.dll");
        for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
            builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
        }
        builder.add_object(0x1000, 3, 32);
        builder.add_reference(0x1020);
        builder.add_object(0x1020, 2, 24);
        builder.add_root(RootKind::StrongHandle, 0x1000);
        let graph = builder.finish().unwrap();
        let mut page = HeapPage::new(&graph, "heap").with_full_names(true);
        let more =
            |page: &HeapPage<'_>| PageData::new(page, 1).types.iter().map(|row| row.more).collect::<Vec<_>>();
        assert_eq!(more(&page), [false, false]);
        page.report.rows[1].retains_more = true;
        assert_eq!(more(&page), [false, true]);
    }
}
