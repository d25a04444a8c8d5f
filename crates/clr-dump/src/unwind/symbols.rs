//! Names of native functions, by the symbol tables of the files that a process has mapped.

use std::cell::RefCell;
use std::fmt;
use std::fs::File;

use hashbrown::HashMap;

use crate::memory::address::Address;
use crate::unwind::native::NativeImage;

/// Maximum number of images to keep symbols of.
const MAX_TABLES: usize = 256;

/// The symbols of images with files on this machine that have the same build id. On other systems than Linux
/// no file is read, and there are no names.
///
/// ```no_run
/// use clr_dump::NativeSymbols;
///
/// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
/// # let dump = clr_dump::Dump::open(&core)?;
/// // The paths are of the core dump, which anyone may have written.
/// let symbols = NativeSymbols::of_core(|path| std::fs::File::open(path).ok().filter(|file| {
///     file.metadata().is_ok_and(|metadata| metadata.is_file())
/// }));
/// # let address = clr_dump::Address::new(0x7f00_1000_2000);
/// println!("{:?}", dump.native_image(address).and_then(|image| symbols.name(&image, address)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct NativeSymbols<'o> {
    files: Files<'o>,
    /// The symbols of each image, by its address.
    tables: RefCell<HashMap<Address, Option<Table>>>,
}

/// The files of images.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no file is read"))]
enum Files<'o> {
    /// Those that a process sees at the paths.
    OfProcess(u32),
    /// Those that the caller opens.
    Opened(OpenFile<'o>),
}

/// Opens the file at a path.
type OpenFile<'o> = Box<dyn Fn(&str) -> Option<File> + 'o>;

impl<'o> NativeSymbols<'o> {
    /// The symbols of the files that a process has mapped.
    pub fn of_process(pid: u32) -> Self {
        Self { files: Files::OfProcess(pid), tables: RefCell::default() }
    }

    /// The symbols of the files of a core dump, which `open` opens by their paths.
    pub fn of_core(open: impl Fn(&str) -> Option<File> + 'o) -> Self {
        Self { files: Files::Opened(Box::new(open)), tables: RefCell::default() }
    }

    /// Returns the name of the function that contains an address of an image; `None` if it is unknown. The
    /// symbols of at most 256 images are read.
    pub fn name(&self, image: &NativeImage, address: Address) -> Option<String> {
        let mut tables = self.tables.borrow_mut();
        if tables.len() >= MAX_TABLES && !tables.contains_key(&image.base) {
            return None;
        }
        let table = tables.entry(image.base).or_insert_with(|| self.files.read(image));
        name(table.as_ref()?, address.get().wrapping_sub(image.bias))
    }
}

impl fmt::Debug for NativeSymbols<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeSymbols").field("tables", &self.tables.borrow().len()).finish_non_exhaustive()
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod system {
    use linux_sampler::{Image, Mapping, SymbolTable};

    use super::Files;
    use crate::unwind::native::NativeImage;

    pub(super) type Table = SymbolTable;

    impl Files<'_> {
        pub(super) fn read(&self, image: &NativeImage) -> Option<Table> {
            let file = match self {
                Self::OfProcess(pid) => {
                    let mapping = Mapping::new(image.base.get(), u64::MAX, 0, &*image.path);
                    mapping.open_image((*pid).try_into().ok()?)
                }
                Self::Opened(open) => Image::read(open(&image.path)?),
            };
            let file = file.ok()?;
            let is_same = !image.build_id.is_empty() && file.build_id() == image.build_id;
            is_same.then(|| file.symbols().ok()).flatten()
        }
    }

    pub(super) fn name(table: &Table, own_address: u64) -> Option<String> {
        Some(String::from_utf8_lossy(table.at(own_address)?.name).into_owned())
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod system {
    use super::Files;
    use crate::unwind::native::NativeImage;

    /// No files of Linux are read elsewhere.
    pub(super) type Table = ();

    impl Files<'_> {
        #[allow(clippy::unused_self, reason = "elsewhere it is read")]
        pub(super) const fn read(&self, _: &NativeImage) -> Option<Table> {
            None
        }
    }

    pub(super) const fn name(_: &Table, _: u64) -> Option<String> {
        None
    }
}

use system::{Table, name};
