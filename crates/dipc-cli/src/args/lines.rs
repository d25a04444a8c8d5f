//! Arguments about source lines.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::inspect::lines::LineOptions;

/// Whether frames have source lines, and where these come from.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LineArgs {
    /// Show the source line of each frame of jitted code with a portable PDB: embedded in its module, next to
    /// it, or where the module was built
    #[arg(long)]
    pub(crate) lines: bool,
    /// Folder to search first, with PDBs or with modules that embed them; implies --lines; may be given
    /// several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) symbol_path: Vec<PathBuf>,
}

/// Folders with the PDBs of frames in memory.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SymbolPathArgs {
    /// Folder to search first for the source lines of frames, with PDBs or with modules that embed them; may
    /// be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, global = true)]
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
