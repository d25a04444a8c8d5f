//! The page of the difference between two heaps: bars of groups of objects that grew or shrank.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use nettrace_export::page::BarPage;
use nettrace_export::units;

use crate::diff::{DiffRow, HeapChange, HeapDiff};

/// Maximum number of rows.
const MAX_ROWS: usize = 500;

/// The roots that hold most of the growth of a group.
type Holder<'d> = dyn Fn(&DiffRow) -> Option<String> + 'd;

/// A page that shows the difference between two heaps.
///
/// ```no_run
/// use gcdump::page::HeapDiffPage;
/// use gcdump::{Grouping, HeapDiff, HeapReport, file};
///
/// let report = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
///     Ok(HeapReport::new(&file::read(&std::fs::read(name)?)?, Grouping::Type, None))
/// };
/// let diff = HeapDiff::new(&report("before.gcdump")?, &report("after.gcdump")?);
/// let page = HeapDiffPage::new(&diff, "before.gcdump → after.gcdump", "The heap grew");
/// page.write(&mut std::fs::File::create("growth.html")?)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct HeapDiffPage<'d> {
    diff: &'d HeapDiff,
    title: &'d str,
    answer: &'d str,
    has_full_names: bool,
    rows: usize,
    suspects: Vec<String>,
    holder: Box<Holder<'d>>,
}

impl fmt::Debug for HeapDiffPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeapDiffPage")
            .field("title", &self.title)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl<'d> HeapDiffPage<'d> {
    /// A page with a title and a first line, and with names in C#.
    pub fn new(diff: &'d HeapDiff, title: &'d str, answer: &'d str) -> Self {
        let holder = Box::new(|_: &DiffRow| None);
        Self { diff, title, answer, has_full_names: false, rows: MAX_ROWS, suspects: Vec::new(), holder }
    }

    /// With names as dotnet-gcdump writes them, instead of C#.
    #[must_use]
    pub fn with_full_names(self, has_full_names: bool) -> Self {
        Self { has_full_names, ..self }
    }

    /// With at most this many groups, of those that changed most; 500 by default and at most.
    #[must_use]
    pub fn with_rows(self, rows: usize) -> Self {
        Self { rows: rows.min(MAX_ROWS), ..self }
    }

    /// With sentences about the roots that hold more than before.
    #[must_use]
    pub fn with_suspects(self, suspects: Vec<String>) -> Self {
        Self { suspects, ..self }
    }

    /// With the roots that hold most of the growth of each group.
    #[must_use]
    pub fn with_holders(self, holder: impl Fn(&DiffRow) -> Option<String> + 'd) -> Self {
        Self { holder: Box::new(holder), ..self }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.page().write_to(out)
    }

    fn page(&self) -> BarPage {
        let HeapChange { objects_before, objects_after, bytes_before, bytes_after, .. } = self.diff.total;
        let summary = format!(
            "{} → {} objects, {} → {}",
            units::count(objects_before),
            units::count(objects_after),
            units::bytes(bytes_before),
            units::bytes(bytes_after)
        );
        let mut page = BarPage::new(self.title, &summary, self.answer);
        // Writing into a page does not fail.
        if !self.suspects.is_empty() {
            let _ = writeln!(page, "<h2>Roots that hold more than before</h2>\n<ul>");
            for suspect in &self.suspects {
                let _ = writeln!(page, "<li>{}</li>", BarPage::text(suspect));
            }
            let _ = writeln!(page, "</ul>");
        }
        let mut rows: Vec<_> = self.diff.rows.iter().filter(|row| row.change.bytes() != 0).collect();
        let changed = rows.len();
        rows.sort_by_key(|row| std::cmp::Reverse(size(row)));
        rows.truncate(self.rows);
        rows.sort_by_key(|row| std::cmp::Reverse(row.change.bytes()));
        let largest = rows.iter().map(|row| size(row)).max().unwrap_or_default();
        let _ = writeln!(
            page,
            "<table><thead><tr><th>Change</th><th>Objects</th><th>Retained</th><th>Before</th><th>After</th>\
             <th>Objects of</th></tr></thead><tbody>"
        );
        for row in &rows {
            self.push_row(&mut page, row, largest);
        }
        let _ = writeln!(page, "</tbody></table>");
        if changed > rows.len() {
            let more = units::count(changed.saturating_sub(rows.len()) as u64);
            let _ = writeln!(page, "<p class=\"note\">{more} more changed less.</p>");
        }
        page
    }

    fn push_row(&self, page: &mut BarPage, row: &DiffRow, largest: u64) {
        let change = row.change;
        let retained = change.retained().map_or_else(|| "-".to_owned(), |bytes| signed(bytes, units::bytes));
        let _ = write!(
            page,
            "<tr><td>{}</td><td>{}</td><td>{retained}</td><td>{}</td><td>{}</td><td>",
            signed(change.bytes(), units::bytes),
            signed(change.objects(), units::count),
            units::bytes(change.bytes_before),
            units::bytes(change.bytes_after),
        );
        let name = if self.has_full_names { &row.name } else { &row.csharp };
        let _ = write!(page, "{}", BarPage::text(if name.is_empty() { "(none)" } else { name }));
        if let Some(holder) = (self.holder)(row) {
            let _ = write!(page, " <span class=\"note\">held by {}</span>", BarPage::text(&holder));
        }
        let _ = write!(page, "<div class=\"bar\">");
        let color = if change.bytes() > 0 { "--error" } else { "--framework" };
        page.push_segment(size(row), largest, color, &signed(change.bytes(), units::bytes));
        let _ = writeln!(page, "</div></td></tr>");
    }
}

