//! A core dump.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use dipc_client::{Dump, DumpType};
use jiff::Timestamp;

use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;
use crate::stop::StopSignal;

/// The bytes that are passed on at once.
const CHUNK: usize = 256 << 10;

/// The process writes the dump into its own temporary folder: it may have other mounts and another user.
pub(super) fn collect(
    dump_type: DumpType,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    let name = format!("dump_{}_{}.dmp", Timestamp::now().strftime("%Y%m%d_%H%M%S_%3f"), process.number);
    let path = format!("/tmp/{name}");
    let written = process.target().dump(&Dump::new(path.clone()).with_dump_type(dump_type))?;
    let Some(file) = written.file else {
        let what = format!("the process wrote {path}, which is not visible from here");
        return Err(ArtifactError::Failed(what));
    };
    let _removed = RemovedFile(file.clone());
    let mut file = dipc_client::dipc_transport::open_untrusted(&file)
        .map_err(|error| ArtifactError::Failed(format!("open the dump: {error}")))?;
    begin(sink)?;
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = file
            .read(&mut buffer)
            .map_err(|error| ArtifactError::Failed(format!("read the dump: {error}")))?;
        if count == 0 {
            return Ok(());
        }
        if stop.is_cancelled() {
            return Err(ArtifactError::Cancelled);
        }
        write(sink, buffer.get(..count).unwrap_or_default())?;
    }
}

/// A file that is removed when this is dropped.
struct RemovedFile(PathBuf);

impl Drop for RemovedFile {
    fn drop(&mut self) {
        // A file that cannot be removed stays in the temporary folder of the process.
        let _ = fs::remove_file(&self.0);
    }
}
