//! Changes between two heaps.

use hashbrown::HashMap;

use crate::report::{HeapReport, ReportRow};

/// The difference of two reports.
///
/// ```
/// use gcdump::{Grouping, HeapDiff, HeapReport, MemoryGraphBuilder, MemoryType};
///
/// let report = |rows: u64| -> Result<HeapReport, gcdump::Error> {
///     let mut builder = MemoryGraphBuilder::new(8, None);
///     let name = "Shop.Row";
///     builder.add_type(MemoryType { id: 2, module_id: 1, name, whole_name: name, is_array: false });
///     (0..rows).for_each(|row| builder.add_object(0x1000 + row * 24, 2, 24));
///     Ok(HeapReport::new(&builder.finish()?, Grouping::Type, None))
/// };
/// let diff = HeapDiff::new(&report(1)?, &report(3)?);
/// assert_eq!((diff.rows[0].csharp.as_str(), diff.rows[0].change.objects()), ("Shop.Row", 2));
/// assert_eq!(diff.total.bytes(), 48);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeapDiff {
    /// All objects of both reports.
    pub total: HeapChange,
    /// Groups of objects, sorted by change in bytes: largest growth first, largest loss last.
    pub rows: Vec<DiffRow>,
}

/// The changes of a group of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiffRow {
    /// The name, as in [`ReportRow::name`].
    pub name: String,
    /// The name in C#.
    pub csharp: String,
    /// The module, as in [`ReportRow::module`].
    pub module: String,
    /// Before and after.
    pub change: HeapChange,
}

/// Numbers of objects before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HeapChange {
    /// Objects before.
    pub objects_before: u64,
    /// Objects after.
    pub objects_after: u64,
    /// Bytes before.
    pub bytes_before: u64,
    /// Bytes after.
    pub bytes_after: u64,
    /// Retained bytes before; `None` if they are not known.
    pub retained_before: Option<u64>,
    /// Retained bytes after; `None` if they are not known.
    pub retained_after: Option<u64>,
}

impl HeapChange {
    /// Growth in the number of objects.
    pub fn objects(&self) -> i128 {
        growth(self.objects_before, self.objects_after)
    }

    /// Growth in bytes.
    pub fn bytes(&self) -> i128 {
        growth(self.bytes_before, self.bytes_after)
    }

    /// Growth of the retained bytes; `None` if they are not known.
    pub fn retained(&self) -> Option<i128> {
        Some(growth(self.retained_before?, self.retained_after?))
    }
}

impl HeapDiff {
    /// Compares two reports with the same grouping. Groups with the same name and module are the same.
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
    /// use gcdump::{Grouping, HeapDiff, HeapReport};
    ///
    /// let report = HeapReport::new(&graph, Grouping::Type, None);
    /// // In a program that leaks, `after` is the report of a later heap.
    /// let diff = HeapDiff::new(&report, &report);
    /// assert!(diff.rows.iter().all(|row| row.change.bytes() == 0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(before: &HeapReport, after: &HeapReport) -> Self {
        let key = |row: &ReportRow| (row.name.clone(), row.module.clone());
        let mut rows: HashMap<(String, String), DiffRow> = HashMap::new();
        let mut take = |report: &HeapReport, is_after: bool| {
            for row in &report.rows {
                let entry = rows.entry(key(row)).or_insert_with(|| DiffRow {
                    name: row.name.clone(),
                    csharp: row.csharp.clone(),
                    module: row.module.clone(),
                    // An absent group does not retain anything.
                    change: HeapChange {
                        retained_before: row.retained_bytes.map(|_| 0),
                        retained_after: row.retained_bytes.map(|_| 0),
                        ..HeapChange::default()
                    },
                });
                let change = &mut entry.change;
                // Modules with one name in different folders are one here.
                let (objects, bytes, retained) = if is_after {
                    entry.csharp.clone_from(&row.csharp);
                    (&mut change.objects_after, &mut change.bytes_after, &mut change.retained_after)
                } else {
                    (&mut change.objects_before, &mut change.bytes_before, &mut change.retained_before)
                };
                *objects = objects.saturating_add(row.objects);
                *bytes = bytes.saturating_add(row.bytes);
                *retained = retained.zip(row.retained_bytes).map(|(a, b)| a.saturating_add(b));
            }
        };
        take(before, false);
        take(after, true);
        let mut rows: Vec<_> = rows.into_values().collect();
        rows.sort_by(|a, b| {
            let key = |row: &DiffRow| (row.change.bytes(), row.change.objects());
            key(b).cmp(&key(a)).then_with(|| (&a.name, &a.module).cmp(&(&b.name, &b.module)))
        });
        let total = HeapChange {
            objects_before: before.objects,
            objects_after: after.objects,
            bytes_before: before.bytes,
            bytes_after: after.bytes,
            ..HeapChange::default()
        };
        Self { total, rows }
    }
}

fn growth(before: u64, after: u64) -> i128 {
    i128::from(after).saturating_sub(before.into())
}
