//! Arguments that select the events to record.

use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use dipc_client::{Keywords, Level, Profile, Providers, RUNTIME_PROVIDER};

use crate::args::candidates;
use crate::record::selection::SelectionRequest;

/// The selection of the events to record.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectionArgs {
    /// Providers: 'Name[:Keywords[:Level[:key=value;…]]],…', keywords in hexadecimal, quotes around values
    /// with , ; or =
    #[arg(long, value_name = "LIST", value_parser = parse_providers)]
    pub(crate) providers: Vec<Providers>,
    /// Profiles, separated by commas; see list-profiles
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = parse_profile, add = ArgValueCandidates::new(candidates::profiles))]
    pub(crate) profile: Vec<&'static Profile>,
    /// Groups of the runtime's own events, joined by '+': gc+exception
    #[arg(long, value_name = "KEYWORDS", value_parser = parse_clr_keywords)]
    pub(crate) clrevents: Option<Keywords>,
    /// Level of --clrevents: a number or a name [default: informational]
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    pub(crate) clreventlevel: Option<Level>,
}

impl SelectionArgs {
    /// Returns the request that the arguments stand for.
    pub(crate) fn request(&self) -> SelectionRequest {
        SelectionRequest {
            providers: self.providers.clone(),
            profiles: self.profile.clone(),
            clr_keywords: self.clrevents,
            clr_level: self.clreventlevel,
        }
    }
}

fn parse_providers(text: &str) -> Result<Providers, String> {
    Providers::parse(text).map_err(|error| {
        // The runtime's own keywords have names, which this list does not accept.
        let (before, rest) = text.split_at_checked(error.position()).unwrap_or_default();
        let keywords = rest.split([':', ',']).next().unwrap_or_default().trim();
        let is_of_runtime = before.trim_end().strip_suffix(':').is_some_and(|before| {
            before.rsplit(',').next().is_some_and(|name| name.trim().eq_ignore_ascii_case(RUNTIME_PROVIDER))
        });
        if is_of_runtime && parse_clr_keywords(keywords).is_ok() {
            format!("{error}; the names of the runtime's keywords are for --clrevents {keywords}")
        } else {
            error.to_string()
        }
    })
}

fn parse_profile(name: &str) -> Result<&'static Profile, String> {
    Profile::find(name.trim()).ok_or_else(|| {
        let names: Vec<_> = dipc_client::PROFILES.iter().map(|profile| profile.name).collect();
        let successor = if name.trim().eq_ignore_ascii_case("cpu-sampling") {
            ", and dotnet-sampled-thread-time is its successor"
        } else {
            ""
        };
        format!("unknown profile{successor}; the profiles are {}", names.join(", "))
    })
}

fn parse_clr_keywords(text: &str) -> Result<Keywords, String> {
    text.split(['+', ',']).map(str::trim).try_fold(Keywords::NONE, |all, name| {
        dipc_client::clr_keyword(name).map(|keyword| all | keyword).ok_or_else(|| {
            let names: Vec<_> = dipc_client::CLR_KEYWORDS.iter().map(|&(name, _)| name).collect();
            format!("'{name}' is not a keyword of the runtime; the keywords are {}", names.join(", "))
        })
    })
}

fn parse_level(text: &str) -> Result<Level, String> {
    dipc_client::parse_level(text)
        .ok_or_else(|| format!("a level is a number or one of {}", dipc_client::level_names()))
}