/// The bytes that a group grew or shrank by.
fn size(row: &DiffRow) -> u64 {
    u64::try_from(row.change.bytes().unsigned_abs()).unwrap_or(u64::MAX)
}

fn signed(change: i128, text: impl Fn(u64) -> String) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("{sign}{}", text(u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Grouping, HeapReport, MemoryGraphBuilder, MemoryType};

    fn report(rows: u64, blocks: u64) -> HeapReport {
        let mut builder = MemoryGraphBuilder::new(8, None);
        for (id, name) in [(1, "Shop.Row<T>"), (2, "Shop.Block"), (3, "Shop.Same")] {
            builder.add_type(MemoryType { id, module_id: 1, name, whole_name: name, is_array: false });
        }
        (0..rows).for_each(|row| builder.add_object(0x1000 + row * 32, 1, 24));
        (0..blocks).for_each(|block| builder.add_object(0x9000 + block * 0x200, 2, 480));
        builder.add_object(0x10_0000, 3, 24);
        HeapReport::new(&builder.finish().unwrap(), Grouping::Type, None)
    }

    fn html(page: &HeapDiffPage<'_>) -> String {
        let mut bytes = Vec::new();
        page.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn groups_that_changed_have_bars_and_no_markup_of_names() {
        let diff = HeapDiff::new(&report(1, 2), &report(11, 1));
        let page = HeapDiffPage::new(&diff, "<a> → <b>", "Shop & others");
        let page = page.with_suspects(vec!["<static> held".to_owned()]);
        let page = page.with_holders(|row| row.name.contains("Row").then(|| "<Store>".to_owned()));
        let text = html(&page);
        let before = |one: &str, other: &str| text.find(one).unwrap() < text.find(other).unwrap();
        assert!(before("Shop.Row&lt;T&gt;", "Shop.Block"), "what grew is first: {text}");
        for part in [
            "4 → 13 objects",
            "+240 B",
            "-480 B",
            "held by &lt;Store&gt;",
            "<li>&lt;static&gt; held</li>",
            "Shop &amp; others",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!((text.matches("width:100.00%").count(), text.matches("width:50.00%").count()), (1, 1));
        assert!(!text.contains("Shop.Same") && !text.contains("<T>") && !text.contains("<Store>"), "{text}");
        let least = html(&page.with_rows(1));
        assert!(least.contains("Shop.Block") && !least.contains("Shop.Row"), "{least}");
        assert!(least.contains("1 more changed less."), "{least}");
    }

    #[test]
    fn equal_heaps_have_an_empty_table() {
        let diff = HeapDiff::new(&report(1, 1), &report(1, 1));
        let text = html(&HeapDiffPage::new(&diff, "a", "b"));
        assert!(!text.contains("<div class=\"bar\">") && text.ends_with("</html>\n"), "{text}");
    }
}
