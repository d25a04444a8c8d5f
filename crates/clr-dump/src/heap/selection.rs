//! The objects of some types.

use hashbrown::HashSet;

use crate::heap::generations::GenerationRanges;
use crate::heap::regions::HeapLayout;
use crate::heap::{Amount, Heap, HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::TypeHandle;

/// The first objects of some types, and the sum of all of them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ObjectSelection {
    /// The first objects, by address.
    pub objects: Vec<HeapObject>,
    /// The number and size of all objects of the types.
    pub amount: Amount,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

impl Heap<'_> {
    /// Finds the objects of some types, and returns at most `max_objects` of them. With a number as in
    /// [`Generation`](crate::Generation), only those of the generation are found.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// let types = dump.heap().statistics()?.types;
    /// let rows = types.iter().filter(|of| of.name.as_deref() == Some("Shop.Row")).map(|of| of.type_handle);
    /// let rows = dump.heap().objects_of(rows, None, 10)?;
    /// println!("{} rows, such as {:?}", rows.amount.objects, rows.objects.first());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn objects_of(
        self,
        types: impl IntoIterator<Item = TypeHandle>,
        generation: Option<u64>,
        max_objects: usize,
    ) -> MemoryResult<ObjectSelection> {
        let layout = HeapLayout::read(self.memory(), self.runtime())?;
        let mut selector = Selector {
            types: types.into_iter().collect(),
            generation: generation.map(|number| (number, GenerationRanges::new(&layout))),
            max_objects,
            selection: ObjectSelection::default(),
        };
        let walk = self.walk_layout(&layout, &mut selector)?;
        Ok(ObjectSelection { walk, ..selector.selection })
    }
}

struct Selector {
    types: HashSet<TypeHandle>,
    /// The only generation to find objects in.
    generation: Option<(u64, GenerationRanges)>,
    max_objects: usize,
    selection: ObjectSelection,
}

impl HeapVisitor for Selector {
    fn object(&mut self, object: &HeapObject) {
        let is_in_generation = |(number, ranges): &(u64, GenerationRanges)| {
            ranges.part(object.address).is_some_and(|part| part.generation == *number)
        };
        if self.types.contains(&object.type_handle) && self.generation.as_ref().is_none_or(is_in_generation) {
            self.selection.amount.add(object.size);
            if self.selection.objects.len() < self.max_objects {
                self.selection.objects.push(*object);
            }
        }
    }
}
