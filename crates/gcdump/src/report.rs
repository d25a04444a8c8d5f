//! The sums of a heap by type, module or namespace.

use hashbrown::HashMap;

use crate::dominators::Dominators;
use crate::graph::{HeapGraph, Object};
use crate::retained_sets::RetainedSets;

/// The property that objects are grouped by.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// use gcdump::{Grouping, HeapReport};
///
/// let by_module = HeapReport::new(&graph, Grouping::Module, None);
/// assert_eq!((by_module.rows.len(), by_module.rows[0].bytes), (1, 56));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Grouping {
    /// The type.
    #[default]
    Type,
    /// The module of the type.
    Module,
    /// The namespace of the type.
    Namespace,
}

/// The objects of a heap in groups, the largest first.
///
/// ```
/// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
/// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
/// # builder.add_module(1, "/app/shop.dll");
/// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
/// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
/// # }
/// # builder.add_object(0x1000, 3, 32);
/// # builder.add_reference(0x1020);
/// # builder.add_object(0x1020, 2, 24);
/// # builder.add_root(RootKind::StrongHandle, 0x1000);
/// # let graph = builder.finish()?;
/// use gcdump::{Dominators, Grouping, HeapReport};
///
/// let dominators = Dominators::new(&graph);
/// let report = HeapReport::new(&graph, Grouping::Type, Some(&dominators));
/// for row in &report.rows {
///     println!("{} objects, {} bytes, retained {:?}: {}", row.objects, row.bytes, row.retained_bytes, row.csharp);
/// }
/// assert_eq!(report.rows.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HeapReport {
    /// Bytes of all objects.
    pub bytes: u64,
    /// Objects.
    pub objects: u64,
    /// References between objects, and from roots.
    pub references: u64,
    /// Unreachable objects and their bytes; `None` without retained sizes.
    pub unreachable: Option<Unreachable>,
    /// Groups, by falling bytes, then by falling number of objects.
    pub rows: Vec<ReportRow>,
}

/// Unreachable objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "a pair")]
pub struct Unreachable {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A group of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportRow {
    /// The name of the type as dotnet-gcdump writes it, of the module, or of the namespace.
    pub name: String,
    /// The name in C#.
    pub csharp: String,
    /// The last part of the module's path; empty if it is unknown, and for groups of several modules.
    pub module: String,
    /// Objects.
    pub objects: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Bytes of the first of them, which dotnet-gcdump shows as the bytes of the type.
    pub first_bytes: u64,
    /// Bytes that would be free without all of them; `None` if they were not requested.
    pub retained_bytes: Option<u64>,
    /// True if more than `retained_bytes` may be free without them, because the heap has too many groups for
    /// exact numbers ([`RetainedBytes::is_exact`](crate::RetainedBytes)).
    pub retains_more: bool,
}

impl HeapReport {
    /// Builds a report; with retained sizes if `dominators` are given.
    pub fn new(graph: &HeapGraph, grouping: Grouping, dominators: Option<&Dominators<'_>>) -> Self {
        let references = u64::from(graph.reference_count()).saturating_add(graph.root_count() as u64);
        Self {
            bytes: graph.total_bytes(),
            objects: graph.object_count().into(),
            references,
            ..Self::of_objects(graph, grouping, dominators, |_| true)
        }
    }

    /// Builds a report of some of the objects, and of references from these. They retain what would be free
    /// without them, which is of any part of the heap.
    ///
    /// ```
    /// # use gcdump::{MemoryGraphBuilder, MemoryType, RootKind};
    /// # let mut builder = MemoryGraphBuilder::new(8, Some(4711));
    /// # builder.add_module(1, "/app/shop.dll");
    /// # for (id, name) in [(2, "Shop.Row"), (3, "Shop.Table")] {
    /// #     builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
    /// # }
    /// # builder.add_object(0x1000, 3, 32);
    /// # builder.add_reference(0x1020);
    /// # builder.add_object(0x1020, 2, 24);
    /// # builder.add_root(RootKind::StrongHandle, 0x1000);
    /// # let graph = builder.finish()?;
    /// use gcdump::{Dominators, Grouping, HeapReport};
    ///
    /// let dominators = Dominators::new(&graph);
    /// let is_first = |object: gcdump::Object<'_>| object.address() == Some(0x1000);
    /// let report = HeapReport::of_objects(&graph, Grouping::Type, Some(&dominators), is_first);
    /// assert_eq!((report.objects, report.bytes, report.references), (1, 32, 1));
    /// assert_eq!(report.rows[0].retained_bytes, Some(56));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_objects(
        graph: &HeapGraph,
        grouping: Grouping,
        dominators: Option<&Dominators<'_>>,
        is_included: impl Fn(Object<'_>) -> bool,
    ) -> Self {
        let (classes, mut rows) = classes(graph, grouping);
        let class = |object: Object<'_>| classes.get(object.type_id().index()).copied().unwrap_or_default();
        let mut unreachable = Unreachable::default();
        let (mut bytes, mut objects, mut references) = (0_u64, 0_u64, 0_u64);
        for object in graph.objects().filter(|object| is_included(*object)) {
            bytes = bytes.saturating_add(object.size());
            objects = objects.saturating_add(1);
            references = references.saturating_add(object.references().len() as u64);
            let Some(row) = rows.get_mut(class(object)) else { continue };
            if row.objects == 0 {
                row.first_bytes = object.size();
            }
            row.objects = row.objects.saturating_add(1);
            row.bytes = row.bytes.saturating_add(object.size());
            if dominators.is_some_and(|dominators| !dominators.is_reachable(object.id())) {
                unreachable.objects = unreachable.objects.saturating_add(1);
                unreachable.bytes = unreachable.bytes.saturating_add(object.size());
            }
        }
        if let Some(dominators) = dominators {
            let sets = RetainedSets::new(dominators);
            let retained = sets.sizes(rows.len(), |object| is_included(object).then(|| class(object)));
            for (row, retained) in rows.iter_mut().zip(retained) {
                row.retained_bytes = Some(retained.bytes);
                row.retains_more = !retained.is_exact;
            }
        }
        rows.retain(|row| row.objects > 0);
        rows.sort_by(|a, b| (b.bytes, b.objects, &a.name).cmp(&(a.bytes, a.objects, &b.name)));
        Self { bytes, objects, references, unreachable: dominators.map(|_| unreachable), rows }
    }
}

/// The number of the group of each type, and the groups without objects.
fn classes(graph: &HeapGraph, grouping: Grouping) -> (Vec<usize>, Vec<ReportRow>) {
    let mut numbers: HashMap<(&str, &str), usize> = HashMap::new();
    let mut rows = Vec::new();
    let classes = graph.types().iter().map(|of| {
        let path = of.module().unwrap_or_default();
        let (name, csharp, module) = match grouping {
            Grouping::Type => (of.name(), of.csharp(), path),
            Grouping::Module => (path, path, ""),
            Grouping::Namespace => (of.namespace(), of.namespace(), ""),
        };
        *numbers.entry((name, module)).or_insert_with(|| {
            rows.push(ReportRow {
                name: name.to_owned(),
                csharp: csharp.to_owned(),
                module: if module.is_empty() { String::new() } else { of.module_name().to_owned() },
                objects: 0,
                bytes: 0,
                first_bytes: 0,
                retained_bytes: None,
                retains_more: false,
            });
            rows.len().saturating_sub(1)
        })
    });
    (classes.collect(), rows)
}
