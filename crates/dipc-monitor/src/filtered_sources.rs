//! The sessions of a process that use EventSources with filters.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use clr_activity::LOGGING_PROVIDER;
use dipc_client::{
    FilteredProviderConfig, Keywords, OptionalFeature, Renewal, RenewalState, Rundown, SessionConfig, Target,
};
use dipc_collect::RetryWait;

use crate::process_log::{ProcessEvent, ProcessLog};
use crate::request_provider::DIAGNOSTIC_SOURCE;

/// A keyword without events: the session that renews the filters does not have events of its own.
const UNUSED_KEYWORD: Keywords = Keywords(1 << 40);
/// The size of that session's buffer in MB.
const BUFFER_MB: u32 = 1;

/// The sessions of a monitor in a process that use EventSources with filters.
///
/// At the end of any session, the runtime sends its EventSources a command without arguments. EventSources
/// with filters take it as the end of all sessions: the remaining sessions get no events from them. So
/// whenever such a session ends, the filters of the remaining ones are sent again, by a [`Renewal`]. The end
/// of other programs' sessions is detected from its consequence (`request_witness`).
pub(crate) struct FilteredSources {
    target: Target,
    log: ProcessLog,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    /// The filtered providers of each session, in the order of their starts.
    sessions: Vec<(u64, Vec<FilteredProviderConfig>)>,
    renewal: Option<Renewal>,
    /// The number of renewals.
    count: u64,
    /// The wait after a failed renewal, and the time of the next attempt.
    retry: Option<(RetryWait, Instant)>,
}

/// The place of a session among [`FilteredSources`]. It has to be dropped after the session.
#[must_use = "the session leaves when this is dropped"]
pub(crate) struct FilteredSession {
    sources: Arc<FilteredSources>,
    number: u64,
}

impl FilteredSources {
    /// Creates the state of a process without sessions.
    pub(crate) fn new(target: Target, log: ProcessLog) -> Self {
        Self { target, log, state: Mutex::default() }
    }

    /// Adds a session, before it is started.
    pub(crate) fn enter(self: &Arc<Self>, config: &SessionConfig) -> FilteredSession {
        let providers = config.providers.iter().filter(|provider| is_filtered(provider)).cloned().collect();
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        state.sessions.push((number, providers));
        FilteredSession { sources: Arc::clone(self), number }
    }

