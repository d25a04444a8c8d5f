//! Core dumps that are compressed or read from pipes, unpacked into a file without a name.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use clr_dump::{CoreUnpacker, UnpackEnd, UnpackedCore};
use dipc_collect::staged::free_bytes;

use crate::compression::Compression;
use crate::exit::{Exit, Failure};
use crate::inspect::recording::suggest_process;
use crate::render::{messages, units};

/// Bytes of the disk that are left to other programs.
const RESERVE: u64 = 256 << 20;
/// Copies a stream (`-` is standard input) into a file without a name, and returns it, or its content if it
/// is compressed.
pub(super) fn open_stream(path: &Path) -> Result<File, Failure> {
    let is_input = path.as_os_str() == "-";
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let mut stream: Box<dyn Read> =
        if is_input { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    let unpacker = CoreUnpacker::new(room()).with_others(|first| Compression::of_beginning(first).is_some());
    content(path, copy(path, &mut *stream, unpacker)?.0)
}

/// Returns the file, or its content if it is compressed.
pub(super) fn open(path: &Path) -> Result<File, Failure> {
    let file = dipc_transport::open_regular(path).map_err(|error| {
        let failure = Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
        if error.kind() != io::ErrorKind::InvalidInput {
            return suggest_process(failure, path, &error);
        }
        failure.with_help("a core dump from a pipe is read from standard input: dipc dump analyze - < PIPE")
    })?;
    content(path, file)
}

fn content(path: &Path, mut file: File) -> Result<File, Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let Some(compression) = Compression::detect(&mut file).map_err(failed)? else { return Ok(file) };
    let packed = file.try_clone().map_err(failed)?;
    let unpacker = CoreUnpacker::new(room()).of_compressed(packed);
    let (file, core) = copy(path, &mut compression.reader(file), unpacker)?;
    messages::note(format_args!(
        "Unpacked       : {} of {}, {} of it not zero, in a temporary file",
        units::bytes(core.bytes),
        compression.name(),
        units::bytes(core.stored_bytes)
    ));
    Ok(file)
}

/// Copies the content into a file without a name.
fn copy(
    path: &Path,
    content: &mut dyn Read,
    unpacker: CoreUnpacker,
) -> Result<(File, UnpackedCore), Failure> {
    let failed = |error: io::Error| Failure::new(Exit::Failed, format_args!("{}: {error}", path.display()));
    let mut file = tempfile::tempfile().map_err(|error| {
        let folder = std::env::temp_dir();
        Failure::new(Exit::Failed, format_args!("unpack {}: {}: {error}", path.display(), folder.display()))
            .with_help("TMPDIR names another folder")
    })?;
    let room = unpacker.max_stored_bytes();
    let core = unpacker.unpack(content, &mut file).map_err(failed)?;
    let refused = |what: &str| {
        Failure::new(Exit::Failed, format_args!("unpack {}: {what}", path.display()))
            .with_help("if it is one, unpack it with the program that made it, and give the result")
    };
    match &core.end {
        UnpackEnd::NotACore => return Err(refused("its content is not a core dump")),
        UnpackEnd::Inflated => {
            return Err(refused(&format!(
                "{} of its content are more than {} times its own bytes: it is not a core dump",
                units::bytes(core.stored_bytes),
                CoreUnpacker::MAX_RATIO
            )));
        }
        UnpackEnd::TooLong => {
            return Err(refused(&format!(
                "it takes too long: {} after {:.0} s",
                units::bytes(core.bytes),
                core.time.as_secs_f64()
            )));
        }
        UnpackEnd::Whole => {}
        UnpackEnd::Damaged(error) => messages::warning(format_args!(
            "{}: {error}: only the unpacked part of the dump is read",
            path.display()
        )),
        UnpackEnd::TooLarge => {
            return Err(Failure::new(
                Exit::Failed,
                format_args!(
                    "unpack {}: its content needs more than the {} that are free in {}",
                    path.display(),
                    units::bytes(room),
                    std::env::temp_dir().display()
                ),
            )
            .with_help("TMPDIR names another folder"));
        }
        _ => return Err(refused("it cannot be unpacked")),
    }
    Ok((file, core))
}

/// The bytes that an unpacked core dump may take.
fn room() -> u64 {
    // All that there can be if the system does not report it.
    free_bytes(&std::env::temp_dir()).unwrap_or(u64::MAX).saturating_sub(RESERVE)
}
