//! A page that shows a recording: text, style, scripts and data in one file, which loads nothing.
//!
//! A [`Page`] shows a profile: as a flame graph, as the callers of each method, and as a table; over time,
//! where the profile has [tracks](crate::Thread::track). With [`PageReports`] it also shows other events:
//! pauses, exceptions, requests, allocations, counters. The facts to know first are at its top:
//! `PageFindings`.
//!
//! # Size
//! A page takes no more than its [budget](Page::with_budget), however long the recording is. Samples are
//! summed up in bins of time; the bins get wider until the page fits, and if that does not do, stacks that
//! weigh little count for their callers. The page says both.

mod bars;
mod bins;
#[cfg(feature = "html")]
mod contents;
mod data;
#[cfg(feature = "html")]
mod findings;
mod frame_color;
#[cfg(feature = "html")]
mod reports;
#[cfg(all(test, feature = "default"))]
pub(crate) mod tests;
mod text;

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;

use crate::profile::Profile;
use crate::write_options::WriteOptions;
pub use bars::BarPage;
#[cfg(feature = "html")]
pub use contents::{OTHER_METRICS, PageContents, PageOptions, profile_options};
#[cfg(feature = "html")]
pub use findings::PageFindings;
#[cfg(feature = "html")]
pub use reports::PageReports;

/// The page in pieces, with style, data and scripts between them.
pub(crate) const HEAD: &str = include_str!("page/assets/head.html");
const BODY: &str = include_str!("page/assets/body.html");
/// The style sheet of a page, for pages of other things that are to look like it: `header` with `#heading`
/// and `#tools`, `#about`, `#tabs`, tables.
pub const STYLE: &str = include_str!("page/assets/page.css");
/// Scripts of a page for pages of other things, which have the elements `#theme` and `#search`: numbers, the
/// parts common to all pages, and tables.
pub const SHARED_SCRIPTS: [&str; 3] = [
    include_str!("page/assets/units.js"),
    include_str!("page/assets/shell.js"),
    include_str!("page/assets/table.js"),
];
/// Classic scripts, in this order: each may use declarations of earlier ones.
const SCRIPTS: [&str; 13] = [
    SHARED_SCRIPTS[0],
    SHARED_SCRIPTS[1],
    SHARED_SCRIPTS[2],
    include_str!("page/assets/data.js"),
    include_str!("page/assets/names.js"),
    include_str!("page/assets/stacks.js"),
    include_str!("page/assets/timeline.js"),
    include_str!("page/assets/heatmap.js"),
    include_str!("page/assets/curves.js"),
    include_str!("page/assets/flame.js"),
    include_str!("page/assets/tables.js"),
    include_str!("page/assets/request.js"),
    include_str!("page/assets/main.js"),
];
/// uPlot, for time lines.
const PLOT_STYLE: &str = include_str!("page/vendor/uplot/uPlot.min.css");
const PLOT_SCRIPT: &str = include_str!("page/vendor/uplot/uPlot.iife.min.js");
const PLOT_LICENCE: &str = include_str!("page/vendor/uplot/LICENSE");

/// Maximum number of findings on a page.
const MAX_FINDINGS: usize = 4;
/// Bytes of a page by default.
const BUDGET: u64 = 5_000_000;

/// Returns the style sheets that a page can have, as they are between their tags. A document with a content
/// security policy that opens pages allows the hashes of these.
pub fn inline_styles() -> [String; 2] {
    [STYLE, PLOT_STYLE].map(|style| format!("\n{style}"))
}

/// Returns the scripts that a page can have, in the same way.
pub fn inline_scripts() -> [String; 2] {
    [format!("\n\"use strict\";\n{}", SCRIPTS.concat()), format!("\n/*\n{PLOT_LICENCE}*/\n{PLOT_SCRIPT}")]
}

/// A fact about a recording, at the top of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "callers make them: a mark and a text")]
pub struct PageFinding {
    /// True if something is wrong with the program or the recording.
    pub is_problem: bool,
    /// The fact.
    pub text: String,
}

