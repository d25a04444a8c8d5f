//! The collections that static fields and objects on stacks hold, with the numbers of their elements.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Collections`, `System.Collections`,
//! `System.Collections.Concurrent`,
//! `src/coreclr/System.Private.CoreLib/src/System/MulticastDelegate.CoreCLR.cs`; for 3.1 dotnet/coreclr and
//! dotnet/corefx, with the same names of fields.

mod counting;
mod search;

use std::sync::Arc;

use hashbrown::HashSet;

use crate::heap::gc_root::stack_range;
use crate::heap::generations::HeapRegions;
use crate::memory::address::Address;
use crate::runtime::module::Module;
use crate::statics::Statics;
use crate::threads::all_stacks::ThreadStacks;

pub(crate) use counting::Counts;
use search::Search;

/// Maximum number of modules to search.
const MAX_MODULES: usize = 500;
/// Maximum number of types with static fields to read.
const MAX_TYPES: usize = 20_000;

/// Maximum number of stacks to search, and of bytes of each.
const MAX_STACKS: usize = 1000;
const MAX_STACK_BYTES: u64 = 1 << 16;

/// A collection that a static field or an object on a stack holds, directly or through other objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldCollection {
    /// The type with the static field, or of the object on a stack, as the runtime writes it.
    pub holder: Arc<str>,
    /// The static field, and the fields that lead from its object to the collection, separated by dots. Of an
    /// object on a stack, the fields that lead from it.
    pub path: String,
    /// The type of the collection, as the runtime writes it.
    pub type_name: Arc<str>,
    /// The number of its elements; for an event or another delegate, of the methods that it calls.
    pub count: u64,
}

impl Statics<'_> {
    /// Returns the collections of the framework that static fields hold of types that the modules define for
    /// which `is_holder` is true, directly or through objects of such types: at most 500 modules, 20,000
    /// types, 20,000 objects and four fields. Instances of generic types and fields of threads are not
    /// searched.
    ///
    /// The modules are those of [`Types::modules`](crate::Types::modules), and those of objects found; of
    /// several with one path, the first one found. Words of `stacks` that are addresses of objects of such
    /// types lead further; other words of the first 1,000 stacks, and all of them without `regions`, are
    /// ignored.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let stacks = dump.threads().stacks(&core.thread_registers())?;
    /// let regions = dump.heap().regions()?;
    /// for held in dump.statics().collections(&stacks, Some(&regions), |module| module.file_name() == "Shop.dll") {
    ///     println!("{}.{}: {} elements", held.holder, held.path, held.count);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn collections(
        self,
        stacks: &ThreadStacks,
        regions: Option<&HeapRegions<'_>>,
        is_holder: impl Fn(&Module) -> bool,
    ) -> Vec<HeldCollection> {
        let mut search = Search::new(self, &is_holder);
        let (mut modules, mut paths) = (HashSet::new(), HashSet::new());
        let (mut modules_left, mut types_left) = (MAX_MODULES, MAX_TYPES);
        loop {
            let mut new = self.dump.types().modules();
            // An assembly in many load contexts is searched once: in the one found first.
            new.retain(|module| {
                let is_new = modules.insert(module.address) && is_holder(module);
                is_new && (module.path.is_empty() || paths.insert(module.path.clone()))
            });
            new.truncate(modules_left);
            modules_left = modules_left.saturating_sub(new.len());
            if new.is_empty() || types_left == 0 {
                break;
            }
            for module in new {
                search.add_module(&module, &mut types_left);
            }
        }
        // Static fields come first, with better names.
        for object in regions.map(|regions| self.objects_on_stacks(stacks, regions)).unwrap_or_default() {
            search.add_object(object);
        }
        search.found
    }

    /// The words on stacks that can be addresses of objects.
    fn objects_on_stacks(self, stacks: &ThreadStacks, regions: &HeapRegions<'_>) -> Vec<Address> {
        let (memory, layout) = (self.memory(), &regions.layout);
        let mut words = HashSet::new();
        for of in stacks.managed.iter().take(MAX_STACKS) {
            let Some(range) = stack_range(&of.thread, &of.stack, of.registers.as_ref()) else { continue };
            let length = range.end.saturating_sub(range.start).min(MAX_STACK_BYTES);
            let length = usize::try_from(length).unwrap_or_default();
            let Ok(bytes) = memory.bytes(range.start & !7, length) else { continue };
            let (chunks, _) = bytes.as_chunks();
            let all = chunks.iter().map(|chunk| u64::from_le_bytes(*chunk));
            words.extend(all.filter(|word| word.is_multiple_of(8) && layout.contains(*word)));
        }
        let mut words: Vec<_> = words.into_iter().map(Address::new).collect();
        words.sort_unstable();
        words
    }
}