    /// A sentence about lost filters; `None` if they were never lost.
    pub(crate) fn description(&self) -> Option<String> {
        let state = self.state();
        let times = if state.count == 1 { "once".to_owned() } else { format!("{} times", state.count) };
        match state.renewal.as_ref()?.state() {
            RenewalState::Failed(error) => Some(format!(
                "Another session has ended, and the process no longer reports these events; they could not be requested again: {error}."
            )),
            RenewalState::Starting => {
                Some("Another session has ended, and these events are being requested again.".to_owned())
            }
            _ => Some(format!("These events were requested again {times}, because other sessions ended.")),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the filters of all sessions again.
    fn renew(&self, is_foreign: bool) {
        let mut state = self.state();
        let Some(config) = config(&state.sessions) else { return };
        let mut names: Vec<_> = config.providers.iter().map(|it| it.provider.name.clone()).collect();
        names.sort();
        state.count = state.count.saturating_add(1);
        state.renewal.get_or_insert_with(|| Renewal::new(self.target.clone())).renew(config);
        drop(state);
        self.log.report(ProcessEvent::SourcesRenewed { names, is_foreign });
    }

    /// Repeats a renewal that has failed.
    fn retry(&self) {
        let mut state = self.state();
        let Some(RenewalState::Failed(error)) = state.renewal.as_ref().map(Renewal::state) else {
            state.retry = None;
            return;
        };
        let now = Instant::now();
        match &mut state.retry {
            None => {
                let mut wait = RetryWait::default();
                let next = now + wait.next_wait();
                state.retry = Some((wait, next));
                drop(state);
                self.log.report(ProcessEvent::RenewalFailed(error));
            }
            Some((wait, next)) if now >= *next => {
                *next = now + wait.next_wait();
                let Some(config) = config(&state.sessions) else { return };
                if let Some(renewal) = &mut state.renewal {
                    renewal.renew(config);
                }
            }
            Some(_) => {}
        }
    }
}

impl FilteredSession {
    /// Sends the filters again: the session's EventSources have fallen silent.
    pub(crate) fn renew(&self) {
        self.sources.renew(true);
    }

    /// Lets time pass.
    pub(crate) fn tick(&self) {
        self.sources.retry();
    }
}

impl Drop for FilteredSession {
    fn drop(&mut self) {
        let mut state = self.sources.state();
        let Some(place) = state.sessions.iter().position(|(number, _)| *number == self.number) else {
            return;
        };
        let (_, ended) = state.sessions.remove(place);
        let name = |it: &FilteredProviderConfig| it.provider.name.to_ascii_lowercase();
        let is_used = |ended: &FilteredProviderConfig| {
            let mut others = state.sessions.iter().flat_map(|(_, providers)| providers);
            others.any(|other| name(other) == name(ended))
        };
        let has_to_renew = ended.iter().any(is_used);
        let is_last = state.sessions.iter().all(|(_, providers)| providers.is_empty());
        let unused = state.renewal.take_if(|_| is_last);
        drop(state);
        // The drop waits for the end of its session.
        drop(unused);
        if has_to_renew {
            self.sources.renew(false);
        }
    }
}

/// Returns true for a provider with a filter, either explicit or implied because it lacks arguments.
/// EventCounters and Meters count their sessions.
fn is_filtered(provider: &FilteredProviderConfig) -> bool {
    let provider = &provider.provider;
    let is_counted = provider.arguments.starts_with("EventCounterIntervalSec=")
        || provider.name.eq_ignore_ascii_case(clr_counters::METRICS_PROVIDER);
    [DIAGNOSTIC_SOURCE, LOGGING_PROVIDER].iter().any(|name| provider.name.eq_ignore_ascii_case(name))
        || (!provider.arguments.is_empty() && !is_counted)
}

/// Returns the session that enables the sources of all sessions again, each with the arguments that were sent
/// last; `None` without sources.
fn config(sessions: &[(u64, Vec<FilteredProviderConfig>)]) -> Option<SessionConfig> {
    let mut providers = Vec::<FilteredProviderConfig>::new();
    for provider in sessions.iter().rev().flat_map(|(_, providers)| providers) {
        let is_same = |known: &FilteredProviderConfig| {
            known.provider.name.eq_ignore_ascii_case(&provider.provider.name)
        };
        if !providers.iter().any(is_same) {
            let mut provider = provider.clone();
            provider.provider.keywords = UNUSED_KEYWORD;
            providers.push(provider);
        }
    }
    let config = (!providers.is_empty()).then(|| SessionConfig::new(providers))?;
    Some(
        config
            .with_buffer_mb(BUFFER_MB)
            .with_rundown(Rundown::Off)
            .with_stackwalk(false)
            .with_optional(vec![OptionalFeature::NoRundown, OptionalFeature::NoStacks]),
    )
}

#[cfg(test)]
mod tests {
    use dipc_client::ProviderConfig;

    use super::*;

    fn session(providers: &[(&str, &str)]) -> SessionConfig {
        SessionConfig::new(providers.iter().map(|(name, arguments)| ProviderConfig {
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
            ..ProviderConfig::default()
        }))
    }

    #[test]
    fn the_filters_of_the_remaining_sessions_are_sent_again() {
        let sources = FilteredSources::new(Target::from_path("/nowhere/socket"), ProcessLog::default());
        let sources = Arc::new(sources);
        let long = sources.enter(&session(&[
            (LOGGING_PROVIDER, "A"),
            ("Plain", ""),
            ("System.Runtime", "EventCounterIntervalSec=1"),
        ]));
        let other = sources.enter(&session(&[(DIAGNOSTIC_SOURCE, "B")]));
        let short = sources.enter(&session(&[(LOGGING_PROVIDER, "C"), ("Own", "D=1")]));
        let sent = |sources: &FilteredSources| -> Vec<(String, String)> {
            let config = config(&sources.state().sessions);
            let providers = config.into_iter().flat_map(|config| config.providers);
            providers.map(|it| (it.provider.name, it.provider.arguments)).collect()
        };
        let pair = |name: &str, arguments: &str| (name.to_owned(), arguments.to_owned());
        assert_eq!(
            sent(&sources),
            [pair(LOGGING_PROVIDER, "C"), pair("Own", "D=1"), pair(DIAGNOSTIC_SOURCE, "B")]
        );
        // The sources of this session are not used by others.
        drop(other);
        assert_eq!(sources.state().count, 0);
        drop(short);
        assert_eq!(sources.state().count, 1);
        assert_eq!(sent(&sources), [pair(LOGGING_PROVIDER, "A")]);
        assert!(sources.description().is_some());
        drop(long);
        assert!(sources.state().renewal.is_none());
        assert!(sources.description().is_none());
    }
}
