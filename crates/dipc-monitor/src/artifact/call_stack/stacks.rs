//! The stacks of all threads.

use std::collections::HashMap;
use std::fmt::Write as _;

use dipc_collect::StopSignal;
use dipc_collect::stacks::{self, CodeStacks, StacksRequest};
use dipc_collect::stream::Limits;
use serde::Serialize;

use super::CallStack;
use crate::artifact::stream::require_end;
use crate::artifact::{ArtifactError, ArtifactSink, begin, require_sampler, write};
use crate::process::Watched;

/// The samples of each thread; the last one is its stack.
const SAMPLES: u64 = 1;

/// The form of stacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StackFormat {
    /// A JSON object.
    #[default]
    Json,
    /// Text for people.
    PlainText,
    /// A profile of speedscope.
    Speedscope,
}

impl StackFormat {
    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::PlainText => "text/plain; charset=utf-8",
            Self::Speedscope => "application/speedscope+json",
        }
    }

    /// The ending of file names.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Json => "stacks.json",
            Self::PlainText => "stacks.txt",
            Self::Speedscope => "stacks.speedscope.json",
        }
    }
}

pub(in crate::artifact) fn collect(
    format: StackFormat,
    process: &Watched,
    stop: &StopSignal,
    sink: &mut dyn ArtifactSink,
) -> Result<(), ArtifactError> {
    require_sampler(process)?;
    let limits = Limits::new(stop.clone()).with_pid(process.target().pid());
    let request = StacksRequest::new(SAMPLES);
    let collected = stacks::collect(process.target(), &request, &limits, &mut (), CodeStacks::default)?;
    require_end(collected.end)?;
    let mut stacks = collected.stacks.unwrap_or_default();
    let (threads, symbolizer) = stacks.resolve();
    let stacks = threads.map(|stack| CallStack::of(stack.thread(), stack.frames(symbolizer)));
    let stacks: Vec<_> = stacks.collect();
    begin(sink)?;
    write(sink, &encode(&stacks, format))
}

#[derive(Serialize)]
struct CallStackResult<'s> {
    stacks: &'s [CallStack],
}

fn encode(stacks: &[CallStack], format: StackFormat) -> Vec<u8> {
    match format {
        // Texts and numbers can be written.
        StackFormat::Json => serde_json::to_vec(&CallStackResult { stacks }).unwrap_or_default(),
        StackFormat::PlainText => text(stacks).into_bytes(),
        StackFormat::Speedscope => speedscope(stacks),
    }
}

fn text(stacks: &[CallStack]) -> String {
    let mut text = String::new();
    for stack in stacks {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Thread: (0x{:X})", stack.thread_id);
        for frame in stack.frames.iter().filter(|frame| !frame.hidden) {
            let _ = writeln!(text, "  {}!{}", frame.module_name, frame.qualified());
        }
        text.push('\n');
    }
    text
}

/// A profile for each thread, in which its stack is one sample.
fn speedscope(stacks: &[CallStack]) -> Vec<u8> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut names: Vec<serde_json::Value> = Vec::new();
    let mut profiles = Vec::new();
    for stack in stacks {
        let mut sample = Vec::new();
        // Outermost first.
        for frame in stack.frames.iter().rev() {
            let name = format!("{}!{}", frame.module_name, frame.qualified());
            let number = *numbers.entry(name.clone()).or_insert_with(|| {
                names.push(serde_json::json!({ "name": name }));
                names.len() - 1
            });
            sample.push(number);
        }
        profiles.push(serde_json::json!({
            "type": "sampled",
            "name": format!("Thread (0x{:X})", stack.thread_id),
            "unit": "none",
            "startValue": 0,
            "endValue": 1,
            "samples": [sample],
            "weights": [1],
        }));
    }
    let file = serde_json::json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": "dipc",
        "activeProfileIndex": 0,
        "shared": { "frames": names },
        "profiles": profiles,
    });
    serde_json::to_vec(&file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    #[test]
    fn formats_match_dotnet_monitor() {
        let frame = |method: &str| Frame {
            method_name: method.to_owned(),
            method_token: 7,
            parameter_types: vec!["int32".to_owned()],
            type_name: "Shop.Program".to_owned(),
            module_name: "shop.dll".to_owned(),
            hidden: false,
        };
        let stack =
            CallStack { thread_id: 0x68c0, thread_name: None, frames: vec![frame("Wait"), frame("Main")] };
        let stacks = [stack];
        assert_eq!(
            text(&stacks),
            "Thread: (0x68C0)\n  shop.dll!Shop.Program.Wait\n  shop.dll!Shop.Program.Main\n\n"
        );
        let json: serde_json::Value = serde_json::from_slice(&encode(&stacks, StackFormat::Json)).unwrap();
        let first = &json["stacks"][0]["frames"][0];
        assert_eq!((&first["methodName"], &first["typeName"]), (&"Wait".into(), &"Shop.Program".into()));
        let profile: serde_json::Value =
            serde_json::from_slice(&encode(&stacks, StackFormat::Speedscope)).unwrap();
        assert_eq!(profile["profiles"][0]["samples"][0], serde_json::json!([0, 1]));
        assert_eq!(profile["shared"]["frames"][0]["name"], "shop.dll!Shop.Program.Main");
    }
}
