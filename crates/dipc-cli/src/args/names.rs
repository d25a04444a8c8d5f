//! The form of names.

use clap::{Args, ValueEnum};
use nettrace_export::NameForm;

/// The form in which names are shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct NameArgs {
    /// Form of the names of methods and types; JSON has both
    #[arg(long = "names", value_name = "FORM", value_enum, default_value_t)]
    form: NameFormArg,
}

/// A form of names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
#[allow(rustdoc::invalid_html_tags, reason = "the help of the program shows them as they are")]
pub(crate) enum NameFormArg {
    /// As in C#: List<int>.Add(int)
    #[default]
    Csharp,
    /// As the runtime writes them, and dotnet-trace: List`1[System.Int32].Add(!0)
    Full,
}

impl NameArgs {
    /// Returns the form that the argument stands for.
    pub(crate) const fn form(self) -> NameForm {
        match self.form {
            NameFormArg::Csharp => NameForm::CSharp,
            NameFormArg::Full => NameForm::Full,
        }
    }
}
