//! The recordings of `testdata/traces`, and of the larger collection where `DIPC_SHARED` names it.

use std::path::{Path, PathBuf};

pub(crate) struct Recording {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Calls `check` with each recording.
pub(crate) fn each(mut check: impl FnMut(&Recording)) {
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/traces")];
    match std::env::var_os("DIPC_SHARED").map(PathBuf::from) {
        Some(shared) => directories.push(shared.join("traces/real")),
        None => println!("not run: DIPC_SHARED does not name the larger collection"),
    }
    let mut count = 0;
    for directory in directories {
        for entry in std::fs::read_dir(&directory).expect("a directory of recordings") {
            if let Some(recording) = open(&entry.expect("an entry").path()) {
                check(&recording);
                count += 1;
            }
        }
    }
    assert!(count >= 20, "recordings are missing from testdata/traces");
}

fn open(path: &Path) -> Option<Recording> {
    let file_name = path.file_name()?.to_string_lossy().into_owned();
    let name = file_name.strip_suffix(".xz").unwrap_or(&file_name);
    if !name.ends_with(".nettrace") && !name.ends_with(".netperf") {
        return None;
    }
    Some(Recording { name: name.to_owned(), bytes: testdata::bytes_at(path) })
}
