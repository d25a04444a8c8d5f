//! The program `dipc`: flags, printing and exit codes. Everything else is in the crates.
//!
//! # Modules
//!
//! Highest layer first. A layer uses those below it; commands do not use each other, except that `profile` is
//! composed of `trace` and `report`, and `why` of all three.
//!
//! - `usage`, `flag_syntax`: words of the command line that clap does not parse. `cli`: the commands.
//! - `command`: a file or folder for each command, with its arguments, its run and its printing.
//!   `command/report` has a file for each report, and `command/report/overview` all of them in one pass.
//! - `args`: groups of arguments that several commands share, each of which converts to a value of a layer
//!   below. Layers below do not know clap.
//! - `record`: making recordings. `inspect`: reading recordings.
//! - `process`: targets, and requests to runtimes.
//! - `render`: output.
//! - `http`: addresses of receivers. `otlp_sender`: words for their answers. `object_stores`: files sent to
//!   S3 and others. `exit`, `interrupt`, `processors`, `duration`, `time_point`, `size`.
#![forbid(unsafe_code)]
// Each stream has a single writer, which escapes text from outside (`render/escape.rs`).
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod cli;
mod command;
mod compression;
mod duration;
mod exit;
mod flag_syntax;
mod http;
mod inspect;
mod interrupt;
#[cfg(feature = "cloud")]
mod object_stores;
mod otlp_sender;
mod process;
mod processors;
mod record;
mod render;
mod size;
mod time_point;
mod usage;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};
use clap_complete::CompleteEnv;

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Outcome};
use crate::process::choice;
use crate::render::messages;

fn main() -> ExitCode {
    // Ends the program if a shell asks for candidates.
    CompleteEnv::with_factory(Cli::command).var(command::completions::VARIABLE).complete();
    interrupt::survive_file_size_limit();
    let words = command::dump::join_command(flag_syntax::normalize(std::env::args_os()));
    let parsed = usage::parse(&words).or_else(|error| {
        let pid = usage::lacks_target(&error, &words).then(choice::choose).flatten();
        pid.map_or(Err(error), |pid| {
            Cli::try_parse_from(words.iter().cloned().chain(["-p".into(), pid.to_string().into()]))
        })
    });
    let outcome = match parsed {
        Ok(cli) => run(&cli),
        Err(error) => usage::explain(&error, &words),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if failure.exit != Exit::Done {
                messages::failure(&failure);
            }
            failure.exit.into()
        }
    }
}

fn run(cli: &Cli) -> Outcome {
    messages::set_verbosity(cli.verbosity.verbosity());
    match &cli.command {
        Command::Ps(args) => command::ps::run(args),
        Command::Push(args) => command::push::run(args),
        Command::Info(args) => command::info::run(args),
        Command::Env(args) => command::env::run(args),
        Command::Doctor(args) => command::doctor::run(args),
        Command::Trace(args) => command::trace::run(args),
        Command::Profile(args) => command::profile::run(args),
        Command::Ports(args) => command::ports::run(args),
        Command::Monitor(args) => command::monitor::run(args),
        Command::Dump(args) => command::dump::run(args),
        Command::Resume(args) => command::control::resume(args),
        Command::SetEnv(args) => command::control::set_env(args),
        Command::StartupHook(args) => command::control::startup_hook(args),
        Command::Profiler(command) => command::control::profiler(command),
        Command::Perfmap(command) => command::control::perf_map(command),
        Command::Stat(args) => command::stat::run(args),
        Command::Events(args) => command::events::run(args),
        Command::Edit(args) => command::edit::run(args),
        Command::Merge(args) => command::merge::run(args),
        Command::Repair(args) => command::repair::run(args),
        Command::Rules(command) => command::rules::run(command),
        Command::Schema(args) => command::schema::run(args),
        Command::Sql(args) => command::sql::run(args),
        Command::Export(args) => command::export::run(args),
        Command::Convert(args) => command::convert::run(args),
        Command::View(args) => command::view::run(args),
        Command::Report(args) => command::report::run(args),
        Command::Diff(args) => match args.heaps()? {
            Some((before, after, format)) => {
                command::gcdump::diff_files(before, after, format, args.names(), args.output())
            }
            None => command::diff::run(args),
        },
        Command::Top(args) => command::top::run(args),
        Command::Stack(args) => command::stack::run(args),
        Command::Counters(command) => command::counters::run(command),
        Command::Heap(args) => command::heap::run(args),
        Command::Mcp(args) => command::mcp::run(args),
        Command::CrashHandler(args) => command::crash_handler::run(args),
        Command::Memory(args) => command::memory::run(args),
        Command::Why(args) => command::why::run(args),
        Command::Exceptions(args) => command::exceptions::run(args),
        Command::Locks(args) => command::locks::run(args),
        Command::Async(args) => command::async_chains::run(args),
        Command::GcDump(command) => command::gcdump::run(command),
        Command::ListProfiles(args) => command::list_profiles::run(args),
        Command::Demo(args) => command::demo::run(args),
        Command::Sim(args) => command::sim::run(args),
        Command::Man(args) => command::man::run(args, Cli::command()),
        Command::DemoRuntime(args) => command::demo::run_runtime(args),
        Command::Help(args) => command::help::run(args, Cli::command()),
        Command::Completions(args) => command::completions::run(args),
    }
}
