//! Groups of roots, and their parent groups.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};

use crate::graph::RootGroup;

/// A tree of groups. Groups with the same parent have different names.
#[derive(Debug)]
pub(crate) struct RootGroups {
    groups: Vec<RootGroup>,
    numbers: HashMap<(u32, Arc<str>), u32>,
    /// For groups with a lower number: whether they were passed to [`RootGroups::is_new`] or hold a root.
    made: Vec<bool>,
    /// The groups of static fields.
    declared: HashSet<u32>,
}

impl RootGroups {
    /// The group that holds all others.
    pub(crate) const ALL: u32 = 0;

    /// Returns the child group with that name, which is created by the first call.
    pub(crate) fn child(&mut self, parent: u32, name: &str) -> u32 {
        let key = (parent, name);
        if let Some(number) = self.numbers.get(&Key(key.0, key.1)) {
            return *number;
        }
        let number = u32::try_from(self.groups.len()).unwrap_or(u32::MAX);
        let name: Arc<str> = name.into();
        self.groups.push(RootGroup { name: Arc::clone(&name), parent: Some(parent), owner: None });
        self.numbers.insert((parent, name), number);
        self.made.push(true);
        number
    }

    /// Sets the declaring type of the static field of a group. One group can be for fields of several types.
    pub(crate) fn declare(&mut self, group: u32, owner: Option<&str>) {
        let is_first = self.declared.insert(group);
        let Some(group) = self.groups.get_mut(group as usize) else { return };
        if is_first {
            group.owner = owner.map(Into::into);
        } else if group.owner.as_deref() != owner {
            group.owner = None;
        }
    }

    /// Returns true if this is the first call for a group.
    pub(crate) fn is_new(&mut self, group: u32) -> bool {
        self.made.get_mut(group as usize).is_some_and(std::mem::take)
    }

    pub(crate) fn into_groups(self) -> Vec<RootGroup> {
        self.groups
    }
}

impl Default for RootGroups {
    fn default() -> Self {
        let all = RootGroup { name: "[.NET Roots]".into(), parent: None, owner: None };
        Self { groups: vec![all], numbers: HashMap::new(), made: vec![false], declared: HashSet::new() }
    }
}

/// The key of a group, borrowed.
#[derive(Hash)]
struct Key<'a>(u32, &'a str);

impl hashbrown::Equivalent<(u32, Arc<str>)> for Key<'_> {
    fn equivalent(&self, key: &(u32, Arc<str>)) -> bool {
        self.0 == key.0 && self.1 == &*key.1
    }
}
