//! The providers of a recording, put together from `--providers`, `--profile` and `--clrevents`.

use std::fmt::Write as _;

use clr_conditions::ProviderRequest;
use dipc_client::{
    ALL_PROFILE, CPU_PROFILE, DEFAULT_PROFILES, Profile, Providers, RUNTIME_PROVIDER, Rundown,
    SAMPLE_PROFILER,
};
use dipc_wire::{Keywords, Level, ProviderConfig};

use crate::exit::Failure;
use crate::render::table::{Align, Columns};
use crate::render::{messages, width};

/// The start of arguments that filter log messages: without arguments, the logging library sends all loggers'
/// messages.
const LOG_FILTER: &str = "FilterSpecs=";

/// The events that the user requested.
#[derive(Debug, Clone, Default)]
pub(crate) struct SelectionRequest {
    pub(crate) providers: Vec<Providers>,
    pub(crate) profiles: Vec<&'static Profile>,
    /// Keywords of the runtime's own provider.
    pub(crate) clr_keywords: Option<Keywords>,
    /// The level of these.
    pub(crate) clr_level: Option<Level>,
}

impl SelectionRequest {
    /// Returns true if anything was requested.
    pub(crate) fn is_some(&self) -> bool {
        !self.providers.is_empty()
            || !self.profiles.is_empty()
            || self.clr_keywords.is_some()
            || self.clr_level.is_some()
    }
}

impl SelectionRequest {
    /// Returns true if one of the profiles prefers the kernel's samples where they are permitted.
    pub(crate) fn prefers_kernel_samples(&self) -> bool {
        self.profiles.iter().any(|profile| is_for_kernel_samples(profile))
    }

    /// Returns true if the user named the runtime's sampler, as its provider or in a profile other than `cpu`
    /// and `all`, which take it only if the kernel permits no samples.
    pub(crate) fn names_sampler(&self) -> bool {
        let is_it = |name: &str| name.eq_ignore_ascii_case(SAMPLE_PROFILER);
        let in_profile = |profile: &&Profile| {
            !is_for_kernel_samples(profile) && profile.providers.iter().any(|provider| is_it(provider.name))
        };
        self.profiles.iter().any(in_profile)
            || self.providers.iter().flatten().any(|provider| is_it(&provider.name))
    }
}

fn is_for_kernel_samples(profile: &Profile) -> bool {
    [CPU_PROFILE, ALL_PROFILE].contains(&profile.name)
}

/// The providers of a session, each with the flag that selected it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    providers: Vec<(ProviderConfig, &'static str)>,
    /// True if neither providers nor profiles were given.
    is_default: bool,
    /// The rundown keyword of the profiles, if all of them together need less than the default.
    rundown_keyword: Option<Keywords>,
}

impl Selection {
    /// Returns the selection of the flags, or the default profiles without flags.
    ///
    /// Profiles are combined. A provider that `--providers` names is configured only by that flag.
    pub(crate) fn new(request: &SelectionRequest) -> Result<Self, Failure> {
        let defaults: Vec<_> = DEFAULT_PROFILES.iter().filter_map(|name| Profile::find(name)).collect();
        let mut profiles = &request.profiles;
        let is_default =
            request.providers.is_empty() && profiles.is_empty() && request.clr_keywords.is_none();
        if is_default {
            profiles = &defaults;
        }

        let explicit = joined(request.providers.iter().flatten().cloned(), "--providers")?;
        let implied = joined(
            profiles.iter().flat_map(|profile| profile.providers).map(|p| p.to_config()),
            "--profile",
        )?;
        let mut selection = Self { is_default, ..Self::default() };
        for config in &explicit {
            if config.name.contains('*') {
                messages::warning(format_args!(
                    "provider {}: runtimes take full names, not patterns; events of all providers cannot be requested",
                    config.name
                ));
            } else if config.keywords.is_empty() && config.arguments.is_empty() {
                let name = &config.name;
                messages::warning(format_args!(
                    "provider {name} is named without keywords: events that belong to one are left out; {name}:FFFFFFFFFFFFFFFF:5 requests all"
                ));
            }
            if uuid::Uuid::try_parse(&config.name).is_ok() {
                messages::warning(format_args!(
                    "provider {} looks like a GUID; providers are requested by name",
                    config.name
                ));
            }
            selection.providers.push((config.clone(), "--providers"));
        }
        for config in implied.iter().filter(|config| explicit.find(&config.name).is_none()) {
            selection.providers.push((config.clone(), "--profile"));
        }
        if let Some(keywords) = request.clr_keywords {
            selection.add_clr_events(keywords, request.clr_level.unwrap_or(Level::INFORMATIONAL));
        } else if request.clr_level.is_some() {
            messages::warning("--clreventlevel has no effect without --clrevents");
        }

        let only_profiles = request.providers.is_empty() && request.clr_keywords.is_none();
        if only_profiles {
            selection.rundown_keyword = profiles
                .iter()
                .map(|profile| profile.rundown_keyword)
                .try_fold(Keywords::NONE, |all, keyword| Some(all | keyword?));
        }
        Ok(selection)
    }

