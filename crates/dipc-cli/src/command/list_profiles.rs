//! `dipc list-profiles`: what `trace --profile` takes.

use dipc_client::PROFILES;

use crate::exit::{Exit, Outcome};
use crate::output;

pub(crate) fn run() -> Outcome {
    let width = PROFILES.iter().map(|profile| profile.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for profile in PROFILES {
        let mut label = profile.name;
        for line in profile.description.lines() {
            let mark = if label.is_empty() { ' ' } else { '-' };
            text.push_str(&format!("{label:<width$} {mark} {line}\n"));
            label = "";
        }
    }
    output::print(text)?;
    Ok(Exit::Done)
}
