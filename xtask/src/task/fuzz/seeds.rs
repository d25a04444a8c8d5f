//! The seeds of fuzz targets, made from testdata.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::task::workspace;

#[path = "../../../../fuzz/src/header.rs"]
#[allow(unreachable_pub, reason = "public where the targets use it")]
pub(super) mod header;

#[path = "../../../../crates/dipc-doctor/src/facts/sample_program.rs"]
mod sample_program;

/// Maximum length of a seed: the fuzzer is slower on longer ones.
const MAX_LEN: usize = 16 << 10;

/// The bytes in front of a recording: it is pushed in pieces of 1, 7, 64 and 256 bytes.
const SPLITS: [u8; 4] = [0, 6, 63, 255];

/// The format of a target's input.
#[derive(Clone, Copy)]
pub(super) enum InputFormat {
    /// The number of a command, and the answer to it.
    Answer,
    /// The Advertise message of a runtime, and its answer to a command.
    Advertised,
    /// A message, and a byte that seeds its division into pieces.
    Message,
    /// Four lengths of pieces, and the bytes of a recording after this header; the whole recording if the
    /// header is empty.
    Recording(&'static [u8]),
    /// The form of a runtime's descriptor, and its JSON.
    Descriptor,
    /// The number of a parser of dipc-doctor, and its input.
    Facts,
    /// A `.gcdump` file.
    HeapDump,
    /// A program.
    Program,
    /// A request.
    Request,
    /// Offsets of a core dump, and the words that are written there.
    Patches,
    /// The number of a format: records of the kernel, text of mappings, a program.
    Samples,
    /// A PDB, or a program that contains one.
    Symbols,
    /// Random bytes.
    Random,
    /// Text that people write on command lines.
    Text,
}

impl InputFormat {
    /// Converts a file of testdata to inputs; none if the file has another format.
    fn convert(self, bytes: &[u8]) -> Vec<Vec<u8>> {
        match self {
            Self::Answer => (0..COMMANDS).map(|command| [&[command], bytes].concat()).collect(),
            Self::Advertised => vec![[ADVERTISE, bytes].concat()],
            Self::Message => vec![[bytes, &[0x5a]].concat()],
            Self::HeapDump => bytes
                .starts_with(b"\x14\0\0\0!FastSerialization.1")
                .then(|| bytes.to_vec())
                .into_iter()
                .collect(),
            // The folder also has other tools' output for the recordings.
            Self::Recording(header) => {
                let is_recording =
                    !matches!(nettrace::SliceReader::new(bytes), Err(nettrace::Error::NotATrace { .. }));
                Self::behind(header, bytes).filter(|_| is_recording).into_iter().collect()
            }
            // The section headers are at the end of the program.
            Self::Program => vec![bytes[..bytes.len().min(MAX_LEN)].to_vec()],
            Self::Request => vec![bytes.to_vec()],
            Self::Symbols => {
                let is_symbols = bytes.starts_with(b"BSJB") || bytes.starts_with(b"MZ");
                is_symbols.then(|| bytes.to_vec()).into_iter().collect()
            }
            Self::Samples => {
                bytes.starts_with(b"\x7fELF").then(|| [&[2], bytes].concat()).into_iter().collect()
            }
            Self::Descriptor | Self::Facts | Self::Patches | Self::Random | Self::Text => Vec::new(),
        }
    }

