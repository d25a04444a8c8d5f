//! `dipc rules test`: the times at which a condition would have been met in a recording, and those at which
//! the rules of a configuration would have fired.

mod condition;
mod configuration;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use clr_conditions::{Condition, StreamEnd};

use self::condition::ConditionTest;
use self::configuration::ConfigurationTest;
use crate::args::flight::parse_condition;
use crate::args::format::Format;
use crate::duration;
use crate::exit::Outcome;

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Show when the rules of a configuration would have fired in a recording, or a condition would have been
    /// met
    ///
    /// Takes the same configuration as dipc monitor: dotnet-monitor's JSON, or a part of it, such as a rule.
    /// Rules start with the recording and are tested regardless of their filters. Their actions take the time
    /// for which they collect. For each rule that does not fire, the table shows what its trigger has seen.
    /// --snapshot-on tests a condition of dipc trace instead of rules.
    ///
    /// The exit code is 1 if no rule fires or the condition is never met, and 2 if the configuration has
    /// errors. A recording that ends early may be from a crash or a lost connection, and a complete one does
    /// not record why it ended: --end states the reason.
    Test(TestArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("tested").required(true))]
pub(crate) struct TestArgs {
    /// The recording; '-' is standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The configuration with the rules, in dotnet-monitor's form
    #[arg(value_hint = ValueHint::FilePath, group = "tested")]
    configuration: Option<PathBuf>,
    /// Test only the rule with this name; may be repeated
    #[arg(long = "rule", value_name = "NAME", conflicts_with = "snapshot_on")]
    rules: Vec<String>,
    /// Duration of the actions of an execution [default: the time for which they collect]
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "snapshot_on")]
    actions_take: Option<Duration>,
    /// The condition, as for dipc trace --snapshot-on
    #[arg(long, value_name = "CONDITION", value_parser = parse_condition, group = "tested")]
    snapshot_on: Option<Condition>,
    /// Minimum time between two snapshots
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    snapshot_interval: Duration,
    /// Assume this reason for the end of the recording
    #[arg(long, value_name = "HOW", value_enum)]
    end: Option<EndArg>,
    /// Format of the result
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Maximum number of rows to show; matches that are too early for a snapshot share a row
    #[arg(short = 'n', long = "rows", alias = "number", value_name = "N", default_value_t = 100)]
    number: usize,
}

/// The reason for the end of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EndArg {
    /// The process ended
    Exit,
    /// The process crashed
    Crash,
    /// The connection to the process was lost
    Disconnect,
}

impl EndArg {
    const fn end(self) -> StreamEnd {
        match self {
            Self::Exit => StreamEnd::Exit,
            Self::Crash => StreamEnd::Crash,
            Self::Disconnect => StreamEnd::Disconnect,
        }
    }
}

pub(crate) fn run(command: &RulesCommand) -> Outcome {
    let RulesCommand::Test(args) = command;
    let end = args.end.map(EndArg::end);
    if let Some(condition) = &args.snapshot_on {
        return condition::run(&ConditionTest {
            file: &args.file,
            condition,
            interval: args.snapshot_interval,
            end,
            format: args.format,
            number: args.number,
        });
    }
    configuration::run(&ConfigurationTest {
        file: &args.file,
        // Either of the two is required.
        configuration: args.configuration.as_deref().unwrap_or(&args.file),
        rules: &args.rules,
        actions_time: args.actions_take,
        end,
        format: args.format,
        number: args.number,
    })
}
