//! The roots that hold more objects after than before.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clr_events::code::is_framework;
use gcdump::{HeapGraph, HeapType, PathStep, PathTree, TypeId};
use nettrace_export::NameForm;
use serde::Serialize;

use crate::inspect::heap::step_name;
use crate::render::escape::escape_controls;
use crate::render::units::{self, signed};
use crate::render::{shell, width};

/// Roots that are shown.
const MAX_ROOTS: usize = 3;
/// Divisor of the growth under all roots: the quotient is the minimum growth of a root to show.
const MIN_SHARE_DIVISOR: i128 = 100;
/// The number of steps to show at each end of a path.
const STEPS: usize = 6;

/// The indentation of the lines below a suspect.
const INDENT: usize = 11;

/// The name and the module of a type, which are the same in both heaps.
type TypeKey = (String, String);

/// Objects of a type under a group of roots.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    objects: i128,
    bytes: i128,
    /// The group and the type in the heap after; `None` if they are not in it.
    after: Option<(usize, TypeId)>,
}

/// The growth of types, by the name of the group of roots that their shortest paths begin with.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    held: BTreeMap<String, BTreeMap<TypeKey, Growth>>,
    /// The names of groups for people.
    holders: BTreeMap<String, String>,
    list: Vec<Suspect>,
}

/// A group of roots that holds more objects than before.
#[derive(Debug, Serialize)]
pub(super) struct Suspect {
    holder: String,
    bytes_grown: i128,
    #[serde(rename = "type")]
    of: String,
    csharp: String,
    objects_grown: i128,
    /// The steps of the path to these objects.
    path: Vec<String>,
}

impl Suspects {
    pub(super) fn new(before: &HeapGraph, after: &HeapGraph, form: NameForm) -> Self {
        let mut suspects = Self::default();
        suspects.add(before, &PathTree::new(before), false);
        let tree = PathTree::new(after);
        suspects.add(after, &tree, true);
        suspects.find(after, &tree, form);
        suspects
    }

    fn add(&mut self, graph: &HeapGraph, tree: &PathTree, is_after: bool) {
        let sign = if is_after { 1 } else { -1 };
        for held in tree.held_objects(graph) {
            let (Some(group), Some(of)) =
                (graph.groups().get(held.group), graph.types().get(held.type_id.index()))
            else {
                continue;
            };
            let types = self.held.entry(group.name().to_owned()).or_default();
            let growth = types.entry(key(of)).or_default();
            growth.objects += sign * i128::from(held.objects);
            growth.bytes += sign * i128::from(held.bytes);
            if is_after {
                growth.after = Some((held.group, held.type_id));
                self.holders.insert(group.name().to_owned(), short(&group.csharp()));
            }
        }
    }

    /// Finds the roots that hold most of the growth, each with the program's type that grew most.
    fn find(&mut self, graph: &HeapGraph, tree: &PathTree, form: NameForm) {
        let grown =
            |types: &BTreeMap<TypeKey, Growth>| types.values().map(|growth| growth.bytes).sum::<i128>();
        let mut roots: Vec<_> = self.held.iter().map(|(name, types)| (name, types, grown(types))).collect();
        roots.retain(|(.., bytes)| *bytes > 0);
        let all = roots.iter().map(|(.., bytes)| bytes).sum::<i128>();
        roots.sort_by_key(|(name, _, bytes)| (Reverse(*bytes), *name));
        roots.retain(|(.., bytes)| bytes * MIN_SHARE_DIVISOR >= all);
        for (name, types, bytes_grown) in roots.into_iter().take(MAX_ROOTS) {
            let more = types.iter().filter(|(_, growth)| growth.objects > 0 && growth.after.is_some());
            let largest = more.max_by_key(|((_, module), growth)| (is_own(module), growth.bytes));
            let Some((_, Growth { objects, after: Some((group, type_id)), .. })) = largest else { continue };
            let Some(of) = graph.types().get(type_id.index()) else { continue };
            let paths = tree.paths_from(graph, 1, *group, *type_id);
            let steps = paths.paths.first().map(|path| path.ends(STEPS));
            let mut path = Vec::new();
            if let Some((first, left, last)) = steps {
                let name = |step: &PathStep| step_name(graph, *step, form).into_owned();
                // The groups around the root's carry no information.
                let root =
                    first.iter().rposition(|step| matches!(step, PathStep::Group(_))).unwrap_or_default();
                path.extend(first.iter().skip(root).map(name));
                if left > 0 {
                    path.push(format!("… {} more", units::count(left as u64)));
                }
                path.extend(last.iter().map(name));
            }
            self.list.push(Suspect {
                holder: self.holders.get(name).cloned().unwrap_or_default(),
                bytes_grown,
                of: of.name().to_owned(),
                csharp: of.csharp().to_owned(),
                objects_grown: *objects,
                path,
            });
        }
    }

