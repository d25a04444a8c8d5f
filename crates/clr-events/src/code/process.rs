//! The code of one process.

use crate::code::method_entry::Entry;
use crate::code::module::Modules;
use crate::code::native;
use crate::code::ranges::Ranges;

/// The code of one process: methods, modules and mapped files.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) methods: Ranges<Entry>,
    pub(crate) modules: Modules,
    pub(crate) mappings: Ranges<native::Mapping>,
    /// True if the recording has a rundown: the methods loaded when the session began or ended.
    pub(crate) has_rundown: bool,
    /// True if something was left out because the limit was reached.
    pub(crate) is_cut: bool,
}

impl Process {
    pub(crate) fn sort(&mut self) {
        self.methods.sort();
        self.mappings.sort();
    }

    /// Bytes that are held.
    pub(crate) fn bytes(&self) -> usize {
        [size_of::<Self>(), self.methods.bytes(), self.modules.bytes(), self.mappings.bytes()]
            .into_iter()
            .fold(0, usize::saturating_add)
    }
}
