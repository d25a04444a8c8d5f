//! Keys and values of a configuration, as .NET's configuration merges them: case-insensitive paths, of which
//! later sources replace single values.

use indexmap::IndexMap;

use super::finding::Location;

/// A key with its value, its children, or both.
#[derive(Debug, Clone, Default)]
pub(crate) struct Node {
    /// The key as last written.
    pub(crate) name: String,
    /// The place that set it last.
    pub(crate) location: Location,
    /// The value; `None` for an object or a list, and for `null`.
    pub(crate) value: Option<String>,
    /// The children by name in lower case.
    children: IndexMap<String, Node>,
    /// True if it was written as a list.
    pub(crate) is_list: bool,
}

impl Node {
    pub(crate) fn new(name: &str, location: Location) -> Self {
        Self { name: name.to_owned(), location, ..Self::default() }
    }

    /// Returns a child by name, in any case.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.children.get(&name.to_lowercase())
    }

    /// Returns the child of this name, which is created if it is missing.
    pub(crate) fn child(&mut self, name: &str, location: Location) -> &mut Self {
        let child = self.children.entry(name.to_lowercase()).or_insert_with(|| Self::new(name, location));
        name.clone_into(&mut child.name);
        child.location = location;
        child
    }

    /// Sets a child under its own name.
    pub(crate) fn set(&mut self, child: Self) {
        self.children.insert(child.name.to_lowercase(), child);
    }

    /// Returns the node at a path of names, which is created if it is missing.
    pub(crate) fn at_path<'p>(
        &mut self,
        path: impl Iterator<Item = &'p str>,
        location: Location,
    ) -> &mut Self {
        path.fold(self, |node, name| node.child(name, location))
    }

    /// The children, in the order in which they were first set.
    pub(crate) fn children(&self) -> impl Iterator<Item = &Self> {
        self.children.values()
    }

    /// The children of a list by number. Children without a number, which do not belong in a list, are last.
    pub(crate) fn items(&self) -> Vec<&Self> {
        let mut items: Vec<_> = self.children.values().collect();
        items.sort_by_key(|item| item.name.parse::<u32>().unwrap_or(u32::MAX));
        items
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Returns true if it has neither a value nor children: `null`, `{}` or `[]`.
    pub(crate) fn is_empty(&self) -> bool {
        self.value.is_none() && self.children.is_empty()
    }
}
