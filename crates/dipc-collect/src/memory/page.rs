//! The page of a reading, or of growth: bars of owners.

use std::fmt::Write as _;
use std::io::{self, Write};

use clr_dump::{GenerationUse, MemoryOwner, OwnedMemory};
use nettrace_export::page::BarPage;
use nettrace_export::units;

use super::answer::{Subject, first_line};
use super::growth::{MemoryGrowth, OwnerGrowth};
use super::names::owner_name;
use super::reading::MemoryReading;

/// Maximum number of parts of an owner: files, threads, mappings.
const MAX_PARTS: usize = 50;

/// A page that shows the memory of a process or a core dump by its owners, or the growth of the owners. It
/// has the style of the page of a recording.
#[derive(Debug)]
pub struct MemoryPage(BarPage);

impl MemoryPage {
    /// The page of a reading.
    pub fn of_reading(reading: &MemoryReading, title: &str) -> Self {
        let account = &reading.account;
        let total = account.total.resident;
        let mut page = BarPage::new(title, &units::bytes(total), &first_line(reading));
        let _ = write!(page, "<div class=\"strip\">");
        for subject in Subject::ALL {
            let bytes = account.resident_of(|owner| Subject::of(owner) == subject);
            let label = format!("{}: {}", subject.id(), units::bytes(bytes));
            page.push_segment(bytes, total, color(subject), &label);
        }
        let _ = writeln!(
            page,
            "</div>\n<table><thead><tr><th>Bytes</th><th>%</th><th>Owner</th></tr></thead><tbody>"
        );
        let largest = account.owners.iter().map(|owned| owned.sizes.resident).max().unwrap_or_default();
        for owned in &account.owners {
            owner_row(&mut page, owned, reading, largest);
        }
        let _ = writeln!(page, "</tbody></table>");
        if !reading.missing.is_empty() {
            let _ = writeln!(page, "<h2>Not seen</h2>\n<ul>");
            for missing in &reading.missing {
                let _ = writeln!(page, "<li>{}</li>", BarPage::text(missing));
            }
            let _ = writeln!(page, "</ul>");
        }
        Self(page)
    }

    /// The page of growth; `answer` is its first line.
    pub fn of_growth(growth: &MemoryGrowth, title: &str, answer: &str) -> Self {
        let summary = format!("{} → {}", units::bytes(growth.total.before), units::bytes(growth.total.after));
        let mut page = BarPage::new(title, &summary, answer);
        let rate = growth.elapsed.map_or("", |_| "<th>A minute</th>");
        let _ = writeln!(
            page,
            "<table><thead><tr><th>Change</th>{rate}<th>Before</th><th>After</th><th>Owner</th></tr></thead><tbody>"
        );
        let size = |of: &OwnerGrowth| of.change().unsigned_abs();
        let largest = growth.owners.iter().map(size).max().unwrap_or_default();
        for of in growth.owners.iter().filter(|of| of.change() != 0) {
            let color = if of.change() > 0 { "--error" } else { "--framework" };
            let _ = write!(page, "<tr>");
            for change in [Some(of.change()), growth.per_minute(of.change())].into_iter().flatten() {
                let _ = write!(page, "<td>{}</td>", signed(change));
            }
            let (before, after) = (units::bytes(of.before), units::bytes(of.after));
            let name = BarPage::text(&of.name);
            let _ = write!(page, "<td>{before}</td><td>{after}</td><td>{name}<div class=\"bar\">");
            page.push_segment(size(of), largest, color, &signed(of.change()));
            let _ = writeln!(page, "</div></td></tr>");
        }
        let _ = writeln!(page, "</tbody></table>");
        Self(page)
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.write_to(out)
    }
}

