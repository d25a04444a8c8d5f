//! The certificate of `dipc monitor`, and its changes.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use dipc_monitor::ServerConfig;

use crate::exit::Failure;

#[cfg(feature = "cloud")]
use std::path::Path;

#[cfg(feature = "cloud")]
use dipc_monitor::Tls;

#[cfg(feature = "cloud")]
use super::file_watch::{FileWatch, states};
#[cfg(feature = "cloud")]
use crate::render::messages;

#[derive(Debug, Args)]
pub(super) struct TlsArgs {
    /// PEM file with the certificate of https addresses, followed by the intermediate certificates
    ///
    /// Part of dipc-fleet. The files are read again when they change and on SIGHUP: later connections get the
    /// new certificate.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the private key of the certificate
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// Checks the options against the addresses of the server, and returns its certificate, if configured.
    ///
    /// # Errors
    /// If only one of the files is given, or the certificate cannot be used.
    pub(super) fn certificate(&self, config: &ServerConfig) -> Result<Option<Certificate>, Failure> {
        let all = config.addresses.iter().chain(&config.metrics_addresses);
        let address = all.clone().find(|it| it.is_tls()).cloned();
        if cfg!(not(feature = "cloud")) && (address.is_some() || self.tls_cert.is_some()) {
            let what = address.map_or_else(|| "--tls-cert".to_owned(), |address| address.to_string());
            return Err(Failure::usage(format_args!("monitor: {what}: this program has no TLS")).with_help(
                "'dipc-fleet monitor' has it; 'dipc monitor' listens at http:// or unix:, with a proxy in front",
            ));
        }
        match (address, &self.tls_cert, &self.tls_key) {
            (Some(_), Some(certificate), Some(key)) => Certificate::open(certificate, key).map(Some),
            (Some(address), ..) => {
                Err(Failure::usage(format_args!("monitor: {address}: there is no certificate for it"))
                    .with_help("--tls-cert and --tls-key name the files of one"))
            }
            (None, Some(_), _) => {
                Err(Failure::usage("monitor: --tls-cert: no address of --urls and --metricUrls has TLS")
                    .with_help("--urls https://127.0.0.1:52323 is one"))
            }
            (None, ..) => Ok(None),
        }
    }
}

/// The files of a certificate.
#[cfg(feature = "cloud")]
pub(super) struct Certificate {
    tls: Tls,
    paths: [PathBuf; 2],
    watch: FileWatch,
}

#[cfg(feature = "cloud")]
impl Certificate {
    fn open(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let paths = [certificate.to_owned(), key.to_owned()];
        let watch = FileWatch::new(states(paths.iter().map(PathBuf::as_path)));
        let tls = Tls::open(certificate, key)
            .map_err(|error| Failure::usage(format_args!("monitor: --tls-cert, --tls-key: {error}")))?;
        Ok(Self { tls, paths, watch })
    }

    /// Gives the server the certificate.
    pub(super) fn apply(&self, config: ServerConfig) -> ServerConfig {
        config.with_tls(Some(self.tls.clone()))
    }

    /// Reads the files again when they have changed, or when it is asked to.
    pub(super) fn reload(&mut self, is_asked: bool) {
        if !self.watch.is_due(|| states(self.paths.iter().map(PathBuf::as_path)), is_asked) {
            return;
        }
        match self.tls.reload() {
            Ok(()) => messages::note("The certificate was read again"),
            Err(error) => {
                messages::warning(format_args!("the certificate: {error}"));
                messages::help("the certificate stays as it was until the files can be used");
            }
        }
    }
}

/// The program is built without TLS.
#[cfg(not(feature = "cloud"))]
pub(super) enum Certificate {}

#[cfg(not(feature = "cloud"))]
impl Certificate {
    fn open(_: &std::path::Path, _: &std::path::Path) -> Result<Self, Failure> {
        Err(Failure::usage("monitor: this program has no TLS"))
    }

    pub(super) const fn apply(&self, _: ServerConfig) -> ServerConfig {
        match *self {}
    }

    pub(super) const fn reload(&mut self, _: bool) {
        match *self {}
    }
}