    pub(super) fn list(&self) -> &[Suspect] {
        &self.list
    }

    /// Returns the root that holds most of the growth, as a sentence; `None` without growth.
    pub(super) fn answer(&self, form: NameForm) -> Option<String> {
        let suspect = self.list.first()?;
        let name = if form == NameForm::Full { &suspect.of } else { &suspect.csharp };
        let (bytes, objects) = (suspect.bytes_grown, signed(suspect.objects_grown, units::count));
        let bytes = units::bytes(u64::try_from(bytes).unwrap_or_default());
        Some(format!("{} holds {bytes} more than before: {objects} {name}", suspect.holder))
    }

    /// Returns the suspects, each as a sentence with the path to its objects.
    pub(super) fn sentences(&self, form: NameForm) -> Vec<String> {
        let sentence = |suspect: &Suspect| {
            let name = if form == NameForm::Full { &suspect.of } else { &suspect.csharp };
            format!(
                "{} {}: {} {name} ({})",
                signed(suspect.bytes_grown, units::bytes),
                suspect.holder,
                signed(suspect.objects_grown, units::count),
                suspect.path.join(" → ")
            )
        };
        self.list.iter().map(sentence).collect()
    }

    /// Returns the roots that hold most of the growth of a type; `None` if it has not grown.
    pub(super) fn holder(&self, name: &str, module: &str) -> Option<&str> {
        let key = (name.to_owned(), module.to_owned());
        let grown = |(root, types): (&String, &BTreeMap<TypeKey, Growth>)| {
            let bytes = types.get(&key).map(|growth| growth.bytes).filter(|bytes| *bytes > 0)?;
            Some((bytes, self.holders.get(root)?.as_str()))
        };
        self.held.iter().filter_map(grown).max_by_key(|(bytes, _)| *bytes).map(|(_, holder)| holder)
    }

    /// Returns the suspects for people, each with the command that shows all paths to its objects.
    pub(super) fn text(&self, file: &Path, pid: Option<u64>, form: NameForm) -> String {
        let mut text = String::new();
        if !self.list.is_empty() {
            text.push_str("\nSuspects: the roots that hold more than before\n");
        }
        for suspect in &self.list {
            let name = if form == NameForm::Full { &suspect.of } else { &suspect.csharp };
            let _ = writeln!(
                text,
                "{:>9}  {}: {} {}",
                signed(suspect.bytes_grown, units::bytes),
                escape_controls(&suspect.holder),
                signed(suspect.objects_grown, units::count),
                escape_controls(name),
            );
            let room = width::of_output().map_or(usize::MAX, |width| width.saturating_sub(INDENT).max(20));
            for line in width::filled(&escape_controls(&suspect.path.join(" → ")), room) {
                let _ = writeln!(text, "{:INDENT$}{line}", "");
            }
            let pid = pid.map(|pid| format!(" --pid {pid}")).unwrap_or_default();
            let (file, of) = (shell::path(file), shell::word(name));
            let _ = writeln!(text, "{:INDENT$}dipc gcdump paths {file}{pid} --type {of}", "");
        }
        text
    }
}

