//! `dipc list-profiles`: what `trace --profile` takes.

use dipc_client::PROFILES;

use crate::exit::{Exit, Outcome};
use crate::output;

pub(crate) fn run() -> Outcome {
    let width = PROFILES.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for profile in PROFILES {
        // What follows the first line of a description stands below it.
        let starts = std::iter::once((profile.name, '-')).chain(std::iter::repeat(("", ' ')));
        for ((label, mark), line) in starts.zip(profile.description.lines()) {
            lines.push(format!("{label:<width$} {mark} {line}\n"));
        }
    }
    output::print(lines.concat())?;
    Ok(Exit::Done)
}
