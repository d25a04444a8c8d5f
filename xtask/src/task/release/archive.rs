//! Archives with bytes that depend only on their files.

use std::io::{Cursor, Write as _};

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use zip::write::SimpleFileOptions;

/// A file of an archive.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

impl Entry {
    pub(super) fn new(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into(), executable: false }
    }

    pub(super) fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { executable: true, ..Self::new(path, bytes) }
    }

    fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

/// Returns the entries, below `folder`, as a compressed tar archive.
pub(super) fn tar_gz(folder: &str, mut entries: Vec<Entry>, time: u64) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_ustar();
        header.set_mode(entry.mode());
        header.set_mtime(time);
        header.set_size(entry.bytes.len() as u64);
        archive.append_data(&mut header, format!("{folder}/{}", entry.path), entry.bytes.as_slice())?;
    }
    gzip(&archive.into_inner()?)
}

/// Returns the entries, below `folder`, as a zip archive. Its times are the earliest that the format has.
pub(super) fn zip(folder: &str, mut entries: Vec<Entry>) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for entry in entries {
        let options = SimpleFileOptions::default()
            .last_modified_time(zip::DateTime::default())
            .unix_permissions(entry.mode());
        archive.start_file(format!("{folder}/{}", entry.path), options)?;
        archive.write_all(&entry.bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// Returns the bytes compressed, without name and time.
pub(super) fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        vec![Entry::program("dipc", *b"program"), Entry::new("README.md", *b"text")]
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter() {
        let mut reversed = entries();
        reversed.reverse();
        assert_eq!(tar_gz("dipc", entries(), 7).unwrap(), tar_gz("dipc", reversed.clone(), 7).unwrap());
        assert_eq!(zip("dipc", entries()).unwrap(), zip("dipc", reversed).unwrap());
    }

    #[test]
    fn a_tar_archive_has_paths_modes_and_the_time() {
        let packed = tar_gz("dipc-1", entries(), 7).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(packed.as_slice()));
        let found: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = entry.path().unwrap().to_string_lossy().into_owned();
                (path, header.mode().unwrap(), header.mtime().unwrap(), header.size().unwrap())
            })
            .collect();
        let expected = [("dipc-1/README.md", 0o644, 7, 4), ("dipc-1/dipc", 0o755, 7, 7)];
        assert_eq!(found, expected.map(|(path, mode, time, size)| (path.to_owned(), mode, time, size)));
    }
}
