//! The seeds of fuzz targets, made from testdata.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::workspace;

#[path = "../../../fuzz/src/header.rs"]
#[allow(unreachable_pub, reason = "public where the targets use it")]
pub(super) mod header;

/// The longest seed: the fuzzer is slower on longer ones.
const MAX_LEN: usize = 16 << 10;

/// The bytes in front of a recording: it is pushed in pieces of 1, 7, 64 and 256 bytes.
const SPLITS: [u8; 4] = [0, 6, 63, 255];

/// The format of a target's input.
#[derive(Clone, Copy)]
pub(super) enum InputFormat {
    /// A message, and a byte that seeds its division into pieces.
    Message,
    /// Four lengths of pieces, and the bytes of a recording behind this header; the whole recording if the header is empty.
    Recording(&'static [u8]),
    /// A PDB, or a program that contains one.
    Symbols,
}

impl InputFormat {
    /// Converts a file of testdata to an input; `None` if the file has another format.
    fn convert(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let header = match self {
            Self::Message => return Some([bytes, &[0x5a]].concat()),
            Self::Recording(header) => header,
            Self::Symbols => {
                let is_symbols = bytes.starts_with(b"BSJB") || bytes.starts_with(b"MZ");
                return is_symbols.then(|| bytes.to_vec());
            }
        };
        let start = if header.is_empty() {
            0
        } else {
            let (version, start) = Version::of(bytes)?;
            // Up to V5, alignment and references to metadata depend on offsets in the stream, which must stay the same.
            let fits = Version::of(header)? == (version, header.len())
                && (version == Version::Blocks || start == header.len());
            fits.then_some(start)?
        };
        let body = bytes.get(start..)?;
        Some([&SPLITS, &body[..body.len().min(MAX_LEN)]].concat())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// V1 to V5, with the version of the first object.
    Objects { has_magic: bool, version: u32 },
    /// V6.
    Blocks,
}

impl Version {
    /// Returns the version of a recording, and the length of its header, which ends at the first event or the first block of
    /// metadata or events.
    fn of(recording: &[u8]) -> Option<(Self, usize)> {
        let number = |at: usize| Some(u32::from_le_bytes(*recording.get(at..)?.first_chunk()?));
        let has_magic = recording.starts_with(b"Nettrace");
        let signature = if has_magic { 8 } else { 0 };
        if has_magic && number(8)? == 0 {
            // Magic, reserved and version; then the trace block, its size in the low 24 bits.
            let size = number(20)? & 0xff_ffff;
            return Some((Self::Blocks, 24 + size as usize));
        }
        recording.get(signature..)?.strip_prefix(b"\x14\0\0\0!FastSerialization.1")?;
        // Three tags, version, least version of a reader, name, tag; then the data.
        let object = signature + 24;
        let version = number(object + 3)?;
        let data = object + 15 + number(object + 11)? as usize + 1;
        // V1 and V2 have the index of a forward reference and the clock, and their events follow. Later ones have four
        // numbers behind the clock, and the object's end tag.
        let length = if version < 3 { 4 + 32 } else { 32 + 16 + 1 };
        Some((Self::Objects { has_magic, version }, data + length))
    }
}

/// Returns the seeds from a folder of testdata, each with the name of its file.
pub(super) fn seeds(input: InputFormat, folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    let mut folders = vec![workspace::root().join("testdata").join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_text = [".txt", ".jsonl"].iter().any(|extension| name.ends_with(extension));
            if !is_text && let Some(seed) = input.convert(&read_unpacked(&path)?) {
                seeds.push((name, seed));
            }
        }
    }
    seeds.sort();
    Ok(seeds)
}

/// Writes the seeds of a target into its corpus, and returns their number.
pub(super) fn write_corpus(input: InputFormat, folder: &str, corpus: &Path) -> Result<usize> {
    let seeds = seeds(input, folder)?;
    ensure!(!seeds.is_empty(), "testdata/{folder} has no seed for {}", corpus.display());
    fs::create_dir_all(corpus)?;
    for (name, seed) in &seeds {
        fs::write(corpus.join(name), seed)?;
    }
    Ok(seeds.len())
}

fn read_unpacked(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    // A seed uses no more than a header and its own length.
    let most = 2 * MAX_LEN as u64;
    if path.extension().is_some_and(|extension| extension == "xz") {
        lzma_rust2::XzReader::new(file, false).take(most).read_to_end(&mut bytes)?;
    } else {
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{InputFormat, MAX_LEN, SPLITS, seeds};
    use crate::fuzz::{TARGETS, Target};

    /// The seeds are readable by their target. A large recording may be cut before its first event.
    #[test]
    fn recordings_among_the_seeds_have_events() {
        for Target { name: target, input, testdata } in TARGETS {
            let seeds = seeds(input, testdata).unwrap();
            assert!(!seeds.is_empty(), "{target} has no seeds");
            let InputFormat::Recording(header) = input else { continue };
            let mut total = 0;
            for (name, seed) in seeds {
                let body = seed.strip_prefix(&SPLITS).unwrap();
                assert!(body.len() <= MAX_LEN);
                let bytes = [header, body].concat();
                let mut events = nettrace::SliceReader::new(&bytes).unwrap();
                let mut count = 0;
                events.for_each(|_| count += 1).unwrap();
                println!("{target} {name}: {count} events in {} bytes", body.len());
                assert!(count > 0 || events.truncated_at().is_some(), "{target} {name}: no events");
                assert_eq!(events.damage(), [], "{target} {name}");
                total += count;
            }
            assert!(total > 0, "{target}: no events");
        }
    }
}
