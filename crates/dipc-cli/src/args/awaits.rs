//! The form of stacks of `async` methods.

use clap::Args;
use nettrace_export::CausalGrouping;

/// Whether stacks are shown as `await` has them.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct AwaitArgs {
    /// Show stacks in await order: one frame per async method, without the machinery that runs it, and each
    /// continuation below the methods that await it
    ///
    /// Task events show who awaits: dipc trace --profile async (on .NET Core 3.1: tasks) records them along
    /// with its other profiles. Without them, a continuation starts its own stack.
    #[arg(long = "async")]
    pub(crate) awaits: bool,
}

impl AwaitArgs {
    /// Returns a grouping with the argument's grouping added.
    pub(crate) const fn grouping(self, others: CausalGrouping) -> CausalGrouping {
        others.with_awaits(self.awaits)
    }
}
