//! Programs of ours on .NET 10.0.5, a single file: the file with another assembly in the place of its
//! program's.
//!
//! # Source
//! dotnet/runtime `src/installer/managed/Microsoft.NET.HostModel/Bundle/FileEntry.cs`: offset, size,
//! compressed size, kind and path of a file in a bundle.

use std::path::Path;
use std::process::Command;

use crate::runtime::mcp_server;

/// The kind of an assembly, and the path with its length.
const ENTRY: &[u8] = b"\x01\x09azmcp.dll";
/// The list of all files is at the end, and shorter.
const LIST: usize = 1 << 16;

/// Writes the single file with an assembly of testdata; returns its command line, none where it is missing.
pub(crate) fn program(assembly: &str, path: &Path) -> Option<Command> {
    let server = mcp_server()?;
    let mut file = std::fs::read(server.get_program()).unwrap();
    let assembly = testdata::bytes(assembly);
    let list = file.len() - LIST;
    let at = list + file[list..].windows(ENTRY.len()).position(|bytes| bytes == ENTRY).unwrap();
    let field = |at: usize| usize::try_from(u64::from_le_bytes(*file[at..].first_chunk().unwrap())).unwrap();
    let (start, size, compressed) = (field(at - 24), field(at - 16), field(at - 8));
    assert!(compressed == 0 && assembly.len() <= size && file[start..].starts_with(b"MZ"), "{at}");
    file[start..start + assembly.len()].copy_from_slice(&assembly);
    file[at - 16..at - 8].copy_from_slice(&assembly.len().to_le_bytes());
    testdata::install_bytes(&file, path);
    Some(Command::new(path))
}
