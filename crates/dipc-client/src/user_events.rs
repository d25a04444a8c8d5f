//! Sessions that write to the kernel's user_events instead of a stream.

use std::os::fd::BorrowedFd;

use dipc_wire::{CollectTracing5, Command as _, Keywords, SessionId, UserEventsProviderConfig};

use crate::route::RouteConnection;
use crate::{Error, Target};

/// A session of events that the runtime writes to the kernel's user_events, for `perf` and similar tools.
///
/// The session ends when this is dropped, within [`Timeouts::abandon`](crate::Timeouts).
#[derive(Debug)]
pub struct UserEvents {
    target: Target,
    id: SessionId,
    /// The runtime ends the session when this closes.
    _connection: RouteConnection,
    stopped: bool,
}

impl Target {
    /// Starts a session that writes to `user_events_data`: the file of that name below `/sys/kernel/tracing`,
    /// opened for writing, of which the runtime gets a duplicate. Since .NET 10, on Linux.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] without providers, or for one without tracepoints. A runtime on a kernel without
    /// user_events refuses with 0x80004005.
    pub fn start_user_events_session(
        &self,
        providers: Vec<UserEventsProviderConfig>,
        rundown_keyword: Keywords,
        user_events_data: BorrowedFd<'_>,
    ) -> Result<UserEvents, Error> {
        const NAME: &str = <CollectTracing5>::NAME;
        check(&providers).map_err(|what| Error::OutOfRange { command: NAME, what })?;
        let session = dipc_wire::UserEventsSession { rundown_keyword, providers };
        let command: CollectTracing5 = CollectTracing5::UserEvents(session);
        let deadline = self.request_deadline();
        let mut exchange = self.send(&command, deadline)?;
        // A runtime that refuses may have closed before the descriptor arrived, and its answer is more useful
        // than that error.
        let handed = exchange.hand_over(user_events_data, deadline);
        let answer = exchange.receive::<CollectTracing5>(deadline);
        match answer.map_err(|error| handed.err().unwrap_or(error))? {
            Ok(id) => {
                let (route, _) = exchange.into_stream();
                Ok(UserEvents { target: self.clone(), id, _connection: route, stopped: false })
            }
            Err(reason) if reason.hresult == dipc_wire::HResult::UNKNOWN_COMMAND => {
                Err(self.unknown_command(NAME))
            }
            Err(reason) => Err(exchange.refused(reason)),
        }
    }
}

/// Some runtimes end on requests that they do not accept.
fn check(providers: &[UserEventsProviderConfig]) -> Result<(), String> {
    if providers.is_empty() {
        return Err("a session needs a provider".into());
    }
    for UserEventsProviderConfig { provider, tracepoints, .. } in providers {
        if provider.name.is_empty() {
            return Err("a provider without a name".into());
        }
        if tracepoints.default_tracepoint.is_empty() && tracepoints.sets.is_empty() {
            return Err(format!("{} has no tracepoint to write to", provider.name));
        }
    }
    Ok(())
}

impl UserEvents {
    /// The runtime's id of the session.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Ends the session.
    pub fn stop(mut self) -> Result<(), Error> {
        self.stopped = true;
        self.target.stop(self.id)
    }
}

impl Drop for UserEvents {
    fn drop(&mut self) {
        if !self.stopped {
            let timeouts = self.target.timeouts();
            let timeouts = timeouts.with_stop(timeouts.abandon).with_request(timeouts.abandon);
            // Closing the connection also ends it.
            let _ = self.target.clone().with_timeouts(timeouts).stop(self.id);
        }
    }
}
