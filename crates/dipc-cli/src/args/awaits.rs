//! The form of stacks of `async` methods.

use clap::Args;
use nettrace_export::CausalGrouping;

/// Whether stacks are shown as `await` has them.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct AwaitArgs {
    /// Show stacks as the awaits have them: one frame for an async method, none for the machinery that runs
    /// it, and a continuation below the methods that await it
    ///
    /// Who awaits is known from events of tasks: dipc trace --profile async (of .NET Core 3.1: tasks) records
    /// them beside its other profiles. Without them, a continuation begins its stack.
    #[arg(long = "async")]
    pub(crate) awaits: bool,
}

impl AwaitArgs {
    /// Returns a grouping with the argument's grouping added.
    pub(crate) const fn grouping(self, others: CausalGrouping) -> CausalGrouping {
        others.with_awaits(self.awaits)
    }
}
