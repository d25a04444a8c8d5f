//! `dipc list-profiles`: what `trace --profile` takes.

use dipc_client::PROFILES;

use crate::exit::{Exit, Outcome};
use crate::render::{output, width};

pub(crate) fn run() -> Outcome {
    output::print(table(width::of_output()))?;
    Ok(Exit::Done)
}

fn table(width: Option<usize>) -> String {
    let longest = PROFILES.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let room = width.map(|width| width.saturating_sub(longest + 3).max(20));
    let mut lines = Vec::new();
    for profile in PROFILES {
        // What follows the first line of a description stands below it.
        let starts = std::iter::once((profile.name, '-')).chain(std::iter::repeat(("", ' ')));
        for ((label, mark), line) in starts.zip(width::wrapped(profile.description, room).lines()) {
            lines.push(format!("{label:<longest$} {mark} {line}\n"));
        }
    }
    lines.concat()
}
