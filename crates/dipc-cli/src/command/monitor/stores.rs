//! Object stores as destinations of the monitor's artifacts.

use std::fs::File;
use std::io;
use std::path::Path;

use dipc_monitor::StoreClient;
use dipc_monitor::configuration::{AzureEgress, DataSetEgress, GoogleEgress, S3Egress, StoreEgress};
use nettrace_tables::{Dataset, Input, Labels, Options};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Name;
use object_store::{ClientOptions, ObjectStore};

use crate::object_stores::{self, StoreConnector, reason};

/// The region for servers without regions.
const REGION: &str = "us-east-1";

/// The client of S3, of Azure Blob Storage and of Google Cloud Storage, and the writer of data sets. Keys
/// missing from the configuration are taken from the environment or the machine.
#[derive(Debug)]
pub(super) struct Stores;

impl StoreClient for Stores {
    fn upload(&self, store: &StoreEgress, name: &str, file: &Path) -> io::Result<()> {
        if let StoreEgress::DataSet(data_set) = store {
            return add_to_data_set(data_set, name, file);
        }
        object_stores::install_ciphers();
        let failed = |error: &object_store::Error| {
            io::Error::other(format!("upload {}: {}", store.address(name), without_queries(&reason(error))))
        };
        let (client, name) = open(store, name).map_err(|error| failed(&error))?;
        let name = Name::parse(name).map_err(|error| failed(&error.into()))?;
        let file = File::open(file)?;
        let size = file.metadata()?.len();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(object_stores::send(&*client, &name, file, size)).map_err(|error| failed(&error))
    }
}

/// Returns the client of a store, and the name of an artifact's object.
fn open(store: &StoreEgress, name: &str) -> object_store::Result<(Box<dyn ObjectStore>, String)> {
    match store {
        StoreEgress::S3(store) => Ok((s3(store)?, name.to_owned())),
        StoreEgress::Azure(store) => Ok((azure(store)?, store.object(name))),
        StoreEgress::Google(store) => Ok((google(store)?, store.object(name))),
        _ => Err(object_store::Error::NotImplemented {
            operation: "upload".to_owned(),
            implementer: store.kind().to_owned(),
        }),
    }
}

fn s3(store: &S3Egress) -> object_store::Result<Box<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(&store.bucket)
        .with_retry(object_stores::retries())
        .with_http_connector(StoreConnector::default());
    if builder.get_config_value(&AmazonS3ConfigKey::Region).is_none() || store.region.is_some() {
        builder = builder.with_region(store.region.as_deref().unwrap_or(REGION));
    }
    if let Some(endpoint) = &store.endpoint {
        builder = builder.with_endpoint(endpoint).with_allow_http(is_http(endpoint));
    }
    if let Some((id, key)) = &store.access_key {
        builder = builder.with_access_key_id(id).with_secret_access_key(key.reveal());
    }
    if store.uses_kms {
        builder = match &store.kms_key {
            Some(key) => builder.with_sse_kms_encryption(key),
            None => builder.with_config("aws_server_side_encryption".parse()?, "aws:kms"),
        };
    }
    Ok(Box::new(builder.build()?))
}

fn azure(store: &AzureEgress) -> object_store::Result<Box<dyn ObjectStore>> {
    let account = account(&store.account_uri);
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_account(account)
        .with_endpoint(store.account_uri.trim_end_matches('/').to_owned())
        .with_allow_http(is_http(&store.account_uri))
        .with_container_name(&store.container)
        .with_retry(object_stores::retries())
        .with_http_connector(StoreConnector::default());
    if let Some(key) = &store.account_key {
        builder = builder.with_access_key(key.reveal());
    }
    if let Some(signature) = &store.shared_access_signature {
        builder = builder.with_config(AzureConfigKey::SasKey, signature.reveal().trim_start_matches('?'));
    }
    if let Some(client) = &store.managed_identity {
        builder = builder.with_client_id(client);
    }
    Ok(Box::new(builder.build()?))
}

