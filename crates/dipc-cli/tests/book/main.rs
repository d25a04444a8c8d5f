//! The chapters of the book (`crates/dipc-cli/help`): every command in a `console` block is run, and its
//! output is compared with the text below it. `DIPC_UPDATE_GOLDEN=1` rewrites outputs that differ, but for
//! those with elisions.
//!
//! Comments in a chapter, which no reader sees, say what a shell cannot know:
//!
//! - `<!-- file: NAME = PATH -->` puts a file of testdata into the folder of the chapter, unpacked.
//! - `<!-- needs: root -->`, `export`, `net-9.0 as NAME` or `native as NAME`, which are programs of these
//!   runtimes, name what a machine may lack; the chapter is then not run, which is said.
//! - `<!-- run: COMMAND -->` runs a command that is not shown. A variable `pid_4711` that it sets is the
//!   process for which the chapter has the number 4711.
//! - `<!-- instead: COMMAND -->` before a block is run in place of its first command: one that goes on until
//!   a person or a crash ends it, or that has a word for a reader's own. `tests/live/incidents.rs` runs those
//!   of `symptoms.md` as they are.
//! - `<!-- varies: numbers -->` before a block has its numbers compared by their places alone; `processes`
//!   leaves out rows of processes that the chapter did not start.
//!
//! Blocks of `text` are not run here. Those of `fleet.md` need an engine or an object store, and are run by
//! `cargo xtask fleet`.
//!
//! In an output, a line `…` stands for any lines, and a line that ends in `…` for any that begin so. A
//! command that fails is followed by `echo $?`, which shows its exit code.

#![cfg(unix)]

mod chapter;
#[path = "../live/executable.rs"]
#[allow(dead_code, reason = "what the live tests use of it")]
mod executable;
mod output;
#[path = "../live/runtime.rs"]
#[allow(dead_code, unused_macros, unused_imports, reason = "what the live tests use of it")]
mod runtime;
mod session;
mod structure;

/// Makes a test of each chapter.
macro_rules! chapters {
    ($($name:ident = $file:literal),+ $(,)?) => {
        const CHAPTERS: &[&str] = &[$($file),+];

        $(
            #[test]
            fn $name() {
                crate::chapter::check($file);
            }
        )+
    };
}

chapters! {
    introduction = "introduction.md",
    symptoms = "symptoms.md",
    stranger = "stranger.md",
    attach = "attach.md",
    control = "control.md",
    containers = "containers.md",
    recordings = "recordings.md",
    rust = "rust.md",
    agent = "agent.md",
    simulator = "simulator.md",
    fleet = "fleet.md",
    compare = "compare.md",
    dotnet_trace = "dotnet-trace.md",
    monitoring = "monitoring.md",
    rules_file = "rules-file.md",
    scripts = "scripts.md",
    troubleshooting = "troubleshooting.md",
    protocol = "protocol.md",
    formats = "formats.md",
}
