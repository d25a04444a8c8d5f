mod form;

use dipc_wire::{BufferMode, CollectTracing4, EventFilter, FilteredProviderConfig, Format, ProviderConfig};

use crate::optional_feature::drop_unsupported;
use crate::{Error, OptionalFeature, Providers, Session, Target};

/// What a session shall record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionConfig {
    /// Whose events, 1 to 1000 providers; with filters by event id only since .NET 10.
    pub providers: Vec<FilteredProviderConfig>,
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes): 256.
    pub buffer_mb: u32,
    /// What happens when that is full: events are dropped. Waiting instead: since .NET 11.
    pub buffer_mode: BufferMode,
    /// What the runtime sends at the end.
    pub rundown: Rundown,
    /// Whether each event comes with its stack: true. Runtimes before .NET 9 always send it.
    pub stackwalk: bool,
    /// The format of the stream: nettrace.
    pub format: Format,
    /// What may be given up where the runtime is too old for it: nothing.
    pub optional: Vec<OptionalFeature>,
}

/// The events by which a runtime names, when a session stops, the methods and modules that it has loaded. Without them
/// the stacks in a recording stay addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rundown {
    /// What `requestRundown` asks for (keywords 0x80020139). Every runtime can.
    #[default]
    Default,
    /// None. Since .NET Core 3.1.
    Off,
    /// By keywords of `Microsoft-Windows-DotNETRuntimeRundown`. Since .NET 9, but for those of [`Rundown::Default`].
    Keyword(u64),
}

impl Rundown {
    fn keywords(self) -> u64 {
        match self {
            Self::Default => CollectTracing4::DEFAULT_RUNDOWN_KEYWORD,
            Self::Off => 0,
            Self::Keyword(keywords) => keywords,
        }
    }
}

impl From<Providers> for Vec<ProviderConfig> {
    fn from(providers: Providers) -> Self {
        providers.into_vec()
    }
}

impl SessionConfig {
    /// The events of `providers`, everything else as the existing tools have it.
    pub fn new(providers: impl Into<Vec<ProviderConfig>>) -> Self {
        let unfiltered = |provider| FilteredProviderConfig { provider, filter: EventFilter::default() };
        Self {
            providers: providers.into().into_iter().map(unfiltered).collect(),
            buffer_mb: 256,
            buffer_mode: BufferMode::DROP,
            rundown: Rundown::Default,
            stackwalk: true,
            format: Format::NETTRACE,
            optional: Vec::new(),
        }
    }

    /// What is wanted that not every form can say, with the first form that can.
    fn optional_features(&self) -> Vec<(OptionalFeature, u8)> {
        let filtered = self.providers.iter().any(|provider| provider.filter != EventFilter::default());
        let (no_rundown, keyword) = match self.rundown.keywords() {
            0 => (true, false),
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

    /// Each form can say less than the next one.
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

    /// The limits of the runtimes, which not all of them survive to be asked beyond.
    fn check(&self) -> Result<(), String> {
        const MOST_PROVIDERS: usize = 1000;
        const HIGHEST_LEVEL: u32 = 5;
        if self.providers.is_empty() {
            return Err("a session needs a provider".into());
        }
        if self.providers.len() > MOST_PROVIDERS {
            return Err(format!("{} providers, more than {MOST_PROVIDERS}", self.providers.len()));
        }
        let mut providers = self.providers.iter().map(|filtered| &filtered.provider);
        if providers.clone().any(|provider| provider.name.is_empty()) {
            return Err("a provider without a name".into());
        }
        if let Some(provider) = providers.find(|provider| provider.level > HIGHEST_LEVEL) {
            return Err(format!("level {} of {}, above {HIGHEST_LEVEL}", provider.level, provider.name));
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

impl Target {
    /// Starts a session with the newest form of CollectTracing that the runtime knows.
    ///
    /// # Errors
    /// [`Error::UnsupportedOption`] where that form cannot say what `config` asks for, and does not have as
    /// [`optional`](SessionConfig::optional). What was given up is told by [`Session::dropped_features`].
    pub fn start_session(&self, config: &SessionConfig) -> Result<Session, Error> {
        config.start(self)
    }
}

#[cfg(test)]
mod tests;
