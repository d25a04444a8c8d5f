//! An agent that takes the stacks, the heap and a recording of some seconds of a process, and shows its
//! progress: `cargo run --example artifacts -- PID SECONDS FOLDER`.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use dipc_client::{Providers, SessionConfig, Target};
use dipc_collect::heap::{self, HeapRequest};
use dipc_collect::stacks::{self, CodeStacks, StacksRequest};
use dipc_collect::stream::{self, Limits, Piece};
use dipc_collect::{ModuleTypes, Note, Observer, StopSignal};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [pid, seconds, folder] = arguments.as_slice() else {
        return Err("usage: artifacts PID SECONDS FOLDER".into());
    };
    let target = Target::from_pid(pid.parse()?)?;
    collect(&target, Duration::from_secs(seconds.parse()?), Path::new(folder), &mut io::stdout())
}

/// Remarks in words of the agent.
struct Notes<'o>(&'o mut dyn Write);

impl Observer for Notes<'_> {
    fn note(&mut self, note: Note) {
        let _ = writeln!(self.0, "note: {note:?}");
    }
}

pub(crate) fn collect(
    target: &Target,
    time: Duration,
    folder: &Path,
    out: &mut dyn Write,
) -> Result<(), Box<dyn std::error::Error>> {
    let limits = Limits::new(StopSignal::new()).with_pid(target.pid());
    let stacks =
        stacks::collect(target, &StacksRequest::new(1), &limits, &mut Notes(out), CodeStacks::default)?;
    writeln!(out, "stacks: {} threads", stacks.stacks.unwrap_or_default().resolve().0.count())?;

    let mut modules = ModuleTypes::of(target.pid());
    let heap = heap::collect(target, &HeapRequest::new(1024), &mut modules, &limits, &mut Notes(out))?;
    let graph = heap.graph?;
    gcdump::file::write(&graph, File::create(folder.join("heap.gcdump"))?)?;
    writeln!(out, "heap: {} objects", graph.object_count())?;

    let mut file = File::create(folder.join("profile.nettrace"))?;
    let mut bytes = 0;
    let config = SessionConfig::new(Providers::parse(
        "Microsoft-DotNETCore-SampleProfiler,Microsoft-Windows-DotNETRuntime:0x10:4",
    )?);
    let session = target.start_session(&config)?;
    let end = stream::read(session, &limits.with_duration(Some(time)), |piece| {
        match piece {
            Piece::Bytes(piece) => {
                file.write_all(piece)?;
                bytes += piece.len();
            }
            Piece::Pause => write!(out, "\rprofile: {bytes} bytes")?,
        }
        Ok::<_, io::Error>(false)
    })?;
    writeln!(out, "\rprofile: {bytes} bytes in {:.1?}: {:?}", end.elapsed, end.ending)?;
    Ok(())
}
