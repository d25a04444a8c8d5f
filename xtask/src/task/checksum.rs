//! SHA-256 of files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// Returns a file's SHA-256 in lower-case hexadecimal.
pub(crate) fn sha256(file: &Path) -> Result<String> {
    let mut reader = File::open(file).with_context(|| file.display().to_string())?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = reader.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    let mut hexadecimal = String::new();
    for byte in hash.finalize() {
        write!(hexadecimal, "{byte:02x}")?;
    }
    Ok(hexadecimal)
}
