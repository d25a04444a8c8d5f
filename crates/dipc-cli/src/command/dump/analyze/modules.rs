//! `dipc dump analyze CORE modules`.

use std::sync::Arc;

use clr_dump::Module;
use serde::Serialize;

use crate::args::format::Format;
use crate::exit::Failure;
use crate::inspect::core_dump::Analysis;
use crate::render::table::{Align, Columns};
use crate::render::{output, units};

pub(super) fn print(analysis: &Analysis<'_>, format: Format) -> Result<(), Failure> {
    // The types of objects lead to modules without code of their own.
    let _ = analysis.dump.heap().statistics();
    let modules = analysis.dump.types().modules();
    match format {
        Format::Json => output::print_json(&Report {
            runtime: analysis.dump.runtime().version(),
            modules: modules.iter().map(Row::new).collect(),
        }),
        Format::Table => output::print(table(&modules)),
    }
}

fn table(modules: &[Arc<Module>]) -> String {
    use Align::{Left, Right};
    let mut columns = Columns::new([("BASE", Right), ("SIZE", Right), ("NAMES", Left), ("MODULE", Left)]);
    for module in modules {
        columns.row([
            if module.base.is_null() { "-".to_owned() } else { format!("{:#x}", module.base) },
            units::bytes(module.size.into()),
            if module.has_metadata() { "yes" } else { "no" }.to_owned(),
            module.path.clone(),
        ]);
    }
    columns.fitted(&[])
}

#[derive(Debug, Serialize)]
struct Report<'r> {
    runtime: &'r str,
    modules: Vec<Row<'r>>,
}

#[derive(Debug, Serialize)]
struct Row<'r> {
    path: &'r str,
    base: Option<String>,
    size: u32,
    /// True if the dump has the names of its types and methods.
    has_names: bool,
}

impl<'r> Row<'r> {
    fn new(module: &'r Arc<Module>) -> Self {
        Self {
            path: &module.path,
            base: Some(module.base).filter(|base| !base.is_null()).map(|base| format!("{base:#x}")),
            size: module.size,
            has_names: module.has_metadata(),
        }
    }
}
