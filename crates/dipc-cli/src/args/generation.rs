//! The choice of a generation of a heap.

use clap::ValueEnum;

/// A generation. The other names are those of dotnet-dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GenerationArg {
    /// New objects
    #[value(name = "0", alias = "gen0")]
    Zero,
    /// Objects that survived a collection
    #[value(name = "1", alias = "gen1")]
    One,
    /// Objects that survived several collections
    #[value(name = "2", alias = "gen2")]
    Two,
    /// Large objects
    #[value(name = "loh", aliases = ["large", "3"])]
    Large,
    /// Objects that were allocated as pinned
    #[value(name = "poh", aliases = ["pinned", "4"])]
    Pinned,
    /// Objects that are never freed, such as literals
    #[value(name = "frozen", alias = "foh")]
    Frozen,
}

impl GenerationArg {
    /// The number of the generation in the runtime.
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Zero => 0,
            Self::One => 1,
            Self::Two => 2,
            Self::Large => 3,
            Self::Pinned => 4,
            Self::Frozen => 5,
        }
    }
}
