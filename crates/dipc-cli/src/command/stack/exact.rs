//! Current stacks of a process, from its memory.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::args::format::Format;
use crate::command::dump::stacks::{self, Shown};
use crate::command::dump::variables::{self, Chosen};
use crate::command::stack::{StackArgs, StackFormat};
use crate::exit::{Exit, Outcome};
use crate::inspect::core_dump::{Analysis, stacks_with};
use crate::inspect::core_source::check_described;
use crate::inspect::pause::Pause;

/// Shows the stacks once.
pub(super) fn show(args: &StackArgs) -> Outcome {
    let source = args.process.memory()?;
    // The files of the process and its runtime do not change: it is stopped only for its threads.
    let runtime = source.runtime()?;
    let has_variables = args.arguments || args.locals;
    if has_variables {
        check_described(&runtime, "the variables of frames")?;
    }
    let pause = args.stop.map(|limit: Duration| Pause::begin(&source, limit)).transpose()?;
    let registers = pause.as_ref().map_or_else(BTreeMap::new, Pause::registers);
    let dump = source.dump(&runtime);
    let threads = stacks_with(&source, &dump, &registers)?;
    let shown = Shown::with_native(args.native);
    let format = if args.format == StackFormat::Json { Format::Json } else { Format::Table };
    if has_variables {
        let chosen = Chosen { arguments: args.arguments, locals: args.locals };
        // Values are read while the process is stopped.
        let analysis = Analysis::with_stacks(&source, dump, threads, &args.symbol_path);
        let report = variables::read(&analysis, shown, chosen, &registers, format);
        if let Some(pause) = pause {
            pause.end();
        }
        report.print()?;
        return Ok(Exit::Done);
    }
    if let Some(pause) = pause {
        pause.end();
    }
    let analysis = Analysis::with_stacks(&source, dump, threads, &args.symbol_path);
    stacks::print(&analysis, shown, format)?;
    Ok(Exit::Done)
}
