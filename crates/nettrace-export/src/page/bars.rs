//! A page of tables with bars, in one file without a script, which loads nothing.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use clr_events::escape_controls;

use super::STYLE;
use crate::units;

const HEAD: &str = include_str!("assets/bars.html");
const OWN_STYLE: &str = include_str!("assets/bars.css");

/// Maximum number of characters of a text on the page.
const MAX_TEXT: usize = 500;

/// A page of tables with bars, which has the style of the page of a recording.
///
/// Markup is written to it with [`write!`].
///
/// ```
/// use std::fmt::Write as _;
///
/// use nettrace_export::page::BarPage;
///
/// let mut page = BarPage::new("a.json → b.json", "10 MB → 40 MB", "Stacks & heaps grew");
/// write!(page, "<div class=\"bar\">")?;
/// page.push_segment(30, 40, "--error", "+30 MB");
/// write!(page, "</div>")?;
/// let mut html = Vec::new();
/// page.write_to(&mut html)?;
/// assert!(String::from_utf8(html)?.contains("Stacks &amp; heaps grew"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BarPage {
    title: String,
    body: String,
}

impl BarPage {
    /// A page with a title, a summary next to it, and a first line.
    pub fn new(title: &str, summary: &str, answer: &str) -> Self {
        let [title, summary, answer] = [title, summary, answer].map(Self::text);
        let body = format!(
            "<header><div id=\"heading\"><h1>{title}</h1><span id=\"summary\">{summary}</span></div></header>\n\
             <main>\n<p class=\"answer\">{answer}</p>\n"
        );
        Self { title, body }
    }

    /// Returns a string of limited length as text of HTML.
    pub fn text(text: &str) -> String {
        let cut: String = text.chars().take(MAX_TEXT).collect();
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

    /// Adds a part of a bar, with a color of the style and a label.
    pub fn push_segment(&mut self, amount: u64, whole: u64, color: &str, label: &str) {
        let width = units::share(amount, whole).min(100.0);
        if width >= 0.05 {
            let label = Self::text(label);
            let body = &mut self.body;
            // Writing into a `String` does not fail.
            let _ =
                write!(body, "<i style=\"width:{width:.2}%;background:var({color})\" title=\"{label}\"></i>");
        }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { title, body } = self;
        write!(out, "{HEAD}<title>{title}</title>\n<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n")?;
        write!(out, "{body}</main>\n</body>\n</html>\n")
    }
}

impl fmt::Write for BarPage {
    fn write_str(&mut self, markup: &str) -> fmt::Result {
        self.body.write_str(markup)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let mut page = BarPage::new("<b>", "\u{1b}", "a & b");
        page.push_segment(1, 3, "--error", "\"<i>'");
        page.push_segment(0, 3, "--error", "too narrow");
        let mut html = Vec::new();
        page.write_to(&mut html).unwrap();
        let html = String::from_utf8(html).unwrap();
        for part in ["<title>&lt;b&gt;</title>", "<h1>&lt;b&gt;</h1>", "a &amp; b", "width:33.33%"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(html.contains("title=\"&quot;&lt;i&gt;&#39;\""), "{html}");
        assert!(
            !html.contains('\u{1b}') && !html.contains("too narrow") && !html.contains("<script"),
            "{html}"
        );
        assert_eq!(BarPage::text(&"x".repeat(9_000)).len(), MAX_TEXT);
    }
}
