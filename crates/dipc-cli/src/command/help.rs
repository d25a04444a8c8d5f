//! `dipc help`: the help of a command, or a chapter of the book.

use clap::{Args, Command};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::exit::{Exit, Failure, Outcome};
use crate::render::{markdown, output, width};

#[derive(Debug, Args)]
pub(crate) struct HelpArgs {
    /// A command, or a topic
    #[arg(value_name = "COMMAND|TOPIC", add = ArgValueCandidates::new(candidates))]
    subject: Vec<String>,
}

/// A chapter of the book.
struct Topic {
    name: &'static str,
    text: &'static str,
}

/// The chapters of `help/`, in the order of the book.
macro_rules! topics {
    ($($name:literal),+ $(,)?) => {
        &[$(Topic { name: $name, text: include_str!(concat!("../../help/", $name, ".md")) }),+]
    };
}

const TOPICS: &[Topic] = topics![
    "introduction",
    "symptoms",
    "stranger",
    "attach",
    "control",
    "containers",
    "recordings",
    "rust",
    "agent",
    "simulator",
    "fleet",
    "compare",
    "dotnet-trace",
    "monitoring",
    "rules-file",
    "scripts",
    "troubleshooting",
    "protocol",
    "formats",
];

/// The programs included in chapters: examples of the crates.
macro_rules! examples {
    ($($name:literal),+ $(,)?) => {
        &[$((concat!("{{#include examples/", $name, "}}\n"), include_str!(concat!("../../help/examples/", $name)))),+]
    };
}

const EXAMPLES: &[(&str, &str)] = examples![
    "agent.rs",
    "async_tokio.rs",
    "collect.rs",
    "count.rs",
    "dies_in_the_middle.rs",
    "exceptions.rs",
    "flame_graph.rs",
    "info.rs",
    "keep.rs",
    "largest.rs",
    "measurements.rs",
    "session.rs",
    "top.rs",
    "values.rs",
];

/// Maximum width of text: longer lines are hard to read.
const WIDTH: usize = 100;
/// The width without a terminal.
const USUAL_WIDTH: usize = 80;

impl Topic {
    fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches("# ")
    }

    /// The chapter with the programs that it includes.
    fn markdown(&self) -> String {
        EXAMPLES.iter().fold(self.text.to_owned(), |text, (mark, program)| text.replace(mark, program))
    }

    fn print(&self) -> Outcome {
        print_markdown(&self.markdown())
    }
}

/// Words that people look for, and the symptom or topic that is about them.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("core", "stranger"),
    ("cpu", "high-cpu"),
    ("deadlock", "hang"),
    ("gc", "memory"),
    ("lock", "hang"),
    ("malloc", "native-alloc"),
    ("native", "memory"),
    ("oom", "memory"),
    ("regression", "compare"),
];

/// Returns true if `dipc help` has a section about a symptom.
pub(crate) fn is_symptom(word: &str) -> bool {
    symptom(subject_of(word)).is_some()
}

/// Returns the name of the topic or symptom that a word stands for.
fn subject_of(word: &str) -> &str {
    let other = OTHER_WORDS.iter().find(|(other, _)| other.eq_ignore_ascii_case(word));
    other.map_or(word, |(_, subject)| subject)
}

/// Returns the section of the symptoms chapter with a heading that starts with this word and a colon.
fn symptom(name: &str) -> Option<&'static str> {
    let chapter = TOPICS.iter().find(|topic| topic.name == "symptoms")?.text;
    let parts = chapter.split("\n## ").skip(1);
    let is_named =
        |part: &&str| part.split_once(": ").is_some_and(|(word, _)| word.eq_ignore_ascii_case(name));
    parts.into_iter().find(is_named)
}

fn print_markdown(text: &str) -> Outcome {
    let width = width::of_output().map_or(USUAL_WIDTH, |width| width.min(WIDTH));
    output::print(markdown::text(text, width))?;
    Ok(Exit::Done)
}

