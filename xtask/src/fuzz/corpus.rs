//! The inputs that fuzzing found and that are kept: an archive for each target in `fuzz/corpora`.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::workspace;

fn archive(target: &str) -> PathBuf {
    workspace::root().join("fuzz/corpora").join(format!("{target}.tar.gz"))
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
    for entry in tar::Archive::new(GzDecoder::new(file)).entries()? {
        entry?.unpack_in(corpus).with_context(|| path.display().to_string())?;
        count += 1;
    }
    Ok(count)
}

/// Packs the corpus of a target, in the order of the inputs' names, and returns the number of inputs and the size of the archive. The
/// same inputs give the same archive.
pub(super) fn pack(target: &str, corpus: &Path) -> Result<(usize, u64)> {
    let mut names = Vec::new();
    for entry in fs::read_dir(corpus).with_context(|| corpus.display().to_string())? {
        names.push(entry?.file_name());
    }
    names.sort();
    let path = archive(target);
    fs::create_dir_all(path.parent().context("an archive is in a folder")?)?;
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    let mut builder = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    for name in &names {
        let input = fs::read(corpus.join(name))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(input.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, &input[..])?;
    }
    builder.into_inner()?.finish()?;
    Ok((names.len(), fs::metadata(&path)?.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most bytes that are committed for all targets.
    const MOST: u64 = 10 << 20;

    #[test]
    fn archives_are_small_and_unpack() {
        let folder = tempfile::tempdir().unwrap();
        let mut total = 0;
        for entry in fs::read_dir(workspace::root().join("fuzz/corpora")).unwrap() {
            let entry = entry.unwrap();
            total += entry.metadata().unwrap().len();
            let name = entry.file_name().into_string().unwrap();
            let target = name.strip_suffix(".tar.gz").unwrap();
            let corpus = folder.path().join(target);
            fs::create_dir(&corpus).unwrap();
            let count = unpack(target, &corpus).unwrap();
            assert!(count > 0, "{name} is empty");
            assert_eq!(fs::read_dir(&corpus).unwrap().count(), count, "{name}");
        }
        assert!((1..=MOST).contains(&total), "{total} bytes of inputs");
    }
}
