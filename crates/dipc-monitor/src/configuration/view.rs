//! Typed values of a tree. Faults of values are found by the shapes: here a wrong value is a missing one.

use std::time::Duration;

use super::finding::Location;
use super::tree::Node;
use super::value::{parse_boolean, parse_time_span};

/// A node that may be missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'n>(pub(crate) Option<&'n Node>);

impl<'n> View<'n> {
    pub(crate) fn get(self, name: &str) -> Self {
        Self(self.0.and_then(|node| node.get(name)))
    }

    pub(crate) fn is_set(self) -> bool {
        self.0.is_some_and(|node| !node.is_empty())
    }

    pub(crate) fn location(self) -> Location {
        self.0.map_or_else(Location::default, |node| node.location)
    }

    /// The text of a key; `None` if it is missing or empty.
    pub(crate) fn text(self, name: &str) -> Option<&'n str> {
        self.get(name).own_text()
    }

    /// The text of the node itself.
    pub(crate) fn own_text(self) -> Option<&'n str> {
        self.0?.value.as_deref().filter(|value| !value.is_empty())
    }

    pub(crate) fn owned(self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    pub(crate) fn boolean(self, name: &str) -> Option<bool> {
        parse_boolean(self.text(name)?)
    }

    pub(crate) fn integer<T: TryFrom<i64>>(self, name: &str) -> Option<T> {
        self.text(name)?.trim().parse::<i64>().ok().and_then(|number| T::try_from(number).ok())
    }

    pub(crate) fn number(self, name: &str) -> Option<f64> {
        self.text(name)?.trim().parse::<f64>().ok().filter(|number| number.is_finite())
    }

    pub(crate) fn duration(self, name: &str) -> Option<Duration> {
        parse_time_span(self.text(name)?)
    }

    /// The value of `names` that the key has, as it is written there.
    pub(crate) fn one_of<'s>(self, name: &str, names: &[&'s str]) -> Option<&'s str> {
        let value = self.text(name)?.trim();
        names.iter().copied().find(|name| name.eq_ignore_ascii_case(value))
    }

    /// The items of a list.
    pub(crate) fn items(self, name: &str) -> Vec<View<'n>> {
        let items = self.get(name).0.map(Node::items).unwrap_or_default();
        items.into_iter().map(|item| View(Some(item))).collect()
    }

    /// The strings of a list.
    pub(crate) fn texts(self, name: &str) -> Vec<String> {
        self.items(name).into_iter().filter_map(|item| item.own_text().map(str::to_owned)).collect()
    }

    /// The children of a node with their names.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'n str, View<'n>)> {
        self.0.into_iter().flat_map(Node::children).map(|node| (&*node.name, View(Some(node))))
    }
}
