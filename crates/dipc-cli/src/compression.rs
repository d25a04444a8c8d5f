//! Compressed files: detection of their formats, and the streams of their content.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use clap::ValueEnum;

/// A format of compressed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Lz4,
    Xz,
    Zstd,
}

/// A compression for what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputCompression {
    /// None
    None,
    /// gzip
    Gzip,
}

/// Maximum memory of a reader of xz: the largest dictionary of its presets, and the rest.
const XZ_MEMORY_KIB: u32 = 80 << 10;

impl Compression {
    /// Recognizes a format by the first bytes of a file, which is then at its beginning again.
    pub(crate) fn detect(file: &mut File) -> io::Result<Option<Self>> {
        let mut magic = [0; 6];
        let mut filled = 0;
        while let Some(rest) = magic.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match file.read(rest)? {
                0 => break,
                count => filled += count,
            }
        }
        file.seek(SeekFrom::Start(0))?;
        Ok(Self::of_beginning(&magic))
    }

    /// Recognizes a format by the first bytes of a file.
    pub(crate) const fn of_beginning(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// The name of the format.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Lz4 => "lz4",
            Self::Xz => "xz",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the content of a file.
    pub(crate) fn reader(self, file: File) -> Box<dyn Read> {
        let file = BufReader::with_capacity(1 << 16, file);
        match self {
            Self::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Self::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(file)),
            Self::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(file, true, XZ_MEMORY_KIB)),
            Self::Zstd => Box::new(ZstdFrames { file: Some(file), frame: None }),
        }
    }
}

impl OutputCompression {
    /// The compression that the extension of a path names.
    pub(crate) fn of_path(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            _ => Self::None,
        }
    }

    /// The format that the extension of a path names, if nothing is written in it.
    pub(crate) fn unsupported(path: &Path) -> Option<&'static str> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let formats = [
            ("zst", "zstd"),
            ("zstd", "zstd"),
            ("lz4", "lz4"),
            ("xz", "xz"),
            ("bz2", "bzip2"),
            ("br", "brotli"),
        ];
        formats.into_iter().find(|(name, _)| *name == extension).map(|(_, format)| format)
    }

    /// Copies all of `from` to `to`, compressed. Speed matters more than size: most of a core dump is zeros.
    pub(crate) fn copy(self, from: File, mut to: impl Write) -> io::Result<()> {
        let mut from = BufReader::with_capacity(1 << 20, from);
        match self {
            Self::None => {
                io::copy(&mut from, &mut to)?;
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(&mut to, flate2::Compression::fast());
                io::copy(&mut from, &mut encoder)?;
                encoder.finish()?;
            }
        }
        to.flush()
    }
}

/// The frames of a file of zstd, one after the other.
struct ZstdFrames {
    file: Option<BufReader<File>>,
    frame: Option<Box<ruzstd::decoding::StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>>>,
}

impl Read for ZstdFrames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::BufRead as _;
        loop {
            if let Some(frame) = &mut self.frame {
                let count = frame.read(buffer)?;
                if count > 0 || buffer.is_empty() {
                    return Ok(count);
                }
                self.file = self.frame.take().map(|frame| frame.into_inner());
            }
            let Some(mut file) = self.file.take() else { return Ok(0) };
            if file.fill_buf()?.is_empty() {
                return Ok(0);
            }
            let frame = ruzstd::decoding::StreamingDecoder::new(file).map_err(io::Error::other)?;
            self.frame = Some(Box::new(frame));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Vec<u8> {
        let mut content: Vec<u8> =
            (0..300_000_u32).flat_map(|number| number.wrapping_mul(number).to_le_bytes()).collect();
        content.resize(3 << 20, 0);
        content
    }

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn read(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = file(bytes);
        let compression = Compression::detect(&mut file)?.unwrap();
        let mut content = Vec::new();
        compression.reader(file).read_to_end(&mut content)?;
        Ok(content)
    }

    #[test]
    fn written_data_can_be_read_back() {
        let mut bytes = Vec::new();
        OutputCompression::Gzip.copy(file(&content()), &mut bytes).unwrap();
        assert!(bytes.len() < content().len() / 2, "{}", bytes.len());
        let zstd =
            ruzstd::encoding::compress_to_vec(&content()[..], ruzstd::encoding::CompressionLevel::Fastest);
        for bytes in [bytes, zstd] {
            assert!(read(&bytes).unwrap() == content());
            // Files can be joined.
            assert_eq!(read(&[&bytes[..], &bytes].concat()).unwrap().len(), 2 * content().len());
            assert!(read(&bytes[..bytes.len() / 2]).is_err());
        }
        let mut lz4 = lz4_flex::frame::FrameEncoder::new(Vec::new());
        lz4.write_all(&content()).unwrap();
        assert!(read(&lz4.finish().unwrap()).unwrap() == content());
    }

    #[test]
    fn errors_of_the_output_are_reported() {
        let full = File::options().write(true).open("/dev/full");
        let Ok(full) = full else { return };
        for compression in [OutputCompression::None, OutputCompression::Gzip] {
            assert!(compression.copy(file(&content()), &full).is_err(), "{compression:?}");
        }
    }

    #[test]
    fn other_files_are_not_compressed() {
        for bytes in [&b"\x7fELF\x02\x01"[..], b"", b"\x1f"] {
            assert_eq!(Compression::detect(&mut file(bytes)).unwrap(), None);
        }
        assert_eq!(OutputCompression::of_path("core.gz".as_ref()), OutputCompression::Gzip);
        assert_eq!(OutputCompression::of_path("core.1".as_ref()), OutputCompression::None);
    }
}
