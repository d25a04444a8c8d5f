//! The command line. Commands and flags have the names of the dotnet-* tools where those have an equivalent.

use clap::{Args, Parser, Subcommand};

use crate::args::deferred::Deferred;
use crate::args::target::RequestArgs;
use crate::command::async_chains::AsyncChainsArgs;
use crate::command::completions::CompletionsArgs;
use crate::command::control::{PerfMapCommand, ProfilerCommand, SetEnvArgs, StartupHookArgs};
use crate::command::convert::ConvertArgs;
use crate::command::counters::CountersCommand;
use crate::command::crash_handler::CrashHandlerArgs;
use crate::command::demo::{DemoArgs, DemoRuntimeArgs};
use crate::command::diff::DiffArgs;
use crate::command::doctor::DoctorArgs;
use crate::command::dump::DumpArgs;
use crate::command::edit::EditArgs;
use crate::command::env::EnvArgs;
use crate::command::events::EventsArgs;
use crate::command::exceptions::ExceptionsArgs;
use crate::command::export::ExportArgs;
use crate::command::gcdump::GcDumpCommand;
use crate::command::heap::HeapArgs;
use crate::command::help::{self, HelpArgs};
use crate::command::info::InfoArgs;
use crate::command::list_profiles::ListProfilesArgs;
use crate::command::locks::LocksArgs;
use crate::command::man::ManArgs;
use crate::command::mcp::McpArgs;
use crate::command::memory::MemoryArgs;
use crate::command::merge::MergeArgs;
use crate::command::monitor::MonitorArgs;
use crate::command::ports::PortsArgs;
use crate::command::profile::ProfileArgs;
use crate::command::ps::PsArgs;
use crate::command::push::PushArgs;
use crate::command::repair::RepairArgs;
use crate::command::report::ReportArgs;
use crate::command::rules::RulesCommand;
use crate::command::schema::SchemaArgs;
use crate::command::sim::SimArgs;
use crate::command::sql::SqlArgs;
use crate::command::stack::StackArgs;
use crate::command::stat::StatArgs;
use crate::command::top::TopArgs;
use crate::command::trace::TraceArgs;
use crate::command::view::ViewArgs;
use crate::command::why::WhyArgs;
use crate::render::messages::Verbosity;

/// Record, inspect and read .NET processes, with no .NET installed.
#[derive(Debug, Parser)]
#[command(name = "dipc", version, arg_required_else_help = true, disable_help_subcommand = true, override_help = FIRST_SCREEN, after_help = after_help())]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) verbosity: VerbosityArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The help of the program: one screen of 24 lines and 80 columns. `dipc help commands` has a line for each
/// command.
const FIRST_SCREEN: &str = "\
Record, inspect and read .NET processes, with no .NET installed.
Usage: dipc COMMAND …        dipc help COMMAND explains it; --version

  What runs here?                   dipc ps            Not found: dipc doctor
  Everything about it, on one page  dipc profile -p PID
  Why is it slow, stuck, failing?   dipc why -p PID
  What does it do now?              dipc top -p PID
  What does each thread wait for?   dipc stack -p PID; dipc locks -p PID
  What fills its memory?            dipc memory -p PID; dipc heap -p PID
  How do its numbers change?        dipc counters monitor -p PID
  Why did it crash?                 dipc dump analyze CORE
  What became slower?               dipc diff BASE NEW
  Watch all processes               dipc monitor

All commands, one per line: dipc help commands
  Process    ps info env doctor resume set-env startup-hook profiler perfmap
  Live       why top stack locks async heap memory events exceptions counters
  Record     trace profile dump crash-handler gcdump list-profiles push ports
  Recording  report view convert stat diff edit merge repair rules
  Fleet      monitor export schema sql mcp   Other: demo sim completions help
By symptom: dipc help slow, leak, crash, hang, starvation, high-cpu, memory
The book: dipc help introduction, attach, containers, … (dipc help topics)
";

/// The commands to begin with, for a command line without arguments.
pub(crate) const FIRST_COMMANDS: &str = "\
dipc why -p PID      what is wrong with a .NET process: the cause first
dipc profile -p PID  everything about it, on one page
dipc top -p PID      what it does now, every second
dipc help            all commands, and help by symptom
";

