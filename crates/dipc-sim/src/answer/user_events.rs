//! Sessions that write to the kernel's user_events, or to whatever file stands in for them.

use super::event_pipe::within_limits;
use crate::client::{Client, Step};
use crate::stream::STOP_POLL;
use dipc_transport::Deadline;
use dipc_wire::{HResult, Request, UserEventsProviderConfig, encode_error};
use std::io;
use std::ops::ControlFlow;

/// The version of the tracepoints' format.
const TRACEPOINT_VERSION: u8 = 1;

impl Client<'_> {
    /// Starts such a session once the descriptor has come, if the kernel that is simulated has user_events; it lasts until it
    /// is stopped or the client goes.
    pub(super) fn collect_into_user_events(
        &mut self,
        request: &Request,
        providers: &[UserEventsProviderConfig],
    ) -> Step {
        let has_tracepoints = |config: &UserEventsProviderConfig| {
            !config.tracepoints.default_tracepoint.is_empty() || !config.tracepoints.sets.is_empty()
        };
        let good = within_limits(providers.iter().map(|config| &config.provider));
        if !good || !providers.iter().all(has_tracepoints) {
            return self.refuse_bad_session();
        }
        let file = match self.receive_user_events_data()? {
            ControlFlow::Continue(Some(file)) => file,
            ControlFlow::Continue(None) => return self.refuse_bad_session(),
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        if !self.behaviour().user_events {
            return self.reply(encode_error(HResult::FAIL));
        }
        let written = (0..).zip(providers).try_for_each(|(index, config)| write_event(&file, index, config));
        let Some(session) = written.ok().and_then(|()| self.server().open_session(request)) else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply_ok(&session.id())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        while !session.is_stopped() {
            if self.wait(Deadline::after(STOP_POLL))?.is_break() {
                break;
            }
        }
        Ok(ControlFlow::Break(()))
    }

    /// Waits, as long as it takes, for the byte that comes with the descriptor of `user_events_data`; none if it comes alone.
    #[cfg(unix)]
    fn receive_user_events_data(&mut self) -> Step<Option<std::fs::File>> {
        let received = self.connection().receive_with_descriptors(&mut [0], 1, Deadline::never())?;
        if received.bytes == 0 {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(received.descriptors.into_iter().next().map(std::fs::File::from)))
    }

    /// Descriptors are of Unix.
    #[cfg(not(unix))]
    fn receive_user_events_data(&mut self) -> Step<Option<std::fs::File>> {
        Ok(ControlFlow::Continue(None))
    }
}

/// One event of the provider, as a runtime writes it to its tracepoint, with the provider's name as payload: index of the
/// tracepoint, version, event id, where the extension and the payload are (length in the upper half, distance from behind the
/// field in the lower), the data.
fn write_event(mut file: &std::fs::File, index: u32, config: &UserEventsProviderConfig) -> io::Result<()> {
    let payload: Vec<u8> = config.provider.name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let length = u32::try_from(payload.len()).unwrap_or(0) << 16;
    let event_id: u16 = 1;
    let mut bytes = index.to_le_bytes().to_vec();
    bytes.push(TRACEPOINT_VERSION);
    bytes.extend(event_id.to_le_bytes());
    // No extension; it would begin behind the field of the payload.
    bytes.extend(4_u32.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    bytes.extend(payload);
    io::Write::write_all(&mut file, &bytes)
}