    /// A selection of these providers, each with the flag that selected it.
    pub(crate) fn of_providers(providers: Vec<(ProviderConfig, &'static str)>) -> Self {
        Self { providers, ..Self::default() }
    }

    /// Returns the selection without the runtime's sampler.
    pub(crate) fn without_sampler(&self) -> Self {
        let mut selection = self.clone();
        selection.retain(|name| !name.eq_ignore_ascii_case(SAMPLE_PROFILER));
        selection
    }

    /// Removes the providers that `is_wanted` rejects. Returns whether any are left.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.providers.retain(|(config, _)| is_wanted(&config.name));
        !self.providers.is_empty()
    }

    fn add_clr_events(&mut self, keywords: Keywords, level: Level) {
        if self.providers.iter().any(|(config, _)| config.name.eq_ignore_ascii_case(RUNTIME_PROVIDER)) {
            messages::warning(
                "the runtime's provider was already specified through --providers or --profile; ignoring --clrevents",
            );
            return;
        }
        let config =
            ProviderConfig { keywords, level, name: RUNTIME_PROVIDER.to_owned(), arguments: String::new() };
        self.providers.push((config, "--clrevents"));
    }

    /// Adds the requests of the feature named by `flag`. For a provider already selected, they extend its
    /// keywords and level. Existing arguments of a provider stay, and one without arguments, which sends
    /// everything, gets no filter.
    pub(crate) fn include(&mut self, requests: Vec<ProviderRequest>, flag: &'static str) {
        for request in requests {
            let ProviderConfig { name, keywords, level, arguments } = request.into();
            let known = self.providers.iter_mut().find(|(config, _)| config.name.eq_ignore_ascii_case(&name));
            let Some((config, _)) = known else {
                self.providers.push((ProviderConfig { keywords, level, name, arguments }, flag));
                continue;
            };
            config.keywords |= keywords;
            config.level = config.level.widest(level);
            if config.arguments.is_empty() {
                if !arguments.starts_with(LOG_FILTER) {
                    config.arguments = arguments;
                }
            } else if !arguments.is_empty() && config.arguments != arguments {
                messages::warning(format_args!(
                    "{flag}: {name} has arguments of its own, which may lack what the condition needs: {arguments}"
                ));
            }
        }
    }

    /// Returns the rundown to request, given the value of `--rundown`.
    pub(crate) fn rundown(&self, flag: Option<bool>) -> Rundown {
        match (flag, self.rundown_keyword) {
            (Some(false), _) => Rundown::Off,
            (None, Some(keyword)) => Rundown::Keyword(keyword),
            _ => Rundown::Default,
        }
    }

    /// Returns the providers in the form of a request.
    pub(crate) fn configs(&self) -> Vec<ProviderConfig> {
        self.providers.iter().map(|(config, _)| config.clone()).collect()
    }

    /// Returns true if the provider is recorded.
    pub(crate) fn has_provider(&self, name: &str) -> bool {
        self.providers.iter().any(|(config, _)| config.name.eq_ignore_ascii_case(name))
    }

    /// Returns true if threads will be sampled.
    pub(crate) fn samples_threads(&self) -> bool {
        self.has_provider(SAMPLE_PROFILER)
    }

    /// The level at which events of compiled methods are requested.
    pub(crate) fn level_of_methods(&self) -> Option<Level> {
        let is_it = |config: &ProviderConfig| {
            config.name.eq_ignore_ascii_case(RUNTIME_PROVIDER)
                && config.keywords.intersects(Keywords::METHODS)
        };
        self.providers.iter().find(|(config, _)| is_it(config)).map(|(config, _)| config.level)
    }

    /// Prints the providers, with the text and the table of dotnet-trace.
    pub(crate) fn announce(&self) {
        if self.is_default {
            // The kernel's samples replace the sampler: see `without_sampler`.
            let has_sampler = self.samples_threads();
            let profiles = DEFAULT_PROFILES.iter().filter(|name| has_sampler || !name.contains("sampled"));
            let names: Vec<_> = profiles.map(|name| format!("'{name}'")).collect();
            messages::note(format_args!(
                "No profile or providers specified, defaulting to trace profiles {}.",
                names.join(" + ")
            ));
        }
        messages::lines(format_args!("\n{}\n", self.fitted(width::of_errors())));
    }

    /// Returns the table if it fits, or else the columns that fit.
    fn fitted(&self, width: Option<usize>) -> String {
        let table = self.table();
        let Some(width) = width.filter(|width| table.lines().any(|line| line.chars().count() > *width))
        else {
            return table;
        };
        let headings = ["Provider Name", "Keywords", "Level", "Enabled By"];
        let mut columns = Columns::new(headings.map(|heading| (heading, Align::Left)));
        for (config, source) in &self.providers {
            columns.row([
                config.name.clone(),
                format!("0x{:016X}", config.keywords),
                level(config.level),
                (*source).to_owned(),
            ]);
        }
        columns.fitted_to(Some(width), &["Enabled By"])
    }