/// The text below the commands: topics and exit codes.
fn after_help() -> String {
    format!("{}\n\n{EXIT_CODES}", help::list())
}

const EXIT_CODES: &str = "\
Exit codes:
  0  done, nothing missing
  1  failed for another reason
  2  wrong usage
  3  no such process or endpoint, or not reachable
  4  the runtime refused
  5  timed out
  6  done, but the input was cut or damaged; its intact parts were used
  7  events were lost and --fail-on-loss was given
  8  a condition of --fail-if is met, or a cause of --fail-on is found";

/// Returns the definition of a subcommand, with its arguments.
pub(crate) fn subcommand(command: &clap::Command, word: &str) -> Option<clap::Command> {
    let mut found = command.find_subcommand(word)?.clone();
    found.build();
    Some(found)
}

/// The amount of messages on standard error.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct VerbosityArgs {
    /// Print only errors on standard error
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Print more on standard error
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
}

impl VerbosityArgs {
    /// Returns the verbosity that the flags stand for.
    pub(crate) const fn verbosity(self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (_, true) => Verbosity::Verbose,
            _ => Verbosity::Usual,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the .NET processes that can be reached
    Ps(Deferred<PsArgs>),
    /// Show what a runtime reports about itself
    Info(Deferred<InfoArgs>),
    /// Show the environment of a .NET process
    Env(Deferred<EnvArgs>),
    /// Find out why a .NET process cannot be seen or reached
    Doctor(Deferred<DoctorArgs>),
    /// Find out what is wrong with a process: the cause first, in the program's own code
    ///
    /// Watches the process for a few seconds: events and samples as dipc profile takes them, and the locks,
    /// tasks and stacks in its memory, twice, without stopping it. Or judges a recording, or a core dump.
    /// Says what a process without findings does, and what could not be looked at. The thresholds are in dipc
    /// help attach.
    Why(Deferred<WhyArgs>),
    /// Record events of a .NET process
    #[command(visible_alias = "collect")]
    Trace(Deferred<TraceArgs>),
    /// Record everything about a process at once: CPU, waits, allocations, locks, requests; ends in one page
    ///
    /// The kernel samples threads and their waits where permitted; otherwise the runtime samples itself. The
    /// line Samples shows which, and why. The recording is the same as with trace --profile all --cpu
    /// --off-cpu, so every other command reads it. Its results are shown as a page and an overview.
    Profile(Deferred<ProfileArgs>),
    /// Listen on a diagnostic port, and show the runtimes that connect and disconnect
    Ports(Deferred<PortsArgs>),
    /// Watch all .NET processes: their counters for Prometheus, and traces, dumps, heaps and logs over HTTP
    ///
    /// Serves the routes of dotnet-monitor. By default only this machine can connect, with the rights of this
    /// program. --token-file requires tokens; addresses that other machines can reach need them.
    ///
    /// A process has at most one session for its counters, however many clients read them; other sessions run
    /// only while requested. No process is left suspended.
    Monitor(Deferred<MonitorArgs>),
    /// Write a core dump of a .NET process
    Dump(Deferred<DumpArgs>),
    /// Keep a core dump of every process of the machine that crashes, with an overview (Linux)
    ///
    /// The kernel gives each core dump to dipc (kernel.core_pattern), which writes it compressed, with the
    /// facts of the process as JSON and, of a .NET process, the overview of dump analyze as text. Processes
    /// in containers are taken, too. Without a command, shows what is installed.
    #[command(disable_help_subcommand = true)]
    CrashHandler(Deferred<CrashHandlerArgs>),
    /// Resume a .NET process that was started suspended
    Resume(Deferred<RequestArgs>),
    /// Set or remove environment variables of a .NET process
    SetEnv(Deferred<SetEnvArgs>),
    /// Load an assembly into a suspended .NET process before its program begins
    #[command(visible_alias = "hook")]
    StartupHook(Deferred<StartupHookArgs>),
    /// Load a profiler into a .NET process
    #[command(subcommand, disable_help_subcommand = true)]
    Profiler(Deferred<ProfilerCommand>),
    /// Write the names of jitted code for perf
    #[command(subcommand, disable_help_subcommand = true)]
    Perfmap(Deferred<PerfMapCommand>),
    /// Show the contents of a recording: providers, kinds of events, losses
    Stat(Deferred<StatArgs>),
    /// Print the events of a recording, or of a process as they happen
    ///
    /// Without FILE, shows the events of a process as they happen, until Ctrl-C. The default selection is the
    /// runtime's own events for collections, exceptions, lock waits, loaded assemblies and the thread pool,
    /// at the informational level, without samples and compiled methods; --providers, --profile or
    /// --clrevents select others. Filters also narrow the request: --provider requests no other provider, and
    /// --event GC/AllocationTick only that event's keyword and level.
    ///
    /// Events of .NET 3.1 to 10 appear 0.1 to 0.2 seconds late: runtimes send their events every 0.1 seconds.
    ///
    /// The runtime does not list its methods (rundown), so --stacks shows addresses. Recordings by dipc trace
    /// have the names.
    Events(Deferred<EventsArgs>),
    /// Show the last exceptions of a process, which a running dipc monitor has kept
    ///
    /// The black boxes of a monitor keep the exceptions of the last half minute, or of --keep, of every
    /// process: types, messages and times, without stacks. Nothing is asked of the process.
    Exceptions(Deferred<ExceptionsArgs>),
    /// Show the stacks of all threads, of a process now or of a recording at its start
    Stack(Deferred<StackArgs>),
    /// Show what a process does, live: methods, threads, collections, exceptions, allocations
    Top(Deferred<TopArgs>),
    /// Turn a recording into a profile that other programs open
    Convert(Deferred<ConvertArgs>),
    /// Serve the page of a recording to a browser on this machine; nothing is written
    ///
    /// Serves the page of convert -f html with finer detail, up to ten times as large. The page is available
    /// until Ctrl-C on 127.0.0.1, at a secret path: use the printed address.
    View(Deferred<ViewArgs>),
    /// Show reports of a recording: hot methods, collections, allocations and more
    Report(Deferred<ReportArgs>),
    /// Compare recordings: what became slower, allocates more or waits longer, beyond noise
    ///
    /// Compares methods, requests by route, allocated types, exceptions, collections and waits of BASE and
    /// NEW. A finding is a change of at least 5 % that the numbers' own variation does not explain. With two
    /// or more recordings per side (--base A1 A2 A3 --new B1 B2 B3), the variation between runs counts; five
    /// per side detect a change of a tenth. With one per side, the variation over stretches of a second or
    /// more counts, which does not show how runs differ: 3 % are allowed for that.
    ///
    /// All tested differences are adjusted together: the chance of any false finding is at most 1 % if the
    /// recordings show all of the noise. Heaps (.gcdump) are compared as by gcdump diff.
    Diff(Deferred<DiffArgs>),
    /// Write a part of a recording as a recording: a time range, some events, some threads
    ///
    /// Events that name others are always kept: methods, modules, types, processes, roles of threads. Samples
    /// and waits that reach into the time range are kept, too, so that a report with the same --from and --to
    /// is the same for both recordings.
    ///
    /// Losses in the kept part remain losses; events that are left out do not count as losses.
    Edit(Deferred<EditArgs>),
    /// Write several recordings, of one machine or of many, as one
    ///
    /// The new recording has version 6 and its events in time order. Processes stay distinct, and --pid
    /// selects among them; a process with the id of another one gets a new id. The parts of one recording, as
    /// edit writes them, become one process again, and data that several parts share, such as names, is
    /// written once.
    ///
    /// Recordings of one machine share a clock. Others are aligned by their start times, a time of day to the
    /// millisecond, and by their own clocks; their alignment is only as exact as the machines' clocks. The
    /// list shows which case applies.
    Merge(Deferred<MergeArgs>),
    /// Write the intact parts of a cut or damaged recording as a recording that other programs read
    ///
    /// Keeps every whole event, restores sequence points, and lists damaged parts. The exit code is 6 if
    /// anything was damaged, otherwise 0.
    Repair(Deferred<RepairArgs>),
    /// Write recordings as tables that DuckDB, DataFusion, Spark and others read: Parquet files
    ///
    /// Writes one file per table for all recordings of a date and a service:
    /// TABLE/date=DATE/service=NAME/SHARD.parquet. The files of a shard appear when all of them are complete.
    /// Recordings that were exported before are skipped, so an interrupted export continues where it stopped,
    /// and the same recordings give the same files.
    ///
    /// Each event is one row of events or samples, or is counted in recordings.left_out: without --rundown,
    /// the events by which the runtime lists its methods. The intact parts of damaged recordings are
    /// exported.
    ///
    /// The writer is part of dipc-fleet, an extended build of this program, which dipc starts from its own
    /// folder or from PATH.
    Export(Deferred<ExportArgs>),
    /// Send profiles of a process, repeatedly, or of recordings to Pyroscope, Parca or OpenTelemetry
    Push(Deferred<PushArgs>),
    /// Try conditions for snapshots on recordings
    #[command(subcommand, disable_help_subcommand = true)]
    Rules(Deferred<RulesCommand>),
    /// Print the views over exported tables as SQL: top_methods, inclusive, requests, gc_pauses, allocations,
    /// exceptions, compare
    Schema(Deferred<SchemaArgs>),
    /// Run a query over exported tables with the installed DuckDB: dipc sql data 'SELECT * FROM top_methods
    /// ORDER BY self_ns DESC LIMIT 10'
    ///
    /// The tables are events, samples, losses, damages and recordings; dipc schema prints the views.
    Sql(Deferred<SqlArgs>),
    /// Offer this program to an agent in an editor: the Model Context Protocol on standard input and output
    ///
    /// The tools are the commands that look at processes, recordings, dumps and heaps. Answers are bounded,
    /// and mark what comes from a process as data. Nothing stops or changes a process without
    /// --allow-control.
    ///
    /// The protocol is part of dipc-fleet, an extended build of this program, which dipc starts from its own
    /// folder or from PATH. More: dipc help scripts.
    Mcp(Deferred<McpArgs>),
    /// Show the counters of a process: EventCounters and Meters
    #[command(subcommand, disable_help_subcommand = true)]
    Counters(Deferred<CountersCommand>),
    /// Show the contents of a process's heap, what keeps them alive, and what grows: .gcdump files
    #[command(subcommand, disable_help_subcommand = true, name = "gcdump")]
    GcDump(Deferred<GcDumpCommand>),
    /// Show the heap of a process from its memory, without a collection: the process stops for a stated time,
    /// or not at all
    ///
    /// Shows the report of dipc gcdump report, for .NET 8, 9, 10, 3.1.23 and NativeAOT 8 to 11 on x86-64
    /// Linux, and .NET 10 and NativeAOT on arm64. Unreferenced objects that no collection has removed yet are
    /// included. Needs the rights of a debugger: the same user, or CAP_SYS_PTRACE.
    Heap(Deferred<HeapArgs>),
    /// Show the resident memory of a process by owner: heaps, code, files, stacks; or the memory in a core
    /// dump
    ///
    /// The rows sum to the kernel's figure (RSS, by /proc/PID/smaps); memory without a known owner is a row
    /// of its own. The first line names the largest owner, and what of it is free. The process is not
    /// stopped. Needs the rights of a debugger: the same user, or CAP_SYS_PTRACE. Symptoms: dipc help memory.
    Memory(Deferred<MemoryArgs>),
    /// Show held locks, the threads that wait for one another, and deadlocks, of a process or a core dump
    ///
    /// Distinguishes monitors, System.Threading.Lock, ReaderWriterLockSlim, Thread.Join and Task.Wait. Same
    /// as the view 'locks' of dipc dump analyze. Needs the rights of a debugger.
    Locks(Deferred<LocksArgs>),
    /// Show the async methods that have not ended and what each waits for, of a process or a core dump
    ///
    /// Same as the view 'async' of dipc dump analyze. Needs the rights of a debugger.
    Async(Deferred<AsyncChainsArgs>),
    /// List the profiles that `trace --profile` accepts
    ListProfiles(Deferred<ListProfilesArgs>),
    /// Record a simulated runtime and read the recording back: everything in a few seconds, with no .NET
    Demo(Deferred<DemoArgs>),
    /// Simulate .NET runtimes, well behaved or not, to test tools against
    Sim(Deferred<SimArgs>),
    /// Print the completion script of a shell: source <(dipc completions bash)
    Completions(Deferred<CompletionsArgs>),
    /// Show the help of a command, or a chapter of the book
    Help(Deferred<HelpArgs>),
    /// Write the man pages of the program and its commands
    #[command(hide = true)]
    Man(Deferred<ManArgs>),
    /// The runtime that `demo` records
    #[command(hide = true)]
    DemoRuntime(Deferred<DemoRuntimeArgs>),
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory as _;
    use dipc_wire::{Keywords, Level};

    use super::*;
    use crate::command::{demo, man};

    fn trace(arguments: &str) -> TraceArgs {
        let words = ["dipc", "trace"].into_iter().chain(arguments.split(' '));
        match Cli::try_parse_from(words).unwrap().command {
            Command::Trace(args) => args.into_inner(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    /// The last line of a terminal is the prompt.
    #[test]
    fn the_first_screen_names_each_command_in_24_lines_of_80_columns() {
        let text = Cli::command().render_help().to_string();
        assert_eq!(text, Cli::command().render_long_help().to_string());
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let groups = text.split_once("All commands").unwrap().1;
        let words: Vec<_> = groups.split([' ', '\n']).collect();
        for command in Cli::command().get_subcommands().filter(|command| !command.is_hide_set()) {
            assert!(words.contains(&command.get_name()), "{}", command.get_name());
        }
        for line in text.lines().filter(|line| line.contains("  dipc ")) {
            let command = line.split("  dipc ").nth(1).unwrap().split([';', ' ']).next().unwrap();
            assert!(Cli::command().find_subcommand(command).is_some(), "{command}");
        }
    }

    #[test]
    fn the_first_commands_are_four_lines_of_commands_that_exist() {
        let commands = FIRST_COMMANDS.lines().map(|line| line.split("  ").next().unwrap());
        let commands: Vec<_> = commands.collect();
        assert_eq!(commands, ["dipc why -p PID", "dipc profile -p PID", "dipc top -p PID", "dipc help"]);
        for command in commands {
            let words = command.replace("PID", "1");
            assert!(Cli::try_parse_from(words.split(' ')).is_ok(), "{command}");
        }
    }

    /// To define all arguments takes longer than to list the processes of a machine.
    #[test]
    fn arguments_are_defined_when_their_command_is_used() {
        let mut all = Cli::command();
        let count =
            |command: &clap::Command| command.get_arguments().count() + command.get_subcommands().count();
        assert_eq!(all.get_subcommands().map(count).sum::<usize>(), 0);
        all.build();
        for command in Cli::command().get_subcommands() {
            let used = subcommand(&Cli::command(), command.get_name()).unwrap();
            // At least --help.
            assert!(count(&used) > 0 && count(all.find_subcommand(command.get_name()).unwrap()) > 0);
            assert_eq!(used.get_about(), command.get_about(), "{}", command.get_name());
            assert_eq!(used.get_long_about(), command.get_long_about(), "{}", command.get_name());
        }
    }

    #[test]
    fn dotnet_trace_command_lines_are_understood() {
        let args = trace(
            "--process-id 7 --duration 00:00:00:30 --buffersize 64 --rundown false --output x.nettrace --format Speedscope",
        );
        assert_eq!(args.source.process.process_ids, [7]);
        assert_eq!(args.duration, Some(Duration::from_secs(30)));
        assert_eq!((args.buffersize, args.rundown), (64, Some(false)));
        assert_eq!(args.output.as_deref(), Some("x.nettrace".as_ref()));
        assert!(args.resume_runtime);
        assert_eq!(args.format, Some(crate::args::format::ConvertFormat::Speedscope));

        let args = trace(
            "-n app --profile gc-collect,database --clrevents gc+Exception --clreventlevel verbose --rundown",
        );
        assert_eq!(
            args.selection.profile.iter().map(|p| p.name).collect::<Vec<_>>(),
            ["gc-collect", "database"]
        );
        assert_eq!(args.selection.clrevents, Some(Keywords::GC | Keywords::EXCEPTION));
        assert_eq!(args.selection.clreventlevel, Some(Level::VERBOSE));
        assert_eq!(args.rundown, Some(true));
    }

    #[test]
    fn a_recording_that_waits_for_a_crash_needs_no_other_flag() {
        let flight = |arguments: &str| trace(arguments).flight.settings().unwrap();
        let settings = flight("-p 1 --dump-on crash");
        assert!(settings.waits_for_crash);
        assert_eq!(settings.capacity.time, Some(Duration::from_secs(60)));
        assert_eq!(flight("-p 1 --keep 5s --dump-on crash").capacity.time, Some(Duration::from_secs(5)));
        let words = ["dipc", "trace", "-p", "1", "--dump-on", "crash", "--rotate", "10MB"];
        assert!(Cli::try_parse_from(words).is_err());
    }

    #[test]
    fn rejects_conflicting_options_of_a_simulation() {
        let parse =
            |arguments: &str| Cli::try_parse_from(["dipc", "sim"].into_iter().chain(arguments.split(' ')));
        for good in [
            "--version 3.1 --count 1000 --connect /run/port.sock,nosuspend",
            "--replay a.nettrace --speed max --loop --dir /tmp",
            "--replay a.nettrace --speed 2.5 --fault never-stop --fault close-in-stream:10",
            "--rate 1000 --suspend",
            "--list-faults",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "--speed max",
            "--loop",
            "--replay a --rate 5",
            "--replay a --speed 0",
            "--replay a --speed NaN",
            "--fault explode",
            "--version 7",
            "--count 0",
            "--connect a --dir b",
            "--connect a --suspend",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn collect_is_trace_and_exactly_one_target_is_needed() {
        assert!(Cli::try_parse_from(["dipc", "collect", "-p", "1"]).is_ok());
        assert!(Cli::try_parse_from(["dipc", "trace"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "1", "-n", "x"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "0"]).is_err());
        assert!(Cli::try_parse_from(["dipc", "trace", "-p", "-5"]).is_err());
    }

    #[test]
    fn errors_explain_invalid_values() {
        for (arguments, message) in [
            (["--providers", "A:1:loud"], "at character 5: level 'loud'"),
            (["--profile", "nosuch"], "unknown profile; the profiles are dotnet-common, "),
            (["--profile", "cpu-sampling"], "dotnet-sampled-thread-time is its successor; the profiles are "),
            (
                ["--providers", "A,Microsoft-Windows-DotNETRuntime:gc+exception:informational"],
                "a hexadecimal number of 64 bits; the names of the runtime's keywords are for --clrevents gc+exception",
            ),
            (["--providers", "A:gc"], "keywords 'gc' are not a hexadecimal number of 64 bits\n"),
            (["--clrevents", "gc+nosuch"], "'nosuch' is not a keyword"),
            (["--duration", "30"], "'30' has no unit"),
            (["--buffersize", "0"], "0 is not in 1.."),
        ] {
            let words = ["dipc", "trace", "-p", "1"].into_iter().chain(arguments);
            let error = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn the_next_steps_are_commands_that_exist() {
        let text = demo::next_steps(None, None).replace("-p PID", "-p 1");
        let commands: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
        assert!(commands.len() >= 4);
        for command in commands {
            let words = command.split('#').next().unwrap().split_whitespace();
            assert!(Cli::try_parse_from(words).is_ok(), "{command}");
        }
    }

    #[test]
    fn every_command_that_help_lists_has_a_man_page() {
        let folder = tempfile::tempdir().unwrap();
        man::run(&ManArgs { folder: folder.path().join("man1") }, Cli::command()).unwrap();
        let page = |name: &str| std::fs::read_to_string(folder.path().join("man1").join(name));
        assert!(page("dipc.1").unwrap().contains("dipc\\-trace(1)"));
        for command in Cli::command().get_subcommands() {
            let page = page(&format!("dipc-{}.1", command.get_name()));
            assert_eq!(page.is_ok(), !command.is_hide_set(), "{}", command.get_name());
        }
        assert!(page("dipc-trace.1").unwrap().contains("\\-\\-duration"));
    }
}