    /// The inputs that are made from no file.
    fn made(self) -> Vec<Vec<u8>> {
        match self {
            Self::Text => TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect(),
            // Each of two orders of bytes and widths of pointers.
            Self::Descriptor => (0..4)
                .flat_map(|form| DESCRIPTORS.iter().map(move |text| [&[form], text.as_bytes()].concat()))
                .collect(),
            Self::Facts => {
                (0..).zip(FACTS).map(|(number, text)| [&[number], text.as_bytes()].concat()).collect()
            }
            Self::Program => EXPORTS.iter().map(|names| sample_program::elf(names, 0)).collect(),
            // A word in each part of the core dump, and its replacement.
            Self::Patches => [0, 1, 1 << 60, u64::MAX]
                .iter()
                .flat_map(|word| (0..64).map(move |part| patch(part * 18_900, *word)))
                .collect(),
            Self::Samples => {
                let texts = SAMPLED.iter().map(|text| [&[1], text.as_bytes()].concat());
                texts.chain([[vec![0], kernel_records()].concat()]).collect()
            }
            // Each version with each property, and the bytes that a recording is made from.
            Self::Random => {
                (0..6).flat_map(|version| (0..8).map(move |property| random(version, property))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the input of a target that puts a header in front of it.
    fn behind(header: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        let start = if header.is_empty() {
            0
        } else {
            let (version, start) = Version::of(bytes)?;
            // Up to V5, alignment and references to metadata depend on offsets in the stream, which must stay
            // the same.
            let fits = Version::of(header)? == (version, header.len())
                && (version == Version::Blocks || start == header.len());
            fits.then_some(start)?
        };
        let body = bytes.get(start..)?;
        Some([&SPLITS, &body[..body.len().min(MAX_LEN)]].concat())
    }
}

/// Descriptors in the forms of .NET 10 and 11.
const DESCRIPTORS: &[&str] = &[
    r#"{"version":0,"baseline":"empty","types":{"Thread":{"Id":16,"LinkNext":[112,"pointer"]},"GCHandle":{"!":8}},"globals":{"A":["0x4","uint32"],"B":["1","string"],"C":[[1],"pointer"]},"contracts":{"Thread":1}}"#,
    r#"{"version":2,/**/"globals":{"A":"0x7","C":[1]},"subDescriptors":{"GC":[[2],"pointer"]},"contracts":{"Thread":"n1"},}"#,
];

/// The number of commands that the target `client` sends.
const COMMANDS: u8 = 11;

/// The Advertise message of process 1.
const ADVERTISE: &[u8] =
    b"ADVR_V1\0\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x01\0\0\0\0\0\0\0\0\0";

/// The exports of programs: a runtime that is linked into a program is known by them.
const EXPORTS: &[&[&str]] = &[
    &["main", "DotNetRuntimeInfo", "@(#)Version 9.0.124.61010 @Commit", "dotnet-diagnostic-"],
    &["DotNetRuntimeDebugHeader", "dotnet-diagnostic-"],
    &["DotNetRuntimeContractDescriptor", "dotnet-diagnostic-"],
    &[],
];

/// Texts for each parser of the target `doctor_facts`, in the order of their numbers.
const FACTS: [&str; 6] = [
    "DOTNET_EnableDiagnostics=0x0\0COMPlus_EnableDiagnostics_IPC=1\0TMPDIR=/x\0DOTNET_DiagnosticPorts=/a.sock,connect;b\0PATH=/bin\0",
    "Name:\tdotnet\nState:\tS (sleeping)\nTgid:\t4711\nUid:\t1\t2\t3\t4\nNSpid:\t4711\t17\nVmSize:\t12 kB\n",
    "/tmp/a b\n22 1 8:1 / / ro,relatime shared:1 - ext4 /dev/sda1 rw\n24 22 0:22 / /tmp/a\\040b rw - tmpfs tmpfs ro\n",
    "000000002d5d9584: 00000002 00000000 00010000 0001 01 3659875 /tmp/a b/x-socket\n",
    "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0-rc.1.25451.107/libcoreclr.so",
    "dotnet-diagnostic-4711-98765432101-socket",
];

/// Mappings of a process, and functions of the kernel.
const SAMPLED: [&str; 2] = [
    "3000-6000 r-xp 00002000 08:01 42      /lib/a.so\n7000-8000 r-xs 00000000 00:01 7 /memfd:doublemapper (deleted)\n9000-a000 rwxp 00000000 00:00 0\n",
    "ffffffff81000000 T _text\nffffffff81000020 t other\t[module]\n",
];

/// A mapping, a sample in it, a switch, and a loss, as the kernel writes them for a sampler.
fn kernel_records() -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
    let record = |kind: u64, misc: u64, body: Vec<u8>| {
        let size = body.len() as u64 + 8;
        [words(&[kind | misc << 32 | size << 48]), body].concat()
    };
    let thread = 7 | 7 << 32;
    let trailer = words(&[thread, 1000, 0, 1]);
    let path = *b"/lib/a.so\0\0\0\0\0\0\0";
    let map = [words(&[thread, 0x3000, 0x3000, 0, 0, 0, 0, 5]), path.to_vec(), trailer.clone()].concat();
    // Identifier, address, thread, time, processor, period, chain, registers, stack.
    let chain = [3, u64::MAX - 511, 0x3010, 0x3020];
    let registers = [2, 0x1010, 0x1000, 0x3010];
    let stack = [32, 0, 0, 0x1018, 0x3020, 32];
    let sample = words(&[&[2, 0x3010, thread, 1001, 0, 1][..], &chain, &registers, &stack].concat());
    let switch = |misc| record(14, misc, trailer.clone());
    let lost = [words(&[2, 5]), trailer.clone()].concat();
    [record(10, 0, map), record(9, 2, sample), switch(0x2000), switch(0), record(2, 0, lost)].concat()
}

/// Texts for each parser of the target `text`.
const TEXTS: &[&str] = &[
    "Microsoft-Windows-DotNETRuntime:0x1:4",
    "Microsoft-Windows-DotNETRuntime:gc+jit:verbose,System.Runtime:0:5:EventCounterIntervalSec=1",
    "A:ffffffffffffffff:LogAlways:\"k;v\"=x,a::2",
    "/run/app.port,connect,suspend",
    "tcp:127.0.0.1:9000",
    "tcp:[::1]:9000",
    "\\\\.\\pipe\\name",
    "verbose",
    "9.0",
    "3.1",
    "close-in-stream:4",
    "one-byte-at-a-time",
];

/// Returns bytes that look random, the same each time.
fn random(version: u8, property: u8) -> Vec<u8> {
    let mut state = u64::from(version) << 8 | u64::from(property) | 1 << 32;
    let mut input = vec![version, property];
    for _ in 0..16 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        input.extend_from_slice(&(state ^ state >> 33).to_le_bytes());
    }
    input
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// V1 to V5, with the version of the first object.
    Objects { has_magic: bool, version: u32 },
    /// V6.
    Blocks,
}

impl Version {
    /// Returns the version of a recording, and the length of its header, which ends at the first event or the
    /// first block of metadata or events.
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
        // V1 and V2 have the index of a forward reference and the clock, and their events follow. Later ones
        // have four numbers after the clock, and the object's end tag.
        let length = if version < 3 { 4 + 32 } else { 32 + 16 + 1 };
        Some((Self::Objects { has_magic, version }, data + length))
    }
}

/// Returns the seeds from a folder of testdata, each with the name of its file.
pub(super) fn seeds(input: InputFormat, folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds: Vec<_> = numbered("made", input.made()).collect();
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
            if !is_text {
                seeds.extend(numbered(&name, input.convert(&read_unpacked(&path)?)));
            }
        }
    }
    seeds.sort();
    Ok(seeds)
}

fn numbered(name: &str, inputs: Vec<Vec<u8>>) -> impl Iterator<Item = (String, Vec<u8>)> {
    inputs.into_iter().enumerate().map(move |(number, input)| (format!("{name}.{number}"), input))
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
    // A seed uses no more than a header and its own length.
    workspace::open_unpacked(path)?.take(2 * MAX_LEN as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn patch(at: u32, word: u64) -> Vec<u8> {
    [&at.to_le_bytes()[..], &word.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::{InputFormat, MAX_LEN, SPLITS, seeds};
    use crate::task::fuzz::{TARGETS, Target};

    /// The seeds are readable by their target. A large recording may be cut before its first event.
    #[test]
    fn recordings_among_the_seeds_have_events() {
        for Target { name: target, input, testdata, .. } in TARGETS {
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