fn owner_row(page: &mut BarPage, owned: &OwnedMemory, reading: &MemoryReading, largest: u64) {
    let bytes = owned.sizes.resident;
    let share = units::share(bytes, reading.account.total.resident);
    let name = BarPage::text(&owner_name(owned.owner, reading));
    let _ = write!(page, "<tr><td>{}</td><td>{share:.1}</td><td>", units::bytes(bytes));
    let parts = owned.parts.iter().filter(|part| part.sizes.resident > 0).take(MAX_PARTS);
    if owned.parts.is_empty() {
        let _ = write!(page, "{name}");
    } else {
        let _ = write!(page, "<details><summary>{name}</summary><table><tbody>");
        for part in parts {
            let name = match (part.tid, &*part.name) {
                (Some(tid), name) => format!("{tid} {name}"),
                (None, "") => part.address.to_string(),
                (None, name) => name.to_owned(),
            };
            let (bytes, name) = (units::bytes(part.sizes.resident), BarPage::text(&name));
            let _ = write!(page, "<tr><td>{bytes}</td><td>{name}</td></tr>");
        }
        let _ = write!(page, "</tbody></table></details>");
    }
    let _ = write!(page, "<div class=\"bar\">");
    let color = color(Subject::of(owned.owner));
    match free(owned.owner, reading) {
        Some((free, what)) => {
            let free = free.min(bytes);
            page.push_segment(bytes.saturating_sub(free), largest, color, "used");
            page.push_segment(free, largest, "--resting", &format!("{} {what}", units::bytes(free)));
        }
        None => page.push_segment(bytes, largest, color, ""),
    }
    let _ = writeln!(page, "</div></td></tr>");
}

/// The memory of an owner that nobody uses, with words for it.
fn free(owner: MemoryOwner, reading: &MemoryReading) -> Option<(u64, &'static str)> {
    let of_generation = |of: &GenerationUse| Some((of.free?, "free between objects"));
    match owner {
        MemoryOwner::UnusedCommitted | MemoryOwner::FreeRegions => Some((u64::MAX, "kept by the collector")),
        MemoryOwner::NativeHeap => reading.native_free().map(|free| (free, "free and not returned")),
        _ => reading.account.generations.iter().find(|of| of.owner == owner).and_then(of_generation),
    }
}

/// The color of a subject, as the page of a recording has it.
const fn color(subject: Subject) -> &'static str {
    match subject {
        Subject::Heap => "--mine",
        Subject::Native => "--native",
        Subject::Stacks => "--kernel",
        Subject::Code => "--runtime",
        Subject::Files => "--framework",
        Subject::Shared => "--request",
        Subject::Unknown => "--other",
    }
}

fn signed(change: i64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("{sign}{}", units::bytes(change.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemorySnapshot;

    fn page(page: &MemoryPage) -> String {
        let mut bytes = Vec::new();
        page.write(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn growth_has_bars_and_no_markup_of_names() {
        let snapshot = |bytes: u64| {
            let json = format!(
                r#"{{"rss_bytes": {bytes}, "unattributed_bytes": 0, "owners": [
                {{"owner": "a", "name": "<script>'\u001b", "bytes": {bytes}}},
                {{"owner": "b", "bytes": {}}}, {{"owner": "same", "bytes": 7}}]}}"#,
                50_000 - bytes
            );
            MemorySnapshot::parse(json.as_bytes()).unwrap()
        };
        let growth = MemoryGrowth::between(&snapshot(10_000), &snapshot(40_000));
        let html = page(&MemoryPage::of_growth(&growth, "<b>", "it grew & grew"));
        assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
        assert!(html.contains("<h1>&lt;b&gt;</h1>") && html.contains("it grew &amp; grew"), "{html}");
        assert!(html.contains("&lt;script&gt;&#39;") && !html.contains("<script"), "{html}");
        assert!(!html.contains('\u{1b}') && !html.contains("same"), "{html}");
        assert_eq!(html.matches("width:100.00%").count(), 2, "{html}");
        assert!(
            html.contains("+30.0 KB") && html.contains("-30.0 KB") && !html.contains("A minute"),
            "{html}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_reading_has_its_owners() {
        let reading = MemoryReading::of_pid(std::process::id()).unwrap();
        let html = page(&MemoryPage::of_reading(&reading, "this"));
        for name in ["Programs, libraries", "Thread stacks", "Not seen"] {
            assert!(html.contains(name), "{name}: {html}");
        }
        assert!(html.len() < 200_000, "{}", html.len());
    }
}
