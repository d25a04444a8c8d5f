//! Definitions of types in their modules, with facts that dumps do not have.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::graph::{HeapGraph, Root};

/// The table of tokens of types.
const TYPE_TOKENS: u32 = 0x0200_0000;

/// A type that a module defines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::exhaustive_structs, reason = "made by those who read modules")]
pub struct DefinedType {
    /// The name as the runtime writes it, with its enclosing types:
    /// ``System.Collections.Generic.Dictionary`2+Entry``.
    pub name: String,
    /// The names of its static fields.
    pub static_fields: Vec<String>,
}

/// The types of modules, by the runtime's module numbers.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    modules: HashMap<u64, Vec<DefinedType>>,
}

/// The place of a type: its module, and its index there.
type Place = (u64, usize);

impl Definitions {
    /// Reads the types of modules. `types_of` returns the types of a module in token order.
    pub(crate) fn read<'m>(
        modules: impl Iterator<Item = (u64, &'m Arc<str>)>,
        mut types_of: impl FnMut(&str) -> Option<Vec<DefinedType>>,
    ) -> Self {
        Self { modules: modules.filter_map(|(id, path)| Some((id, types_of(path)?))).collect() }
    }

    /// Returns the name of a nested type with its enclosing types, where the runtime writes only `own`;
    /// `None` if they are not known.
    pub(crate) fn whole_name(&self, module: u64, token: u32, own: &str) -> Option<String> {
        let index = token.checked_sub(TYPE_TOKENS)?.checked_sub(1)?;
        let name = &self.modules.get(&module)?.get(usize::try_from(index).ok()?)?.name;
        let (plain, arguments) = own.split_at_checked(own.find('[').unwrap_or(own.len()))?;
        // If the end differs, it is another build of the module.
        let is_same = name.strip_suffix(plain).is_some_and(|around| around.ends_with('+'));
        is_same.then(|| [name, arguments].concat())
    }

    /// Returns the declaring type of each of some static fields; `None` if it is not known.
    ///
    /// The runtime sends the fields of a module in the order of its types. So if several types have a field
    /// of that name, the owner is the only one of them between the types of the fields before and after.
    pub(crate) fn owners<'f>(&self, fields: impl Iterator<Item = &'f str>) -> Vec<Option<&str>> {
        self.places(fields).into_iter().map(|place| self.name(place?)).collect()
    }

    /// Returns the same for fields of which some can be of modules that are not known: a type of another
    /// module can have a field of that name, but seldom at the place in the order.
    pub(crate) fn ordered_owners<'f>(&self, fields: impl Iterator<Item = &'f str>) -> Vec<Option<&str>> {
        let places = self.places(fields);
        let mut owners = vec![None; places.len()];
        for module in self.modules.keys() {
            let of_module = places.iter().enumerate().filter_map(|(number, place)| {
                place.filter(|(of, _)| of == module).map(|(_, index)| (number, index))
            });
            for number in longest_rise(of_module) {
                if let (Some(owner), Some(Some(place))) = (owners.get_mut(number), places.get(number)) {
                    *owner = self.name(*place);
                }
            }
        }
        owners
    }

    fn name(&self, (module, index): Place) -> Option<&str> {
        Some(&*self.modules.get(&module)?.get(index)?.name)
    }

    fn places<'f>(&self, fields: impl Iterator<Item = &'f str>) -> Vec<Option<Place>> {
        let mut by_name: HashMap<&str, Vec<Place>> = HashMap::new();
        for (module, types) in &self.modules {
            for (index, of) in types.iter().enumerate() {
                for field in &of.static_fields {
                    by_name.entry(field).or_default().push((*module, index));
                }
            }
        }
        let candidates: Vec<&[Place]> =
            fields.map(|field| by_name.get(field).map_or(&[][..], Vec::as_slice)).collect();
        let only = |places: &[Place]| if let [place] = places { Some(*place) } else { None };
        let mut before: Option<Place> = None;
        let known: Vec<Option<Place>> = candidates.iter().map(|places| only(places)).collect();
        let mut after: Vec<Option<Place>> = known
            .iter()
            .rev()
            .scan(None, |next, place| Some(std::mem::replace(next, place.or(*next))))
            .collect();
        let mut owners = Vec::with_capacity(candidates.len());
        for (places, known) in candidates.iter().zip(known) {
            let (first, last) = (before, after.pop().flatten());
            let is_between = |place: &Place| match (first, last) {
                (Some(first), Some(last)) => first <= *place && *place <= last && first.0 == last.0,
                _ => false,
            };
            let between = || {
                let mut between = places.iter().filter(|place| is_between(place));
                between.next().copied().filter(|_| between.next().is_none())
            };
            let owner = known.or_else(between);
            before = owner.or(before);
            owners.push(owner);
        }
        owners
    }
}

/// Returns the numbers of the longest part of a sequence in which indexes do not fall.
fn longest_rise(sequence: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    let sequence: Vec<_> = sequence.collect();
    // The position that ends the best part of each length, and the position before each one.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(sequence.len());
    let index = |position: &usize| sequence.get(*position).map(|(_, index)| *index);
    for (position, (_, own)) in sequence.iter().enumerate() {
        let length = ends.partition_point(|end| index(end).is_some_and(|index| index <= *own));
        before.push(length.checked_sub(1).and_then(|last| ends.get(last).copied()));
        match ends.get_mut(length) {
            Some(end) => *end = position,
            None => ends.push(position),
        }
    }
    let part = std::iter::successors(ends.last().copied(), |position| *before.get(*position)?);
    part.filter_map(|position| sequence.get(position).map(|(number, _)| *number)).collect()
}

