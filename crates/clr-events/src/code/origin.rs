//! Origins of code.

use crate::code::module::file_name;
use crate::code::native::{DOUBLE_MAPPED, Symbol};
use crate::code::symbolizer::{Code, Unresolved, UnresolvedReason};

/// The part of a process that code belongs to.
///
/// Native code belongs to the file that is mapped at its address, whether the address has a symbol or not.
///
/// ```
/// use clr_events::code::CodeOrigin;
///
/// assert_eq!(CodeOrigin::of_file("/usr/share/dotnet/libclrjit.so"), CodeOrigin::Jit);
/// assert_eq!(CodeOrigin::of_file("libcoreclr.so"), CodeOrigin::Runtime);
/// assert_eq!(CodeOrigin::of_file("/usr/lib/libssl.so.3").name(), "native");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CodeOrigin {
    /// A .NET method.
    Managed,
    /// The garbage collector: its own library, or its functions in another one.
    Gc,
    /// The JIT compiler.
    Jit,
    /// Other native libraries and stubs of the runtime, and its host.
    Runtime,
    /// Other native code.
    Native,
    /// The kernel.
    Kernel,
    /// An address outside of known methods and files.
    Unknown,
}

/// Native libraries of the runtime and of its host, without `lib` and ending.
const RUNTIME_LIBRARIES: [&str; 9] = [
    "coreclr",
    "clretwrc",
    "coreclrtraceptprovider",
    "hostfxr",
    "hostpolicy",
    "mscordaccore",
    "mscordbi",
    "mscorwks",
    "clr",
];

impl CodeOrigin {
    /// Returns true if it is native code of the runtime itself.
    pub const fn is_native_runtime(self) -> bool {
        matches!(self, Self::Gc | Self::Jit | Self::Runtime)
    }

    /// Returns the origin of native code by the name or path of its file, such as `libcoreclr.so`.
    pub fn of_file(path: &str) -> Self {
        let name = file_name(path);
        let library = name.strip_prefix("lib").unwrap_or(name);
        let (stem, ending) = library.split_once('.').unwrap_or((library, ""));
        let is_kernel_module = || {
            let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
            ending.eq_ignore_ascii_case("ko") || ending.eq_ignore_ascii_case("sys")
        };
        if name == "vmlinux" || name == "ntoskrnl" || name.starts_with("[kernel") || is_kernel_module() {
            Self::Kernel
        } else if stem.starts_with("clrjit") {
            Self::Jit
        } else if matches!(stem, "clrgc" | "clrgcexp") {
            Self::Gc
        } else if RUNTIME_LIBRARIES.contains(&stem) || stem == "System" && ending.ends_with("so") {
            // Native halves of the class library: libSystem.Native.so, and System.Native.so of 3.1.
            Self::Runtime
        } else if path.is_empty() {
            Self::Unknown
        } else {
            Self::Native
        }
    }

    fn of_symbol(symbol: &Symbol<'_>) -> Self {
        if symbol.managed().is_some() {
            return Self::Managed;
        }
        Self::of_native(symbol.file(), symbol.name())
    }

    /// Returns the origin of native code from its file and symbol, mangled or not.
    pub fn of_native(path: &str, symbol: &str) -> Self {
        match Self::of_file(path) {
            // In libcoreclr, and in programs that were compiled ahead of time.
            Self::Runtime | Self::Native if is_of_gc(symbol) => Self::Gc,
            origin => origin,
        }
    }

    fn of_unresolved(unresolved: &Unresolved<'_>) -> Self {
        match unresolved.file {
            file if !file.starts_with(DOUBLE_MAPPED) => Self::of_file(file),
            _ if unresolved.reason == UnresolvedReason::NoMethod => Self::Runtime,
            _ => Self::Unknown,
        }
    }

    /// Returns its name: `managed`, `gc`, `jit`, `runtime`, `native`, `kernel` or `unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Gc => "gc",
            Self::Jit => "jit",
            Self::Runtime => "runtime",
            Self::Native => "native",
            Self::Kernel => "kernel",
            Self::Unknown => "unknown",
        }
    }
}

/// Returns true if a symbol, mangled or not, is a function of the garbage collector's classes.
fn is_of_gc(symbol: &str) -> bool {
    ["gc_heap", "GCHeap"].into_iter().any(|class| symbol.contains(class))
}

impl Code<'_> {
    /// Returns the part of the process that it belongs to.
    pub fn origin(&self) -> CodeOrigin {
        match self {
            Self::Method(_) => CodeOrigin::Managed,
            Self::Symbol(symbol) => CodeOrigin::of_symbol(symbol),
            Self::Unresolved(unresolved) => CodeOrigin::of_unresolved(unresolved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_origins() {
        use CodeOrigin::{Gc, Jit, Kernel, Native, Runtime, Unknown};
        for (path, origin) in [
            ("/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.1/libcoreclr.so", Runtime),
            ("/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.1/libSystem.Native.so", Runtime),
            ("/opt/dotnet-3.1/System.Native.so", Runtime),
            (r"C:\dotnet\coreclr.dll", Runtime),
            ("libclrjit.so", Jit),
            ("libclrjit_unix_x64_x64.so", Jit),
            ("clrjit.dll", Jit),
            ("libclrgc.so", Gc),
            ("vmlinux", Kernel),
            ("[kernel.kallsyms]", Kernel),
            ("/lib/modules/6.1/ext4.ko", Kernel),
            ("[vdso]", Native),
            ("/lib/x86_64-linux-gnu/libc.so.6", Native),
            ("/srv/web", Native),
            ("", Unknown),
        ] {
            assert_eq!(CodeOrigin::of_file(path), origin, "{path}");
        }
    }

    #[test]
    fn functions_of_the_collector_are_known_by_their_class() {
        for (name, expected) in [
            ("_ZN3WKS7gc_heap10mark_phaseEi", true),
            ("SVR::gc_heap::gc_thread_function", true),
            ("WKS::GCHeap::GarbageCollectGeneration", true),
            ("JIT_New", false),
        ] {
            assert_eq!(is_of_gc(name), expected, "{name}");
        }
    }
}
