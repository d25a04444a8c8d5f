//! Objects that were allocated since a session began and are still in use, by type.

use std::collections::BTreeMap;

use clr_activity::{LiveObjectCounts, LiveObjects, SampledAllocation, SampledAllocations};
use clr_events::ClrEvent;
use clr_events::csharp::type_name;
use nettrace::Event;

/// Maximum number of objects to follow. Each represents about 100 KB.
const MAX_OBJECTS: usize = 1 << 17;
/// Maximum number of distinct types.
const MAX_TYPES: usize = 4096;
/// The name of the row for types beyond the limit.
const OTHERS: &str = "(others)";

/// The sampled objects that the last collection of their generation found alive.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct InUse {
    /// The types, those of the most bytes first.
    pub types: Vec<TypeInUse>,
    /// The collections that the objects were followed through, and the objects that were not followed.
    pub counts: LiveObjectCounts,
}

/// The objects of a type that are in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TypeInUse {
    /// The type's name in C#.
    pub csharp: String,
    /// The bytes that the sampled objects represent.
    pub bytes: u64,
    /// The number of sampled objects.
    pub samples: u64,
}

/// Objects that are followed through the collections of a process.
#[derive(Debug)]
pub(super) struct FollowedObjects {
    objects: LiveObjects<Allocation>,
    names: Vec<String>,
    numbers: BTreeMap<String, usize>,
    chosen: SampledAllocations,
}

#[derive(Debug)]
struct Allocation {
    /// The number of the type's name.
    type_number: usize,
    bytes: u64,
}

impl Default for FollowedObjects {
    fn default() -> Self {
        Self {
            objects: LiveObjects::new(MAX_OBJECTS),
            names: Vec::new(),
            numbers: BTreeMap::new(),
            chosen: SampledAllocations::default(),
        }
    }
}

impl FollowedObjects {
    /// Adds an event. Allocations and collections count.
    pub(super) fn add(&mut self, event: &Event<'_>) {
        let Ok(Some(view)) = ClrEvent::of(event) else { return };
        let Some(sampled) = self.chosen.choose(&view) else {
            self.objects.add(&view);
            return;
        };
        if sampled.replaces_earlier {
            self.objects.forget();
        }
        let SampledAllocation { address, object_size, kind, bytes, type_name, .. } = sampled;
        let type_number = self.number(type_name.to_string());
        self.objects.allocate(address, object_size, kind, Allocation { type_number, bytes });
    }

    fn number(&mut self, name: String) -> usize {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let (name, csharp) = if self.names.len() < MAX_TYPES {
            let csharp = type_name(&name).unwrap_or_else(|| name.clone());
            (name, csharp)
        } else {
            (OTHERS.to_owned(), OTHERS.to_owned())
        };
        let Self { numbers, names, .. } = self;
        *numbers.entry(name).or_insert_with(|| {
            names.push(csharp);
            names.len().saturating_sub(1)
        })
    }

    /// Returns what is in use now.
    pub(super) fn in_use(&self) -> InUse {
        let mut sums: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
        for Allocation { type_number, bytes } in self.objects.survivors() {
            let (sum, samples) = sums.entry(*type_number).or_default();
            *sum = sum.saturating_add(*bytes);
            *samples = samples.saturating_add(1);
        }
        let row = |(number, (bytes, samples)): (usize, (u64, u64))| {
            Some(TypeInUse { csharp: self.names.get(number)?.clone(), bytes, samples })
        };
        let mut types: Vec<_> = sums.into_iter().filter_map(row).collect();
        types.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.csharp.cmp(&b.csharp)));
        InUse { types, counts: self.objects.counts() }
    }
}
