mod form;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};

use dipc_wire::{BufferMode, CollectTracing4, EventFilter, FilteredProviderConfig, Format, Keywords, Level};

use crate::optional_feature::drop_unsupported;
use crate::{Error, OptionalFeature, Session, Target};

/// The providers and the options of a session.
///
/// ```
/// use dipc_client::{OptionalFeature, Providers, Rundown, SessionConfig};
///
/// // Few rare events, without the list of methods at the end.
/// let config = SessionConfig::new(Providers::parse("MyApp:0xff:verbose")?)
///     .with_buffer_mb(16)
///     .with_stackwalk(false)
///     .with_rundown(Rundown::Off)
///     .with_optional(OptionalFeature::ALL.to_vec());
/// assert_eq!((config.buffer_mb, config.providers.len()), (16, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionConfig {
    /// The providers of events, 1 to 1000; filters by event id need .NET 10.
    pub providers: Vec<FilteredProviderConfig>,
    /// The size of the runtime's buffer in MB (2²⁰ bytes); 256 by default.
    pub buffer_mb: u32,
    /// The behaviour when the buffer is full; by default events are dropped. Blocking instead needs .NET 11.
    pub buffer_mode: BufferMode,
    /// The rundown, which the runtime sends at the end.
    pub rundown: Rundown,
    /// True to record stacks with events; true by default. Runtimes before .NET 9 always send them.
    pub stackwalk: bool,
    /// The format of the stream; nettrace by default.
    pub format: Format,
    /// The options to drop if the runtime is too old for them; none by default.
    pub optional: Vec<OptionalFeature>,
}

/// The events by which a runtime lists its loaded methods and modules when a session stops. Without them the
/// stacks in a recording stay addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Rundown {
    /// The rundown of `requestRundown` (keywords 0x80020139). Every runtime has it.
    #[default]
    Default,
    /// No rundown. Since .NET Core 3.1.
    Off,
    /// By keywords of `Microsoft-Windows-DotNETRuntimeRundown`. Since .NET 9, except for the keywords of
    /// [`Rundown::Default`].
    Keyword(Keywords),
}

impl Rundown {
    fn keywords(self) -> Keywords {
        match self {
            Self::Default => CollectTracing4::DEFAULT_RUNDOWN_KEYWORD,
            Self::Off => Keywords::NONE,
            Self::Keyword(keywords) => keywords,
        }
    }
}

impl SessionConfig {
    /// Creates a config with the events of `providers` ([`Providers`](crate::Providers) or any list of them,
    /// with or without filters), and the options of the existing tools.
    pub fn new<P: Into<FilteredProviderConfig>>(providers: impl IntoIterator<Item = P>) -> Self {
        Self {
            providers: providers.into_iter().map(Into::into).collect(),
            buffer_mb: 256,
            buffer_mode: BufferMode::DROP,
            rundown: Rundown::Default,
            stackwalk: true,
            format: Format::NETTRACE,
            optional: Vec::new(),
        }
    }

    /// The same config with another [`buffer_mb`](Self::buffer_mb).
    #[must_use]
    pub fn with_buffer_mb(self, buffer_mb: u32) -> Self {
        Self { buffer_mb, ..self }
    }

    /// The same config with another [`buffer_mode`](Self::buffer_mode).
    #[must_use]
    pub fn with_buffer_mode(self, buffer_mode: BufferMode) -> Self {
        Self { buffer_mode, ..self }
    }

    /// The same config with another [`rundown`](Self::rundown).
    #[must_use]
    pub fn with_rundown(self, rundown: Rundown) -> Self {
        Self { rundown, ..self }
    }

    /// The same config with another [`stackwalk`](Self::stackwalk).
    #[must_use]
    pub fn with_stackwalk(self, stackwalk: bool) -> Self {
        Self { stackwalk, ..self }
    }

    /// The same config with another [`format`](Self::format).
    #[must_use]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The same config with another [`optional`](Self::optional).
    #[must_use]
    pub fn with_optional(self, optional: Vec<OptionalFeature>) -> Self {
        Self { optional, ..self }
    }

    /// The used options that not every form supports, each with the first form that supports it.
    fn optional_features(&self) -> Vec<(OptionalFeature, u8)> {
        let filtered = self.providers.iter().any(|provider| provider.filter != EventFilter::default());
        let (no_rundown, keyword) = match self.rundown.keywords() {
            Keywords::NONE => (true, false),
            CollectTracing4::DEFAULT_RUNDOWN_KEYWORD => (false, false),
            _ => (false, true),
        };
        let all = [
            (self.buffer_mode != BufferMode::DROP, OptionalFeature::BlockWhenFull, 6),
            (filtered, OptionalFeature::EventFilter, 5),
            (keyword, OptionalFeature::RundownKeyword, 4),
            (!self.stackwalk, OptionalFeature::NoStacks, 3),
            (no_rundown, OptionalFeature::NoRundown, 2),
        ];
        all.into_iter().filter(|(wanted, ..)| *wanted).map(|(_, feature, form)| (feature, form)).collect()
    }

