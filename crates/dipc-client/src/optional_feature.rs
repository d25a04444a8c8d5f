use std::fmt;

/// An option that only the newer forms of a command have.
///
/// If a runtime knows only older forms, it is an error ([`Error::UnsupportedOption`](crate::Error)), unless
/// the caller allows it to be dropped ([`SessionConfig::optional`](crate::SessionConfig),
/// [`Dump::optional`](crate::Dump)).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let old = dipc_sim::Version::NET3_1;
/// # let simulated = dipc_sim::Runtime::builder().version(old).start_in(folder.path())?;
/// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
/// use dipc_client::{OptionalFeature, Providers, SessionConfig};
///
/// // .NET Core 3.1 sends stacks with all events.
/// let config = SessionConfig::new(Providers::parse("MyApp")?).with_stackwalk(false);
/// assert!(target.start_session(&config).is_err());
/// let config = config.with_optional(vec![OptionalFeature::NoStacks]);
/// assert_eq!(target.start_session(&config)?.dropped_features(), [OptionalFeature::NoStacks]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum OptionalFeature {
    /// Threads wait while the session's buffer is full: CollectTracing6. If dropped: events are dropped, and
    /// counted.
    BlockWhenFull,
    /// Filters by event id: CollectTracing5. If dropped: all events of the keywords and the level are sent.
    EventFilter,
    /// A rundown other than the default one, by keywords: CollectTracing4. If dropped: the default rundown is
    /// sent.
    RundownKeyword,
    /// Events without stacks: CollectTracing3. If dropped: stacks are sent.
    NoStacks,
    /// No rundown: CollectTracing2. If dropped: the default rundown is sent.
    NoRundown,
    /// Verbose logging of `createdump`: GenerateCoreDump2. If dropped: it logs as usual.
    VerboseLogging,
    /// A crash report next to the dump: GenerateCoreDump2. If dropped: it is not written.
    CrashReport,
}

impl OptionalFeature {
    /// All features, for callers that prefer any result to none.
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
            Self::CrashReport => "a crash report next to the dump",
        })
    }
}

/// Returns the features that a form of a command lacks; an error for the first feature that is not optional.
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