    fn table(&self) -> String {
        // The widths are dotnet-trace's, where the longest names touch the next column.
        let longest = self.providers.iter().map(|(config, _)| config.name.chars().count()).max();
        let width = longest.map_or(0, |longest| longest + 1).max(40);
        let mut text = format!("{:<width$}{:<20}{:<20}Enabled By\n", "Provider Name", "Keywords", "Level");
        for (config, source) in &self.providers {
            let keywords = format!("0x{:016X}", config.keywords);
            let level = level(config.level);
            // Writing into a `String` does not fail.
            let _ = writeln!(text, "{:<width$}{keywords:<20}{level:<20}{source}", config.name);
        }
        text
    }
}

/// `Informational(4)`
fn level(level: Level) -> String {
    format!("{}({})", level.name().unwrap_or("Level"), level.0)
}

/// Joins several lists into one.
fn joined(configs: impl Iterator<Item = ProviderConfig>, flag: &str) -> Result<Providers, Failure> {
    let mut list = Providers::new();
    for config in configs {
        list.merge(config).map_err(|error| Failure::usage(format_args!("{flag}: {error}")))?;
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(providers: &str, profiles: &[&str], clr_keywords: Option<u64>) -> SelectionRequest {
        SelectionRequest {
            providers: if providers.is_empty() {
                Vec::new()
            } else {
                vec![Providers::parse(providers).unwrap()]
            },
            profiles: profiles.iter().map(|name| Profile::find(name).unwrap()).collect(),
            clr_keywords: clr_keywords.map(Keywords),
            clr_level: None,
        }
    }

    fn lines(request: &SelectionRequest) -> Vec<String> {
        Selection::new(request).unwrap().table().lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn the_default_prints_as_dotnet_trace_prints_it() {
        assert_eq!(
            Selection::new(&SelectionRequest::default()).unwrap().table(),
            "Provider Name                           Keywords            Level               Enabled By\n\
             Microsoft-Windows-DotNETRuntime         0x000000100003801D  Informational(4)    --profile\n\
             Microsoft-DotNETCore-SampleProfiler     0x0000F00000000000  Informational(4)    --profile\n"
        );
    }

    #[test]
    fn joins_profiles_after_providers() {
        let all = lines(&request("", &["dotnet-common", "gc-verbose"], None));
        assert_eq!(
            all,
            ["Microsoft-Windows-DotNETRuntime         0x000000100003801F  Verbose(5)          --profile"]
        );
        let all = lines(&request(
            "microsoft-windows-dotnetruntime:1:4,X:2:1",
            &["gc-verbose", "gc-collect"],
            Some(8),
        ));
        assert_eq!(
            all,
            [
                "microsoft-windows-dotnetruntime         0x0000000000000001  Informational(4)    --providers",
                "X                                       0x0000000000000002  Critical(1)         --providers",
                "Microsoft-Windows-DotNETRuntimePrivate  0x0000000000000001  Informational(4)    --profile",
            ]
        );
    }

    #[test]
    fn clrevents_alone_matches_dotnet_trace() {
        let all = lines(&request("", &[], Some(0xC001)));
        assert_eq!(
            all,
            ["Microsoft-Windows-DotNETRuntime         0x000000000000C001  Informational(4)    --clrevents"]
        );
    }

    #[test]
    fn only_marked_profiles_reduce_the_rundown() {
        let rundown = |request: SelectionRequest, flag| Selection::new(&request).unwrap().rundown(flag);
        assert_eq!(rundown(request("", &["gc-collect"], None), None), Rundown::Keyword(Keywords::GC));
        assert_eq!(rundown(request("", &["gc-collect"], None), Some(true)), Rundown::Default);
        assert_eq!(rundown(request("", &["gc-collect"], None), Some(false)), Rundown::Off);
        assert_eq!(rundown(request("", &["gc-collect", "gc-verbose"], None), None), Rundown::Default);
        assert_eq!(rundown(request("X", &["gc-collect"], None), None), Rundown::Default);
        assert_eq!(rundown(SelectionRequest::default(), None), Rundown::Default);
    }

    #[test]
    fn providers_of_a_condition_extend_the_selection() {
        let arguments = |providers: &str, condition: &str| {
            let mut selection = Selection::new(&request(providers, &[], None)).unwrap();
            let condition = clr_conditions::Condition::parse(condition).unwrap();
            selection.include(condition.requests(), "--snapshot-on");
            let config = selection.configs().swap_remove(0);
            (config.keywords.0, config.level.0, config.arguments)
        };
        let logging = "Microsoft-Extensions-Logging:4:2";
        assert_eq!(arguments(logging, "request > 2s"), (0xC, 4, String::new()));
        let own = format!("{logging}:FilterSpecs=Own");
        assert_eq!(arguments(&own, "request > 2s"), (0xC, 4, "FilterSpecs=Own".to_owned()));
        let (_, _, counters) = arguments("System.Runtime:1:4", "cpu-usage > 80");
        assert_eq!(counters, "EventCounterIntervalSec=1");
    }
}
