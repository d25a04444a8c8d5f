//! The session of events that the rules of a process share, and the passing of time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clr_activity::{DiagnosticEvent, RequestWitness};
use dipc_client::dipc_wire::ProviderConfig;
use dipc_client::{Error, LiveReader, OptionalFeature, Providers, Rundown, SessionConfig, Timeouts};
use dipc_collect::RetryWait;

use super::process_rules::ProcessRules;
use super::system_watch::SystemWatch;
use crate::artifact::merged;
use crate::live_session::{Arrived, BUFFER_MB, DRAIN, LiveSession, TICK};
use crate::process::Watched;
use crate::request_provider::{DIAGNOSTIC_SOURCE, witness_provider};
use crate::rules::StreamEnd;

/// The bytes read at once.
const CHUNK: usize = 64 << 10;
/// Time limit for asking a process whether it still runs after its stream was cut.
const ANSWER: Duration = Duration::from_secs(3);

/// A session and its requested providers.
struct EventSession {
    live: LiveSession,
    providers: Providers,
    witness: RequestWitness,
    /// The time at which the process had ended.
    ended: Option<Instant>,
}

impl ProcessRules {
    /// Keeps the session that the triggers need, and lets time pass, until all rules have finished.
    pub(super) fn watch(self: Arc<Self>) {
        let mut retry = RetryWait::default();
        let mut next_attempt = Instant::now();
        let mut current: Option<EventSession> = None;
        let mut system = SystemWatch::new(&self.process);
        while self.tick(current.is_some()) {
            system.tick(&self);
            let requests = self.requests().into_iter().map(ProviderConfig::from);
            let wanted = merged(requests.map(|request| self.process.with_sources(request)));
            match current.take() {
                Some(session) if !session.covers(&wanted) => session.stop(&self),
                Some(mut session) => {
                    if session.read(&self) {
                        current = Some(session);
                    } else {
                        session.finish(&self);
                        next_attempt = Instant::now() + retry.next_wait();
                    }
                }
                None if wanted.is_empty() || Instant::now() < next_attempt => {
                    if wanted.is_empty() {
                        self.session_began(true);
                    }
                    self.wait(TICK);
                }
                None => match EventSession::start(&self.process, wanted) {
                    Ok(session) => {
                        retry.reset();
                        self.session_began(false);
                        current = Some(session);
                    }
                    Err(error) => {
                        if retry.is_first() {
                            self.session_failed(&error.to_string());
                        }
                        self.session_began(true);
                        next_attempt = Instant::now() + retry.next_wait();
                    }
                },
            }
        }
        if let Some(session) = current {
            session.stop(&self);
        }
    }
}

impl EventSession {
    fn start(process: &Watched, providers: Providers) -> Result<Self, Error> {
        let has_requests = providers.find(DIAGNOSTIC_SOURCE).is_some();
        let witness = has_requests.then(witness_provider);
        let config = SessionConfig::new(merged(providers.iter().cloned().chain(witness)).into_vec())
            .with_buffer_mb(BUFFER_MB)
            .with_rundown(Rundown::Off)
            .with_stackwalk(false)
            .with_optional(vec![OptionalFeature::NoRundown, OptionalFeature::NoStacks]);
        let live = LiveSession::start_filtered(
            &process.filtered_sources,
            process.target(),
            &config,
            CHUNK,
            &process.lost_events.rules,
        )?;
        Ok(Self { live, providers, witness: RequestWitness::new(DIAGNOSTIC_SOURCE), ended: None })
    }

    /// Returns true if the session covers the wanted providers, and there is at least one.
    fn covers(&self, wanted: &Providers) -> bool {
        let has = |wanted: &ProviderConfig| {
            self.providers.find(&wanted.name).is_some_and(|own| {
                own.keywords & wanted.keywords == wanted.keywords
                    && own.level.widest(wanted.level) == own.level
                    && (own.arguments == wanted.arguments || wanted.arguments.is_empty())
            })
        };
        !wanted.is_empty() && wanted.iter().all(has)
    }

    /// Reads what has arrived. Returns false at the end of the stream.
    fn read(&mut self, rules: &Arc<ProcessRules>) -> bool {
        match self.live.read() {
            Ok(Arrived::Bytes) => {}
            Ok(Arrived::Nothing) => {
                // The stream of an ended process has an end, unless another process holds the connection.
                let ended = rules.process_has_ended().then(|| *self.ended.get_or_insert_with(Instant::now));
                if ended.is_some_and(|ended| ended.elapsed() > DRAIN) {
                    return false;
                }
            }
            Ok(Arrived::End) | Err(_) => return false,
        }
        deliver(&mut self.live.reader, &mut self.witness, rules);
        if self.witness.take_silence(Instant::now()) {
            self.live.renew_filters();
        }
        self.live.reader.unreadable().is_none()
    }

    /// Evaluates the end of the stream, which was not asked for.
    fn finish(mut self, rules: &Arc<ProcessRules>) {
        self.live.reader.end_of_input();
        deliver(&mut self.live.reader, &mut self.witness, rules);
        let target = rules.process.target();
        let end = if self.live.reader.is_whole() {
            StreamEnd::Exit
        } else if target.clone().with_timeouts(Timeouts::each(ANSWER)).answers() {
            StreamEnd::Disconnect
        } else if target.pid().is_some() || rules.process.has_ended() {
            StreamEnd::Crash
        } else {
            // The process may be unreachable.
            StreamEnd::Unknown
        };
        rules.add_end(end);
    }

    /// Stops the session. The rest of its events still counts.
    fn stop(mut self, rules: &Arc<ProcessRules>) {
        let Self { live, witness, .. } = &mut self;
        live.stop(|reader| deliver(reader, witness, rules));
    }
}

fn deliver(reader: &mut LiveReader, witness: &mut RequestWitness, rules: &Arc<ProcessRules>) {
    rules.add_events(|each| {
        reader.for_each(|event| {
            witness.add(event);
            // Requests are also reported by their listener, and would count twice.
            if !DiagnosticEvent::is_of_activity_source(event) {
                each(event);
            }
        });
    });
}
