//! The tasks, a module each.

mod bench;
mod book;
mod browser;
mod checksum;
mod commands;
mod cost;
mod cross;
#[cfg(test)]
mod error_causes;
mod explore;
mod fleet;
mod fuzz;
mod golden;
mod licences;
mod measure;
mod miri;
#[cfg(test)]
mod module_circles;
mod msrv;
#[cfg(test)]
mod open_types;
#[cfg(test)]
mod opened_files;
mod packages;
#[cfg(test)]
mod prose_width;
mod release;
mod runtimes;
mod sanitize;
mod schemas;
mod setup;
mod steps;
mod test;
#[cfg(test)]
mod testdata;
#[cfg(test)]
mod thin_program;
mod toolchain;
mod vm;
mod workspace;

use anyhow::Result;

use crate::arguments::{Task, TestOptions};

pub(crate) fn run(task: Task) -> Result<()> {
    match task {
        Task::Test(options) => test::run(&options),
        Task::Ci => test::run(&TestOptions { quick: false, require_runtimes: true, require_all: true }),
        Task::Setup(options) => setup::run(&options),
        Task::Runtimes(options) => runtimes::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::Explore(options) => explore::run(&options),
        Task::Golden(options) => golden::run(&options),
        Task::Cost(options) => cost::run(&options),
        Task::Cross(options) => cross::run(&options),
        Task::Miri(options) => miri::run(&options),
        Task::Sanitize(options) => sanitize::run(&options),
        Task::Msrv => msrv::run(),
        Task::Commands(options) => commands::run(&options),
        Task::Fleet(options) => fleet::run(&options),
        Task::Dumps(options) => measure::run("dumps", false, &options.versions),
        Task::Sampling(options) => measure::run("sampling", options.release, options.arguments()),
        Task::Planted(options) => {
            measure::run("planted", true, [options.runs, options.pairs].map(|number| number.to_string()))
        }
        Task::Schemas(options) => schemas::run(&options),
        Task::Release(options) => release::run(&options),
        Task::Vm(options) => vm::run(&options),
        Task::Book => book::run(),
        Task::Browser => browser::run(),
        Task::Bench(options) => bench::run(&options),
    }
}
