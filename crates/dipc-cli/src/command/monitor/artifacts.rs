//! The options on the artifacts of egress directories.

use std::time::Duration;

use clap::Args;
use dipc_monitor::Retention;

use crate::{duration, size};

#[allow(clippy::struct_field_names, reason = "the names of the options")]
#[derive(Debug, Args)]
pub(super) struct ArtifactArgs {
    /// Remove the oldest artifact of an egress directory when there are more than this many
    ///
    /// The limits apply to each directory of Egress:FileSystem whenever an artifact arrives. Only artifacts
    /// that arrived under such a limit are counted and removed; the newest stays.
    #[arg(long, value_name = "N")]
    keep_artifacts: Option<usize>,
    /// Remove the oldest artifacts of an egress directory when their total size is larger
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep_artifacts_total: Option<u64>,
    /// Remove artifacts of an egress directory that are older than this
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    keep_artifacts_age: Option<Duration>,
    /// Remove the oldest artifacts of an egress directory when its file system has less free space (Linux)
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    keep_free: Option<u64>,
}

impl ArtifactArgs {
    pub(super) fn retention(&self) -> Retention {
        Retention::default()
            .with_files(self.keep_artifacts)
            .with_bytes(self.keep_artifacts_total)
            .with_age(self.keep_artifacts_age)
            .with_free(self.keep_free)
    }
}