/// A page that shows a recording.
///
/// ```no_run
/// use nettrace_export::page::Page;
/// use nettrace_export::{WriteOptions, Metric, Options};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let recording = std::fs::File::open("app.nettrace")?;
/// let (profile, _) = nettrace_export::profile(recording, Options::new(Metric::Wall).with_idle(false))?;
/// Page::new(&profile, WriteOptions::new("app", "mine")).write(&mut std::fs::File::create("app.html")?)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Page<'a> {
    profile: &'a Profile,
    options: WriteOptions<'a>,
    #[cfg(feature = "html")]
    reports: Option<(PageReports, Vec<crate::report::Collection>)>,
    notes: Vec<String>,
    findings: Vec<PageFinding>,
    budget: u64,
    has_idle_stacks: bool,
}

impl<'a> Page<'a> {
    /// A page that shows a profile.
    pub fn new(profile: &'a Profile, options: WriteOptions<'a>) -> Self {
        Self {
            profile,
            options,
            #[cfg(feature = "html")]
            reports: None,
            notes: Vec::new(),
            findings: Vec::new(),
            budget: BUDGET,
            has_idle_stacks: profile
                .stack_totals
                .iter()
                .any(|total| total.state == clr_events::ThreadState::Idle && total.stack.is_some()),
        }
    }

    /// With other events.
    #[cfg(feature = "html")]
    #[must_use]
    pub fn with_reports(self, mut reports: PageReports) -> Self {
        let collections = reports.finish();
        reports.add_stacks(self.profile);
        Self { reports: Some((reports, collections)), ..self }
    }

    /// With sentences about the recording, such as how much of it was lost.
    #[must_use]
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// With the facts to know first, above everything else. The first four are shown.
    #[must_use]
    pub fn with_findings(self, mut findings: Vec<PageFinding>) -> Self {
        findings.truncate(MAX_FINDINGS);
        Self { findings, ..self }
    }

    /// With this many bytes as its largest size; 5 MB by default. Style and scripts take 167 KB of it.
    #[must_use]
    pub fn with_budget(self, bytes: u64) -> Self {
        Self { budget: bytes, ..self }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Returns the errors of `out`, and [`TooLarge`](crate::TooLarge) if the parts that cannot be coarsened
    /// take more than the budget.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let has_time = self.has_reports() || self.profile.threads.iter().any(|thread| thread.track.is_some());
        let own = SCRIPTS.iter().chain(&[STYLE, HEAD, BODY]).map(|text| text.len()).sum::<usize>();
        let plot = if has_time { PLOT_STYLE.len() + PLOT_SCRIPT.len() + PLOT_LICENCE.len() } else { 0 };
        // Base64 takes four bytes for three.
        let room = self.budget.saturating_sub((own + plot) as u64) / 4 * 3;
        let data = data::compressed(self, room)?;
        out.write_all(HEAD.as_bytes())?;
        let [style, plot_style] = inline_styles();
        for style in [style].into_iter().chain(has_time.then_some(plot_style)) {
            writeln!(out, "<style>{style}</style>")?;
        }
        out.write_all(BODY.as_bytes())?;
        write!(out, "<script type=\"application/gzip\" id=\"data\">")?;
        let mut encoder = EncoderWriter::new(&mut *out, &STANDARD);
        encoder.write_all(&data)?;
        encoder.finish()?;
        drop(encoder);
        writeln!(out, "</script>")?;
        let [script, plot_script] = inline_scripts();
        if has_time {
            writeln!(out, "<script>{plot_script}</script>")?;
        }
        writeln!(out, "<script>{script}</script>\n</body>\n</html>")
    }

    #[cfg_attr(
        not(feature = "html"),
        allow(clippy::unused_self, reason = "reports are a part of that feature")
    )]
    const fn has_reports(&self) -> bool {
        #[cfg(feature = "html")]
        return self.reports.is_some();
        #[cfg(not(feature = "html"))]
        return false;
    }
}
