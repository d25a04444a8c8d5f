//! The page of a reading, or of growth: bars of owners, in one file without a script, which loads nothing.

use std::fmt::Write as _;
use std::io::{self, Write};

use clr_dump::{GenerationUse, MemoryOwner, OwnedMemory};
use clr_events::escape_controls;
use nettrace_export::page::STYLE;
use nettrace_export::units;

use super::answer::{Subject, first_line};
use super::growth::{MemoryGrowth, OwnerGrowth};
use super::names::owner_name;
use super::reading::MemoryReading;

const HEAD: &str = include_str!("page/head.html");
const OWN_STYLE: &str = include_str!("page/page.css");

/// Maximum number of parts of an owner: files, threads, mappings.
const MAX_PARTS: usize = 50;
/// Maximum number of characters kept of a name.
const MAX_NAME: usize = 500;

/// A page that shows the memory of a process or a core dump by its owners, or the growth of the owners. It
/// has the style of the page of a recording.
#[derive(Debug)]
pub struct MemoryPage {
    body: String,
}

impl MemoryPage {
    /// The page of a reading.
    pub fn of_reading(reading: &MemoryReading, title: &str) -> Self {
        let account = &reading.account;
        let total = account.total.resident;
        let mut body = heading(title, &units::bytes(total), &first_line(reading));
        body.push_str("<div class=\"strip\">");
        for subject in Subject::ALL {
            let bytes = account.resident_of(|owner| Subject::of(owner) == subject);
            let label = format!("{}: {}", subject.id(), units::bytes(bytes));
            segment(&mut body, bytes, total, color(subject), &label);
        }
        body.push_str(
            "</div>\n<table><thead><tr><th>Bytes</th><th>%</th><th>Owner</th></tr></thead><tbody>\n",
        );
        let largest = account.owners.iter().map(|owned| owned.sizes.resident).max().unwrap_or_default();
        for owned in &account.owners {
            owner_row(&mut body, owned, reading, largest);
        }
        body.push_str("</tbody></table>\n");
        if !reading.missing.is_empty() {
            body.push_str("<h2>Not seen</h2>\n<ul>\n");
            for missing in &reading.missing {
                let _ = writeln!(body, "<li>{}</li>", text(missing));
            }
            body.push_str("</ul>\n");
        }
        Self { body }
    }

    /// The page of growth; `answer` is its first line.
    pub fn of_growth(growth: &MemoryGrowth, title: &str, answer: &str) -> Self {
        let summary = format!("{} → {}", units::bytes(growth.total.before), units::bytes(growth.total.after));
        let mut body = heading(title, &summary, answer);
        let rate = growth.elapsed.map_or("", |_| "<th>A minute</th>");
        let _ = writeln!(
            body,
            "<table><thead><tr><th>Change</th>{rate}<th>Before</th><th>After</th><th>Owner</th></tr></thead><tbody>"
        );
        let size = |of: &OwnerGrowth| of.change().unsigned_abs();
        let largest = growth.owners.iter().map(size).max().unwrap_or_default();
        for of in growth.owners.iter().filter(|of| of.change() != 0) {
            let color = if of.change() > 0 { "--error" } else { "--framework" };
            body.push_str("<tr>");
            for change in [Some(of.change()), growth.per_minute(of.change())].into_iter().flatten() {
                let _ = write!(body, "<td>{}</td>", signed(change));
            }
            let (before, after) = (units::bytes(of.before), units::bytes(of.after));
            let _ = write!(body, "<td>{before}</td><td>{after}</td><td>{}", text(&of.name));
            body.push_str("<div class=\"bar\">");
            segment(&mut body, size(of), largest, color, &signed(of.change()));
            body.push_str("</div></td></tr>\n");
        }
        body.push_str("</tbody></table>\n");
        Self { body }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let body = &self.body;
        write!(out, "{HEAD}<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n")
    }
}

fn heading(title: &str, summary: &str, answer: &str) -> String {
    let [title, summary, answer] = [title, summary, answer].map(text);
    format!(
        "<header><div id=\"heading\"><h1>{title}</h1><span id=\"summary\">{summary}</span></div></header>\n\
         <main>\n<p class=\"answer\">{answer}</p>\n"
    )
}

fn owner_row(body: &mut String, owned: &OwnedMemory, reading: &MemoryReading, largest: u64) {
    let bytes = owned.sizes.resident;
    let share = units::share(bytes, reading.account.total.resident);
    let name = text(&owner_name(owned.owner, reading));
    let _ = write!(body, "<tr><td>{}</td><td>{share:.1}</td><td>", units::bytes(bytes));
    let parts = owned.parts.iter().filter(|part| part.sizes.resident > 0).take(MAX_PARTS);
    if owned.parts.is_empty() {
        body.push_str(&name);
    } else {
        let _ = write!(body, "<details><summary>{name}</summary><table><tbody>");
        for part in parts {
            let name = match (part.tid, &*part.name) {
                (Some(tid), name) => format!("{tid} {name}"),
                (None, "") => part.address.to_string(),
                (None, name) => name.to_owned(),
            };
            let (bytes, name) = (units::bytes(part.sizes.resident), text(&name));
            let _ = write!(body, "<tr><td>{bytes}</td><td>{name}</td></tr>");
        }
        body.push_str("</tbody></table></details>");
    }
    body.push_str("<div class=\"bar\">");
    let color = color(Subject::of(owned.owner));
    match free(owned.owner, reading) {
        Some((free, what)) => {
            let free = free.min(bytes);
            segment(body, bytes.saturating_sub(free), largest, color, "used");
            segment(body, free, largest, "--resting", &format!("{} {what}", units::bytes(free)));
        }
        None => segment(body, bytes, largest, color, ""),
    }
    body.push_str("</div></td></tr>\n");
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

/// Adds a part of a bar.
fn segment(body: &mut String, bytes: u64, whole: u64, color: &str, label: &str) {
    let width = units::share(bytes, whole).min(100.0);
    if width >= 0.05 {
        let label = text(label);
        let _ = write!(body, "<i style=\"width:{width:.2}%;background:var({color})\" title=\"{label}\"></i>");
    }
}

fn signed(change: i64) -> String {
    let sign = if change < 0 { "-" } else { "+" };
    format!("{sign}{}", units::bytes(change.unsigned_abs()))
}

/// Returns a string of limited length as text of HTML.
fn text(text: &str) -> String {
    let cut: String = text.chars().take(MAX_NAME).collect();
    let mut safe = String::with_capacity(cut.len());
    for character in escape_controls(&cut).chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
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
