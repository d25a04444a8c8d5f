//! `dipc dump analyze CORE -i`: views and commands, one a line.

mod input;
mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::CommandFactory as _;

use self::input::{Input, Line};
use self::words::split;
use super::{AnalyzeArgs, ViewLine, dotnet_dump, overview, parse, show, table_or_json, with_shortfall};
use crate::args::heap_view::MemoryFormat;
use crate::exit::{Exit, Failure, Outcome};
use crate::inspect::core_reads::CoreReads;
use crate::render::{messages, output, width};

/// Words of the prompt itself, with what they do.
const OWN: [(&str, &str); 3] = [
    ("overview", "Show one screen about the core dump, as dump analyze CORE without a view"),
    ("help", "List the views; with a view, show its options"),
    ("exit", "End, as Ctrl-D does"),
];

/// Shows the view of each line until the input ends. The exit code joins those of all lines of a script; a
/// person has seen each.
pub(super) fn run(args: &AnalyzeArgs, reads: &CoreReads<'_>, cancelled: &Arc<AtomicBool>) -> Outcome {
    let mut input = Input::open(words())?;
    if input.is_edited() {
        output::print("'help' lists the views, Tab completes them, Ctrl-C cancels one, Ctrl-D ends\n")?;
    }
    let mut exit = Exit::Done;
    loop {
        let line = match input.next()? {
            Line::Words(line) => line,
            Line::Cancelled => continue,
            Line::End => break,
        };
        let shown = answer(args, reads, &line);
        if cancelled.swap(false, Ordering::Relaxed) {
            // Parts of what was read are missing.
            reads.forget();
            messages::note("cancelled");
            continue;
        }
        match shown {
            Ok(Some(code)) => exit = exit.join(code),
            Ok(None) => break,
            // The reader of the output is gone.
            Err(failure) if failure.exit == Exit::Done => return Err(failure),
            Err(failure) => {
                exit = exit.join(failure.exit);
                args.format.print_failure(&failure);
                if args.format != MemoryFormat::Json {
                    messages::failure(&failure);
                }
            }
        }
    }
    Ok(if input.is_edited() { Exit::Done } else { exit })
}

/// Shows what a line asks for; `None` if it asks to end.
fn answer(args: &AnalyzeArgs, reads: &CoreReads<'_>, line: &str) -> Result<Option<Exit>, Failure> {
    let words = split(line)?;
    let Some(first) = words.first() else { return Ok(Some(Exit::Done)) };
    let asks_help = |word: &String| matches!(&**word, "--help" | "-h");
    match &*first.to_lowercase() {
        "exit" | "quit" | "q" => return Ok(None),
        "help" | "?" => help(words.get(1))?,
        _ if words.iter().any(asks_help) => help(Some(first))?,
        "overview" => {
            let shown = overview::show(
                reads.source,
                args.written(),
                &args.symbols.symbol_path,
                table_or_json(args.format)?,
            )?;
            return Ok(Some(shown));
        }
        _ => {
            let line = parse(&words)?;
            let format = line.format.unwrap_or(args.format);
            let shown = show(args, &line.view, format, reads);
            return shown.map(Some).map_err(|failure| with_shortfall(failure, reads.source));
        }
    }
    Ok(Some(Exit::Done))
}

/// Prints the views, or the options of one of them.
fn help(view: Option<&String>) -> Result<(), Failure> {
    let mut views = ViewLine::command();
    if let Some(name) = view {
        // Another name of a view, as in dotnet-dump.
        let names = dotnet_dump::translate(std::slice::from_ref(name))?;
        let name = names.first().map_or(name, |name| name);
        let view = views.find_subcommand_mut(name).ok_or_else(|| {
            Failure::usage(format_args!("help: no view is called '{name}'")).with_help("help lists the views")
        })?;
        return output::print(view.render_help());
    }
    let views = views.get_subcommands().filter(|view| !view.is_hide_set());
    let views = views.map(|view| (view.get_name().to_owned(), view.get_about().map(ToString::to_string)));
    let own = OWN.map(|(name, about)| (name.to_owned(), Some(about.to_owned())));
    let mut text = String::new();
    for (name, about) in views.chain(own) {
        let line = format!("{name:<12} {}\n", about.unwrap_or_default());
        text.push_str(&width::wrapped(&line, width::of_output()));
    }
    text.push_str("Commands of dotnet-dump work, too: clrstack -all, dumpheap -stat, gcroot ADDRESS\n");
    output::print(text)
}

/// The words that can begin a line, each with the options that can follow.
fn words() -> Vec<(String, Vec<String>)> {
    let views = ViewLine::command();
    let options = |view: &clap::Command| {
        let longs =
            view.get_arguments().filter(|option| !option.is_hide_set()).filter_map(clap::Arg::get_long);
        longs.chain(["format", "help"]).map(|long| format!("--{long}")).collect()
    };
    let own = OWN.map(|(name, _)| (name.to_owned(), Vec::new()));
    let mut words: Vec<(String, Vec<String>)> =
        views.get_subcommands().map(|view| (view.get_name().to_owned(), options(view))).chain(own).collect();
    words.sort();
    words
}
