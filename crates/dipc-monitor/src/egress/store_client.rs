//! The client of object stores, which the program has.

use std::fmt;
use std::io;
use std::path::Path;

use crate::configuration::StoreEgress;

/// A client of object stores.
pub trait StoreClient: Send + Sync + fmt::Debug {
    /// Uploads a file as the artifact `name`, and replaces an existing artifact of that name. Blocks. After
    /// an error it is called again, with the whole file.
    ///
    /// # Errors
    /// If the store or the file fails. The messages do not contain secrets.
    fn upload(&self, store: &StoreEgress, name: &str, file: &Path) -> io::Result<()>;
}
