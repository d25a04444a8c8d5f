//! The findings of a page, from the page's own reading of the recording.

use std::path::{Path, PathBuf};

use nettrace::{Event, Interest, Metadata, MetadataMap, TraceInfo};
use nettrace_export::page::PageFinding;
use nettrace_export::report::{Requests, RequestsOptions};
use nettrace_export::{Metric, Options, ProfiledRecording, Selection};

use super::data::{KindReports, METRICS_OF_CALLERS, OverviewData, ReadOverview, profile_options};
use super::findings;
use crate::command::report::callers::{self, Callers};
use crate::inspect::page::{FindingsBuilder, PageFindings};
use crate::inspect::recording::{Input, Origin};

/// The number of findings on a page.
const PAGE_FINDINGS: usize = 4;

/// Returns the builder of the first findings of a recording, for a page with these profile options.
pub(in crate::command::report) fn page_findings(
    file: &Path,
    info: Option<&TraceInfo>,
    page: &Options,
) -> PageFindings {
    let own = profile_options(Metric::of_work_and_waits(info)).with_user_code(page.user_code.clone());
    // The page also has the stacks of idle threads, which can be left out.
    let has_pages_profile = own.clone().with_idle_stacks(true) == *page;
    let of_callers = |metric| callers::options(metric, Selection::default(), page.user_code.clone());
    let mut others: Vec<_> = METRICS_OF_CALLERS.map(of_callers).into();
    others.extend((!has_pages_profile).then_some(own));
    let builder = PageFindingsBuilder {
        file: file.to_owned(),
        needed: MetadataMap::new(),
        requests: Requests::default(),
        reports: KindReports::new(Selection::default()),
    };
    PageFindings { interest, others, builder: Box::new(builder) }
}

/// The interest in events of a kind, apart from profile events.
fn interest(kind: &Metadata, has_spans: bool) -> Interest {
    let of_spans =
        if has_spans { Requests::interest(&RequestsOptions::default(), kind) } else { Interest::None };
    of_spans.max(Interest::all_if(KindReports::needs(kind)))
}

struct PageFindingsBuilder {
    file: PathBuf,
    /// True for kinds of events that the reports need.
    needed: MetadataMap<bool>,
    requests: Requests,
    reports: KindReports,
}

impl FindingsBuilder for PageFindingsBuilder {
    fn add(&mut self, event: &Event<'_>) {
        self.requests.add(event);
        if self.needed.get_or_insert_with(event.metadata_index(), || KindReports::needs(event.metadata())) {
            self.reports.add(event);
        }
    }

    fn finish(
        mut self: Box<Self>,
        mut read: ProfiledRecording<Input>,
        origin: &Origin,
    ) -> (ProfiledRecording<Input>, Vec<PageFinding>) {
        let mut others = std::mem::take(&mut read.others).into_iter();
        let callers = METRICS_OF_CALLERS
            .map(|_| others.next().map(|(profile, _)| Callers::of(&profile)).unwrap_or_default());
        let mut page = read.profile;
        let (profile, omissions, shown_or_page) = if let Some((own, omissions)) = others.next() {
            (own, omissions, Err(page))
        } else {
            let shown = page.stack_totals.clone();
            page.leave_out_idle();
            (page, read.omissions.clone(), Ok(shown))
        };
        let last = read.last_time.unwrap_or_default();
        self.requests.extend_to(last);
        let overview = OverviewData::of(
            &self.file,
            ReadOverview {
                startup: self.reports.take_startup(),
                requests: self.requests,
                reports: self.reports,
                profile,
                omissions,
                callers,
                process_name: None,
                last,
                counts: &read.counts,
                events: &read.events,
                bytes: origin.bytes(),
            },
        );
        let findings = findings::of(&overview, "").into_iter().take(PAGE_FINDINGS);
        let findings = findings
            .map(|finding| PageFinding { is_problem: finding.is_problem, text: finding.text })
            .collect();
        read.profile = match shown_or_page {
            Ok(shown) => {
                let mut page = overview.profile;
                page.stack_totals = shown;
                page
            }
            Err(page) => page,
        };
        (read, findings)
    }
}
