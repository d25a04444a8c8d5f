//! Arguments about source lines.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::inspect::lines::LineOptions;

/// Whether frames have source lines, and where these come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LineArgs {
    /// Show the source line of each frame of jitted code whose portable PDB is in or beside its module, or
    /// where it was built
    #[arg(long)]
    pub(crate) lines: bool,
    /// A folder with PDBs, or with modules that embed theirs, to search first; implies --lines; may be given
    /// several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) symbol_path: Vec<PathBuf>,
}

impl LineArgs {
    /// Returns the options that the arguments stand for.
    pub(crate) fn options(&self) -> LineOptions {
        LineOptions {
            are_wanted: self.lines || !self.symbol_path.is_empty(),
            folders: self.symbol_path.clone(),
        }
    }
}
