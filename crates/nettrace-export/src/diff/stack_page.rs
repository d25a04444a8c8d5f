//! A differential flame graph as a page: the picture, a table of the findings, and a script that zooms.

use std::io::{self, Write};

use crate::diff::sides::Noise;
use crate::diff::stack_comparison::{StackComparison, StackNode};
use crate::diff::stack_picture::{Picture, change};
use crate::diff::verdict::Verdict;
use crate::format::svg::text;
use crate::page::{HEAD, STYLE};

const SCRIPT: &str = include_str!("assets/diff.js");
/// The style of what other pages do not have.
const OWN_STYLE: &str = "\
#picture { overflow-x: auto; padding: 8px 14px; }
#picture svg { max-width: 100%; height: auto; min-width: 700px; }
#picture g[role=button] { cursor: pointer; }
#picture g[role=button]:focus-visible { outline: none; }
#picture g[role=button]:focus-visible > rect { stroke: var(--text); stroke-width: 2; }
#findings { padding: 8px 14px 60px; }
";
/// Rows of the table.
const MAX_ROWS: usize = 200;

impl Picture<'_> {
    /// Writes a page with the picture, which loads nothing and can be read without its script.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "{HEAD}<style>\n{STYLE}{OWN_STYLE}</style>\n</head>\n<body>\n<header><div id=\"heading\"><h1>"
        )?;
        text(out, self.title())?;
        writeln!(
            out,
            "</h1></div><div id=\"tools\"><span id=\"found\" role=\"status\"></span>\
             <input id=\"search\" type=\"search\" placeholder=\"Search\" aria-label=\"Search frames\"></div></header>"
        )?;
        writeln!(out, "<main id=\"picture\">")?;
        self.write(out)?;
        writeln!(out, "</main>")?;
        write_findings(self.comparison(), out)?;
        writeln!(
            out,
            "<div id=\"detail\" aria-live=\"polite\">Click a frame to zoom in; Tab, arrow keys, Enter and Esc do it too.</div>"
        )?;
        writeln!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>")
    }
}

/// Writes the findings, largest share of the sum first.
fn write_findings(comparison: &StackComparison, out: &mut dyn Write) -> io::Result<()> {
    let is_finding = |node: &&StackNode| matches!(node.verdict, Verdict::Worse | Verdict::Better);
    let mut found: Vec<_> = comparison.nodes.iter().filter(is_finding).collect();
    let size = |node: &StackNode| (comparison.share(node, true) - comparison.share(node, false)).abs();
    found.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let what = if comparison.noise == Noise::Unknown { "Stacks that differ" } else { "Changes beyond noise" };
    writeln!(
        out,
        "<section id=\"findings\" aria-labelledby=\"found-changes\"><h2 id=\"found-changes\">{what}</h2>"
    )?;
    if found.is_empty() {
        return writeln!(out, "<p class=\"empty\">None of {} tested.</p></section>", comparison.tested);
    }
    writeln!(
        out,
        "<table><thead><tr><th scope=\"col\">Change</th><th scope=\"col\">Base</th><th scope=\"col\">New</th>\
         <th scope=\"col\">Stack, below its caller</th></tr></thead><tbody>"
    )?;
    for node in found.iter().take(MAX_ROWS) {
        let share = |is_new| comparison.share(node, is_new) * 100.0;
        write!(
            out,
            "<tr><td class=\"number\">{}</td><td class=\"number\">{:.2} %</td><td class=\"number\">{:.2} %</td><td>",
            change(node),
            share(false),
            share(true)
        )?;
        text(out, if node.name.is_empty() { "all" } else { &node.name })?;
        let caller = comparison.nodes.get(node.parent).map_or("", |caller| &caller.name);
        if !caller.is_empty() {
            write!(out, " <span class=\"note\">← ")?;
            text(out, caller)?;
            write!(out, "</span>")?;
        }
        writeln!(out, "</td></tr>")?;
    }
    writeln!(out, "</tbody></table></section>")
}
