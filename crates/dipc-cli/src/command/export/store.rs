//! Data sets in object stores: Amazon S3, Google Cloud Storage, Azure Blob Storage, and others with their
//! protocols.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nettrace_tables::{Error, Storage};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path as Name;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::exit::{Exit, Failure};
use crate::object_stores::{self, StoreConnector, reason};

/// Maximum size of an object to read into memory: a list of exported recordings.
const MAX_READ_SIZE: u64 = object_stores::MAX_ANSWERS;

/// A folder of a bucket. An object appears, complete, when its upload is finished.
pub(super) struct Bucket {
    /// The address without a slash at its end, for messages.
    address: String,
    /// The prefix of the names of its objects.
    prefix: Name,
    store: Arc<dyn ObjectStore>,
    kind: Kind,
    connector: StoreConnector,
    runtime: Runtime,
    staging: TempDir,
}

/// The protocol of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    S3,
    Google,
    Azure,
}

impl Kind {
    const ALL: [(&'static str, Self); 4] =
        [("s3://", Self::S3), ("gs://", Self::Google), ("az://", Self::Azure), ("azure://", Self::Azure)];

    /// The environment variables with the credentials for the store.
    const fn keys(self) -> &'static str {
        match self {
            Self::S3 => {
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the role of the machine; other servers than Amazon's: AWS_ENDPOINT"
            }
            Self::Google => "GOOGLE_SERVICE_ACCOUNT (a file), or the role of the machine",
            Self::Azure => {
                "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or the role of the machine"
            }
        }
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bucket").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Bucket {
    /// The folder at `s3://BUCKET/PREFIX`, `gs://…` or `az://CONTAINER/PREFIX`. Credentials are read from the
    /// environment variables that the stores' own programs use. Sends no request to the store yet.
    pub(super) fn open(address: &str) -> Result<Self, Failure> {
        let wrong =
            |reason: &dyn fmt::Display| Failure::new(Exit::Failed, format_args!("--to: {address}: {reason}"));
        let found = Kind::ALL
            .iter()
            .find_map(|(scheme, kind)| Some((*kind, address.strip_prefix(scheme)?.trim_end_matches('/'))));
        let Some((kind, rest)) = found else {
            return Err(
                wrong(&"this is not the address of a store").with_help("s3://, gs:// and az:// are known")
            );
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(wrong(&"the name of the bucket is missing").with_help("s3://BUCKET/FOLDER is one"));
        }
        let prefix = Name::parse(prefix).map_err(|error| wrong(&error))?;
        object_stores::install_ciphers();
        let connector = StoreConnector::default();
        let store = build(kind, bucket, connector.clone()).map_err(|error| {
            wrong(&reason(&error))
                .with_help(format!("the environment provides the credentials: {}", kind.keys()))
        })?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| wrong(&error))?;
        let staging = tempfile::Builder::new().prefix("dipc-export-").tempdir();
        let staging = staging.map_err(|error| wrong(&error))?;
        Ok(Self {
            address: address.trim_end_matches('/').to_owned(),
            prefix,
            store,
            kind,
            connector,
            runtime,
            staging,
        })
    }

    fn name(&self, name: &str) -> Result<Name, Error> {
        let whole =
            if self.prefix.as_ref().is_empty() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        Name::parse(whole).map_err(|error| self.error("name", name, &error.into()))
    }

    /// Returns an error that names the request, the object, the reason and the remedy.
    fn error(&self, request: &str, name: &str, error: &object_store::Error) -> Error {
        let reason = reason(error);
        // Refused lists lack an error kind of their own.
        let help = if reason.contains(" 403 ") || reason.contains(" 401 ") {
            format!("the store does not let these keys do it: check {}", self.kind.keys())
        } else if reason.contains(" 404 ") {
            "check the names of the bucket and of the server: a bucket is not made here".to_owned()
        } else {
            "run the same command again when the store answers: it continues where it stopped".to_owned()
        };
        Error::Store {
            place: format!("{}/{name}", self.address),
            message: format!("{request}: {reason}; {help}"),
        }
    }
}

fn build(kind: Kind, bucket: &str, connector: StoreConnector) -> object_store::Result<Arc<dyn ObjectStore>> {
    let retry = object_stores::retries();
    Ok(match kind {
        Kind::S3 => Arc::new(
            AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_http_connector(connector)
                .build()?,
        ),
        Kind::Google => Arc::new(
            GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_http_connector(connector)
                .build()?,
        ),
        Kind::Azure => Arc::new(
            MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry)
                .with_http_connector(connector)
                .build()?,
        ),
    })
}

impl Storage for Bucket {
    fn list(&self, folder: &str) -> Result<Vec<String>, Error> {
        let name = self.name(folder)?;
        self.connector.begin();
        let listed = self.runtime.block_on(self.store.list_with_delimiter(Some(&name)));
        let listed = match listed {
            Err(error) => return Err(self.error("list", folder, &error)),
            Ok(listed) => listed,
        };
        Ok(listed.objects.iter().filter_map(|object| object.location.filename()).map(str::to_owned).collect())
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.name(name)?;
        self.connector.begin();
        let object = self.runtime.block_on(self.store.get(&path));
        let object = object.map_err(|error| self.error("read", name, &error))?;
        // The size is stated in the header of the answer, and no more than that is read.
        if object.meta.size > MAX_READ_SIZE {
            return Err(Error::Store {
                place: format!("{}/{name}", self.address),
                message: format!("read: it has {} bytes, more than {MAX_READ_SIZE}", object.meta.size),
            });
        }
        let bytes = self.runtime.block_on(object.bytes());
        bytes.map(Vec::from).map_err(|error| self.error("read", name, &error))
    }

    fn put(&self, from: &Path, name: &str) -> Result<(), Error> {
        let path = self.name(name)?;
        self.connector.begin();
        let open = || -> io::Result<_> {
            let file = File::open(from)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| Error::File { path: from.to_owned(), error })?;
        let sent = self.runtime.block_on(object_stores::send(&*self.store, &path, file, size));
        sent.map_err(|error| self.error("upload", name, &error))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error> {
        let path = self.name(name)?;
        self.connector.begin();
        let payload = PutPayload::from(bytes.to_vec());
        let put = self.store.put_opts(&path, payload, PutMode::Create.into());
        match self.runtime.block_on(put) {
            Ok(_) => Ok(true),
            Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) => {
                Ok(false)
            }
            Err(error) => Err(self.error("upload", name, &error)),
        }
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        let path = self.name(name)?;
        self.connector.begin();
        match self.runtime.block_on(self.store.delete(&path)) {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.error("remove", name, &error)),
        }
    }

    fn staging(&self) -> PathBuf {
        self.staging.path().join("files")
    }
}
