//! The number of elements of a collection, from its own fields.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::memory::address::{Address, TypeHandle};
use crate::memory::{MemoryResult, offset};
use crate::runtime::module::Module;
use crate::statics::Statics;
use crate::types::Types;
use crate::types::field::Field;

/// Maximum number of counters of a ConcurrentDictionary.
const MAX_LOCKS: u32 = 1 << 14;
/// Upper bound on a valid number of elements.
const MAX_COUNT: i64 = 1 << 31;

/// The kinds of references.
const REFERENCES: [u8; 5] = [0x0e, 0x12, 0x14, 0x1c, 0x1d];

/// The way to the number of elements in an object of a type. Offsets are from the object's address.
#[derive(Debug)]
pub(super) enum Counting {
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

/// The counts of collections. Fields of types for which `is_holder` is true are followed.
pub(crate) struct Counts<'s> {
    statics: Statics<'s>,
    is_holder: &'s dyn Fn(&Module) -> bool,
    countings: HashMap<TypeHandle, Rc<Counting>>,
}

impl<'s> Counts<'s> {
    pub(crate) fn new(statics: Statics<'s>, is_holder: &'s dyn Fn(&Module) -> bool) -> Self {
        Self { statics, is_holder, countings: HashMap::new() }
    }

    /// Returns the number of elements of a collection of a type; zero for other objects.
    pub(crate) fn of(&mut self, object: Address, of: TypeHandle) -> MemoryResult<u64> {
        let counting = self.counting(of);
        self.count(object, &counting)
    }

    /// Returns the number of elements of a collection.
    pub(super) fn count(&mut self, object: Address, counting: &Counting) -> MemoryResult<u64> {
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

    pub(super) fn counting(&mut self, of: TypeHandle) -> Rc<Counting> {
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

fn is_named(types: Types<'_>, of: TypeHandle, name: &str) -> bool {
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
