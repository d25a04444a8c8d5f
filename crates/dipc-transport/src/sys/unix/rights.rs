//! Descriptors that are sent with bytes (`SCM_RIGHTS`).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use super::stream::{Socket, Stream};
use crate::Deadline;
use crate::cancel::Interruption;

/// Maximum number of descriptors in one message, under the Linux kernel's name.
const SCM_MAX_FD: usize = 253;

/// The bytes of a control message with that many descriptors.
const CONTROL_LEN: usize = rustix::cmsg_space!(ScmRights(SCM_MAX_FD));

/// The result of one `recvmsg`.
#[derive(Debug)]
pub(crate) struct ReceivedRights {
    pub(crate) bytes: usize,
    pub(crate) descriptors: Vec<OwnedFd>,
    /// True if more descriptors were received than the limit. The excess descriptors are closed.
    pub(crate) surplus: bool,
}

impl Stream {
    pub(crate) fn send_rights(
        &mut self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> Result<usize, Interruption> {
        self.readiness.retry(deadline, || send(&self.socket, bytes, descriptors))
    }

    pub(crate) fn receive_rights(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        deadline: Deadline,
    ) -> Result<ReceivedRights, Interruption> {
        self.readiness.retry(deadline, || receive(&self.socket, buffer, limit))
    }
}

fn send(socket: &Socket, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<usize> {
    let invalid = |what| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if bytes.is_empty() {
        return invalid("descriptors are sent along with bytes, and there are none");
    }
    let mut space = [MaybeUninit::uninit(); CONTROL_LEN];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = descriptors.len() <= SCM_MAX_FD && control.push(SendAncillaryMessage::ScmRights(descriptors));
    if !fits {
        return invalid("too many descriptors for one message");
    }
    #[cfg(target_os = "linux")]
    let flags = SendFlags::NOSIGNAL;
    // `socket2` sets `SO_NOSIGPIPE` instead.
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::empty();
    Ok(rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?)
}

fn receive(socket: &Socket, buffer: &mut [u8], limit: usize) -> io::Result<ReceivedRights> {
    let mut space = [MaybeUninit::uninit(); CONTROL_LEN];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    #[cfg(target_os = "linux")]
    let flags = RecvFlags::CMSG_CLOEXEC;
    #[cfg(not(target_os = "linux"))]
    let flags = RecvFlags::empty();
    let message = rustix::net::recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, flags)?;
    let mut received = ReceivedRights {
        bytes: message.bytes,
        descriptors: Vec::new(),
        surplus: message.flags.contains(ReturnFlags::CTRUNC),
    };
    // Surplus descriptors are closed when dropped, also on an early return.
    for message in control.drain() {
        let RecvAncillaryMessage::ScmRights(descriptors) = message else { continue };
        for descriptor in descriptors {
            if received.descriptors.len() < limit {
                #[cfg(not(target_os = "linux"))]
                rustix::io::fcntl_setfd(&descriptor, rustix::io::FdFlags::CLOEXEC)?;
                received.descriptors.push(descriptor);
            } else {
                received.surplus = true;
            }
        }
    }
    Ok(received)
}
