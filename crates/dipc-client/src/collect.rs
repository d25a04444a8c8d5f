use dipc_wire::{
    CollectTracing1, CollectTracing2, CollectTracing3, CollectTracing4, Command, Format, ProviderConfig,
    SessionId,
};

use crate::target::is_unknown;
use crate::{Error, Providers, Session, Target};

/// What a session shall record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collect {
    /// Whose events, 1 to 1000 providers.
    pub providers: Vec<ProviderConfig>,
    /// How much the runtime buffers before it drops events, in MB (2²⁰ bytes): 256.
    pub buffer_mb: u32,
    /// What the runtime sends at the end.
    pub rundown: Rundown,
    /// Whether each event comes with its stack: true. Runtimes before .NET 8 always send it.
    pub stackwalk: bool,
    /// The format of the stream: nettrace.
    pub format: Format,
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

    /// As yes or no; `None` if that cannot say it.
    fn requested(self) -> Option<bool> {
        match self.keywords() {
            0 => Some(false),
            CollectTracing4::DEFAULT_RUNDOWN_KEYWORD => Some(true),
            _ => None,
        }
    }
}

impl From<Providers> for Vec<ProviderConfig> {
    fn from(providers: Providers) -> Self {
        providers.into_vec()
    }
}

impl Collect {
    /// The events of `providers`, everything else as the existing tools have it.
    pub fn new(providers: impl Into<Vec<ProviderConfig>>) -> Self {
        Self {
            providers: providers.into(),
            buffer_mb: 256,
            rundown: Rundown::Default,
            stackwalk: true,
            format: Format::NETTRACE,
        }
    }

    /// Each form can say less than the next. Where the runtime does not know a form and the one before it cannot say what
    /// is wanted, no earlier one can.
    pub(crate) fn start(&self, target: &Target) -> Result<Session, Error> {
        self.check().map_err(|what| Error::OutOfRange { what })?;
        if let Some(session) = try_start(target, &self.form_4())? {
            return Ok(session);
        }
        let form = self.form_3().map_err(|wish| needs::<CollectTracing4>(target, wish))?;
        if let Some(session) = try_start(target, &form)? {
            return Ok(session);
        }
        let form = self.form_2().map_err(|wish| needs::<CollectTracing3>(target, wish))?;
        if let Some(session) = try_start(target, &form)? {
            return Ok(session);
        }
        let form = self.form_1().map_err(|wish| needs::<CollectTracing2>(target, wish))?;
        try_start(target, &form)?.ok_or_else(|| target.unknown(<CollectTracing1>::NAME))
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
        if self.providers.iter().any(|provider| provider.name.is_empty()) {
            return Err("a provider without a name".into());
        }
        if let Some(provider) = self.providers.iter().find(|provider| provider.level > HIGHEST_LEVEL) {
            return Err(format!("level {} of {}, above {HIGHEST_LEVEL}", provider.level, provider.name));
        }
        if self.buffer_mb == 0 {
            return Err("a buffer of 0 MB".into());
        }
        if self.format.name().is_none() {
            return Err(format!("{} is not known", self.format));
        }
        Ok(())
    }

    fn form_4(&self) -> CollectTracing4 {
        CollectTracing4 {
            buffer_mb: self.buffer_mb,
            format: self.format,
            rundown_keyword: self.rundown.keywords(),
            request_stackwalk: self.stackwalk,
            providers: self.providers.clone(),
        }
    }

    fn form_3(&self) -> Result<CollectTracing3, &'static str> {
        Ok(CollectTracing3 {
            buffer_mb: self.buffer_mb,
            format: self.format,
            request_rundown: self.rundown.requested().ok_or("choosing the keywords of the rundown")?,
            request_stackwalk: self.stackwalk,
            providers: self.providers.clone(),
        })
    }

    fn form_2(&self) -> Result<CollectTracing2, &'static str> {
        let form = self.form_3()?;
        if !form.request_stackwalk {
            return Err("doing without stacks");
        }
        Ok(CollectTracing2 {
            buffer_mb: form.buffer_mb,
            format: form.format,
            request_rundown: form.request_rundown,
            providers: form.providers,
        })
    }

    fn form_1(&self) -> Result<CollectTracing1, &'static str> {
        let form = self.form_2()?;
        if !form.request_rundown {
            return Err("doing without the rundown");
        }
        Ok(CollectTracing1 { buffer_mb: form.buffer_mb, format: form.format, providers: form.providers })
    }
}

fn needs<C: Command>(target: &Target, wish: &'static str) -> Error {
    Error::NotExpressible { command: C::NAME, address: target.address().clone(), wish }
}

/// `None` if the runtime does not know the command.
fn try_start<C: Command<Reply = SessionId>>(target: &Target, form: &C) -> Result<Option<Session>, Error> {
    let deadline = target.request_deadline();
    let mut exchange = target.send(form, deadline)?;
    match exchange.receive::<C>(deadline)? {
        Ok(id) => Ok(Some(Session::new(target.clone(), id, C::NAME, exchange))),
        Err(reason) if is_unknown(&reason) => Ok(None),
        Err(reason) => Err(exchange.refused(reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(rundown: Rundown, stackwalk: bool) -> Collect {
        Collect { rundown, stackwalk, ..Collect::new([]) }
    }

    #[test]
    fn what_every_form_can_say_is_said_in_every_form() {
        for rundown in [Rundown::Default, Rundown::Keyword(0x8002_0139)] {
            let collect = collect(rundown, true);
            assert_eq!(collect.form_4().rundown_keyword, 0x8002_0139);
            assert!(collect.form_4().request_stackwalk);
            assert!(collect.form_3().unwrap().request_rundown);
            assert!(collect.form_2().unwrap().request_rundown);
            assert_eq!(collect.form_1().unwrap().buffer_mb, 256);
        }
    }

    #[test]
    fn what_an_older_form_cannot_say_is_an_error() {
        let keywords = collect(Rundown::Keyword(1), true);
        assert_eq!(keywords.form_4().rundown_keyword, 1);
        assert!(keywords.form_3().is_err());

        let without_stacks = collect(Rundown::Default, false);
        assert!(!without_stacks.form_3().unwrap().request_stackwalk);
        assert!(without_stacks.form_2().is_err());

        for rundown in [Rundown::Off, Rundown::Keyword(0)] {
            let without_rundown = collect(rundown, true);
            assert!(!without_rundown.form_2().unwrap().request_rundown);
            assert!(without_rundown.form_1().is_err());
        }
    }
}