/// Prints a topic, or the help of a command of `program`, the definition of the command line.
pub(crate) fn run(args: &HelpArgs, mut program: Command) -> Outcome {
    let subject = args.subject.join(" ");
    match subject.as_str() {
        "commands" => return print_commands(program),
        "topics" => {
            output::print(list() + "\n")?;
            return Ok(Exit::Done);
        }
        _ => {}
    }
    let subject = if program.find_subcommand(&subject).is_some() { &*subject } else { subject_of(&subject) };
    let is_named = |topic: &&Topic| {
        topic.name.eq_ignore_ascii_case(subject) || topic.title().eq_ignore_ascii_case(subject)
    };
    if let Some(topic) = TOPICS.iter().find(is_named) {
        return topic.print();
    }
    if let Some(part) = symptom(subject) {
        return print_markdown(&format!("## {part}"));
    }
    program.build();
    let found = args.subject.iter().try_fold(&mut program, |command, word| command.find_subcommand_mut(word));
    let Some(found) = found else {
        let beginning = subject.to_ascii_lowercase();
        let mut topics = TOPICS.iter().filter(|topic| topic.name.starts_with(&beginning));
        if let (Some(topic), None) = (topics.next(), topics.next()) {
            return topic.print();
        }
        return Err(Failure::usage(format_args!("there is neither a command nor a topic '{subject}'"))
            .with_help("dipc help lists both"));
    };
    let text = if has_long_help(found) { found.render_long_help() } else { found.render_help() };
    output::print(text.ansi())?;
    Ok(Exit::Done)
}

/// Prints all commands with a line on each, the topics and the exit codes.
fn print_commands(program: Command) -> Outcome {
    let mut whole = program.override_help(None);
    output::print(whole.render_help().ansi())?;
    Ok(Exit::Done)
}

/// Returns true if `--help` of a command prints more than `-h`: the meaning of each of its values.
fn has_long_help(command: &Command) -> bool {
    command.get_arguments().any(|argument| {
        let values = argument.get_possible_values();
        argument.get_long_help().is_some() || values.iter().any(|value| value.get_help().is_some())
    })
}

/// The topics, as the program's help lists them.
pub(crate) fn list() -> String {
    let width = TOPICS.iter().map(|topic| topic.name.len()).max().unwrap_or_default();
    let lines = TOPICS.iter().map(|topic| format!("\n  {:width$}  {}", topic.name, topic.title()));
    lines.fold("Topics (dipc help TOPIC):".to_owned(), |list, line| list + &line)
}

