//! The collections that static fields and objects on stacks hold, with the numbers of their elements.
//!
//! # Source
//! dotnet/runtime `System.Private.CoreLib/src/System/Collections`, `System.Collections`,
//! `System.Collections.Concurrent`, `src/coreclr/System.Private.CoreLib/src/System/MulticastDelegate.CoreCLR.cs`;
//! for 3.1 dotnet/coreclr and dotnet/corefx, with the same names of fields.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use portable_pdb::ProgramMetadata;

use crate::heap::gc_root::stack_range;
use crate::heap::regions::HeapLayout;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::runtime::module::Module;
use crate::statics::Statics;
use crate::threads::all_stacks::ThreadStacks;
use crate::types::field::{Field, ValueKind};

/// Maximum number of modules to search.
const MAX_MODULES: usize = 500;
/// Maximum number of types with static fields to read.
const MAX_TYPES: usize = 20_000;
/// Maximum number of objects to read.
const MAX_OBJECTS: usize = 20_000;
/// Maximum number of fields from a static field to a collection.
const MAX_DEPTH: usize = 4;
/// Maximum number of counters of a ConcurrentDictionary.
const MAX_LOCKS: u32 = 1 << 14;
/// Upper bound on a valid number of elements.
const MAX_COUNT: i64 = 1 << 31;

/// Maximum number of stacks to search, and of bytes of each.
const MAX_STACKS: usize = 1000;
const MAX_STACK_BYTES: u64 = 1 << 16;

/// The kinds of references.
const REFERENCES: [u8; 5] = [0x0e, 0x12, 0x14, 0x1c, 0x1d];

/// A collection that a static field or an object on a stack holds, directly or through other objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeldCollection {
    /// The type with the static field, or of the object on a stack, as the runtime writes it.
    pub holder: Arc<str>,
    /// The static field, and the fields that lead from its object to the collection, separated by dots. Of an object on
    /// a stack, the fields that lead from it.
    pub path: String,
    /// The type of the collection, as the runtime writes it.
    pub type_name: Arc<str>,
    /// The number of its elements; for an event or another delegate, of the methods that it calls.
    pub count: u64,
}

/// The way to the number of elements in an object of a type. Offsets are from the object's address.
#[derive(Debug)]
enum Counting {
    /// An Int32, less the number of unused places.
    Count { count: u64, free: Option<u64> },
    /// The count of another object.
    Inner(u64),
    /// The counters of a ConcurrentDictionary, in an object that it refers to.
    Counters(u64),
    /// The list of a delegate and its length.
    Delegate { list: u64, length: u64 },
    /// No collection: the names and places of references that are followed.
    Fields(Vec<(String, u64)>),
}

impl Statics<'_> {
    /// Returns the collections of the framework that static fields hold of types that the modules define for which
    /// `is_holder` is true, directly or through objects of such types: at most 500 modules, 20,000 types, 20,000
    /// objects and four fields. Instances of generic types and fields of threads are not searched.
    ///
    /// The modules are those of [`Types::modules`](crate::Types::modules), and those of objects found; of several with
    /// one path, the first one found. Words of `stacks` that are addresses of objects of such types lead further; other
    /// words of the first 1,000 stacks are ignored.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let stacks = dump.threads().stacks(&core.thread_registers())?;
    /// for held in dump.statics().collections(&stacks, |module| module.file_name() == "Shop.dll") {
    ///     println!("{}.{}: {} elements", held.holder, held.path, held.count);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn collections(
        self,
        stacks: &ThreadStacks,
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
        for object in self.objects_on_stacks(stacks) {
            search.add_object(object);
        }
        search.found
    }

    /// The words on stacks that can be addresses of objects.
    fn objects_on_stacks(self, stacks: &ThreadStacks) -> Vec<Address> {
        let memory = self.memory();
        let Ok(layout) = HeapLayout::read(memory, self.runtime()) else { return Vec::new() };
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

impl Statics<'_> {
    /// Returns the number of load contexts of assemblies that the program has made and not begun to unload; `None` if
    /// the memory lacks it.
    ///
    /// # Source
    /// dotnet/runtime `System.Private.CoreLib/src/System/Runtime/Loader/AssemblyLoadContext.cs` (`s_allContexts`).
    pub fn load_contexts(self) -> Option<u64> {
        let field = self.core_library_field("System.Runtime.Loader.AssemblyLoadContext", "s_allContexts");
        let (contexts, of) = field?;
        let mut search = Search::new(self, &|_| false);
        let counting = search.counting(of);
        search.count(contexts, &counting).ok()
    }

    /// Returns the reference in a static field of a type of System.Private.CoreLib.
    pub(crate) fn core_library_field(self, type_name: &str, field: &str) -> Option<(Address, TypeHandle)> {
        let types = self.dump.types();
        let modules = types.modules();
        let core = modules.iter().find(|module| module.file_name() == "System.Private.CoreLib.dll")?;
        let metadata = ProgramMetadata::parse(core.metadata.as_deref()?).ok()?;
        let is_type = |row: &u32| metadata.type_name(*row).is_ok_and(|name| name == type_name);
        let row = (1..=metadata.type_count()).find(is_type)?;
        let fields = self.fields_of(types.defined_type(core.address, row)?, &[]);
        let place = fields.into_iter().find(|place| place.field.name == field)?;
        self.dump.heap().reference_at(place.address)
    }
}

