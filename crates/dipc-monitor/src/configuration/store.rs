//! Object stores as destinations of artifacts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use crate::artifact::ArtifactKind;

/// A bucket or container of an object store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreEgress {
    /// `Egress:S3Storage:NAME`.
    S3(S3Egress),
    /// `Egress:AzureBlobStorage:NAME`.
    Azure(AzureEgress),
    /// `Egress:GoogleCloudStorage:NAME`.
    Google(GoogleEgress),
    /// `Egress:ParquetDataSet:NAME`.
    DataSet(DataSetEgress),
}

/// `Egress:S3Storage:NAME`: Amazon S3, or another server with its protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct S3Egress {
    /// The URL of the server; by default, Amazon's.
    pub endpoint: Option<String>,
    /// The name of the bucket.
    pub bucket: String,
    /// The region.
    pub region: Option<String>,
    /// The id of the key and the key; by default from the environment or the machine.
    pub access_key: Option<(String, Secret)>,
    /// True if the server encrypts with a key of KMS.
    pub uses_kms: bool,
    /// The key of KMS; by default, the account's key.
    pub kms_key: Option<String>,
}

/// `Egress:AzureBlobStorage:NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AzureEgress {
    /// The URL of the account.
    pub account_uri: String,
    /// The name of the container.
    pub container: String,
    /// The folder in the container.
    pub prefix: Option<String>,
    /// The key of the account; without it and without a signature, the identity of the machine is used.
    pub account_key: Option<Secret>,
    /// A shared access signature.
    pub shared_access_signature: Option<Secret>,
    /// The client id of a managed identity.
    pub managed_identity: Option<String>,
}

/// `Egress:GoogleCloudStorage:NAME`, which dotnet-monitor does not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoogleEgress {
    /// The name of the bucket.
    pub bucket: String,
    /// The folder in the bucket.
    pub prefix: Option<String>,
    /// The URL of the server; by default, Google's.
    pub endpoint: Option<String>,
    /// The file with the key of a service account; by default, that of the environment, or the role of the
    /// machine.
    pub service_account: Option<PathBuf>,
    /// The content of such a file.
    pub service_account_key: Option<Secret>,
}

/// `Egress:ParquetDataSet:NAME`, which dotnet-monitor does not have: recordings become rows of tables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DataSetEgress {
    /// The directory of the tables.
    pub directory: PathBuf,
    /// Labels of the recordings, `service` among them.
    pub labels: BTreeMap<String, String>,
}

/// A text that is not shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl StoreEgress {
    /// Returns the section of the configuration that has such stores.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::S3(_) => "S3Storage",
            Self::Azure(_) => "AzureBlobStorage",
            Self::Google(_) => "GoogleCloudStorage",
            Self::DataSet(_) => "ParquetDataSet",
        }
    }

    /// Returns the place of an artifact of this name, for messages.
    pub fn address(&self, name: &str) -> String {
        match self {
            Self::S3(store) => format!("s3://{}/{name}", store.bucket),
            Self::Azure(store) => {
                let uri = store.account_uri.trim_end_matches('/');
                format!("{uri}/{}/{}", store.container, store.object(name))
            }
            Self::Google(store) => format!("gs://{}/{}", store.bucket, store.object(name)),
            // The name of a recording is in its rows.
            Self::DataSet(store) => store.directory.display().to_string(),
        }
    }

    /// Returns true if it takes artifacts of a kind: a data set takes recordings.
    pub(crate) const fn takes(&self, kind: ArtifactKind) -> bool {
        !matches!(self, Self::DataSet(_)) || matches!(kind, ArtifactKind::Trace | ArtifactKind::Snapshot)
    }
}

impl GoogleEgress {
    /// Returns the name of the object of an artifact.
    pub fn object(&self, name: &str) -> String {
        below(self.prefix.as_deref(), name)
    }
}

/// A name below a folder.
fn below(prefix: Option<&str>, name: &str) -> String {
    match prefix {
        Some(prefix) => format!("{}/{name}", prefix.trim_matches('/')),
        None => name.to_owned(),
    }
}

impl AzureEgress {
    /// Returns the name of the object of an artifact.
    pub fn object(&self, name: &str) -> String {
        below(self.prefix.as_deref(), name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let access_key = Some(("id".to_owned(), Secret::new("hidden".to_owned())));
        let store = StoreEgress::S3(S3Egress { access_key, bucket: "b".to_owned(), ..S3Egress::default() });
        let shown = format!("{store:?}");
        assert!(shown.contains("id") && !shown.contains("hidden"), "{shown}");
        assert_eq!(store.address("a.nettrace"), "s3://b/a.nettrace");
    }
}
