use std::os::fd::{BorrowedFd, OwnedFd};

use crate::{Connection, Deadline, Error, Operation};

/// The result of [`Connection::receive_with_descriptors`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Received {
    /// The number of bytes that were read; 0 is the end of the stream.
    pub bytes: usize,
    /// The descriptors received with them, in order. Children do not inherit them.
    pub descriptors: Vec<OwnedFd>,
    /// True if more descriptors were received than the limit. The excess descriptors are closed.
    pub surplus: bool,
}

/// Open files, which only Unix domain sockets can transfer.
impl Connection {
    /// Writes all of `bytes`, and `descriptors` with the first of them; at least one byte is needed, and at
    /// most 253 descriptors are allowed. The peer gets duplicates: they can be closed here as soon as this
    /// returns.
    ///
    /// ```
    /// use std::{fs::File, io::Read as _, os::fd::AsFd as _, time::Duration};
    /// use dipc_transport::{Connection, Deadline, Listener, PeerCheck};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let mut listener = Listener::bind(folder.path().join("port").as_path())?;
    /// let deadline = Deadline::after(Duration::from_secs(60));
    /// let mut client = Connection::connect(listener.address(), PeerCheck::Any, deadline)?;
    /// std::fs::write(folder.path().join("file"), "content")?;
    /// let file = File::open(folder.path().join("file"))?;
    /// client.send_with_descriptors(b"!", &[file.as_fd()], deadline)?;
    ///
    /// let received = listener.accept(deadline)?.receive_with_descriptors(&mut [0; 1], 1, deadline)?;
    /// let mut content = String::new();
    /// for descriptor in received.descriptors {
    ///     File::from(descriptor).read_to_string(&mut content)?;
    /// }
    /// assert_eq!(content, "content");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Unsupported`] on a TCP connection; otherwise as for [`Connection::write_all`]. After an error
    /// it is not known whether the descriptors were sent.
    pub fn send_with_descriptors(
        &mut self,
        bytes: &[u8],
        descriptors: &[BorrowedFd<'_>],
        deadline: Deadline,
    ) -> Result<(), Error> {
        self.require_unix(Operation::Write)?;
        let count = self
            .stream
            .send_rights(bytes, descriptors, deadline)
            .map_err(|interruption| self.interrupted(interruption, Operation::Write))?;
        debug_assert!(count <= bytes.len(), "the system wrote more than it was given");
        self.write_all(bytes.get(count..).unwrap_or_default(), deadline)
    }

    /// Reads as [`Connection::read`] does, and receives up to `limit` descriptors sent with the bytes. Bytes
    /// and descriptors of different messages are returned separately.
    ///
    /// Descriptors beyond `limit` are closed, and so are all that arrive at a plain [`Connection::read`].
    ///
    /// # Errors
    /// [`Error::Unsupported`] on a TCP connection; otherwise as for [`Connection::read`].
    pub fn receive_with_descriptors(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        deadline: Deadline,
    ) -> Result<Received, Error> {
        self.require_unix(Operation::Read)?;
        let received = self
            .stream
            .receive_rights(buffer, limit, deadline)
            .map_err(|interruption| self.interrupted(interruption, Operation::Read))?;
        let crate::sys::ReceivedRights { bytes, descriptors, surplus } = received;
        Ok(Received { bytes, descriptors, surplus })
    }

    fn require_unix(&self, operation: Operation) -> Result<(), Error> {
        match self.address.path() {
            Some(_) => Ok(()),
            None => Err(Error::Unsupported { operation, address: self.address.clone() }),
        }
    }
}
