//! WebAssembly: the crates that read recordings, and the page in `examples/browser`.

use crate::task::browser;
use crate::task::steps::Steps;
use crate::task::toolchain::{Toolchain, program};
use crate::task::workspace::execute;

/// The crates that read and convert recordings.
const PACKAGES: [&str; 5] = ["nettrace", "clr-events", "clr-activity", "portable-pdb", "nettrace-export"];

pub(super) fn run(steps: &mut Steps, toolchain: &Toolchain, target: &str) {
    steps.run(&format!("type check for {target}"), || {
        let mut check = toolchain.cargo("check", target);
        execute(check.arg("--lib").args(PACKAGES.iter().flat_map(|package| ["-p", *package])))
    });
    let mut page = None;
    steps.run("the page of examples/browser", || {
        page = Some(browser::build(toolchain)?);
        Ok(())
    });
    let Some(page) = page else { return };
    let name = "examples/browser makes the pages of dipc convert";
    match program(
        &["chromium", "chromium-browser", "google-chrome", "chrome"],
        "Debian: apt-get install chromium",
    ) {
        Ok(_) => steps.run(name, || browser::test(&page)),
        Err(missing) => steps.not_run(name, &format!("{missing:#}")),
    }
}
