//! `dipc gcdump collect`: the heap of a process in a file.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueHint};
use jiff::Zoned;

use crate::args::source::SOURCES;
use crate::command::gcdump::args::{self, DumpArgs, DumpedProcess};
use crate::exit::{Failure, Outcome};
use crate::render::destination::Destination;
use crate::render::output_file::NameOrigin;
use crate::render::{messages, units};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("source").required(true).args(SOURCES))]
pub(crate) struct CollectArgs {
    #[command(flatten)]
    dump: DumpArgs,
    /// Path of the file; .gcdump is added if missing; '-' is standard output [default:
    /// yyyyMMdd_HHmmss_PID.gcdump]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &CollectArgs) -> Outcome {
    let mut process = DumpedProcess::open(&args.dump)?;
    let out = destination(args, process.source.pid)?;
    let heap = match process.dump() {
        Ok(heap) => heap,
        Err(failure) => {
            out.discard();
            return Err(failure);
        }
    };
    messages::note(format_args!(
        "Heap           : {} objects, {}, {} references",
        units::count(heap.graph.object_count().into()),
        units::bytes(heap.graph.total_bytes()),
        units::count(heap.graph.reference_count().into()),
    ));
    process.interrupts.while_computing(|| args::write(&heap.graph, out))?;
    process.end(heap.exit)
}

/// The file that the user named, which keeps its content until a heap arrives, or else a file with a new
/// name.
fn destination(args: &CollectArgs, pid: Option<u32>) -> Result<Destination, Failure> {
    match &args.output {
        Some(path) if path.as_os_str() == "-" => {
            crate::render::output::refuse_terminal("a heap")?;
            Destination::prepare(None, NameOrigin::User)
        }
        Some(path) => Destination::prepare(Some(&args::with_extension(path)), NameOrigin::User),
        None => Destination::prepare(Some(&file_name(pid, &Zoned::now())), NameOrigin::Chosen),
    }
}

/// `yyyyMMdd_HHmmss_PID.gcdump` in local time, as dotnet-gcdump names its files.
fn file_name(pid: Option<u32>, now: &Zoned) -> PathBuf {
    let pid = pid.map(|pid| format!("_{pid}")).unwrap_or_default();
    format!("{}{pid}.gcdump", now.strftime("%Y%m%d_%H%M%S")).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn files_are_named_as_dotnet_gcdump_names_them() {
        let now = jiff::civil::date(2021, 3, 15).at(11, 15, 14, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        assert_eq!(file_name(Some(7), &now), Path::new("20210315_111514_7.gcdump"));
        for (path, expected) in [
            ("a", "a.gcdump"),
            ("a.gcdump", "a.gcdump"),
            ("a.b", "a.b.gcdump"),
            ("a.GCDUMP", "a.GCDUMP.gcdump"),
            ("-", "-"),
        ] {
            assert_eq!(args::with_extension(Path::new(path)), Path::new(expected));
        }
    }
}
