//! The argument that says which code is the user's.

use clap::Args;
use nettrace_export::Pattern;

/// The methods that are named next to the framework's.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct UserCodeArgs {
    /// Treat only methods with this text in their name, in either form, as the program's own; may be given
    /// several times [default: methods of all assemblies except .NET's]
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_code: Vec<String>,
}

impl UserCodeArgs {
    /// Returns the patterns of names; empty for the default.
    pub(crate) fn patterns(&self) -> Vec<Pattern> {
        self.user_code.iter().map(|text| Pattern::new(text)).collect()
    }
}
