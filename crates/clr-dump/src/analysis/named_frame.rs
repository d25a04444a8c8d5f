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
    /// The program or library of machine code, and of compiler-generated code of a NativeAOT program, which
    /// has no method.
    pub image: Option<Arc<NativeImage>>,
}

impl NamedFrame {
    /// Returns the type and the name of the method, without parameters. Nested types follow a dot.
    pub fn full_name(&self) -> Option<String> {
        let name = self.method.as_ref()?.name.as_ref()?;
        Some([&*name.type_name.replace('+', "."), ".", &*name.name].concat())
    }
}
