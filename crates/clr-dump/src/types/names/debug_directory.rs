//! The debug directories of modules.

use crate::runtime::module::{DebugEntry, Module, PeImage};
use crate::types::Types;

impl Types<'_> {
    /// Returns the entries of the debug directory of a module that the memory has.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for module in dump.types().modules() {
    ///     for entry in dump.types().debug_entries(&module) {
    ///         let data = dump.types().debug_data(&entry, 1 << 20);
    ///         println!("{}: {}, {:?}", module.path, entry.kind, data);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn debug_entries(self, module: &Module) -> Vec<DebugEntry> {
        let entries = module.metadata_at.and_then(|(metadata_at, _)| {
            let image = PeImage::read(self.memory(), module.base.get()).ok()?;
            Some(image.debug_entries(self.memory(), metadata_at))
        });
        entries.unwrap_or_default()
    }

    /// Returns the data of an entry of a debug directory; `None` if the memory lacks it, or if it has more
    /// than `limit` bytes.
    pub fn debug_data(self, entry: &DebugEntry, limit: u32) -> Option<Vec<u8>> {
        let size = usize::try_from(entry.size).ok().filter(|_| entry.size <= limit)?;
        self.memory().bytes(entry.address.get(), size).ok()
    }
}