/// An object that a static field leads to.
struct Reached {
    object: Address,
    holder: Arc<str>,
    path: String,
    depth: usize,
}

struct Search<'s> {
    statics: Statics<'s>,
    is_holder: &'s dyn Fn(&Module) -> bool,
    countings: HashMap<TypeHandle, Rc<Counting>>,
    seen: HashSet<Address>,
    found: Vec<HeldCollection>,
}

impl<'s> Search<'s> {
    fn new(statics: Statics<'s>, is_holder: &'s dyn Fn(&Module) -> bool) -> Self {
        let (countings, seen) = (HashMap::new(), HashSet::new());
        Self { statics, is_holder, countings, seen, found: Vec::new() }
    }

    fn add_module(&mut self, module: &Module, types_left: &mut usize) {
        let types = self.statics.dump.types();
        let metadata = module.metadata.as_deref().and_then(|bytes| ProgramMetadata::parse(bytes).ok());
        let count = metadata.map_or(0, |metadata| metadata.type_count());
        for row in 1..=count {
            let Some(left) = types_left.checked_sub(1) else { return };
            *types_left = left;
            let Some(of) = types.defined_type(module.address, row) else { continue };
            for place in self.statics.fields_of(of, &[]) {
                if place.field.kind != ValueKind::REFERENCE {
                    continue;
                }
                let Some((object, _)) = self.statics.dump.heap().reference_at(place.address) else {
                    continue;
                };
                let Some(holder) = types.name(of) else { continue };
                self.follow(Reached { object, holder, path: place.field.name, depth: 0 });
            }
        }
    }

    /// Finds the collections of an object on a stack.
    fn add_object(&mut self, object: Address) {
        let types = self.statics.dump.types();
        let Some(found) = self.statics.dump.heap().object_at(object) else { return };
        let of = found.type_handle;
        if types.module(of).is_some_and(|module| (self.is_holder)(&module))
            && let Some(holder) = types.name(of)
        {
            self.follow(Reached { object, holder, path: String::new(), depth: 0 });
        }
    }

    /// Finds the collections that an object leads to.
    fn follow(&mut self, first: Reached) {
        let heap = self.statics.dump.heap();
        let mut queue = VecDeque::from([first]);
        while let Some(reached) = queue.pop_front() {
            if self.seen.len() >= MAX_OBJECTS || !self.seen.insert(reached.object) {
                continue;
            }
            let Some(of) = heap.type_of(reached.object) else { continue };
            let counting = self.counting(of);
            if let Counting::Fields(fields) = &*counting {
                for (name, at) in fields {
                    let Some((object, _)) = heap.reference_at(Address::new(reached.object.at(*at))) else {
                        continue;
                    };
                    if reached.depth < MAX_DEPTH {
                        queue.push_back(Reached {
                            object,
                            holder: Arc::clone(&reached.holder),
                            path: match &*reached.path {
                                "" => name.clone(),
                                path => [path, ".", name].concat(),
                            },
                            depth: reached.depth.saturating_add(1),
                        });
                    }
                }
            } else if let (Ok(count), Some(type_name)) =
                (self.count(reached.object, &counting), self.statics.dump.types().name(of))
            {
                let Reached { holder, path, .. } = reached;
                self.found.push(HeldCollection { holder, path, type_name, count });
            }
        }
    }

