//! A dump: the memory of a process and the runtime in it, with what was read of both.

use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;

#[cfg(feature = "analysis")]
use crate::analysis::named_frame::NamedFrame;
use crate::error::Error;
use crate::memory::Memory;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::core_file::CoreFile;
use crate::memory::mapping::MappedFile;
use crate::runtime::Runtime;
use crate::runtime::module::Module;
use crate::unwind::native::NativeImage;

/// Maximum number of bytes of metadata to keep.
const MAX_METADATA_SIZE: usize = 1 << 30;

/// The reader of a core dump, or of the memory of a process. Its views have the data by subject:
/// [`threads`](Self::threads), [`exceptions`](Self::exceptions), [`locks`](Self::locks),
/// [`types`](Self::types), [`statics`](Self::statics), [`heap`](Self::heap) and [`awaits`](Self::awaits).
/// Views cost nothing. Modules and names are read once and kept.
///
/// ```no_run
/// use clr_dump::{Address, CoreFile, Dump};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let core = CoreFile::open(std::fs::File::open("core")?)?;
/// let dump = Dump::open(&core)?;
/// println!(".NET {}", dump.runtime().version());
/// let object = Address::new(0x7f00_1000_2000);
/// println!("the object at {object} is a {:?}", dump.heap().type_name(object));
/// # Ok(())
/// # }
/// ```
pub struct Dump<'m> {
    memory: &'m dyn Memory,
    runtime: RuntimeOf<'m>,
    pub(crate) modules: RefCell<HashMap<Address, Arc<Module>>>,
    pub(crate) types: RefCell<HashMap<TypeHandle, Option<Arc<str>>>>,
    /// Named frames, keyed by address and whether it is a return address.
    #[cfg(feature = "analysis")]
    pub(crate) frames: RefCell<HashMap<(Address, bool), NamedFrame>>,
    pub(crate) metadata_left: Cell<usize>,
    /// The types of objects that have static fields, of a NativeAOT program.
    pub(crate) storage: OnceCell<HashMap<TypeHandle, &'static str>>,
    /// The constants of enumerations, in the order of the source; `None` for other types.
    pub(crate) enumerations: RefCell<HashMap<TypeHandle, Option<Constants>>>,
    /// The loaded instances of generic structures, keyed by name.
    pub(crate) structures: OnceCell<HashMap<Arc<str>, TypeHandle>>,
}

/// The numbers of an enumeration with their names, in the order of the source.
pub(crate) type Constants = Arc<[(String, i64)]>;

/// The runtime of a dump: found for it, or the caller's.
enum RuntimeOf<'m> {
    Found(Box<Runtime>),
    Borrowed(&'m Runtime),
}

impl<'m> Dump<'m> {
    /// Opens a core dump: finds the runtime in it.
    ///
    /// # Errors
    /// As [`Runtime::find`].
    pub fn open(core: &'m CoreFile) -> Result<Self, Error> {
        Self::find(core, core.files())
    }

    /// Finds the runtime in the memory of a process, given the process's mapped files.
    ///
    /// ```no_run
    /// # #[cfg(target_os = "linux")]
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use clr_dump::{Dump, ProcessMemory};
    ///
    /// let memory = ProcessMemory::open(4711)?;
    /// let dump = Dump::find(&memory, &memory.files()?)?;
    /// println!("{} objects", dump.heap().statistics()?.types.iter().map(|of| of.amount.objects).sum::<u64>());
    /// # Ok(())
    /// # }
    /// # #[cfg(not(target_os = "linux"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Errors
    /// As [`Runtime::find`].
    pub fn find(memory: &'m dyn Memory, files: &[MappedFile]) -> Result<Self, Error> {
        let runtime = Box::new(Runtime::find(memory, files)?);
        Ok(Self::with(memory, RuntimeOf::Found(runtime)))
    }

    /// Reads memory with a runtime that was found in it before, and that others can use, too.
    pub fn new(memory: &'m dyn Memory, runtime: &'m Runtime) -> Self {
        Self::with(memory, RuntimeOf::Borrowed(runtime))
    }

    fn with(memory: &'m dyn Memory, runtime: RuntimeOf<'m>) -> Self {
        Self {
            memory,
            runtime,
            modules: RefCell::default(),
            types: RefCell::default(),
            #[cfg(feature = "analysis")]
            frames: RefCell::default(),
            metadata_left: Cell::new(MAX_METADATA_SIZE),
            storage: OnceCell::new(),
            enumerations: RefCell::default(),
            structures: OnceCell::new(),
        }
    }

    /// Reads the same process through other memory, such as that of a limited time. Modules and names that
    /// this reader knows are known to the other as well.
    #[must_use]
    pub fn with_memory<'a>(&'a self, memory: &'a dyn Memory) -> Dump<'a> {
        let other = Dump::new(memory, self.runtime());
        other.modules.borrow_mut().clone_from(&self.modules.borrow());
        other.types.borrow_mut().clone_from(&self.types.borrow());
        other.metadata_left.set(self.metadata_left.get());
        other
    }

    /// Returns the memory.
    pub fn memory(&self) -> &'m dyn Memory {
        self.memory
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &Runtime {
        match &self.runtime {
            RuntimeOf::Found(runtime) => runtime,
            RuntimeOf::Borrowed(runtime) => runtime,
        }
    }

    /// Returns the program or library that contains an address of machine code.
    pub fn native_image(&self, address: Address) -> Option<Arc<NativeImage>> {
        self.runtime().native_image(self.memory, address)
    }
}

impl fmt::Debug for Dump<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dump").field("modules", &self.modules.borrow().len()).finish_non_exhaustive()
    }
}

/// Defines a view of a dump, and the method of [`Dump`] that returns it.
macro_rules! view {
    ($(#[$doc:meta])* $view:ident, $method:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub struct $view<'d> {
            #[allow(dead_code, reason = "not each view reads others")]
            pub(crate) dump: &'d crate::dump::Dump<'d>,
        }

        #[allow(dead_code, reason = "not each view reads both")]
        impl<'d> $view<'d> {
            pub(crate) fn memory(self) -> &'d dyn crate::memory::Memory {
                self.dump.memory()
            }

            pub(crate) fn runtime(self) -> &'d crate::runtime::Runtime {
                self.dump.runtime()
            }
        }

        impl crate::dump::Dump<'_> {
            $(#[$doc])*
            pub const fn $method(&self) -> $view<'_> {
                $view { dump: self }
            }
        }
    };
}
pub(crate) use view;
