//! Sessions that write to the kernel's user_events, or to the file that a client passes instead.

use super::event_pipe::are_valid;
use crate::client::{Client, Step};
use crate::session::Session;
use dipc_transport::Deadline;
use dipc_wire::{HResult, Request, UserEventsProviderConfig, encode_error};
use std::io;
use std::ops::ControlFlow;

/// The version of the tracepoint format.
const TRACEPOINT_VERSION: u8 = 1;
/// The label of an event's description in its extension.
const METADATA: u8 = 1;

impl Client<'_> {
    /// Starts a session once the descriptor has arrived, if the simulated kernel has user_events. It ends
    /// when it is stopped or the client leaves.
    pub(super) fn start_user_events_session(
        &mut self,
        request: &Request,
        providers: &[UserEventsProviderConfig],
    ) -> Step {
        let has_tracepoints = |config: &UserEventsProviderConfig| {
            !config.tracepoints.default_tracepoint.is_empty() || !config.tracepoints.sets.is_empty()
        };
        let valid = are_valid(providers.iter().map(|config| &config.provider));
        if !valid || !providers.iter().all(has_tracepoints) {
            return self.refuse_bad_session();
        }
        let file = match self.receive_user_events_data()? {
            ControlFlow::Continue(Some(file)) => file,
            ControlFlow::Continue(None) => return self.refuse_bad_session(),
            ControlFlow::Break(()) => return Ok(ControlFlow::Break(())),
        };
        if !self.config().user_events {
            return self.reply(encode_error(HResult::FAIL));
        }
        let written = (0..).zip(providers).try_for_each(|(index, config)| write_event(&file, index, config));
        let Some(session) = written.ok().and_then(|()| Session::open(self.server(), request)) else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply_ok(&session.id())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        while !session.is_stopped() {
            if self.wait(Deadline::after(Session::STOP_POLL))?.is_break() {
                break;
            }
        }
        Ok(ControlFlow::Break(()))
    }

    /// Waits without a deadline for the byte that carries the descriptor of `user_events_data`; `None` if the
    /// byte arrives without a descriptor.
    #[cfg(unix)]
    fn receive_user_events_data(&mut self) -> Step<Option<std::fs::File>> {
        let received = self.connection().receive_with_descriptors(&mut [0], 1, Deadline::never())?;
        if received.bytes == 0 {
            return Ok(ControlFlow::Break(()));
        }
        Ok(ControlFlow::Continue(received.descriptors.into_iter().next().map(std::fs::File::from)))
    }

    /// Returns `None`: only Unix passes descriptors.
    #[cfg(not(unix))]
    fn receive_user_events_data(&mut self) -> Step<Option<std::fs::File>> {
        Ok(ControlFlow::Continue(None))
    }
}

/// Writes one event of the provider to its tracepoint, in the runtime's format and with the provider's name
/// as payload: index of the tracepoint, version, event id, positions of the extension and of the payload
/// (length in the upper half, distance from the end of the field in the lower), extension, payload. The
/// extension describes the event, which is the first of its kind.
fn write_event(mut file: &std::fs::File, index: u32, config: &UserEventsProviderConfig) -> io::Result<()> {
    let event_id: u16 = 1;
    let name: Vec<u8> = config.provider.name.encode_utf16().flat_map(u16::to_le_bytes).collect();
    // Provider, event id, no name, keywords, version, level, no fields.
    let mut description = [&name[..], &[0, 0]].concat();
    description.extend(u32::from(event_id).to_le_bytes());
    description.extend([0, 0]);
    description.extend(config.provider.keywords.0.to_le_bytes());
    description.extend([0, config.provider.level.0, 0].iter().flat_map(|number| number.to_le_bytes()));
    let mut extension = vec![METADATA];
    extension.extend(length(&description).to_le_bytes());
    extension.extend(description);

    let mut bytes = index.to_le_bytes().to_vec();
    bytes.push(TRACEPOINT_VERSION);
    bytes.extend(event_id.to_le_bytes());
    // After the position of the payload, 4 bytes from here.
    bytes.extend((length(&extension) << 16 | 4).to_le_bytes());
    bytes.extend((length(&name) << 16 | length(&extension)).to_le_bytes());
    bytes.extend(extension);
    bytes.extend(name);
    io::Write::write_all(&mut file, &bytes)
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(0)
}
