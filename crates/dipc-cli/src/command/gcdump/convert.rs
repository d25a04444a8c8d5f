//! `dipc gcdump convert`: a heap as a .gcdump file, a page, or a profile.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use gcdump::page::HeapPage;
use nettrace_export::{Format, NameForm, WriteOptions};

use crate::args::names::NameArgs;
use crate::command::gcdump::args::{self, DependentArgs};
use crate::exit::Outcome;
use crate::inspect::heap::Heap;
use crate::inspect::heap_profile::heap_profile;
use crate::inspect::rewrite::refuse_input;
use crate::render::destination::Destination;
use crate::render::output;
use crate::render::output_file::NameOrigin;

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// The recording, or a .gcdump file; '-' is a recording from standard input
    #[arg(value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Only the heap of this process, in recordings of many
    #[arg(long, value_name = "PID")]
    pid: Option<u64>,
    #[command(flatten)]
    dependent: DependentArgs,
    /// Format of the result
    #[arg(short, long, value_enum, default_value_t)]
    format: HeapFileFormat,
    /// Path of the result; the format's extension is added if missing; '-' is standard output [default: the
    /// input's name with that extension]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    names: NameArgs,
}

/// A format of heaps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum HeapFileFormat {
    /// For PerfView and Visual Studio: the format of dotnet-gcdump
    #[default]
    Gcdump,
    /// A page with treemap, dominator tree, types and paths from roots; opens in any browser, loads nothing
    Html,
    /// For `go tool pprof` and other tools that read its format: inuse_objects and inuse_space by type, below
    /// their dominators
    Pprof,
}

impl HeapFileFormat {
    const fn extension(self) -> &'static str {
        match self {
            Self::Gcdump => "gcdump",
            Self::Html => "html",
            Self::Pprof => "pb.gz",
        }
    }

    /// The path with the format's ending.
    fn named(self, path: &Path) -> PathBuf {
        let last = self.extension().rsplit('.').next().unwrap_or_default();
        if path.as_os_str() == "-" || path.extension().is_some_and(|extension| extension == last) {
            return path.to_owned();
        }
        let mut name = path.as_os_str().to_owned();
        name.push(".");
        name.push(self.extension());
        name.into()
    }
}

pub(crate) fn run(args: &ConvertArgs) -> Outcome {
    let is_input = args.file.as_os_str() == "-";
    let (path, origin) = match &args.output {
        Some(path) => (args.format.named(path), NameOrigin::User),
        None if is_input => ("-".into(), NameOrigin::User),
        None => (args.file.with_extension(args.format.extension()), NameOrigin::Chosen),
    };
    let out = if path.as_os_str() == "-" { None } else { Some(&*path) };
    if let Some(path) = out {
        refuse_input(&[&args.file], path)?;
    }
    if out.is_none() && args.format != HeapFileFormat::Html {
        output::refuse_terminal("a heap")?;
    }
    let heap = Heap::open(&args.file, args.dependent.graph(args.pid))?;
    let title = args.file.file_name().unwrap_or_default().to_string_lossy();
    let (graph, names) = (&heap.graph, args.names.form());
    match args.format {
        HeapFileFormat::Gcdump => args::write(graph, Destination::prepare(out, origin)?)?,
        HeapFileFormat::Html => {
            let page = HeapPage::new(graph, &title).with_full_names(names == NameForm::Full);
            Destination::create(out, origin)?.write_with(|out| page.write(out))?;
        }
        HeapFileFormat::Pprof => {
            let profile = heap_profile(graph, names);
            let options = WriteOptions::new(&title, concat!("dipc ", env!("CARGO_PKG_VERSION")));
            Destination::create(out, origin)?
                .write_with(|out| nettrace_export::write(&profile, Format::Pprof, options, out))?;
        }
    }
    Ok(heap.exit)
}