fn key(of: &HeapType) -> TypeKey {
    (of.name().to_owned(), of.module_name().to_owned())
}

/// Returns the name of a group without brackets and without the type of a static field.
fn short(name: &str) -> String {
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    match name.strip_prefix("static var ") {
        Some(field) => {
            let field = field.split_once(": ").map_or(field, |(field, _)| field);
            if field.contains('.') { field.to_owned() } else { format!("static {field}") }
        }
        None => name.to_owned(),
    }
}

/// Returns true if a module is the program's own, or of a package.
fn is_own(module: &str) -> bool {
    let stem = module.rsplit_once('.').map_or(module, |(stem, _)| stem);
    !stem.is_empty() && !is_framework(stem, "")
}

#[cfg(test)]
mod tests {
    use gcdump::{MemoryGraphBuilder, MemoryType};

    use super::*;

    /// A heap in which a static field holds orders.
    fn heap(orders: u64) -> HeapGraph {
        let mut builder = MemoryGraphBuilder::new(8, None);
        let of = |id, name, module_id| MemoryType { id, module_id, name, whole_name: name, is_array: false };
        builder.add_module(1, "/app/shop.dll");
        builder.add_module(2, "/dotnet/System.Private.CoreLib.dll");
        builder.add_type(of(1, "Shop.Order", 1));
        builder.add_type(of(2, "System.Object[]", 2));
        builder.add_type(of(3, "System.String", 2));
        builder.add_object(0x1000, 2, 24 + 8 * orders);
        for order in 0..orders {
            builder.add_reference(0x2000 + order * 0x100);
        }
        for order in 0..orders {
            builder.add_object(0x2000 + order * 0x100, 1, 24);
            builder.add_reference(0x2020 + order * 0x100);
            builder.add_object(0x2020 + order * 0x100, 3, 100);
        }
        builder.add_object(0x9_0000, 3, 30);
        builder.add_static(Some("Shop.Store"), "Kept", 2, 0x1000);
        builder.add_static(Some("Shop.Store"), "Title", 3, 0x9_0000);
        builder.finish().unwrap()
    }

    #[test]
    fn the_field_that_holds_more_is_found_with_the_programs_own_type() {
        let suspects = Suspects::new(&heap(10), &heap(30), NameForm::CSharp);
        let text = suspects.text(Path::new("after.gcdump"), None, NameForm::CSharp);
        let expected = "
Suspects: the roots that hold more than before
 +2.64 KB  Shop.Store.Kept: +20 Shop.Order
           [static var Shop.Store.Kept: object[]] → object[] → Shop.Order
           dipc gcdump paths after.gcdump --type Shop.Order
";
        assert_eq!(text, expected);
        assert_eq!(suspects.holder("System.String", "System.Private.CoreLib.dll"), Some("Shop.Store.Kept"));
        let none = Suspects::new(&heap(30), &heap(10), NameForm::CSharp);
        assert_eq!(none.text(Path::new("after.gcdump"), None, NameForm::CSharp), "");
        assert_eq!(none.holder("Shop.Order", "shop.dll"), None);
    }

    #[test]
    fn holders_are_named_by_class_and_field() {
        assert_eq!(short("[static var PriceFeed.Tick: System.EventHandler]"), "PriceFeed.Tick");
        assert_eq!(short("[static var Held: System.Collections.Generic.List<byte[]>]"), "static Held");
        assert_eq!(short("[strong Handles]"), "strong Handles");
    }

    #[test]
    fn modules_of_the_framework_are_not_the_programs_own() {
        for (module, expected) in [
            ("leak.dll", true),
            ("System.Private.CoreLib.dll", false),
            ("mscorlib.dll", false),
            ("Systematic.dll", true),
            ("", false),
        ] {
            assert_eq!(is_own(module), expected, "{module}");
        }
    }
}
