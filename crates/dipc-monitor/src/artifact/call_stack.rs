//! Call stacks of all threads and of exceptions, from sessions.

pub(crate) mod exceptions;
pub(crate) mod stacks;

use clr_events::code::Code;
use dipc_collect::exceptions::THROWING_TYPE;
use serde::Serialize;

/// A stack, as dotnet-monitor describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CallStack {
    thread_id: u64,
    /// Events do not have it.
    thread_name: Option<String>,
    /// Innermost first.
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    method_name: String,
    method_token: u32,
    parameter_types: Vec<String>,
    type_name: String,
    module_name: String,
    /// True if the frame is left out of text output: it is known to have `StackTraceHiddenAttribute`.
    hidden: bool,
}

impl CallStack {
    fn of<'c>(thread_id: u64, frames: impl IntoIterator<Item = (u64, Code<'c>)>) -> Self {
        let frames = frames.into_iter().map(|(address, code)| Frame::of(code, address));
        Self { thread_id, thread_name: None, frames: frames.collect() }
    }
}

impl Frame {
    fn of(code: Code<'_>, address: u64) -> Self {
        match code {
            Code::Method(method) => Self {
                method_name: method.name().to_owned(),
                method_token: method.token(),
                parameter_types: parameters(method.parameters()),
                type_name: method.namespace().to_owned(),
                module_name: method.module().map(|module| file_name(module.path())).unwrap_or_default(),
                hidden: is_hidden(method.namespace(), method.name()),
            },
            // As dotnet-monitor shows frames of native code.
            _ => Self {
                method_name: format!("0x{address:x}"),
                method_token: 0,
                parameter_types: Vec::new(),
                type_name: "NativeFrame".to_owned(),
                module_name: "NativeFrame".to_owned(),
                hidden: false,
            },
        }
    }

    /// `Namespace.Type.Method`.
    fn qualified(&self) -> String {
        if self.type_name.is_empty() {
            self.method_name.clone()
        } else {
            format!("{}.{}", self.type_name, self.method_name)
        }
    }
}

/// Returns true if a method of the base library has `StackTraceHiddenAttribute`, which events do not have.
///
/// # Source
/// `ExceptionHandling.cs`, `ThrowHelper.cs`, `ExceptionDispatchInfo.cs` and `TaskAwaiter.cs` of
/// dotnet/runtime.
fn is_hidden(type_name: &str, method_name: &str) -> bool {
    match type_name {
        THROWING_TYPE | "System.ThrowHelper" => true,
        "System.Runtime.ExceptionServices.ExceptionDispatchInfo" => method_name == "Throw",
        "System.Runtime.CompilerServices.TaskAwaiter" => matches!(
            method_name,
            "ValidateEnd" | "HandleNonSuccessAndDebuggerNotification" | "ThrowForNonSuccess"
        ),
        _ => false,
    }
}

fn file_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}

/// The types in a list of parameters; commas within brackets do not separate them.
fn parameters(list: &str) -> Vec<String> {
    let list = list.trim().trim_start_matches('(').trim_end_matches(')');
    let (mut types, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (place, character) in list.char_indices() {
        match character {
            '<' | '[' => depth = depth.saturating_add(1),
            '>' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                types.push(list.get(start..place).unwrap_or_default());
                start = place + 1;
            }
            _ => {}
        }
    }
    types.push(list.get(start..).unwrap_or_default());
    types.into_iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_separated_outside_of_brackets() {
        let rows: [(&str, &[&str]); 5] = [
            ("", &[]),
            ("()", &[]),
            ("(int32,class System.String)", &["int32", "class System.String"]),
            ("class D`2<int32,!0>,bool", &["class D`2<int32,!0>", "bool"]),
            ("int32[0...,0...],int8", &["int32[0...,0...]", "int8"]),
        ];
        for (list, expected) in rows {
            assert_eq!(parameters(list), expected, "{list}");
        }
    }
}