fn google(store: &GoogleEgress) -> object_store::Result<Box<dyn ObjectStore>> {
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(&store.bucket)
        .with_retry(object_stores::retries())
        .with_http_connector(StoreConnector::default());
    if let Some(endpoint) = &store.endpoint {
        let options = ClientOptions::new().with_allow_http(is_http(endpoint));
        builder = builder.with_base_url(endpoint.trim_end_matches('/')).with_client_options(options);
    }
    if let Some(path) = &store.service_account {
        builder = builder.with_service_account_path(path.display().to_string());
    }
    if let Some(key) = &store.service_account_key {
        builder = builder.with_service_account_key(key.reveal());
    }
    Ok(Box::new(builder.build()?))
}

/// Adds a recording to a data set, as `dipc export` does. A recording that is already present is not added
/// again.
fn add_to_data_set(data_set: &DataSetEgress, name: &str, file: &Path) -> io::Result<()> {
    let mut labels = Labels::default();
    for (label, value) in &data_set.labels {
        labels.insert(label, value);
    }
    let failed = |error: nettrace_tables::Error| {
        io::Error::other(format!("add to {}: {error}", data_set.directory.display()))
    };
    let mut input = Input::open(file, labels).map_err(failed)?;
    name.clone_into(&mut input.uri);
    let tables = Dataset::new(&data_set.directory, Options::default());
    for shard in tables.plan(vec![input]).map_err(failed)?.shards {
        tables.export(&shard).map_err(failed)?;
    }
    Ok(())
}

fn is_http(url: &str) -> bool {
    url.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"))
}

/// The account of a URL: `https://ACCOUNT.blob.core.windows.net`, or a path that begins with it, as emulators
/// have it.
fn account(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let account = path.trim_matches('/').split('/').next().unwrap_or_default();
    if account.is_empty() { host.split(['.', ':']).next().unwrap_or_default() } else { account }
}

