//! The report that dotnet-gcdump prints.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::graph::HeapGraph;

/// Returns the text of `dotnet-gcdump report`. The tool knows the number of references only if it `is_live`:
/// if it has made the dump itself.
///
/// `shown` escapes a name for display: names of hostile programs have line ends and control characters.
/// `Object Bytes` is the size of the first object of the type, and the number of objects includes the tool's
/// own nodes.
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
/// let text = gcdump::dotnet_gcdump::report(&graph, false, |name| name.into());
/// assert!(text.contains("GC Heap bytes") && text.contains("Shop.Table"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn report(graph: &HeapGraph, is_live: bool, shown: impl Fn(&str) -> Cow<'_, str>) -> String {
    let mut counts = vec![0_u64; graph.types.len()];
    // The root references every other group, directly or not.
    let groups = graph.groups().len().saturating_sub(1);
    let (mut bytes, mut references) = (0_u64, graph.root_count().saturating_add(groups) as u64);
    for object in graph.objects() {
        if let Some(count) = counts.get_mut(object.shape().file_type as usize) {
            *count = count.saturating_add(1);
        }
        // Files do not have larger sizes.
        bytes = bytes.saturating_add(object.size().min(i32::MAX.unsigned_abs().into()));
        references = references.saturating_add(object.edges().len() as u64);
    }
    let mut text = String::new();
    let _ = writeln!(text, "{:>15}  GC Heap bytes", thousands(bytes));
    let _ = writeln!(text, "{:>15}  GC Heap objects", thousands(graph.node_count().into()));
    if is_live {
        let _ = writeln!(text, "{:>15}  Total references", thousands(references));
    }
    let _ = writeln!(text, "\n{:>15}  {:>8}  Type", "Object Bytes", "Count");
    let mut rows: Vec<_> = graph
        .types
        .iter()
        .zip(counts)
        .filter_map(|(of, count)| Some((of.first_size.filter(|size| *size > 0)?, count, of)))
        .filter(|(_, count, of)| *count > 0 && !of.name.is_empty())
        .collect();
    rows.sort_by_key(|(size, count, _)| std::cmp::Reverse((*size, *count)));
    for (size, count, of) in rows {
        let size = size.min(i32::MAX.unsigned_abs().into());
        let _ = write!(text, "{:>15}  {:>8}  {}", thousands(size), thousands(count), shown(&of.name));
        let module = of.module().and_then(|path| path.rsplit(std::path::is_separator).next());
        match module {
            Some(module) if !module.is_empty() => {
                let _ = writeln!(text, "  [{}]", shown(module));
            }
            _ => text.push('\n'),
        }
    }
    text
}

/// A number with commas.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && digits.len().wrapping_sub(place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