    /// Returns a session of the Meters alone, if this one has them together with EventCounters.
    ///
    /// Both of them, for the first time in a process, can hang it (dotnet/runtime#119014, in .NET 8 to 10):
    /// the thread that starts the session holds the lock of all EventSources while the Meters' source needs
    /// the source of `ArrayPool`, which the poller of EventCounters is creating, and waits for that lock.
    /// After a session of the Meters alone the `ArrayPool` source exists (docs/decisions/0053).
    ///
    /// This session has a client name of its own: the runtime counts a client once and releases it at the end
    /// of each session, so a client with two sessions ends the Meters of all other clients
    /// (docs/decisions/0064).
    fn meters_alone(&self) -> Option<Self> {
        const METERS: &str = "System.Diagnostics.Metrics";
        let is_meters =
            |provider: &FilteredProviderConfig| provider.provider.name.eq_ignore_ascii_case(METERS);
        let mut arguments = self.providers.iter().map(|provider| &provider.provider.arguments);
        let mut meters = self.providers.iter().find(|provider| is_meters(provider))?.clone();
        meters.provider.arguments = with_other_client(&meters.provider.arguments);
        arguments.any(|arguments| arguments.contains("EventCounterIntervalSec")).then(|| {
            Self::new([meters]).with_rundown(Rundown::Off).with_optional(vec![OptionalFeature::NoRundown])
        })
    }

    /// Starts the session in the newest form that the runtime knows. Each form lacks options of the next one.
    fn start(&self, target: &Target) -> Result<Session, Error> {
        self.check().map_err(|what| Error::OutOfRange { command: form::name(1), what })?;
        let optional_features = self.optional_features();
        for number in (1..=form::NEWEST).rev() {
            let dropped_features = drop_unsupported(&optional_features, number, &self.optional).map_err(
                |(feature, needed)| Error::UnsupportedOption {
                    command: form::name(needed),
                    address: target.address().clone(),
                    feature,
                },
            )?;
            if let Some((id, exchange)) = self.try_form(number, target)? {
                return Ok(Session::new(target.clone(), id, form::name(number), dropped_features, exchange));
            }
        }
        Err(target.unknown_command(form::name(1)))
    }

    /// Checks the limits of the runtimes, some of which end when these are exceeded.
    fn check(&self) -> Result<(), String> {
        const MAX_PROVIDERS: usize = 1000;
        if self.providers.is_empty() {
            return Err("a session needs a provider".into());
        }
        if self.providers.len() > MAX_PROVIDERS {
            return Err(format!("{} providers, more than {MAX_PROVIDERS}", self.providers.len()));
        }
        let mut providers = self.providers.iter().map(|filtered| &filtered.provider);
        if providers.clone().any(|provider| provider.name.is_empty()) {
            return Err("a provider without a name".into());
        }
        if let Some(provider) = providers.find(|provider| provider.level > Level::VERBOSE) {
            let (level, name) = (provider.level.0, &provider.name);
            return Err(format!("level {level} of {name}, above {}", Level::VERBOSE.0));
        }
        if self.buffer_mb == 0 {
            return Err("a buffer of 0 MB".into());
        }
        if self.buffer_mode.name().is_none() {
            return Err(format!("{} is not known", self.buffer_mode));
        }
        if self.format.name().is_none() {
            return Err(format!("{} is not known", self.format));
        }
        Ok(())
    }
}

/// Returns the arguments of a request for Meters with another client name, if they have one.
fn with_other_client(arguments: &str) -> String {
    const KEY: &str = "ClientId=";
    let is_key = |place: &usize| {
        arguments.get(..*place).is_some_and(|before| before.is_empty() || before.ends_with(';'))
    };
    let place = arguments.match_indices(KEY).map(|(place, _)| place).find(is_key);
    let parts = place.and_then(|place| arguments.split_at_checked(place.saturating_add(KEY.len())));
    let Some((before, value)) = parts else { return arguments.to_owned() };
    let (quote, value) = value.strip_prefix('"').map_or(("", value), |value| ("\"", value));
    // The keys of a new hasher are random.
    let random = RandomState::new().build_hasher().finish();
    format!("{before}{quote}{random:016x}-{value}")
}

impl Target {
    /// Starts a session with the newest form of CollectTracing that the runtime knows.
    ///
    /// A session with both EventCounters and Meters is preceded by a session of the Meters alone, which is
    /// stopped at once: otherwise .NET 8 to 10 can hang (dotnet/runtime#119014).
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let simulated = dipc_sim::Runtime::builder().replay(b"Nettrace".to_vec()).start_in(folder.path())?;
    /// # let target = dipc_client::Target::from_path(simulated.endpoint_path());
    /// use dipc_client::{Providers, Rundown, SessionConfig};
    ///
    /// let providers = Providers::parse("Microsoft-Windows-DotNETRuntime:0x8000:2")?;
    /// let config = SessionConfig::new(providers).with_buffer_mb(64).with_rundown(Rundown::Off);
    /// let mut session = target.start_session(&config)?;
    /// session.request_stop()?;
    /// // The stream ends once the runtime has written what it holds.
    /// let mut recording = Vec::new();
    /// std::io::copy(&mut session.reader(), &mut recording)?;
    /// assert!(recording.starts_with(b"Nettrace"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnsupportedOption`] if that form lacks an option of `config` that is not
    /// [`optional`](SessionConfig::optional). [`Session::dropped_features`] returns the dropped options.
    pub fn start_session(&self, config: &SessionConfig) -> Result<Session, Error> {
        if let Some(meters) = config.meters_alone() {
            // Dropping the session stops it.
            drop(meters.start(self)?);
        }
        config.start(self)
    }
}

#[cfg(test)]
mod tests;
