//! Errors of a monitor.

/// An error of starting a monitor.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonitorError {
    /// The diagnostic port cannot be opened.
    #[error(transparent)]
    Port(#[from] dipc_client::Error),
    /// A thread cannot be started.
    #[error("start a thread: {0}")]
    Thread(std::io::Error),
}

impl From<std::io::Error> for MonitorError {
    fn from(error: std::io::Error) -> Self {
        Self::Thread(error)
    }
}
