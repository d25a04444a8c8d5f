//! Prints the methods of a running process, one per line: `cargo run --example methods -- PID`.
//!
//! The runtime lists them at the end of a session: a session that requests nothing else is stopped at once.

use std::collections::BTreeSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use clr_events::ClrEvent;
use dipc_client::{Deadline, Target};
use nettrace::Decoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut std::io::stdout())
}

pub(crate) fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn std::error::Error>> {
    let [pid] = arguments else { return Err("usage: methods PID".into()) };
    let target = Target::from_pid(pid.parse()?)?;
    let mut decoder = Decoder::new();
    let mut methods = BTreeSet::new();
    let mut failure = None;
    let deadline = Deadline::after(Duration::from_secs(30));
    let is_whole = target.list_methods()?.read(
        deadline,
        || false,
        |bytes| {
            decoder.feed(bytes);
            match add_methods(&mut decoder, &mut methods) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        },
    )?;
    if let Some(error) = failure {
        return Err(error);
    }
    decoder.end_of_input();
    add_methods(&mut decoder, &mut methods)?;
    for method in &methods {
        writeln!(out, "{method}")?;
    }
    writeln!(out, "{} methods{}", methods.len(), if is_whole { "" } else { ", the list is cut" })?;
    Ok(())
}

fn add_methods(
    decoder: &mut Decoder,
    methods: &mut BTreeSet<String>,
) -> Result<(), Box<dyn std::error::Error>> {
    while let Some(event) = decoder.next()? {
        if let Some(ClrEvent::MethodDcStopVerbose(method)) = ClrEvent::of(&event)? {
            methods.insert(format!("{}.{}", method.method_namespace, method.method_name));
        }
    }
    Ok(())
}
