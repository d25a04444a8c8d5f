//! The code of one process.

use crate::code::method;
use crate::code::module::Modules;
use crate::code::native;
use crate::code::ranges::Ranges;

#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) methods: Ranges<method::Entry>,
    pub(crate) modules: Modules,
    pub(crate) mappings: Ranges<native::Mapping>,
    /// The recording tells what was loaded before it began or when it ended.
    pub(crate) has_rundown: bool,
    /// Something was left out for want of room.
    pub(crate) is_cut: bool,
}

impl Process {
    pub(crate) fn settle(&mut self) {
        self.methods.settle();
        self.mappings.settle();
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        [size_of::<Self>(), self.methods.bytes(), self.modules.bytes(), self.mappings.bytes()]
            .into_iter()
            .fold(0, usize::saturating_add)
    }
}
