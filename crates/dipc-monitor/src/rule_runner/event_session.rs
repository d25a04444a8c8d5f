//! The session of events that the rules of a process share, and the passing of time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use clr_counters::ProviderRequest;
use dipc_client::dipc_wire::ProviderConfig;
use dipc_client::{
    Deadline, Error, LiveReader, OptionalFeature, Rundown, Session, SessionConfig, Target, Timeouts,
};

use super::process_rules::ProcessRules;
use crate::rules::StreamEnd;

/// The size of the runtime's buffer in MB: requests are reported one by one.
const BUFFER_MB: u32 = 16;
/// The bytes read at once.
const CHUNK: usize = 64 << 10;
/// The silence after which a batch of events counts as complete.
const PAUSE: Duration = Duration::from_millis(20);
/// The longest wait between looks at the clock.
const TICK: Duration = Duration::from_millis(250);
/// The longest time that an event is held back for older ones of other threads.
const MOST_DELAY: Duration = Duration::from_millis(200);
/// The time for the rest of a stopped session, or of one whose process has ended.
const DRAIN: Duration = Duration::from_secs(5);
/// The wait before a failed session is started again, which doubles up to [`LONGEST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait before a failed session is started again.
const LONGEST_RETRY: Duration = Duration::from_secs(60);
/// The time limit of the question whether a process whose stream was cut still runs.
const ANSWER: Duration = Duration::from_secs(3);

/// A session, and the reader of its events.
struct EventSession {
    session: Session,
    reader: LiveReader,
    providers: Vec<ProviderConfig>,
    buffer: Vec<u8>,
    wait: Duration,
    /// The time at which the process had ended.
    ended: Option<Instant>,
}

impl ProcessRules {
    /// Keeps the session that the triggers need, and lets time pass, until all rules have finished.
    pub(super) fn watch(self: Arc<Self>) {
        let mut retry = FIRST_RETRY;
        let mut next_attempt = Instant::now();
        let mut current: Option<EventSession> = None;
        while self.tick(current.is_some()) {
            let wanted = merge(self.requests());
            match current.take() {
                Some(session) if !session.covers(&wanted) => session.stop(&self),
                Some(mut session) => {
                    if session.read(&self) {
                        current = Some(session);
                    } else {
                        session.finish(&self);
                        next_attempt = Instant::now() + retry;
                        retry = (retry * 2).min(LONGEST_RETRY);
                    }
                }
                None if wanted.is_empty() || Instant::now() < next_attempt => {
                    if wanted.is_empty() {
                        self.session_began(true);
                    }
                    self.wait(TICK);
                }
                None => match EventSession::start(self.process.target(), wanted) {
                    Ok(session) => {
                        retry = FIRST_RETRY;
                        self.session_began(false);
                        current = Some(session);
                    }
                    Err(error) => {
                        if retry == FIRST_RETRY {
                            self.session_failed(&error.to_string());
                        }
                        self.session_began(true);
                        next_attempt = Instant::now() + retry;
                        retry = (retry * 2).min(LONGEST_RETRY);
                    }
                },
            }
        }
        if let Some(session) = current {
            session.stop(&self);
        }
    }
}

/// Merges the requests for each provider into one.
fn merge(requests: Vec<ProviderRequest>) -> Vec<ProviderConfig> {
    let mut providers = Vec::<ProviderConfig>::new();
    for request in requests {
        let request: ProviderConfig = request.into();
        match providers.iter_mut().find(|known| known.name.eq_ignore_ascii_case(&request.name)) {
            Some(known) => {
                known.keywords |= request.keywords;
                known.level = known.level.widest(request.level);
                if known.arguments.is_empty() {
                    known.arguments = request.arguments;
                }
            }
            None => providers.push(request),
        }
    }
    providers
}

impl EventSession {
    fn start(target: &Target, providers: Vec<ProviderConfig>) -> Result<Self, Error> {
        let config = SessionConfig::new(providers.iter().cloned())
            .with_buffer_mb(BUFFER_MB)
            .with_rundown(Rundown::Off)
            .with_stackwalk(false)
            .with_optional(vec![OptionalFeature::NoRundown, OptionalFeature::NoStacks]);
        Ok(Self {
            session: target.start_session(&config)?,
            reader: LiveReader::new(MOST_DELAY),
            providers,
            buffer: vec![0; CHUNK],
            wait: TICK,
            ended: None,
        })
    }

    /// Whether the session has what is wanted, which is not nothing.
    fn covers(&self, wanted: &[ProviderConfig]) -> bool {
        let has = |wanted: &ProviderConfig| {
            self.providers.iter().any(|own| {
                own.name.eq_ignore_ascii_case(&wanted.name)
                    && own.keywords & wanted.keywords == wanted.keywords
                    && own.level.widest(wanted.level) == own.level
                    && (own.arguments == wanted.arguments || wanted.arguments.is_empty())
            })
        };
        !wanted.is_empty() && wanted.iter().all(has)
    }

    /// Reads what has arrived. Returns false at the end of the stream.
    fn read(&mut self, rules: &Arc<ProcessRules>) -> bool {
        match self.session.read(&mut self.buffer, Deadline::after(self.wait)) {
            Ok(0) => return false,
            Ok(count) => {
                self.reader.feed(self.buffer.get(..count).unwrap_or_default());
                self.wait = PAUSE;
            }
            Err(error) if error.is_deadline() => {
                self.reader.release();
                self.wait = TICK;
                // Its stream has an end, unless another process holds the connection.
                let ended = rules.process_has_ended().then(|| *self.ended.get_or_insert_with(Instant::now));
                if ended.is_some_and(|ended| ended.elapsed() > DRAIN) {
                    return false;
                }
            }
            Err(_) => return false,
        }
        self.deliver(rules);
        self.reader.unreadable().is_none()
    }

    fn deliver(&mut self, rules: &Arc<ProcessRules>) {
        let reader = &mut self.reader;
        rules.add_events(|each| reader.for_each(|event| each(event)));
    }

    /// Evaluates the end of the stream, which was not asked for.
    fn finish(mut self, rules: &Arc<ProcessRules>) {
        self.reader.end_of_input();
        self.deliver(rules);
        let target = rules.process.target();
        let end = if self.reader.is_whole() {
            StreamEnd::Exit
        } else if target.clone().with_timeouts(Timeouts::each(ANSWER)).info().is_ok() {
            StreamEnd::Disconnect
        } else if target.pid().is_some() || rules.process.has_ended() {
            StreamEnd::Crash
        } else {
            // It may be unreachable.
            StreamEnd::Unknown
        };
        rules.add_end(end);
    }

    /// Stops the session, so that the runtime keeps nothing of it. The rest of its events still counts.
    fn stop(mut self, rules: &Arc<ProcessRules>) {
        let deadline = Deadline::after(DRAIN);
        if self.session.request_stop().is_err() {
            return;
        }
        while let Ok(count @ 1..) = self.session.read(&mut self.buffer, deadline) {
            self.reader.feed(self.buffer.get(..count).unwrap_or_default());
            self.deliver(rules);
        }
    }
}
