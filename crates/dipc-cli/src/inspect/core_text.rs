//! Frames of core dumps, and names of types and methods, in words.

use clr_dump::{Address, Frame, Method, NamedFrame, NativeSymbols};
use clr_events::code::is_user_assembly;
use clr_events::csharp::{RuntimeName, type_display_name};

use crate::inspect::core_lines::FrameLine;

/// A frame in words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameText {
    pub(crate) ip: Address,
    /// The C# name; `None` if the memory lacks it.
    pub(crate) name: Option<FrameName>,
    /// The file of the module.
    pub(crate) module: Option<String>,
    pub(crate) token: Option<u32>,
    /// The offset in the method's IL; `None` if the memory lacks the map of its code.
    pub(crate) il_offset: Option<u32>,
    pub(crate) line: Option<FrameLine>,
    /// True if the method was made in memory, without a name.
    pub(crate) is_dynamic: bool,
    /// True if the method belongs to another assembly than the framework's.
    pub(crate) is_user_code: bool,
    pub(crate) kind: FrameKind,
}

/// A kind of frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FrameKind {
    Managed,
    Native {
        /// The offset in the image.
        offset: Option<u64>,
    },
}

impl FrameText {
    pub(crate) fn is_managed(&self) -> bool {
        self.kind == FrameKind::Managed
    }
}

/// The name of a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FrameName {
    /// The name in C# form with its namespace.
    pub(crate) text: String,
    /// The bytes of the namespace and the dot after it.
    pub(crate) namespace_len: usize,
}

impl FrameName {
    /// The name without its namespace.
    pub(crate) fn short(&self) -> &str {
        self.text.get(self.namespace_len..).unwrap_or(&self.text)
    }
}

/// A frame of native code in words.
pub(crate) fn native_frame_text(frame: &Frame, named: &NamedFrame, symbols: &NativeSymbols<'_>) -> FrameText {
    let address = frame.position.lookup_address(frame.ip);
    let image = named.image.as_deref();
    let name = image.and_then(|image| symbols.name(image, address));
    let (module, offset) = match (image, &named.file) {
        (Some(image), _) => (Some(image.file_name()), frame.ip.checked_sub(image.base)),
        (None, Some(file)) => (Some(file.file_name()), Some(file.offset)),
        (None, None) => (None, None),
    };
    FrameText {
        ip: frame.ip,
        name: name.map(|text| FrameName { text, namespace_len: 0 }),
        module: module.map(ToOwned::to_owned),
        token: None,
        il_offset: None,
        line: None,
        is_dynamic: false,
        is_user_code: false,
        kind: FrameKind::Native { offset },
    }
}

/// A frame of managed code in words.
pub(crate) fn frame_text(ip: Address, method: Option<&Method>, il_offset: Option<u32>) -> FrameText {
    let name = method.and_then(|method| method.name.as_ref()).map(|name| {
        let of_runtime =
            RuntimeName { namespace: &name.type_name, name: &name.name, signature: &name.signature };
        let name = of_runtime.display_name();
        FrameName { text: name.text, namespace_len: name.namespace_len }
    });
    let module = method.and_then(|method| method.module.as_ref());
    FrameText {
        ip,
        name,
        module: module.map(|module| module.file_name().to_owned()).filter(|name| !name.is_empty()),
        is_user_code: module.is_some_and(|module| is_user_assembly(module.file_name(), &module.path)),
        token: method.and_then(|method| method.token),
        il_offset,
        line: None,
        is_dynamic: method.is_some_and(|method| method.token.is_none() && method.name.is_none()),
        kind: FrameKind::Managed,
    }
}

/// The C# name of a method with its namespace; `None` for unnamed methods.
pub(crate) fn method_text(method: &Method) -> Option<String> {
    frame_text(Address::default(), Some(method), None).name.map(|name| name.text)
}

/// The C# name of a type.
pub(crate) fn type_text(name: Option<&str>, address: u64) -> String {
    match name {
        Some(name) => type_display_name(name),
        None => format!("{address:#x}"),
    }
}
