//! Names of native functions, by the symbol tables of the files that a process has mapped.

use std::cell::RefCell;
use std::collections::HashMap;

use clr_dump::NativeImage;

/// Maximum number of images to keep symbols of.
const MAX_TABLES: usize = 256;

/// The symbols of images that have files on this machine, with the same build id.
#[derive(Debug, Default)]
pub(crate) struct NativeSymbols {
    /// The process with the file system in which paths are looked up; `None` for a core dump.
    pid: Option<u32>,
    tables: RefCell<HashMap<u64, Option<Table>>>,
}

#[cfg(target_os = "linux")]
type Table = linux_sampler::SymbolTable;
/// No files of Linux are read elsewhere.
#[cfg(not(target_os = "linux"))]
type Table = ();

impl NativeSymbols {
    /// Symbols of a live process, or of a core dump.
    pub(crate) fn new(pid: Option<u32>) -> Self {
        Self { pid, tables: RefCell::default() }
    }

    /// Returns the name of the function that contains an address.
    pub(crate) fn name(&self, image: &NativeImage, address: u64) -> Option<String> {
        let mut tables = self.tables.borrow_mut();
        if tables.len() >= MAX_TABLES && !tables.contains_key(&image.base) {
            return None;
        }
        let table = tables.entry(image.base).or_insert_with(|| self.read(image));
        name(table.as_ref()?, address.wrapping_sub(image.bias))
    }

    #[cfg(target_os = "linux")]
    fn read(&self, image: &NativeImage) -> Option<Table> {
        let file = match self.pid {
            Some(pid) => {
                let mapping = linux_sampler::Mapping::new(image.base, u64::MAX, 0, &*image.path);
                mapping.open_image(pid.try_into().ok()?)
            }
            None => dipc_transport::open_untrusted(std::path::Path::new(&*image.path))
                .and_then(linux_sampler::Image::read),
        };
        let file = file.ok()?;
        let is_same = !image.build_id.is_empty() && file.build_id() == image.build_id;
        is_same.then(|| file.symbols().ok()).flatten()
    }

    #[cfg(not(target_os = "linux"))]
    fn read(&self, _: &NativeImage) -> Option<Table> {
        let _ = self.pid;
        None
    }
}

#[cfg(target_os = "linux")]
fn name(table: &Table, own_address: u64) -> Option<String> {
    Some(String::from_utf8_lossy(table.at(own_address)?.name).into_owned())
}

#[cfg(not(target_os = "linux"))]
fn name(_: &Table, _: u64) -> Option<String> {
    None
}
