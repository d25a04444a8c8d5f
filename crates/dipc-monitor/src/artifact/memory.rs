//! The memory of a process by its owners.

use dipc_collect::memory::MemoryReport;

use super::{ArtifactError, ArtifactSink, begin, write};
use crate::process::Watched;

pub(super) fn collect(process: &Watched, sink: &mut dyn ArtifactSink) -> Result<(), ArtifactError> {
    let pid = process.system_pid().ok_or_else(|| {
        ArtifactError::Unsupported("read the memory: the process has no id in this system".to_owned())
    })?;
    let reading = process.owner_memory.read(pid).map_err(ArtifactError::Failed)?;
    let bytes = serde_json::to_vec(&MemoryReport::new(&reading));
    let bytes = bytes.map_err(|error| ArtifactError::Failed(error.to_string()))?;
    begin(sink)?;
    write(sink, &bytes)
}
