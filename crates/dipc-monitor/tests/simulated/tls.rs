//! HTTPS, by a client on rustls that trusts one certificate.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dipc_monitor::{ListenAddress, Tls, TlsError};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, Stream};

use crate::{Fixture, PATIENCE};

/// Copies a certificate and its key of testdata, `a` or `b`, to the files of a server.
fn place(name: &str, folder: &tempfile::TempDir) -> (PathBuf, PathBuf) {
    let paths = (folder.path().join("tls.crt"), folder.path().join("tls.key"));
    fs::write(&paths.0, testdata::bytes(&format!("monitor/{name}.crt"))).unwrap();
    fs::write(&paths.1, testdata::bytes(&format!("monitor/{name}.key"))).unwrap();
    paths
}

fn start(tls: &Tls) -> (Fixture, SocketAddr) {
    let fixture = Fixture::with_server(|config| {
        config.with_addresses(vec!["https://127.0.0.1:0".parse().unwrap()]).with_tls(Some(tls.clone()))
    });
    let address = match &fixture.server.addresses()[0] {
        ListenAddress::Tls(address) => *address,
        other => panic!("{other}"),
    };
    (fixture, address)
}

/// Gets a path with the certificate `trusted`. Returns the answer and the protocol that was agreed on.
fn get(address: SocketAddr, trusted: &str, path: &str) -> Result<(String, Option<Vec<u8>>), std::io::Error> {
    let mut roots = RootCertStore::empty();
    let certificate = testdata::bytes(&format!("monitor/{trusted}.crt"));
    roots.add(CertificateDer::from_pem_slice(&certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut answer = Vec::new();
    let mut stream = Stream::new(&mut client, &mut socket);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n")?;
    match stream.read_to_end(&mut answer) {
        // Its end may come without a closing message.
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    Ok((String::from_utf8(answer).unwrap(), client.alpn_protocol().map(<[u8]>::to_vec)))
}

#[test]
fn a_server_with_a_certificate_answers_over_tls_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = place("a", &folder);
    let tls = Tls::open(&certificate, &key).unwrap();
    let (fixture, address) = start(&tls);
    assert_eq!(fixture.server.addresses()[0].to_string(), format!("https://{address}"));
    let (answer, protocol) = get(address, "a", "/info").unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(protocol.as_deref(), Some(&b"http/1.1"[..]));
    let _runtime = fixture.add(dipc_sim::Runtime::builder());
    let (answer, _) = get(address, "a", "/trace?durationSeconds=1").unwrap();
    assert!(answer.to_ascii_lowercase().contains("location: https://localhost:1/operations/"), "{answer}");
    // Another certificate is not trusted.
    assert_eq!(get(address, "b", "/info").unwrap_err().kind(), ErrorKind::InvalidData);
    // A client without TLS gets no answer.
    let mut plain = TcpStream::connect(address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(b"GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // The connection may be reset.
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"), "{}", String::from_utf8_lossy(&answer));
    // An open connection does not block others.
    let _silent: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
    assert!(get(address, "a", "/info").unwrap().0.starts_with("HTTP/1.1 200"));
}

#[test]
fn a_changed_certificate_is_for_later_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = place("a", &folder);
    let tls = Tls::open(&certificate, &key).unwrap();
    let (_fixture, address) = start(&tls);
    assert!(get(address, "a", "/info").is_ok());
    place("b", &folder);
    tls.reload().unwrap();
    assert!(get(address, "b", "/info").is_ok());
    assert_eq!(get(address, "a", "/info").unwrap_err().kind(), ErrorKind::InvalidData);
    // Files that cannot be used change nothing.
    fs::write(&certificate, testdata::bytes("monitor/a.crt")).unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::Invalid { .. })));
    fs::write(&certificate, "").unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::Pem(_, "certificate"))));
    fs::remove_file(&key).unwrap();
    place("b", &folder);
    fs::remove_file(&key).unwrap();
    assert!(matches!(tls.reload(), Err(TlsError::Read { .. })));
    assert!(get(address, "b", "/info").is_ok());
}

#[test]
fn a_handshake_has_a_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = place("a", &folder);
    // One at a time: the second one waits for the first, within the same time.
    let tls = Tls::with_limits(&certificate, &key, Duration::from_millis(100), 1).unwrap();
    let (_fixture, address) = start(&tls);
    let silent = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    for mut connection in silent {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(connection.read(&mut [0]).unwrap(), 0);
    }
}
