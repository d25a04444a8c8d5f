//! `dipc trace`: records the events of a .NET process.

use std::path::PathBuf;
use std::thread;

use dipc_client::{Collect, Error, Rundown, Session, Target};
use jiff::Zoned;

use crate::args::TraceArgs;
use crate::command::convert::{self, ConvertFormat};
use crate::exit::{Exit, Failure, Outcome};
use crate::interrupt::Interrupts;
use crate::recorder::{self, Limits};
use crate::report;
use crate::selection::Selection;
use crate::sink::Sink;
use crate::target::Chosen;

pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let selection = Selection::new(&args.selection)?;
    let chosen = Chosen::new(&args.target, args.timeout)?;
    let path = args.output.clone().unwrap_or_else(|| default_path(&chosen));
    let format = args.format.filter(|format| *format != ConvertFormat::Nettrace);
    if format.is_some() && path.as_os_str() == "-" {
        return Err(Failure::usage("--format needs a recording in a file: name one with -o"));
    }
    let mut sink = Sink::open(&path)?;
    selection.announce();
    let limits = Limits {
        address: chosen.target.address().clone(),
        // dotnet-trace takes a time of nothing as no limit.
        duration: args.duration.filter(|duration| !duration.is_zero()),
        silence: args.timeout,
        interrupts: Interrupts::watch()?,
    };
    let collect = Collect {
        buffer_mb: args.buffersize,
        rundown: selection.rundown(args.rundown),
        ..Collect::new(selection.configs())
    };
    let session = match start(&chosen.target, collect) {
        Ok(session) => session,
        Err(error) => {
            sink.discard();
            return Err(refused(error));
        }
    };
    sink.begin()?;
    if args.resume_runtime {
        resume(&chosen.target);
    }
    announce(&chosen, &sink, &session);

    let recorded = recorder::record(session, &mut sink, &limits)?;
    report::note(recorded.summary(&sink));
    let exit = recorded.verdict(args.fail_on_loss)?;
    let converted = format.map_or(Ok(Exit::Done), |format| convert::after_trace(&path, format))?;
    Ok(if exit == Exit::Done { converted } else { exit })
}

/// Starts the session. A runtime that cannot choose the keywords of its rundown is asked for none: a profile that needs only
/// few of them does not want all.
fn start(target: &Target, collect: Collect) -> Result<Session, Error> {
    match target.collect(&collect) {
        Err(Error::NotExpressible { .. }) if matches!(collect.rundown, Rundown::Keyword(_)) => {
            report::note("The runtime cannot choose the keywords of its rundown: recording without rundown.");
            target.collect(&Collect { rundown: Rundown::Off, ..collect })
        }
        outcome => outcome,
    }
}

fn refused(error: Error) -> Failure {
    let is_refusal = matches!(error, Error::Refused { .. });
    let failure = Failure::from(error);
    if is_refusal {
        return failure
            .with_help("runtimes refuse more than 64 sessions at once, and arguments that they cannot use");
    }
    failure
}

/// Lets a runtime go that waits at its start for somebody to attach. The stream must be read meanwhile, and one that runs
/// already, or is too old to wait, loses nothing if this fails.
fn resume(target: &Target) {
    let target = target.clone();
    thread::spawn(move || {
        if let Err(error) = target.resume() {
            report::detail(error);
        }
    });
}

fn announce(chosen: &Chosen, sink: &Sink, session: &Session) {
    if let Some(endpoint) = &chosen.endpoint {
        report::note(format_args!("Process        : {} ({})", endpoint.name, endpoint.pid));
    }
    report::note(format_args!("Output File    : {sink}"));
    report::detail(format_args!(
        "Session        : {} by {} at {}",
        session.id(),
        session.command(),
        chosen.target.address()
    ));
}

/// `<appname>_<yyyyMMdd>_<HHmmss>.nettrace` in local time, as dotnet-trace names its files.
fn default_path(chosen: &Chosen) -> PathBuf {
    let name = chosen.endpoint.as_ref().map_or("trace", |endpoint| endpoint.name.as_str());
    file_name(name, &Zoned::now())
}

fn file_name(process: &str, now: &Zoned) -> PathBuf {
    // A process may call itself anything.
    let name: String = process.chars().map(|c| if c.is_control() || c == '/' { '_' } else { c }).collect();
    format!("{name}_{}.nettrace", now.strftime("%Y%m%d_%H%M%S")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_dotnet_trace_names_them() {
        let now = jiff::civil::date(2021, 3, 15).at(11, 15, 14, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(file_name("myapp", &now), PathBuf::from("myapp_20210315_111514.nettrace"));
        assert_eq!(file_name("../a\n", &now), PathBuf::from(".._a__20210315_111514.nettrace"));
    }
}