fn candidates() -> Vec<CompletionCandidate> {
    TOPICS.iter().map(|topic| CompletionCandidate::new(topic.name).help(Some(topic.title().into()))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn topics_are_not_commands_and_show_whole_chapters() {
        let cli = Cli::command();
        for topic in TOPICS {
            assert!(cli.find_subcommand(topic.name).is_none(), "{}", topic.name);
            assert!(!topic.markdown().contains("{{#include"), "{}: an example is not known", topic.name);
            for width in [0, 1, 20, USUAL_WIDTH] {
                let text = markdown::text(&topic.markdown(), width);
                assert!(text.contains(topic.title()) && !text.contains("```"), "{}", topic.name);
            }
        }
        assert!(list().contains("\n  attach           Attach to a process"), "{}", list());
    }

    /// On a terminal of 80 columns and 24 lines, including the prompt.
    #[test]
    fn each_symptom_has_three_commands_on_one_screen() {
        let cli = Cli::command();
        for name in ["slow", "leak", "native-alloc", "crash", "hang", "starvation", "high-cpu", "memory"] {
            // The command of that name has its own help after `--help`.
            assert_eq!(cli.find_subcommand(name).is_some(), name == "memory", "{name}");
            let text = markdown::text(&format!("## {}", symptom(name).unwrap()), USUAL_WIDTH);
            let commands = text.lines().filter(|line| line.trim_start().starts_with("$ dipc ")).count();
            assert_eq!(commands, 3, "{text}");
            assert!(text.lines().count() <= 23, "{} lines: {text}", text.lines().count());
            assert!(
                text.lines().all(|line| line.chars().count() <= USUAL_WIDTH || line.contains('\u{1b}')),
                "{text}"
            );
            let run = run(&HelpArgs { subject: vec![name.to_owned()] }, Cli::command());
            assert_eq!(run.unwrap(), Exit::Done);
        }
        assert!(symptom("nothing").is_none());
    }

    #[test]
    fn words_that_people_look_for_lead_somewhere() {
        let cli = Cli::command();
        for (word, subject) in OTHER_WORDS {
            assert!(cli.find_subcommand(word).is_none(), "{word}");
            assert!(
                symptom(subject).is_some() || TOPICS.iter().any(|topic| topic.name == *subject),
                "{word}"
            );
        }
        for word in ["commands", "topics", "regression", "OOM"] {
            let run = run(&HelpArgs { subject: vec![word.to_owned()] }, Cli::command());
            assert_eq!(run.unwrap(), Exit::Done, "{word}");
        }
        assert!(is_symptom("hang") && is_symptom("deadlock") && !is_symptom("regression"));
    }

    /// The table of `dipc help attach` has the kinds of findings, with the numbers of their thresholds.
    #[test]
    fn the_thresholds_of_findings_are_in_the_book() {
        use clr_findings::{FindingKind, thresholds};

        let chapter = TOPICS.iter().find(|topic| topic.name == "attach").unwrap().text;
        let row = |kind: FindingKind| {
            let mut rows = chapter.lines().filter(|line| line.starts_with(&format!("| `{}` |", kind.id())));
            rows.next().unwrap_or_else(|| panic!("{} has no row", kind.id()))
        };
        for &kind in FindingKind::ALL {
            assert_eq!(row(kind).matches(" | ").count(), 3, "{}", kind.id());
        }
        let percent = |threshold: f64| format!("{threshold}%");
        let number = |threshold: f64, unit: &str| format!("{threshold} {unit}");
        for (kind, value) in [
            (FindingKind::LockConvoy, percent(thresholds::LOCK_SHARE)),
            (FindingKind::LockConvoy, number(thresholds::LOCK_WAITERS, "threads")),
            (FindingKind::LockConvoy, format!("{} threads wait", thresholds::MIN_WAITERS)),
            (FindingKind::Starvation, percent(thresholds::STARVATION)),
            (FindingKind::Starvation, format!("{} at least", thresholds::MIN_BLOCKED_WORKERS)),
            (FindingKind::Starvation, percent(thresholds::BLOCKED_WORKERS)),
            (FindingKind::StuckWait, percent(thresholds::AT_REST)),
            (FindingKind::StuckWait, percent(thresholds::ENDLESS)),
            (FindingKind::Finalizer, percent(thresholds::MOST_OF_THE_TIME)),
            (FindingKind::StaticConstructor, percent(thresholds::MOST_OF_THE_TIME)),
            (FindingKind::Starvation, format!("{} ms", thresholds::POOL_PATIENCE.as_millis())),
            (FindingKind::Regex, percent(thresholds::HOT_METHOD)),
            (FindingKind::Regex, number(thresholds::HOT_PROCESSORS, "processors")),
            (FindingKind::HotMethod, percent(thresholds::HOT_METHOD)),
            (FindingKind::HotMethod, percent(thresholds::TIRELESS)),
            (FindingKind::HotMethod, percent(thresholds::ALL_PROCESSORS)),
            (FindingKind::HotMethod, number(thresholds::HOT_PROCESSORS, "processors")),
            (FindingKind::JitStorm, percent(thresholds::JIT_SHARE)),
            (FindingKind::JitStorm, number(thresholds::JIT_PROCESSORS, "processors")),
            (FindingKind::JitStorm, percent(thresholds::JIT_LATE)),
            (FindingKind::GcPressure, percent(thresholds::FULL_COLLECTIONS)),
            (FindingKind::GcPressure, number(thresholds::FULL_COLLECTIONS_PER_SECOND, "per second")),
            (FindingKind::InducedCollections, number(thresholds::INDUCED_COLLECTIONS, "per second")),
            (FindingKind::InducedCollections, format!("{} collections", thresholds::MIN_INDUCED)),
            (FindingKind::InducedCollections, percent(thresholds::INDUCED_PAUSES)),
            (FindingKind::GcPressure, percent(thresholds::PAUSES)),
            (FindingKind::GcPressure, number(thresholds::SERVER_PROCESSORS, "processors")),
            (FindingKind::GcPressure, percent(thresholds::GC_SHARE)),
            (FindingKind::GcPressure, number(thresholds::GC_PROCESSORS, "processors")),
            (FindingKind::Exceptions, number(thresholds::EXCEPTIONS, "per second")),
            (FindingKind::FailedRequests, percent(thresholds::FAILED_REQUESTS)),
            (FindingKind::FailedRequests, format!("and {} requests", thresholds::MIN_FAILED_REQUESTS)),
            (FindingKind::NotPrecompiled, percent(thresholds::NOT_PRECOMPILED)),
            (FindingKind::NotPrecompiled, format!("{} at least", thresholds::MIN_NOT_PRECOMPILED)),
            (FindingKind::NotPrecompiled, percent(thresholds::JIT_SHARE)),
            (FindingKind::NotPrecompiled, number(thresholds::JIT_PROCESSORS, "processors")),
            (FindingKind::Profiler, percent(thresholds::PROFILER_SHARE)),
            (FindingKind::Profiler, number(thresholds::PROFILER_PROCESSORS, "processors")),
            (FindingKind::SlowCalls, number(thresholds::SLOW_MILLISECONDS, "ms")),
            (FindingKind::SlowCalls, number(thresholds::SLOW_WAITING, "callers")),
            (FindingKind::SlowCalls, format!("{} calls", thresholds::MIN_SLOW)),
            (FindingKind::SlowCalls, percent(thresholds::SLOW_PART)),
            (FindingKind::SlowRequests, number(thresholds::SLOW_MILLISECONDS, "ms")),
            (FindingKind::SlowRequests, number(thresholds::SLOW_WAITING, "of them")),
            (FindingKind::SlowRequests, percent(thresholds::SLOW_PART)),
            (FindingKind::SlowOutput, number(thresholds::OUTPUT_WAITERS, "threads")),
            (FindingKind::Throttled, number(thresholds::THROTTLED_PROCESSORS, "threads")),
            (FindingKind::BusyNeighbour, number(thresholds::RUN_QUEUE, "threads")),
            (FindingKind::BusyNeighbour, percent(thresholds::WITHOUT_PROCESSOR)),
            (FindingKind::BusyNeighbour, number(thresholds::OTHER_PROCESSORS, "processors")),
            (FindingKind::BusyNeighbour, percent(thresholds::STEAL)),
            (FindingKind::PageFaults, number(thresholds::MAJOR_FAULTS, "per second")),
            (FindingKind::MemoryLimit, percent(thresholds::MEMORY_LIMIT)),
            (FindingKind::ThreadGrowth, number(thresholds::GROWTH_PER_SECOND, "per second")),
            (FindingKind::ThreadGrowth, percent(thresholds::GROWTH)),
            (FindingKind::DescriptorGrowth, percent(thresholds::DESCRIPTOR_LIMIT)),
            (FindingKind::DescriptorGrowth, format!("{} in the time", thresholds::SESSION_DESCRIPTORS)),
            (FindingKind::MemoryGrowth, format!("{} MB", thresholds::MEMORY_GROWTH / 1e6)),
            (FindingKind::MemoryGrowth, percent(thresholds::EVEN_GROWTH)),
            (FindingKind::CollectionGrowth, number(thresholds::COLLECTION_GROWTH, "per second")),
            (FindingKind::HandleGrowth, number(thresholds::HANDLE_GROWTH, "per second")),
            (FindingKind::TimerGrowth, number(thresholds::TIMER_GROWTH, "per second")),
            (FindingKind::ContextGrowth, number(thresholds::GROWTH_PER_SECOND, "per second")),
            (FindingKind::DynamicMethodGrowth, number(thresholds::GROWTH_PER_SECOND, "per second")),
            (FindingKind::HeapFragmentation, percent(thresholds::FREE_SHARE)),
            (FindingKind::HeapFragmentation, percent(thresholds::FREE_OF_RESIDENT)),
            (FindingKind::HeapFragmentation, format!("{} MB", thresholds::MIN_FREE_BYTES / 1_000_000)),
            (FindingKind::HeapFragmentation, format!("{} pinned objects", thresholds::MIN_PINNED)),
        ] {
            assert!(row(kind).contains(&value), "{}: {value}", kind.id());
        }
    }

    /// Options that need not appear in any chapter, with the reason.
    const UNSHOWN: &[(&str, &str)] =
        &[("--help", "clap's, which usage errors name"), ("--version", "clap's, as all programs have it")];

    /// An option with one meaning, and the commands that have it.
    struct Shared {
        long: String,
        short: Option<char>,
        commands: Vec<Vec<String>>,
    }

    /// Returns true if `text` contains `word`, not followed by a letter, digit or hyphen.
    fn has_word(text: &str, word: &str) -> bool {
        let continues = |c: char| c.is_alphanumeric() || c == '-';
        text.match_indices(word).any(|(at, _)| {
            !text[..at].ends_with(continues) && !text[at + word.len()..].starts_with(continues)
        })
    }

    /// Returns true if `text` names a command; a report follows its file, so that both words count.
    fn names_command(text: &str, command: &[String]) -> bool {
        match command {
            [report, name] if report == "report" => has_word(text, report) && has_word(text, name),
            words => has_word(text, &words.join(" ")),
        }
    }

    /// The chapters in parts, each from a heading to the next.
    fn sections() -> Vec<String> {
        let mut sections = vec![String::new()];
        for topic in TOPICS {
            let mut is_code = false;
            for line in topic.text.lines() {
                is_code ^= line.starts_with("```");
                if line.starts_with('#') && !is_code {
                    sections.push(String::new());
                }
                if !line.starts_with("<!--")
                    && let Some(section) = sections.last_mut()
                {
                    section.push_str(line);
                    section.push('\n');
                }
            }
        }
        sections
    }

    /// Adds the visible commands below `command`, and their options by name and help.
    fn gather(
        command: &Command,
        path: &[String],
        commands: &mut Vec<Vec<String>>,
        options: &mut BTreeMap<(String, String), Shared>,
    ) {
        for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long() else { continue };
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let shared = options.entry((long.to_owned(), help)).or_insert_with(|| Shared {
                long: format!("--{long}"),
                short: argument.get_short(),
                commands: Vec::new(),
            });
            shared.commands.push(path.to_vec());
        }
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = [path, &[sub.get_name().to_owned()]].concat();
            gather(sub, &path, commands, options);
            commands.push(path);
        }
    }

    /// Options with the same name but another meaning in another command count as different options.
    #[test]
    fn every_command_and_option_is_in_a_chapter() {
        let mut cli = Cli::command();
        cli.build();
        let (mut commands, mut options) = (Vec::new(), BTreeMap::new());
        gather(&cli, &[], &mut commands, &mut options);
        assert!(commands.len() >= 50 && options.len() >= 150, "{} and {}", commands.len(), options.len());
        let sections = sections();
        let missing =
            commands.iter().filter(|command| !sections.iter().any(|text| names_command(text, command)));
        let missing: Vec<_> = missing.map(|command| command.join(" ")).collect();
        assert!(missing.is_empty(), "no chapter has the commands {missing:#?}");
        let mut missing = Vec::new();
        for option in options.values() {
            let is_shown = |text: &&String| {
                has_word(text, &option.long)
                    || option.short.is_some_and(|short| has_word(text, &format!("-{short}")))
            };
            let is_of = |text: &String| option.commands.iter().any(|command| names_command(text, command));
            let is_exception = UNSHOWN.iter().any(|(long, _)| *long == option.long);
            if !is_exception && !sections.iter().filter(is_shown).any(is_of) {
                let commands: Vec<_> = option.commands.iter().map(|command| command.join(" ")).collect();
                missing.push(format!("{} of {}", option.long, commands.join(", ")));
            }
        }
        assert!(missing.is_empty(), "no chapter has the options {missing:#?}");
    }

    /// The files are symbolic links. A checkout without support for links has text files with the link's
    /// target instead.
    #[test]
    fn included_examples_are_programs() {
        for (mark, program) in EXAMPLES {
            assert!(program.contains("fn main"), "{mark}: no program: {program}");
        }
    }

    #[test]
    fn commands_of_commands_and_topics_are_found() {
        let run = |words: &[&str]| {
            run(&HelpArgs { subject: words.iter().map(|&word| word.into()).collect() }, Cli::command())
        };
        assert_eq!(run(&["report", "topN"]).unwrap(), Exit::Done);
        assert_eq!(run(&["collect"]).unwrap(), Exit::Done);
        for topic in [&["Troubleshooting"][..], &["trouble"], &["attach", "to", "a", "process"]] {
            assert_eq!(run(topic).unwrap(), Exit::Done, "{topic:?}");
        }
        // Two topics begin with this letter.
        assert_eq!(run(&["s"]).unwrap_err().exit, Exit::Usage);
        let unknown = run(&["attach", "now"]).unwrap_err();
        assert_eq!(
            (unknown.exit, &*unknown.message),
            (Exit::Usage, "there is neither a command nor a topic 'attach now'")
        );
    }
}
