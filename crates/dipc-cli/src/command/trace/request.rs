//! The session that the runtime of a recording is asked for.

use dipc_client::{Keywords, RUNTIME_PROVIDER, Rundown, SessionConfig};

use crate::record::selection::Selection;

/// The parts of a recording that do not come from its session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Elsewhere<'s> {
    /// The rest of the selection, if the kernel samples the process.
    pub(super) without_sampler: Option<&'s Selection>,
    /// True if all events go to the kernel.
    pub(super) all: bool,
    /// True if exceptions have a session of their own.
    pub(super) exceptions: bool,
    /// True if the names of methods are read from memory.
    pub(super) names: bool,
}

impl Elsewhere<'_> {
    /// Returns the session without these parts.
    pub(super) fn taken_from(self, session: &SessionConfig) -> SessionConfig {
        let mut session = session.clone();
        if let Some(rest) = self.without_sampler {
            session.providers = rest.configs().into_iter().map(Into::into).collect();
        }
        if self.all {
            session.providers = SessionConfig::without_events().providers;
        }
        if self.exceptions {
            for runtime in session.providers.iter_mut().filter(|of| of.provider.name == RUNTIME_PROVIDER) {
                runtime.provider.keywords = runtime.provider.keywords & !Keywords::EXCEPTION;
            }
        }
        if self.names { session.with_rundown(Rundown::Off) } else { session }
    }
}

#[cfg(test)]
mod tests {
    use dipc_client::{ALL_PROFILE, Profile, SAMPLE_PROFILER};

    use super::*;
    use crate::record::selection::SelectionRequest;

    /// The request of `dipc why` and `dipc profile`.
    fn everything() -> (Selection, SessionConfig) {
        let profiles = vec![Profile::find(ALL_PROFILE).unwrap()];
        let request = SelectionRequest { profiles, ..SelectionRequest::default() };
        let selection = Selection::new(&request).unwrap();
        let session = SessionConfig::new(selection.configs()).with_rundown(selection.rundown(None));
        (selection, session)
    }

    fn keywords(session: &SessionConfig) -> Keywords {
        let runtime = session.providers.iter().find(|of| of.provider.name == RUNTIME_PROVIDER);
        runtime.unwrap().provider.keywords
    }

    /// A runtime that lists compiled methods while code is unloaded can end.
    #[test]
    fn no_list_of_methods_is_asked_for_if_the_names_come_from_memory() {
        let (_, session) = everything();
        assert_eq!(session.rundown, Rundown::Default);
        let asked = Elsewhere { names: true, ..Elsewhere::default() }.taken_from(&session);
        assert_eq!(asked.rundown, Rundown::Off);
        assert_eq!(asked.providers, session.providers);
    }

    #[test]
    fn a_session_lacks_what_another_has() {
        let (selection, session) = everything();
        assert_eq!(Elsewhere::default().taken_from(&session), session);
        assert!(keywords(&session).intersects(Keywords::EXCEPTION) && selection.samples_threads());
        let without_sampler = selection.without_sampler();
        let elsewhere =
            Elsewhere { without_sampler: Some(&without_sampler), exceptions: true, ..Elsewhere::default() };
        let asked = elsewhere.taken_from(&session);
        assert_eq!(keywords(&asked), keywords(&session) & !Keywords::EXCEPTION);
        assert!(asked.providers.iter().all(|of| of.provider.name != SAMPLE_PROFILER));
        assert_eq!(asked.rundown, Rundown::Default);
    }

    #[test]
    fn a_session_without_events_lists_methods() {
        let (selection, session) = everything();
        let without_sampler = selection.without_sampler();
        let elsewhere =
            Elsewhere { without_sampler: Some(&without_sampler), all: true, ..Elsewhere::default() };
        let asked = elsewhere.taken_from(&session);
        assert_eq!((asked.rundown, asked.providers.len()), (Rundown::Default, 1));
        assert_eq!(keywords(&asked), Keywords::NONE);
    }
}
