//! HTTP/1 of programs with other work: servers with bounded connections and deadlines, and requests to
//! collectors on the same machine.
//!
//! **Use it** to answer browsers and scrapers, or to push to a collector. **Not for** servers of many
//! clients, nor for TLS.
//!
//! - [`Connections`]: the connections of a server. A client that stays silent makes room for others.
//! - [`SiteServer`]: the answers of a [`Site`] to GET, from a thread of its own.
//! - [`is_local_host`]: the protection against web pages that have their names resolve to this machine.
//! - [`Endpoint`]: requests to a receiver. `OtlpSender`: a queue of requests of OTLP, which are sent again if
//!   they fail.
//!
//! Nothing is printed. Types of [`hyper`] are in signatures, such as of [`Connection::serve`].
//!
//! Features: `otlp` (`OtlpSender`). Rust 1.89 or later.
//!
//! # Examples
//!
//! ```no_run
//! use std::net::TcpListener;
//!
//! use dipc_http::{Content, Site, SiteServer};
//!
//! struct Hello;
//!
//! impl Site for Hello {
//!     const HINT: &'static str = "/ has the greeting\n";
//!
//!     fn has(&self, path: &str) -> bool {
//!         path == "/"
//!     }
//!
//!     fn content(&self, _: &str, _: Option<&str>) -> Content {
//!         Content { body: "hello\n".into(), media_type: "text/plain", is_private: false }
//!     }
//! }
//!
//! fn main() -> std::io::Result<()> {
//!     let server = SiteServer::start(TcpListener::bind("127.0.0.1:0")?, Hello)?;
//!     println!("http://{}/", server.address());
//!     std::thread::park();
//!     server.stop();
//!     Ok(())
//! }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod client;
mod connection;
mod connections;
mod host;
mod limits;
mod listen;
#[cfg(feature = "otlp")]
mod sender;
mod site;
mod stall_limit;

pub use client::{Endpoint, ParseEndpointError, RequestError};
pub use connection::Connection;
pub use connections::Connections;
pub use host::is_local_host;
pub use hyper;
pub use limits::{ConnectionLimits, Lifetime};
pub use listen::Listen;
#[cfg(feature = "otlp")]
pub use sender::{OtlpSender, RequestCount, SenderNote, SenderObserver, SenderTotals};
pub use site::{Content, Site, SiteServer};

/// The examples of the README are compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
