//! The names of frames.

use std::sync::Arc;

use crate::types::method::Method;
use crate::unwind::native::NativeImage;

/// The method or the file of a frame.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NamedFrame {
    /// The method of managed code; `None` for machine code, and if the memory lacks the way to it.
    pub method: Option<Arc<Method>>,
    /// The offset in the method's IL; `None` if the memory lacks the runtime's map.
    pub il_offset: Option<u32>,
    /// The program or library of machine code, and of compiler-generated code of a NativeAOT program, which
    /// has no method.
    pub image: Option<Arc<NativeImage>>,
    /// The mapped file of machine code in a core dump without the headers of the image.
    pub file: Option<FileCode>,
}

/// Machine code in a mapped file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileCode {
    /// The path as the process saw it.
    pub path: Arc<str>,
    /// The offset of the instruction pointer in the file.
    pub offset: u64,
}

impl FileCode {
    /// Returns the last part of the path.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl NamedFrame {
    /// Returns the type and the name of the method, without parameters. Nested types follow a dot.
    pub fn full_name(&self) -> Option<String> {
        let name = self.method.as_ref()?.name.as_ref()?;
        Some([&*name.type_name.replace('+', "."), ".", &*name.name].concat())
    }
}
