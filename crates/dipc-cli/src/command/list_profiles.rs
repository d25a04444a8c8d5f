//! `dipc list-profiles`: the profiles that `trace --profile` accepts.

use clap::Args;
use dipc_client::{PROFILES, Profile};
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::{Exit, Outcome};
use crate::render::{output, width};

#[derive(Debug, Args)]
pub(crate) struct ListProfilesArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

pub(crate) fn run(args: &ListProfilesArgs) -> Outcome {
    match args.format {
        Format::Json => output::print_json(&PROFILES.iter().map(Listed::new).collect::<Vec<_>>())?,
        Format::Table => output::print(table(width::of_output()))?,
    }
    Ok(Exit::Done)
}

/// A profile in JSON.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    description: &'static str,
    providers: Vec<ListedProvider>,
}

#[derive(Serialize)]
struct ListedProvider {
    name: &'static str,
    /// In hexadecimal: a JSON number holds 53 bits.
    keywords: String,
    level: u32,
    arguments: &'static str,
}

impl Listed {
    fn new(profile: &Profile) -> Self {
        let providers = profile.providers.iter().map(|provider| ListedProvider {
            name: provider.name,
            keywords: format!("{:#x}", provider.keywords),
            level: provider.level.0,
            arguments: provider.arguments,
        });
        Self { name: profile.name, description: profile.description, providers: providers.collect() }
    }
}

fn table(width: Option<usize>) -> String {
    let longest = PROFILES.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let room = width.map(|width| width.saturating_sub(longest + 3).max(20));
    let mut lines = Vec::new();
    for profile in PROFILES {
        // Further lines of a description follow below the first.
        let starts = std::iter::once((profile.name, '-')).chain(std::iter::repeat(("", ' ')));
        for ((label, mark), line) in starts.zip(width::wrapped(profile.description, room).lines()) {
            lines.push(format!("{label:<longest$} {mark} {line}\n"));
        }
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_lists_the_providers_of_each_profile() {
        let listed = PROFILES.iter().map(Listed::new).collect::<Vec<_>>();
        let listed = serde_json::to_value(listed).unwrap();
        let of = |name: &str| listed.as_array().unwrap().iter().find(|profile| profile["name"] == name);
        let provider = &of("gc-collect").unwrap()["providers"][0];
        assert_eq!(provider["name"], "Microsoft-Windows-DotNETRuntime");
        assert_eq!((&provider["keywords"], &provider["level"]), (&"0x1".into(), &4.into()));
    }
}
