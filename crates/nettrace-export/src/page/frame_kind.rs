//! Kinds of frames.

/// The origin of a frame's code. The numbers are those of the page's scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The program's own code and that of its packages.
    Mine = 0,
    /// The class library and other managed code of Microsoft's.
    Framework = 1,
    /// The runtime: its native libraries, and methods that do nothing but run others.
    Runtime = 2,
    /// Other native code, and the kernel's.
    Native = 3,
    /// Not code: types, kinds of time, frames without a name.
    Other = 4,
}

/// Native libraries of the runtime and of its host, without `lib` and ending.
const RUNTIME_LIBRARIES: [&str; 12] = [
    "coreclr",
    "clrjit",
    "clrgc",
    "clrgcexp",
    "clretwrc",
    "coreclrtraceptprovider",
    "hostfxr",
    "hostpolicy",
    "mscordaccore",
    "mscordbi",
    "mscorwks",
    "clr",
];

/// Methods of the class library that do nothing but run others, by the beginnings of their names.
const RUNNERS: [&str; 7] = [
    "System.StubHelpers.",
    "System.Runtime.CompilerServices.CastHelpers",
    "System.Runtime.CompilerServices.InitHelpers",
    "System.Threading.Thread.StartCallback",
    "System.Threading.Thread+StartHelper.",
    "System.RuntimeMethodHandle.InvokeMethod",
    "System.Reflection.MethodBaseInvoker.Interpreted",
];

impl FrameKind {
    /// Returns the kind of a frame by its name: `Module!Namespace.Type.Method(parameters)`.
    pub(super) fn of(name: &str) -> Self {
        let Some((module, method)) = name.split_once('!').filter(|(module, _)| !module.is_empty()) else {
            return Self::Other;
        };
        if is_native(module, method) {
            let library = module.strip_prefix("lib").unwrap_or(module);
            let library = library.split('.').next().unwrap_or(library);
            let is_runtime = RUNTIME_LIBRARIES.contains(&library) || module.starts_with("libSystem.");
            return if is_runtime { Self::Runtime } else { Self::Native };
        }
        if module == "?" {
            return Self::Other;
        }
        if is_core_library(module) && RUNNERS.iter().any(|prefix| method.starts_with(prefix)) {
            return Self::Runtime;
        }
        if is_framework(module) { Self::Framework } else { Self::Mine }
    }
}

fn is_native(module: &str, method: &str) -> bool {
    let ending =
        |text: &str| module.rsplit_once('.').is_some_and(|(_, last)| last.eq_ignore_ascii_case(text));
    module.contains(".so.")
        || ["so", "dylib", "exe", "dll", "sys"].into_iter().any(ending)
        || module.starts_with('[')
        || module == "vmlinux"
        // Managed methods have parameters.
        || !(method.contains('(') || method == "?")
}

fn is_core_library(module: &str) -> bool {
    module.eq_ignore_ascii_case("System.Private.CoreLib") || module == "mscorlib"
}

fn is_framework(module: &str) -> bool {
    let begins =
        |prefix: &str| module.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    begins("System.")
        || begins("Microsoft.")
        || ["System", "mscorlib", "netstandard", "WindowsBase", "PresentationCore", "PresentationFramework"]
            .iter()
            .any(|name| module.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_module() {
        use FrameKind::{Framework, Mine, Native, Other, Runtime};
        for (name, kind) in [
            ("web!Program.Main()", Mine),
            ("Dapper!Dapper.SqlMapper.Query(class System.String)", Mine),
            ("System.Private.CoreLib!System.String.Concat(class System.String)", Framework),
            ("Microsoft.AspNetCore.Routing!Microsoft.AspNetCore.Routing.X.Invoke()", Framework),
            ("System.Private.CoreLib!System.Threading.Thread.StartCallback()", Runtime),
            ("libcoreclr.so!MethodDesc::DoPrestub", Runtime),
            ("libSystem.Native.so!SystemNative_Poll", Runtime),
            ("clrjit.dll!?", Runtime),
            ("libc.so.6!malloc", Native),
            ("vmlinux!exc_page_fault", Native),
            ("record-trace!_ZN4main17h", Native),
            ("web!?", Mine),
            ("?!?", Other),
            ("System.String", Other),
            ("CPU_TIME", Other),
        ] {
            assert_eq!(FrameKind::of(name), kind, "{name}");
        }
    }
}
