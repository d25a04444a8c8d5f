//! TLS: the certificate, and handshakes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The time for a handshake.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Maximum number of concurrent handshakes: that of all connections, so that silent clients do not delay
/// others.
const MAX_HANDSHAKES: usize = super::LIMITS.max_connections;
/// Maximum size of a file of certificates or of a key, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate with its private key, from files in PEM. Clones share it, and a [`reload`](Self::reload)
/// applies to all of them.
#[derive(Debug, Clone)]
pub struct Tls(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    certificate: PathBuf,
    key: PathBuf,
    config: RwLock<Arc<ServerConfig>>,
    handshakes: Semaphore,
    handshake_time: Duration,
}

/// An error in the files of a certificate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// A file does not contain a certificate or key in PEM.
    #[error("{0}: it has no {1} in PEM")]
    Pem(PathBuf, &'static str),
    /// The certificate and the key do not belong together, or cannot be used.
    #[error("{certificate} and {key}: {error}")]
    Invalid {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The reason.
        error: String,
    },
}

impl Tls {
    /// Reads a certificate, with the intermediate ones after it, and its private key.
    ///
    /// # Errors
    /// If they cannot be read, or do not belong together.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        Self::with_limits(certificate, key, HANDSHAKE_TIME, MAX_HANDSHAKES)
    }

    /// The same with other limits of handshakes: their time, and the most at once.
    ///
    /// # Errors
    /// If the files cannot be read, or do not belong together.
    pub fn with_limits(
        certificate: &Path,
        key: &Path,
        handshake_time: Duration,
        most_handshakes: usize,
    ) -> Result<Self, TlsError> {
        let config = RwLock::new(read(certificate, key)?);
        Ok(Self(Arc::new(Shared {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config,
            handshakes: Semaphore::new(most_handshakes),
            handshake_time,
        })))
    }

    /// Reads the files again, for later connections.
    ///
    /// # Errors
    /// If they cannot be used. The certificate stays as it was.
    pub fn reload(&self) -> Result<(), TlsError> {
        let config = read(&self.0.certificate, &self.0.key)?;
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Does a handshake; `None` if it fails or takes too long.
    pub(super) async fn accept<S>(&self, stream: S) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let handshake = async {
            // The semaphore is never closed.
            let _permit = self.0.handshakes.acquire().await.ok()?;
            let config = Arc::clone(&self.0.config.read().unwrap_or_else(PoisonError::into_inner));
            TlsAcceptor::from(config).accept(stream).await.ok()
        };
        tokio::time::timeout(self.0.handshake_time, handshake).await.ok().flatten()
    }
}

fn read(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let certificates = CertificateDer::pem_slice_iter(&read_file(certificate)?)
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|list| !list.is_empty())
        .ok_or_else(|| TlsError::Pem(certificate.to_owned(), "certificate"))?;
    let private_key = PrivateKeyDer::from_pem_slice(&read_file(key)?)
        .map_err(|_| TlsError::Pem(key.to_owned(), "private key"))?;
    let invalid = |error: rustls::Error| TlsError::Invalid {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error: error.to_string(),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(invalid)?
        .with_no_client_auth()
        .with_single_cert(certificates, private_key)
        .map_err(invalid)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    use std::io::Read as _;

    let mut bytes = Vec::new();
    let read = dipc_client::dipc_transport::open_regular(path)
        .and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| TlsError::Read { path: path.to_owned(), error })?;
    Ok(bytes)
}
