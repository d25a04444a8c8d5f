//! `cargo xtask sanitize`: the tests of the only crate with `unsafe` code, with the address sanitizer.

use anyhow::Result;

use crate::arguments::SanitizeOptions;
use crate::task::steps::Steps;
use crate::task::workspace::{self, cargo, execute};

/// The sanitizer's library is part of the standard library of this target.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(options: &SanitizeOptions) -> Result<()> {
    let mut steps = Steps::new(options.require_all);
    let name = "tests of dipc-transport with the address sanitizer";
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        steps.run(name, || {
            let mut test =
                cargo(["test", "--package", "dipc-transport", "--lib", "--tests", "--no-fail-fast"]);
            // With a target, the flags do not apply to build scripts.
            test.args(["--target", TARGET, "--target-dir"]).arg(workspace::target()?.join("sanitize"));
            // The search for leaks stops the process with ptrace at its end, and never went on after the
            // tests of traced processes.
            test.env("ASAN_OPTIONS", "detect_leaks=0");
            // The test measures memory, of which the sanitizer takes a multiple.
            test.args(["--", "--skip", "a_thousand_connections_cost_little"]);
            // `-Z` needs a nightly toolchain, or this variable.
            execute(test.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", "-Zsanitizer=address"))
        });
    } else {
        steps.not_run(name, &format!("it needs {TARGET}"));
    }
    steps.finish()
}