/// A string without the queries of URLs: a query can be a shared access signature.
fn without_queries(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((url, query)) if url.contains("://") => {
            let end = query.find([')', '"', '\'', '>']).and_then(|at| query.get(at..)).unwrap_or_default();
            format!("{url}?…{end}")
        }
        _ => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;

    use dipc_monitor::configuration::{Configuration, ConfigurationSources, EgressProvider};

    use super::*;

    /// Uploads a file to a server that answers `count` requests; returns the first lines, the headers that
    /// are asked for, and the bytes of the bodies.
    fn upload(size: usize, section: &str, count: usize) -> (Vec<String>, Vec<String>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut lines, mut headers, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
            let mut connection = None;
            while lines.len() < count {
                let stream =
                    connection.take().unwrap_or_else(|| BufReader::new(listener.accept().unwrap().0));
                let mut stream: BufReader<std::net::TcpStream> = stream;
                let mut line = String::new();
                if stream.read_line(&mut line).unwrap() == 0 {
                    continue;
                }
                let mut length = 0;
                let mut header = String::new();
                while stream.read_line(&mut header).unwrap() > 2 {
                    let lower = header.to_ascii_lowercase();
                    if let Some(stated) = lower.strip_prefix("content-length:") {
                        length = stated.trim().parse().unwrap();
                    }
                    if ["authorization:", "x-amz-server-side-encryption"]
                        .iter()
                        .any(|it| lower.starts_with(it))
                    {
                        headers.push(header.trim().to_owned());
                    }
                    header.clear();
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let answer = if line.starts_with("POST") && line.contains("uploads") {
                    "<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>"
                } else if line.starts_with("POST") {
                    "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>"
                } else {
                    bodies.extend(body);
                    ""
                };
                let head =
                    format!("HTTP/1.1 200 OK\r\netag: \"x\"\r\ncontent-length: {}\r\n\r\n", answer.len());
                stream.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
                lines.push(line.trim().to_owned());
                connection = Some(stream);
            }
            (lines, headers, bodies)
        });
        let store = store(&section.replace("ADDRESS", &address));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; size]).unwrap();
        Stores.upload(&store, "a b.nettrace", file.path()).unwrap();
        server.join().unwrap()
    }

    /// The store of a section of `Egress`, without its braces.
    fn store(section: &str) -> StoreEgress {
        let text = format!(r#"{{"Egress": {{{section}}}}}"#);
        let checked = Configuration::read(&ConfigurationSources::new().with_text("test", text.as_str()));
        assert!(checked.findings.is_empty(), "{:?}", checked.findings);
        match checked.configuration.egress.into_values().next() {
            Some(EgressProvider::Store(store)) => store,
            other => panic!("{other:?}"),
        }
    }

    /// An emulator takes requests without a token.
    #[test]
    fn google_gets_a_small_file_in_one_request() {
        let section = r#""GoogleCloudStorage": {"g": {"BucketName": "shop", "Prefix": "/dumps/", "Endpoint": "ADDRESS",
            "ServiceAccountKey": "{\"private_key\": \"x\", \"private_key_id\": \"x\", \"client_email\": \"x\",
            \"disable_oauth\": true}"}}"#;
        let section = section.replace("\n           ", "");
        let (lines, headers, body) = upload(1000, &section, 1);
        assert_eq!(lines, ["PUT /shop/dumps%2Fa%20b%2Enettrace HTTP/1.1"], "{headers:?}");
        assert_eq!(body, [7; 1000]);
    }

    #[test]
    fn a_recording_is_added_to_a_data_set_once() {
        let folder = tempfile::tempdir().unwrap();
        let tables = folder.path().join("tables");
        let section = format!(
            r#""ParquetDataSet": {{"t": {{"DirectoryPath": {tables:?}, "Labels": {{"service": "shop"}}}}}}"#
        );
        let store = store(&section);
        assert_eq!((store.kind(), store.address("x")), ("ParquetDataSet", tables.display().to_string()));
        let recording = folder.path().join(".x.part");
        testdata::write("traces/net10-sample.nettrace.xz", &recording);
        let files = || {
            let mut files = Vec::new();
            let mut folders = vec![tables.clone()];
            while let Some(folder) = folders.pop() {
                for entry in std::fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() { folders.push(path) } else { files.push(path) }
                }
            }
            files.sort();
            files
        };
        Stores.upload(&store, "a.nettrace", &recording).unwrap();
        let first = files();
        let is_of = |table: &str| {
            let of_table = |path: &&std::path::PathBuf| {
                path.extension().is_some_and(|extension| extension == "parquet")
                    && path.to_string_lossy().contains(table)
                    && path.to_string_lossy().contains("shop")
            };
            first.iter().filter(of_table).count()
        };
        assert!(is_of("samples") > 0 && is_of("recordings") > 0, "{first:?}");
        Stores.upload(&store, "a.nettrace", &recording).unwrap();
        assert_eq!(files(), first);
        std::fs::write(&recording, "no recording").unwrap();
        let error = Stores.upload(&store, "b.nettrace", &recording).unwrap_err();
        assert!(error.to_string().contains("add to "), "{error}");
    }

    const KEYS: &str = r#""S3Storage": {"s3": {"Endpoint": "ADDRESS", "BucketName": "shop", "RegionName": "eu-1", "AccessKeyId": "id",
        "SecretAccessKey": "hidden", "UseKmsEncryption": true, "KmsEncryptionKey": "arn:k"}}"#;

    #[test]
    fn a_small_file_is_one_signed_request() {
        let (lines, headers, body) = upload(1000, KEYS, 1);
        assert_eq!(lines, ["PUT /shop/a%20b.nettrace HTTP/1.1"]);
        let signed = headers.iter().find(|it| it.to_ascii_lowercase().starts_with("authorization:")).unwrap();
        assert!(signed.contains("Credential=id/") && signed.contains("/eu-1/s3/aws4_request"), "{signed}");
        assert!(headers.iter().any(|it| it.ends_with(": aws:kms")), "{headers:?}");
        assert!(headers.iter().any(|it| it.ends_with(": arn:k")), "{headers:?}");
        assert_eq!(body, [7; 1000]);
    }

    #[test]
    fn a_large_file_is_sent_in_parts() {
        let size = 20 << 20;
        let (lines, _, body) = upload(size, KEYS, 5);
        assert_eq!(lines[0], "POST /shop/a%20b.nettrace?uploads= HTTP/1.1");
        let parts =
            [1, 2, 3].map(|part| format!("PUT /shop/a%20b.nettrace?partNumber={part}&uploadId=7 HTTP/1.1"));
        assert_eq!(lines[1..4], parts);
        assert_eq!(lines[4], "POST /shop/a%20b.nettrace?uploadId=7 HTTP/1.1");
        assert_eq!(body.len(), size);
    }

    /// The failure of the upload of a file to a server that answers each request in this way. `tls` is the
    /// server's certificate.
    fn failure(
        size: usize,
        tls: Option<rustls::ServerConfig>,
        answer: fn(&mut dyn io::Write) -> io::Result<()>,
    ) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let address = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let tls = tls.map(std::sync::Arc::new);
        // The thread ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                // Clients that do not trust it, or have enough, go away.
                let _ = match &tls {
                    None => serve(&mut stream, answer),
                    Some(config) => {
                        let mut session =
                            rustls::ServerConnection::new(std::sync::Arc::clone(config)).unwrap();
                        serve(&mut rustls::Stream::new(&mut session, &mut stream), answer)
                    }
                };
            }
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), vec![7; size]).unwrap();
        Stores
            .upload(&store(&KEYS.replace("ADDRESS", &address)), "a.nettrace", file.path())
            .unwrap_err()
            .to_string()
    }

    /// Reads a request, and answers it.
    fn serve(
        stream: &mut (impl io::Read + io::Write),
        answer: fn(&mut dyn io::Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).unwrap_or("0");
        io::copy(&mut (&mut *stream).take(length.trim().parse().unwrap()), &mut io::sink())?;
        answer(stream)
    }

    #[test]
    fn wrong_keys_are_named_by_the_store_and_not_shown() {
        let failure = failure(1000, None, |stream| {
            let body = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>Check your key.</Message></Error>";
            write!(
                stream,
                "HTTP/1.1 403 Forbidden\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
        });
        assert!(failure.contains("upload s3://shop/a.nettrace: "), "{failure}");
        assert!(failure.contains("SignatureDoesNotMatch: Check your key"), "{failure}");
        assert!(!failure.contains("hidden"), "{failure}");
    }

    /// The certificate matches the name, but no authority that the machine trusts has signed it.
    #[test]
    fn nothing_is_sent_to_a_server_with_a_certificate_of_its_own() {
        use rustls::pki_types::pem::PemObject as _;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};

        object_stores::install_ciphers();
        let certificate = CertificateDer::from_pem_file(testdata::path("monitor/a.crt")).unwrap();
        let key = PrivateKeyDer::from_pem_file(testdata::path("monitor/a.key")).unwrap();
        let tls = rustls::ServerConfig::builder().with_no_client_auth();
        let tls = tls.with_single_cert(vec![certificate], key).unwrap();
        let failure = failure(1000, Some(tls), |_| panic!("a request arrived"));
        assert!(failure.contains("certificate"), "{failure}");
    }

    #[test]
    fn an_answer_that_is_cut_is_a_failure() {
        let failure = failure(9 << 20, None, |stream| {
            stream.write_all(
                b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nconnection: close\r\n\r\n<InitiateMultipart",
            )
        });
        assert!(failure.contains("upload s3://shop/a.nettrace: "), "{failure}");
    }

    #[test]
    fn an_answer_without_end_is_not_kept() {
        for status in ["200 OK", "403 Forbidden"] {
            let endless: fn(&mut dyn io::Write) -> io::Result<()> = if status == "200 OK" {
                |stream| endless(stream, "200 OK")
            } else {
                |stream| endless(stream, "403 Forbidden")
            };
            let failure = failure(9 << 20, None, endless);
            assert!(failure.contains("answers with more than 64 MB"), "{status}: {failure}");
        }
    }

    fn endless(stream: &mut dyn io::Write, status: &str) -> io::Result<()> {
        write!(stream, "HTTP/1.1 {status}\r\nconnection: close\r\n\r\n")?;
        let piece = vec![b'x'; 1 << 16];
        loop {
            stream.write_all(&piece)?;
        }
    }

    #[test]
    fn messages_have_no_signatures() {
        let shown =
            without_queries("error for url (https://a.blob.core.windows.net/c/x?sv=1&sig=secret): no? yes");
        assert_eq!(shown, "error for url (https://a.blob.core.windows.net/c/x?…): no? yes");
        assert_eq!(without_queries("https://a/b?sig=secret"), "https://a/b?…");
    }

    #[test]
    fn accounts_are_in_the_host_or_the_path() {
        assert_eq!(account("https://shop.blob.core.windows.net/"), "shop");
        assert_eq!(account("http://127.0.0.1:10000/devstoreaccount1"), "devstoreaccount1");
        assert!(is_http("HTTP://x") && !is_http("https://x"));
    }
}
