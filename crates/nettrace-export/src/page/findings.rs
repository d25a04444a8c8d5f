//! The overview that a page's findings are judged by, from the page's own reading of the recording.

use nettrace::{Event, Interest, Metadata, TraceInfo};

use super::PageFinding;
use crate::profile::Profile;
use crate::profile::builder::Omissions;
use crate::profile::metric::Metric;
use crate::profile::options::Options;
use crate::profile::selection::Selection;
use crate::report::{
    Note, Overview, OverviewBuilder, OverviewCallers, StreamFacts, callers_options, overview_profile_options,
};

impl From<&Note> for PageFinding {
    fn from(note: &Note) -> Self {
        Self { is_problem: note.is_fault(), text: note.to_string() }
    }
}

/// Gathers the overview of a recording while it is read for a page. Events must be in time order.
///
/// [`PageContents::read`](super::PageContents::read) does that for a recording in a file.
#[derive(Debug)]
pub struct PageFindings {
    overview: OverviewBuilder,
    /// The other profiles that are needed.
    others: Vec<Options>,
    /// True if the findings need another profile of threads than the page.
    has_own_profile: bool,
}

impl PageFindings {
    /// The findings of a recording with this header, for a page with these profile options.
    pub fn new(info: Option<&TraceInfo>, page: &Options) -> Self {
        let own = overview_profile_options(Metric::of_work_and_waits(info));
        let own = own.with_user_code(page.user_code.clone());
        // The page also has the stacks of idle threads, which can be left out.
        let has_own_profile = own.clone().with_idle_stacks(true) != *page;
        let of_callers = |metric| callers_options(metric, Selection::default(), page.user_code.clone());
        let mut others: Vec<_> = OverviewCallers::METRICS.map(of_callers).into();
        others.extend(has_own_profile.then_some(own));
        Self { overview: OverviewBuilder::default(), others, has_own_profile }
    }

    /// The options of further profiles, of the same reading, that [`finish`](Self::finish) needs in this
    /// order.
    pub fn others(&self) -> &[Options] {
        &self.others
    }

    /// The interest in events of a kind, in a recording with or without spans, in addition to the profiles'
    /// events.
    pub fn interest(kind: &Metadata, has_spans: bool) -> Interest {
        OverviewBuilder::interest(kind, has_spans)
    }

    /// Adds an event, which may be of any kind.
    pub fn add(&mut self, event: &Event<'_>) {
        self.overview.add(event);
    }

    /// Returns the profile of the page, unchanged, and what `judge` returns of the overview.
    pub fn finish<T>(
        mut self,
        (mut page, omissions): (Profile, &Omissions),
        mut others: Vec<(Profile, Omissions)>,
        stream: StreamFacts,
        judge: impl FnOnce(&Overview) -> T,
    ) -> (Profile, T) {
        self.overview.extend_to(stream.last);
        let own = if self.has_own_profile { others.pop() } else { None };
        let callers = OverviewCallers::of(others.iter().map(|(profile, _)| profile));
        if let Some((profile, omissions)) = own {
            return (page, judge(&self.overview.finish(profile, &omissions, callers, stream)));
        }
        let shown = page.stack_totals.clone();
        page.leave_out_idle();
        let overview = self.overview.finish(page, omissions, callers, stream);
        let judged = judge(&overview);
        let mut page = overview.profile;
        page.stack_totals = shown;
        (page, judged)
    }
}