impl HeapGraph {
    /// Finds the declaring types of static fields, which files do not have, in the modules of the heap's
    /// types. `types_of` returns the types of the module at a path, in token order; `None` if they are not
    /// known. In files, fields with the same name and value type are one group, which gets no declaring type.
    pub fn find_declaring_types(&mut self, types_of: impl FnMut(&str) -> Option<Vec<DefinedType>>) {
        let modules: BTreeSet<&Arc<str>> = self.types.iter().filter_map(|of| of.module.as_ref()).collect();
        let definitions = Definitions::read((0..).zip(modules), types_of);
        let fields = self.groups.iter().map(|group| group.field().unwrap_or_default());
        let owners: Vec<Option<Arc<str>>> =
            definitions.ordered_owners(fields).into_iter().map(|owner| owner.map(Into::into)).collect();
        let mut roots = vec![0_u32; self.groups.len()];
        for root in self.roots.iter().filter(|root| root.target != Root::NONE) {
            if let Some(count) = roots.get_mut(root.group as usize) {
                *count = count.saturating_add(1);
            }
        }
        for ((group, owner), roots) in self.groups.iter_mut().zip(owners).zip(roots) {
            if roots == 1 && group.owner.is_none() {
                group.owner = owner;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::{MemoryGraphBuilder, MemoryType};

    fn definitions() -> Definitions {
        let of = |name: &str, fields: &[&str]| DefinedType {
            name: name.to_owned(),
            static_fields: fields.iter().map(ToString::to_string).collect(),
        };
        let shop = vec![
            of("<Module>", &[]),
            of("A", &["First", "Log"]),
            of("Shop.Cache", &["Items", "Log"]),
            of("D`2+Entry", &[]),
            of("Z", &["Last", "Log"]),
        ];
        let (one, other): (Arc<str>, Arc<str>) = ("/app/shop.dll".into(), "/app/none.dll".into());
        Definitions::read([(7, &one), (8, &other)].into_iter(), |path| {
            path.contains("shop").then(|| shop.clone())
        })
    }

    #[test]
    fn field_ranges_end_at_the_next_type() {
        let definitions = definitions();
        let owners = |fields: &[&str]| -> Vec<Option<String>> {
            definitions
                .owners(fields.iter().copied())
                .into_iter()
                .map(|owner| owner.map(str::to_owned))
                .collect()
        };
        let names = |names: &[&str]| {
            names
                .iter()
                .map(|name| Some((*name).to_owned()).filter(|name| !name.is_empty()))
                .collect::<Vec<_>>()
        };
        assert_eq!(owners(&["Items", "Nothing"]), names(&["Shop.Cache", ""]));
        // After A's own, before Z's: A's fields and the cache's are possible.
        assert_eq!(owners(&["First", "Log", "Last"]), names(&["A", "", "Z"]));
        assert_eq!(owners(&["Items", "Log", "Last"]), names(&["Shop.Cache", "", "Z"]));
        assert_eq!(owners(&["First", "Log", "Items"]), names(&["A", "", "Shop.Cache"]));
        assert_eq!(owners(&["Log"]), names(&[""]));
    }

    #[test]
    fn nested_types_have_the_types_around_them() {
        let definitions = definitions();
        let name = |token, own| definitions.whole_name(7, token, own);
        assert_eq!(name(0x0200_0004, "Entry[A,B]").as_deref(), Some("D`2+Entry[A,B]"));
        assert_eq!(name(0x0200_0004, "Other[A,B]"), None);
        assert_eq!(
            (name(0x0200_0002, "A"), name(0x0200_0099, "A"), name(0x1b00_0001, "A")),
            (None, None, None)
        );
        assert_eq!(definitions.whole_name(8, 0x0200_0001, "A"), None);
    }

    #[test]
    fn a_field_of_that_name_at_another_place_is_of_a_module_that_is_not_known() {
        let definitions = definitions();
        let owners = definitions.ordered_owners(["First", "Items", "Last", "First"].into_iter());
        assert_eq!(owners, [Some("A"), Some("Shop.Cache"), Some("Z"), None]);
    }

    #[test]
    fn static_fields_of_files_get_their_types_from_modules() {
        let mut builder = MemoryGraphBuilder::new(8, None);
        builder.add_module(1, "/app/shop.dll");
        let name = "Shop.Cache";
        builder.add_type(MemoryType { id: 1, module_id: 1, name, whole_name: name, is_array: false });
        builder.add_object(0x1000, 1, 24);
        builder.add_static(None, "Items", 1, 0x1000);
        let mut file = Vec::new();
        crate::file::write(&builder.finish().unwrap(), &mut file).unwrap();
        let mut graph = crate::file::read(&file).unwrap();
        let has = |graph: &HeapGraph, name: &str| graph.groups().iter().any(|group| group.csharp() == name);
        assert!(has(&graph, "[static var Items: Shop.Cache]"));
        let of = DefinedType { name: "Shop.Cache".to_owned(), static_fields: vec!["Items".to_owned()] };
        graph.find_declaring_types(|path| (path == "/app/shop.dll").then(|| vec![of.clone()]));
        assert!(has(&graph, "[static var Shop.Cache.Items: Shop.Cache]"));
    }
}
