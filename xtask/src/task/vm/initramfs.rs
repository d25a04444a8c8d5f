//! The first file system of a machine: a cpio archive in the format `newc`, made without root's rights.

use std::io::Write as _;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;

/// An archive that grows by its entries.
pub(super) struct Initramfs {
    bytes: Vec<u8>,
    entries: u32,
}

impl Initramfs {
    /// Returns an archive with `/dev/console`, without which the first process has no output.
    pub(super) fn new() -> Self {
        let mut archive = Self { bytes: Vec::new(), entries: 0 };
        archive.folder("dev");
        archive.entry("dev/console", CHARACTER_DEVICE, (5, 1), &[]);
        archive
    }

    pub(super) fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER, (0, 0), &[]);
    }

    pub(super) fn file(&mut self, path: &str, content: &[u8]) {
        self.entry(path, FILE, (0, 0), content);
    }

    pub(super) fn program(&mut self, path: &str, content: &[u8]) {
        self.entry(path, PROGRAM, (0, 0), content);
    }

    /// Returns the compressed archive.
    pub(super) fn finish(mut self) -> Result<Vec<u8>> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&self.bytes)?;
        Ok(encoder.finish()?)
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let size = u32::try_from(content.len()).expect("files of an initramfs are small");
        let name_size = u32::try_from(path.len() + 1).expect("paths are short");
        // Number, mode, owner, group, links, time, size, device of the file, device, size of the name,
        // checksum.
        let fields = [self.entries, mode, 0, 0, 1, 0, size, 0, 0, device.0, device.1, name_size, 0];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08X}").into_bytes());
        }
        self.bytes.extend(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn names_and_contents_are_aligned() {
        let mut archive = Initramfs::new();
        archive.file("etc/five", b"12345");
        archive.program("init", b"#!");
        let packed = archive.finish().unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();

        let mut names = Vec::new();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            assert!(rest.starts_with(b"070701"));
            let field = |index: usize| {
                let digits = std::str::from_utf8(&rest[6 + 8 * index..14 + 8 * index]).unwrap();
                usize::from_str_radix(digits, 16).unwrap()
            };
            let (mode, size, name_size) = (field(1), field(6), field(11));
            let name = std::str::from_utf8(&rest[110..110 + name_size - 1]).unwrap();
            let start = (110 + name_size).next_multiple_of(4);
            names.push(format!("{mode:o} {name} {}", String::from_utf8_lossy(&rest[start..start + size])));
            rest = &rest[(start + size).next_multiple_of(4)..];
        }
        assert_eq!(
            names,
            ["40755 dev ", "20600 dev/console ", "100644 etc/five 12345", "100755 init #!", "0 TRAILER!!! "]
        );
    }
}
