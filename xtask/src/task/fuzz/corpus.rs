//! The kept inputs of earlier fuzzing: an archive for each target in `fuzz/corpora`. Most are changed copies
//! of the same recordings, which xz compresses well.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use lzma_rust2::{XzOptions, XzReader, XzWriter};

use crate::task::workspace;

fn archive(target: &str) -> PathBuf {
    workspace::root().join("fuzz/corpora").join(format!("{target}.tar.xz"))
}

/// Writes the kept inputs of a target into its corpus, and returns their number.
pub(super) fn unpack(target: &str, corpus: &Path) -> Result<usize> {
    let path = archive(target);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut count = 0;
    for entry in tar::Archive::new(XzReader::new(file, false)).entries()? {
        entry?.unpack_in(corpus).with_context(|| path.display().to_string())?;
        count += 1;
    }
    Ok(count)
}

/// Packs the corpus of a target without its seeds, which can be made again, and returns the number of inputs
/// and the size of the archive. The same inputs give the same archive.
pub(super) fn pack(target: &str, corpus: &Path, seeds: &[(String, Vec<u8>)]) -> Result<(usize, u64)> {
    let mut inputs = BTreeMap::new();
    for entry in fs::read_dir(corpus).with_context(|| corpus.display().to_string())? {
        let entry = entry?;
        let input = fs::read(entry.path())?;
        if !seeds.iter().any(|(_, seed)| *seed == input) {
            inputs.insert(entry.file_name(), input);
        }
    }
    ensure!(!inputs.is_empty(), "fuzzing {target} found nothing that its seeds do not reach");
    let path = archive(target);
    fs::create_dir_all(path.parent().context("an archive is in a folder")?)?;
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut builder = tar::Builder::new(XzWriter::new(file, XzOptions::with_preset(9))?);
    for (name, input) in &inputs {
        let mut header = tar::Header::new_gnu();
        header.set_size(input.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, &input[..])?;
    }
    builder.into_inner()?.finish()?;
    Ok((inputs.len(), fs::metadata(&path)?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum size of the committed corpus of all targets, in bytes.
    const MAX_SIZE: u64 = 3 << 20;

    #[test]
    fn archives_are_small_and_unpack() {
        let folder = tempfile::tempdir().unwrap();
        let mut total = 0;
        for entry in fs::read_dir(workspace::root().join("fuzz/corpora")).unwrap() {
            let entry = entry.unwrap();
            total += entry.metadata().unwrap().len();
            let name = entry.file_name().into_string().unwrap();
            let target = name.strip_suffix(".tar.xz").unwrap();
            let corpus = folder.path().join(target);
            fs::create_dir(&corpus).unwrap();
            let count = unpack(target, &corpus).unwrap();
            assert!(count > 0, "{name} is empty");
            assert_eq!(fs::read_dir(&corpus).unwrap().count(), count, "{name}");
        }
        assert!((1..=MAX_SIZE).contains(&total), "{total} bytes of inputs");
    }
}
