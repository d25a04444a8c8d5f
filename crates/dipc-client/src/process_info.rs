use std::ffi::OsString;
use std::path::Path;

use dipc_wire::{ProcessInfo1Reply, ProcessInfo2Reply, ProcessInfo3Reply};
use uuid::Uuid;

/// The answer of a runtime about its process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessInfo {
    /// The process id as the process itself sees it: inside a container it differs from the pid outside.
    pub process_id: u64,
    /// The cookie of this run of the runtime.
    pub runtime_cookie: Uuid,
    /// The program's path and its arguments, separated by spaces. Only the path while the runtime is
    /// suspended and for some 44 ms after it was resumed, until the program begins
    /// ([`Target::info_when_started`](crate::Target::info_when_started)); NativeAOT never returns more.
    pub command_line: String,
    /// `Linux`, `macOS`, `Windows` or `Unknown`.
    pub os: String,
    /// `x86`, `x64`, `arm32`, `arm64` or `Unknown`.
    pub arch: String,
    /// The name of the entry assembly, without `.dll`. Since .NET 6.
    pub managed_entrypoint_assembly: Option<String>,
    /// The product version of the runtime, such as `9.0.1`. Since .NET 6.
    pub clr_version: Option<String>,
    /// The platform that the runtime was built for, such as `linux-x64`. Since .NET 8.
    pub runtime_identifier: Option<String>,
    /// The command that was answered: `ProcessInfo3`, `ProcessInfo2` or `ProcessInfo`.
    pub command: &'static str,
}

impl ProcessInfo {
    pub(crate) fn from_1(reply: ProcessInfo1Reply, command: &'static str) -> Self {
        Self {
            process_id: reply.process_id,
            runtime_cookie: reply.runtime_cookie,
            command_line: reply.command_line,
            os: reply.os,
            arch: reply.arch,
            managed_entrypoint_assembly: None,
            clr_version: None,
            runtime_identifier: None,
            command,
        }
    }

    pub(crate) fn from_2(reply: ProcessInfo2Reply, command: &'static str) -> Self {
        Self {
            process_id: reply.process_id,
            runtime_cookie: reply.runtime_cookie,
            command_line: reply.command_line,
            os: reply.os,
            arch: reply.arch,
            managed_entrypoint_assembly: Some(reply.managed_entrypoint_assembly),
            clr_version: Some(reply.clr_version),
            runtime_identifier: None,
            command,
        }
    }

    pub(crate) fn from_3(reply: ProcessInfo3Reply, command: &'static str) -> Self {
        Self {
            process_id: reply.process_id,
            runtime_cookie: reply.runtime_cookie,
            command_line: reply.command_line,
            os: reply.os,
            arch: reply.arch,
            managed_entrypoint_assembly: Some(reply.managed_entrypoint_assembly),
            clr_version: Some(reply.clr_version),
            // Version 0 of the payload does not have it.
            runtime_identifier: (reply.version >= 1).then_some(reply.runtime_identifier),
            command,
        }
    }
}

/// Returns the name of the assembly that a process was started with, without `.dll`, from the words of its
/// command line: `dotnet [exec] [options] FOLDER/NAME.dll [arguments]`. For runtimes that do not report it.
///
/// ```
/// let words = ["dotnet", "exec", "/app/Shop.dll", "--port", "80"].map(Into::into);
/// assert_eq!(dipc_client::entry_assembly(&words).as_deref(), Some("Shop"));
/// assert_eq!(dipc_client::entry_assembly(&["./shop".into()]), None);
/// ```
pub fn entry_assembly(words: &[OsString]) -> Option<String> {
    let (host, words) = words.split_first()?;
    if Path::new(host).file_name()? != "dotnet" {
        return None;
    }
    let assembly = words.iter().map(Path::new).find(|word| word.extension().is_some_and(|it| it == "dll"))?;
    Some(assembly.file_stem()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_assembly_is_the_first_that_dotnet_is_given() {
        let assembly = |text: &str| {
            let words: Vec<_> = text.split(' ').map(OsString::from).collect();
            entry_assembly(&words)
        };
        for text in
            ["dotnet My.App.dll", "/usr/bin/dotnet exec --depsfile x.deps.json /srv/My.App.dll other.dll"]
        {
            assert_eq!(assembly(text).as_deref(), Some("My.App"), "{text}");
        }
        for text in ["dotnet build", "/srv/My.App My.App.dll", "dotnet", ""] {
            assert_eq!(assembly(text), None, "{text}");
        }
    }
}
