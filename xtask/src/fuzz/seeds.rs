//! Seeds: testdata in the form in which a target takes its input.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::workspace;

#[path = "../../../fuzz/src/header.rs"]
#[allow(unreachable_pub, reason = "public where the targets use it")]
pub(super) mod header;

/// A seed longer than this only slows the fuzzer down: it mutates small inputs best.
const LONGEST: usize = 16 << 10;

/// How a target that reads recordings is to split them when it pushes them: pieces of 1, 7, 64 and 256 bytes.
const SPLITS: [u8; 4] = [0, 6, 63, 255];

/// What an input of a target is.
#[derive(Clone, Copy)]
pub(super) enum Input {
    /// A message, and one byte that says how it is cut into pieces.
    Message,
    /// Four bytes that say how pushes are split, and what follows this header in a recording (all of it behind no header).
    Recording(&'static [u8]),
    /// A PDB, or a program with one in it.
    Symbols,
}

impl Input {
    /// The input that a file of testdata makes; none if the file is of another kind.
    fn made_of(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let header = match self {
            Self::Message => return Some([bytes, &[0x5a]].concat()),
            Self::Recording(header) => header,
            Self::Symbols => {
                let is_one = bytes.starts_with(b"BSJB") || bytes.starts_with(b"MZ");
                return is_one.then(|| bytes.to_vec());
            }
        };
        let start = if header.is_empty() {
            0
        } else {
            let (version, start) = Version::of(bytes)?;
            // Up to V5 blocks are aligned, and kinds of events named, by offsets in the stream, which must stay what they are.
            let fits = Version::of(header)? == (version, header.len())
                && (version == Version::Blocks || start == header.len());
            fits.then_some(start)?
        };
        let body = bytes.get(start..)?;
        Some([&SPLITS, &body[..body.len().min(LONGEST)]].concat())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// V1 to V5: whether it begins with the magic, and the version of its first object.
    Objects(bool, u32),
    /// V6.
    Blocks,
}

impl Version {
    /// The version of a recording, and the length of its header: of all that stands before the first event, or before the
    /// first block that describes events.
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
        Some((Self::Objects(has_magic, version), data + length))
    }
}

/// The seeds that a folder of testdata makes, each with the name of its file.
pub(super) fn of(input: Input, folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
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
            if !is_text && let Some(seed) = input.made_of(&unpacked(&path)?) {
                seeds.push((name, seed));
            }
        }
    }
    seeds.sort();
    Ok(seeds)
}

/// Writes the seeds of a target into its corpus; how many there are.
pub(super) fn plant(input: Input, folder: &str, corpus: &Path) -> Result<usize> {
    let seeds = of(input, folder)?;
    ensure!(!seeds.is_empty(), "nothing in testdata/{folder} is a seed for {}", corpus.display());
    fs::create_dir_all(corpus)?;
    for (name, seed) in &seeds {
        fs::write(corpus.join(name), seed)?;
    }
    Ok(seeds.len())
}

fn unpacked(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(|| path.display().to_string())?;
    // More than a header and a seed of a recording is never used.
    let most = 2 * LONGEST as u64;
    if path.extension().is_some_and(|extension| extension == "xz") {
        lzma_rust2::XzReader::new(file, false).take(most).read_to_end(&mut bytes)?;
    } else {
        file.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Input, LONGEST, SPLITS, of};
    use crate::fuzz::TARGETS;

    /// A seed that the target cannot read teaches the fuzzer nothing. A large recording may be cut before its first event.
    #[test]
    fn recordings_among_the_seeds_have_events() {
        for (target, input, folder) in TARGETS {
            let seeds = of(input, folder).unwrap();
            assert!(!seeds.is_empty(), "{target} has no seeds");
            let Input::Recording(header) = input else { continue };
            let mut total = 0;
            for (name, seed) in seeds {
                let body = seed.strip_prefix(&SPLITS).unwrap();
                assert!(body.len() <= LONGEST);
                let bytes = [header, body].concat();
                let mut events = nettrace::SliceReader::new(&bytes).unwrap();
                let mut count = 0;
                events.for_each(|_| count += 1).unwrap();
                println!("{target} {name}: {count} events in {} bytes", body.len());
                assert!(count > 0 || events.truncated().is_some(), "{target} {name}: no events");
                assert_eq!(events.damage(), [], "{target} {name}");
                total += count;
            }
            assert!(total > 0, "{target}: no events");
        }
    }
}
