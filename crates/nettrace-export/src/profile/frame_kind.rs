//! Kinds of frames.

use clr_events::code::{Code, CodeOrigin, is_framework};

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FrameKind {
    /// Code, of this part of the process.
    Code(CodeOrigin),
    /// Not code: a kind of time, a type, a request.
    Pseudo,
}

impl FrameKind {
    /// Returns its name: that of the [origin](CodeOrigin::name), or `pseudo`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Code(origin) => origin.name(),
            Self::Pseudo => "pseudo",
        }
    }

    /// Returns true if it is code of a .NET method.
    pub const fn is_managed(self) -> bool {
        matches!(self, Self::Code(CodeOrigin::Managed))
    }
}

/// The facts about a frame that its name states as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameInfo {
    pub(crate) kind: FrameKind,
    /// True if the code at the address has a name.
    pub(crate) is_named: bool,
    /// True if it is [the user's code](Code::is_user_code).
    pub(crate) is_user_code: bool,
    /// Bytes of the name that are the module's, which `!` follows; 0 without a module.
    pub(crate) module: usize,
}

impl FrameInfo {
    pub(crate) const PSEUDO: Self =
        Self { kind: FrameKind::Pseudo, is_named: true, is_user_code: false, module: 0 };

    /// The facts about code with a name that begins with its module, or with `?` without one.
    pub(crate) fn of_code(code: &Code<'_>, module: &str) -> Self {
        Self {
            kind: FrameKind::Code(code.origin()),
            is_named: code.is_named(),
            is_user_code: code.is_user_code(),
            module: module.len().max(1),
        }
    }

    /// The facts about a frame of which the caller has only the text: `Module!Method(parameters)`,
    /// `file!symbol`, or anything else.
    pub(crate) fn of_text(name: &str) -> Self {
        let Some((module, method)) = name.split_once('!').filter(|(module, _)| !module.is_empty()) else {
            return Self::PSEUDO;
        };
        let is_named = method != "?";
        let ending = module.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_file = module.contains(".so.")
            || ["so", "dylib", "exe", "dll", "sys", "ko"].iter().any(|it| ending.eq_ignore_ascii_case(it))
            || module.starts_with('[')
            || module == "vmlinux";
        let origin = match module {
            "?" if !is_named => CodeOrigin::Unknown,
            // Managed methods have parameters.
            _ if is_file || is_named && !method.contains('(') => CodeOrigin::of_native(module, method),
            _ => CodeOrigin::Managed,
        };
        let is_user_code = origin == CodeOrigin::Managed && !is_framework(module, "");
        Self { kind: FrameKind::Code(origin), is_named, is_user_code, module: module.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_classified_by_its_module_and_parameters() {
        use CodeOrigin::{Jit, Kernel, Managed, Native, Runtime, Unknown};
        for (name, origin, is_named) in [
            ("web!Program.Main()", Managed, true),
            ("libcoreclr.so!MethodDesc::DoPrestub", Runtime, true),
            ("clrjit.dll!?", Jit, false),
            ("libc.so.6!malloc", Native, true),
            ("vmlinux!exc_page_fault", Kernel, true),
            ("record-trace!_ZN4main17h", Native, true),
            ("web!?", Managed, false),
            ("?!?", Unknown, false),
        ] {
            let info = FrameInfo::of_text(name);
            assert_eq!((info.kind, info.is_named), (FrameKind::Code(origin), is_named), "{name}");
            assert_eq!(name.as_bytes()[info.module], b'!', "{name}");
        }
        for name in ["System.String", "CPU_TIME", "!x", ""] {
            assert_eq!(FrameInfo::of_text(name), FrameInfo::PSEUDO, "{name}");
        }
    }
}