    /// Returns the number of elements of a collection.
    fn count(&mut self, object: Address, counting: &Counting) -> MemoryResult<u64> {
        let memory = self.statics.memory();
        let number = |number: i64| u64::try_from(number.min(MAX_COUNT)).unwrap_or_default();
        Ok(match counting {
            Counting::Count { count, free } => {
                let free = free.map_or(Ok(0), |free| memory.i32(object.at(free)))?;
                number(i64::from(memory.i32(object.at(*count))?).saturating_sub(free.into()))
            }
            Counting::Inner(at) => {
                let inner = memory.pointer(object.at(*at))?;
                let of = self.counting(memory.object_type(inner)?);
                match &*of {
                    Counting::Count { .. } => self.count(inner, &of)?,
                    _ => 0,
                }
            }
            Counting::Counters(at) => {
                let tables = memory.pointer(object.at(*at))?;
                let types = self.statics.dump.types();
                let fields = types.fields(memory.object_type(tables)?);
                let Some(at) = place(&fields, "_countPerLock") else { return Ok(0) };
                let counters = memory.pointer(tables.at(at))?;
                let mut sum = 0_i64;
                for index in 0..memory.u32(counters.at(8))?.min(MAX_LOCKS) {
                    let at = counters.at(u64::from(index).wrapping_mul(4).wrapping_add(16));
                    sum = sum.saturating_add(memory.i32(at)?.into());
                }
                number(sum)
            }
            Counting::Delegate { list, length } => {
                // A delegate that calls one method has no list.
                if memory.pointer(object.at(*list))?.is_null() {
                    return Ok(1);
                }
                number(memory.i64(object.at(*length))?).max(1)
            }
            Counting::Fields(_) => 0,
        })
    }

    fn counting(&mut self, of: TypeHandle) -> Rc<Counting> {
        if let Some(known) = self.countings.get(&of) {
            return Rc::clone(known);
        }
        let counting = Rc::new(self.read_counting(of));
        self.countings.insert(of, Rc::clone(&counting));
        counting
    }

    fn read_counting(&self, of: TypeHandle) -> Counting {
        let types = self.statics.dump.types();
        let fields = types.fields(of);
        let name = types.name(of).unwrap_or_else(|| Arc::from(""));
        let name = name.split(['`', '[']).next().unwrap_or_default();
        let is_delegate = || types.base_type(of).is_ok_and(|base| is_named(types, base, DELEGATE));
        let known = match name {
            "System.Collections.Generic.List"
            | "System.Collections.Generic.Queue"
            | "System.Collections.Generic.Stack"
            | "System.Collections.Generic.PriorityQueue"
            | "System.Collections.Generic.SortedList"
            | "System.Collections.ArrayList" => counted(&fields, "_size"),
            "System.Collections.Generic.Dictionary"
            | "System.Collections.Generic.HashSet"
            | "System.Collections.Hashtable" => counted(&fields, "_count"),
            "System.Collections.Generic.LinkedList"
            | "System.Collections.Generic.SortedSet"
            | "System.Collections.Generic.TreeSet" => counted(&fields, "count"),
            "System.Collections.Generic.SortedDictionary" => place(&fields, "_set").map(Counting::Inner),
            "System.Collections.Concurrent.ConcurrentDictionary" => {
                place(&fields, "_tables").map(Counting::Counters)
            }
            _ if is_delegate() => (|| {
                let list = place(&fields, "_invocationList")?;
                Some(Counting::Delegate { list, length: place(&fields, "_invocationCount")? })
            })(),
            "System.Lazy" => None,
            _ if types.module(of).is_some_and(|module| (self.is_holder)(&module)) => None,
            // The objects of the framework lead everywhere.
            _ => Some(Counting::Fields(Vec::new())),
        };
        known.unwrap_or_else(|| {
            let references = fields.into_iter().filter(|field| REFERENCES.contains(&field.kind.0));
            Counting::Fields(references.map(|field| (field.name, offset_of(field.offset))).collect())
        })
    }
}

const DELEGATE: &str = "System.MulticastDelegate";

fn is_named(types: crate::types::Types<'_>, of: TypeHandle, name: &str) -> bool {
    types.name(of).is_some_and(|of| &*of == name)
}

fn counted(fields: &[Field], name: &str) -> Option<Counting> {
    let free = place(fields, "_freeCount");
    Some(Counting::Count { count: place(fields, name)?, free })
}

/// The offset of a field from the address of its object.
fn place(fields: &[Field], name: &str) -> Option<u64> {
    fields.iter().find(|field| field.name == name).map(|field| offset_of(field.offset))
}

/// The fields follow the type.
fn offset_of(field: u32) -> u64 {
    offset(8, field.into())
}
