//! Markdown as text for a terminal: chapters of the book.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::{table, width};

/// The indentation of code.
const CODE: &str = "    ";
/// Blanks between the columns of a table.
const GAP: u16 = 2;

/// Returns the text of a chapter, in lines of this width. Code is not wrapped.
pub(crate) fn text(markdown: &str, width: usize) -> String {
    let mut page = Page { width, ..Page::default() };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.add(event);
    }
    page.text
}

#[derive(Default)]
struct Page {
    width: usize,
    text: String,
    /// The words of the current paragraph, heading, item or cell.
    words: String,
    /// The target of the current link.
    link: Option<String>,
    is_code: bool,
    is_item: bool,
    rows: Vec<Vec<String>>,
}

impl Page {
    fn add(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_) | CodeBlockKind::Indented)) => {
                self.is_code = true;
            }
            Event::End(TagEnd::CodeBlock) => {
                self.is_code = false;
                self.text.push('\n');
            }
            Event::Text(code) if self.is_code => {
                for line in code.lines() {
                    let _ = writeln!(self.text, "{}", format!("{CODE}{line}").trim_end());
                }
            }
            Event::Text(text) | Event::Code(text) => self.words.push_str(&text),
            Event::SoftBreak | Event::HardBreak => self.words.push(' '),
            Event::Start(Tag::Link { dest_url, .. }) => self.link = Some(dest_url.into_string()),
            Event::End(TagEnd::Link) => self.end_link(),
            Event::End(TagEnd::Heading(_)) => {
                let heading = std::mem::take(&mut self.words);
                self.text.push_str(&table::heading(&heading));
                self.text.push('\n');
            }
            Event::End(TagEnd::Paragraph) => self.end_paragraph(),
            Event::Start(Tag::Item) => self.is_item = true,
            Event::End(TagEnd::Item) => {
                self.end_item();
                self.is_item = false;
            }
            Event::End(TagEnd::List(_)) => self.text.push('\n'),
            Event::Start(Tag::TableHead | Tag::TableRow) => self.rows.push(Vec::new()),
            Event::End(TagEnd::TableCell) => {
                let cell = std::mem::take(&mut self.words);
                if let Some(row) = self.rows.last_mut() {
                    row.push(cell);
                }
            }
            Event::End(TagEnd::Table) => self.end_table(),
            _ => {}
        }
    }

    /// Adds the target of a link if its text does not show it.
    fn end_link(&mut self) {
        let Some(target) = self.link.take() else { return };
        let chapter = target.split('#').next().unwrap_or_default();
        if let Some(topic) = chapter.strip_suffix(".md") {
            let _ = write!(self.words, " (dipc help {topic})");
        } else if target.starts_with("https://") {
            let _ = write!(self.words, " <{target}>");
        }
    }

    fn end_paragraph(&mut self) {
        if self.is_item {
            self.end_item();
            return;
        }
        let words = std::mem::take(&mut self.words);
        for line in width::filled(&words, self.width) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
        self.text.push('\n');
    }

    fn end_item(&mut self) {
        let words = std::mem::take(&mut self.words);
        let lines = width::filled(&words, self.width.saturating_sub(2));
        for (mark, line) in std::iter::once("- ").chain(std::iter::repeat("  ")).zip(lines) {
            let _ = writeln!(self.text, "{mark}{line}");
        }
    }

    fn end_table(&mut self) {
        let mut rows = std::mem::take(&mut self.rows).into_iter();
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        if let Some(head) = rows.next().filter(|head| head.iter().any(|cell| !cell.is_empty())) {
            table.set_header(head);
        }
        table.add_rows(rows);
        let last = table.column_count().saturating_sub(1);
        for (number, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if number == last { 0 } else { GAP }));
        }
        for line in table.lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
        self.text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_a_chapter_as_plain_text() {
        let chapter = "# Look\n\n<!-- run: x -->\nSee what `dipc` does, and [Exit codes](scripts.md#codes)\nor [more](https://a.example).\n\n\
            - one item, of more words than a line has\n- two\n\n```console\n$ dipc ps\n\n  a long line that is code and stays whole\n```\n\n\
            | a | bb |\n|---|---|\n| `x` | a cell of several words that is broken |\n";
        let shown = anstream::adapter::strip_str(&text(chapter, 32)).to_string();
        let expected = "\
Look

See what dipc does, and Exit
codes (dipc help scripts) or
more <https://a.example>.

- one item, of more words than a
  line has
- two

    $ dipc ps

      a long line that is code and stays whole

a  bb
x  a cell of several words that
   is broken

";
        assert_eq!(shown, expected);
    }
}
