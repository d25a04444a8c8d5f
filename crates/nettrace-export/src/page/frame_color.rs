//! Colours of frames.

use clr_events::code::CodeOrigin;

use crate::profile::frame::{FrameId, Frames};
use crate::profile::frame_kind::FrameKind;

/// The colour of a frame. The page's scripts use the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameColor {
    /// The program's own code and that of its packages.
    Mine = 0,
    /// The class library and other managed code of Microsoft's.
    Framework = 1,
    /// The runtime: its native libraries, and methods that do nothing but run others.
    Runtime = 2,
    /// Other native code.
    Native = 3,
    /// Not code: types, kinds of time, frames without a name.
    Other = 4,
    /// The kernel.
    Kernel = 5,
}

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

impl FrameColor {
    /// Returns the colour of a frame.
    pub(super) fn of(frames: &Frames, frame: FrameId) -> Self {
        let origin = match frames.kind(frame) {
            FrameKind::Code(origin) => origin,
            FrameKind::Pseudo => return Self::Other,
        };
        match origin {
            CodeOrigin::Managed => {
                let (module, method) = frames.full_parts(frame);
                if is_core_library(module) && RUNNERS.iter().any(|prefix| method.starts_with(prefix)) {
                    Self::Runtime
                } else if frames.is_user_code(frame) {
                    Self::Mine
                } else {
                    Self::Framework
                }
            }
            origin if origin.is_native_runtime() => Self::Runtime,
            CodeOrigin::Native => Self::Native,
            CodeOrigin::Kernel => Self::Kernel,
            _ => Self::Other,
        }
    }
}

fn is_core_library(module: &str) -> bool {
    module.eq_ignore_ascii_case("System.Private.CoreLib") || module == "mscorlib"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_by_kind_and_module() {
        use FrameColor::{Framework, Kernel, Mine, Native, Other, Runtime};
        let mut frames = Frames::default();
        for (name, color) in [
            ("web!Program.Main()", Mine),
            ("Dapper!Dapper.SqlMapper.Query(class System.String)", Mine),
            ("System.Private.CoreLib!System.String.Concat(class System.String)", Framework),
            ("Microsoft.AspNetCore.Routing!Microsoft.AspNetCore.Routing.X.Invoke()", Framework),
            ("System.Private.CoreLib!System.Threading.Thread.StartCallback()", Runtime),
            ("libcoreclr.so!MethodDesc::DoPrestub", Runtime),
            ("libSystem.Native.so!SystemNative_Poll", Runtime),
            ("clrjit.dll!?", Runtime),
            ("libc.so.6!malloc", Native),
            ("vmlinux!exc_page_fault", Kernel),
            ("record-trace!_ZN4main17h", Native),
            ("web!?", Mine),
            ("?!?", Other),
            ("System.String", Other),
            ("CPU_TIME", Other),
        ] {
            let frame = frames.intern(name);
            assert_eq!(FrameColor::of(&frames, frame), color, "{name}");
        }
    }
}
