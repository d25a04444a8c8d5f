use std::fmt;

/// Something that only the newer forms of a command can say.
///
/// Where a runtime knows older forms only, it is an error ([`Error::UnsupportedOption`](crate::Error)), unless the caller
/// said that it may be given up ([`SessionConfig::optional`](crate::SessionConfig), [`Dump::optional`](crate::Dump)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OptionalFeature {
    /// That threads wait where the session's buffer is full: CollectTracing6. Given up: events are dropped, and counted.
    BlockWhenFull,
    /// Filters by event id: CollectTracing5. Given up: all events of the keywords and the level come.
    EventFilter,
    /// A rundown other than the default one, by keywords: CollectTracing4. Given up: the default rundown comes.
    RundownKeyword,
    /// Events without stacks: CollectTracing3. Given up: stacks come.
    NoStacks,
    /// No rundown: CollectTracing2. Given up: the default rundown comes.
    NoRundown,
    /// `createdump` saying more than usual: GenerateCoreDump2. Given up: it says what is usual.
    VerboseLogging,
    /// A crash report beside the dump: GenerateCoreDump2. Given up: there is none.
    CrashReport,
}

impl OptionalFeature {
    /// All of them, for callers to whom any result is better than none.
    pub const ALL: &'static [Self] = &[
        Self::BlockWhenFull,
        Self::EventFilter,
        Self::RundownKeyword,
        Self::NoStacks,
        Self::NoRundown,
        Self::VerboseLogging,
        Self::CrashReport,
    ];
}

impl fmt::Display for OptionalFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BlockWhenFull => "blocking where the buffer is full",
            Self::EventFilter => "filtering events by id",
            Self::RundownKeyword => "choosing the keywords of the rundown",
            Self::NoStacks => "doing without stacks",
            Self::NoRundown => "doing without the rundown",
            Self::VerboseLogging => "verbose logging of the dump",
            Self::CrashReport => "a crash report beside the dump",
        })
    }
}

/// The optional_features that a form of a command cannot express: an error for the first that may not be given up.
pub(crate) fn drop_unsupported(
    optional_features: &[(OptionalFeature, u8)],
    form: u8,
    optional: &[OptionalFeature],
) -> Result<Vec<OptionalFeature>, (OptionalFeature, u8)> {
    let beyond = optional_features.iter().filter(|&&(_, needs)| needs > form);
    beyond
        .map(
            |&(feature, needs)| if optional.contains(&feature) { Ok(feature) } else { Err((feature, needs)) },
        )
        .collect()
}
