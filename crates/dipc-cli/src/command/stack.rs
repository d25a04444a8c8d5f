//! `dipc stack`: the stacks of all threads.

mod exact;
mod live;
mod memory;
mod native;
mod print;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use dipc_collect::stacks::StackOptions;
use nettrace_export::{CausalGrouping, NameForm};

use crate::args::awaits::AwaitArgs;
use crate::args::names::NameArgs;
use crate::args::target::{TARGETS, TargetArgs};
use crate::duration;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::thread_stacks;
use crate::interrupt::Interrupts;
use crate::render::messages;

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").required(true).arg("file").args(TARGETS))]
pub(crate) struct StackArgs {
    /// Recording to show the first sample of each thread of; '-' is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: Option<PathBuf>,
    #[command(flatten)]
    process: TargetArgs,
    /// Number of samples of each thread, about one per millisecond; more than one shows where threads spend
    /// most of their time
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    count: u64,
    /// Show the stacks repeatedly, at this interval, until Ctrl-C
    #[arg(long, value_name = "TIME", value_parser = duration::parse, conflicts_with = "file")]
    watch: Option<Duration>,
    /// Show native and kernel frames along with managed ones, for all threads of the process, and which
    /// threads run and which wait in the kernel, and where (Linux)
    ///
    /// The kernel samples running threads for 50 ms, and the stacks of waiting threads are read from the
    /// process's memory: no thread is stopped. Also works for NativeAOT programs, and for programs without
    /// .NET (by -p). Needs the rights of a debugger: the same user, or CAP_SYS_PTRACE.
    #[arg(long, conflicts_with_all = ["file", "count", "by_task"])]
    native: bool,
    /// Read the stacks from the process's memory, without a session: all threads at once, including IL stubs
    /// and threads without samples (.NET 8, 9, 10, 3.1.23 and NativeAOT 8 to 11 on x86-64 Linux, .NET 10 and
    /// NativeAOT 10 and 11 on arm64)
    ///
    /// Without --stop the process keeps running, and threads in managed code lack their innermost frames.
    /// Needs the rights of a debugger: the same user, or CAP_SYS_PTRACE.
    #[arg(long, conflicts_with_all = ["file", "count", "by_task", "awaits"])]
    exact: bool,
    /// With --exact: stop the process while its stacks are walked, for at most this time
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "exact")]
    stop: Option<Duration>,
    /// With --exact: show `this` and the arguments of each frame, as dipc dump analyze; with --stop, as they
    /// were at one moment
    #[arg(long, requires = "exact")]
    arguments: bool,
    /// With --exact: show the local variables of each frame, by the names of a PDB or by number
    #[arg(long, requires = "exact")]
    locals: bool,
    /// With --exact: folder to search first for the source lines of frames and the names of local variables,
    /// with PDBs or with modules that embed them; may be given several times
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, requires = "exact")]
    symbol_path: Vec<PathBuf>,
    /// Show below the work of a task the stack that created it: the chain of awaits. For a process, only
    /// tasks created during the sampling are known; a --count of several hundred shows most of them
    #[arg(long, conflicts_with = "awaits")]
    by_task: bool,
    #[command(flatten)]
    awaits: AwaitArgs,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: StackFormat,
    #[command(flatten)]
    names: NameArgs,
    /// Time limit for each answer of the runtime
    #[arg(long, value_name = "TIME", value_parser = duration::parse, default_value = "10s")]
    timeout: Duration,
}

/// A format of stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum StackFormat {
    /// For people: each stack once, with its threads
    #[default]
    Table,
    /// For programs
    Json,
    /// The text of dotnet-stack report
    DotnetStack,
}

pub(crate) fn run(args: &StackArgs) -> Outcome {
    if let Some(file) = &args.file {
        let (stacks, exit) = thread_stacks::read(file, args.stack_options(), args.count)?;
        print::print(args, &stacks, &[], None)?;
        return Ok(exit);
    }
    let interrupts = Interrupts::watch()?;
    if args.native && !args.exact {
        return show_native(args, &interrupts);
    }
    if args.exact && args.format == StackFormat::DotnetStack {
        return Err(Failure::usage("--exact: write its stacks as a table or as JSON"));
    }
    // Memory is read without the runtime's help.
    let found = (!args.exact).then(|| args.process.find(args.timeout)).transpose()?;
    loop {
        let exit = match &found {
            Some(found) => live::show(args, found, &interrupts)?,
            None => exact::show(args)?,
        };
        let Some(period) = args.watch else { return Ok(exit) };
        if interrupts.wait(period) {
            return Ok(Exit::Done);
        }
    }
}

/// Shows stacks with native frames.
fn show_native(args: &StackArgs, interrupts: &Interrupts) -> Outcome {
    if args.format == StackFormat::DotnetStack {
        return Err(Failure::usage("--native: the format of dotnet-stack has no native frames"));
    }
    let found = match (args.process.find(args.timeout), args.process.process_id) {
        (Err(failure), Some(pid)) if dipc_transport::process_name(pid).is_ok() => {
            messages::warning(format_args!("{failure}; its stacks have no managed frames"));
            (pid, None)
        }
        (found, _) => {
            let found = found?;
            let pid = found.endpoint.as_ref().map(|endpoint| endpoint.pid);
            let pid = pid.ok_or_else(|| Failure::usage("--native: name the process with -p or -n"))?;
            (pid, Some(found.target))
        }
    };
    loop {
        let exit = native::show(args, found.0, found.1.as_ref())?;
        let Some(period) = args.watch else { return Ok(exit) };
        if interrupts.wait(period) {
            return Ok(Exit::Done);
        }
    }
}

impl StackArgs {
    fn grouping(&self) -> CausalGrouping {
        self.awaits.grouping(CausalGrouping::NONE.with_tasks(self.by_task))
    }

    fn stack_options(&self) -> StackOptions {
        StackOptions::default()
            .with_names(self.name_form())
            .with_grouping(self.grouping())
            .with_types(self.format == StackFormat::DotnetStack)
    }

    /// JSON has both forms.
    fn name_form(&self) -> NameForm {
        match self.format {
            StackFormat::Json => NameForm::CSharp,
            StackFormat::Table => self.names.form(),
            StackFormat::DotnetStack => NameForm::Full,
        }
    }
}
