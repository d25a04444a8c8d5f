//! Frames: what a level of a stack is called.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A frame; frames of the same name are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);

/// The names of frames, each once: `Module!Namespace.Type.Method(parameters)`, or the name of a pseudo-frame.
#[derive(Debug, Default)]
pub struct Frames {
    names: Vec<Box<str>>,
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Frames {
    /// The frame of that name, which is added if it is new.
    pub fn intern(&mut self, name: &str) -> FrameId {
        let hash = self.hasher.hash_one(name);
        let Self { names, ids, hasher } = self;
        let name_of = |id: &u32| names.get(*id as usize).map_or("", |name| &**name);
        if let Some(id) = ids.find(hash, |id| name_of(id) == name) {
            return FrameId(*id);
        }
        // Frames come from stacks of a recording, whose bytes would not fit any memory before their number overflows.
        let id = u32::try_from(names.len()).unwrap_or(u32::MAX);
        ids.insert_unique(hash, id, |id| hasher.hash_one(name_of(id)));
        names.push(name.into());
        FrameId(id)
    }

    /// The frame of that name, or where there are as many as `limit` and it is none of them, that of `(others)`.
    pub(crate) fn intern_within(&mut self, limit: usize, name: &str) -> FrameId {
        let is_new = || self.find(name).is_none();
        if self.len() >= limit && is_new() { self.intern("(others)") } else { self.intern(name) }
    }

    fn find(&self, name: &str) -> Option<FrameId> {
        let hash = self.hasher.hash_one(name);
        self.ids.find(hash, |id| self.name(FrameId(*id)) == name).copied().map(FrameId)
    }

    /// The whole name.
    pub fn name(&self, id: FrameId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }

    /// The name in two: the module, empty for pseudo-frames, and what is behind the first `!`.
    pub fn parts(&self, id: FrameId) -> (&str, &str) {
        let name = self.name(id);
        match name.split_once('!') {
            Some((module, method)) if !module.is_empty() => (module, method),
            _ => ("", name),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// All of them, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &str)> {
        (0..).map(FrameId).zip(self.names.iter().map(|name| &**name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stays_known_when_no_more_is_taken() {
        let mut frames = Frames::default();
        let first = frames.intern_within(2, "first");
        let second = frames.intern_within(2, "second");
        let others = frames.intern_within(2, "third");
        assert_eq!(frames.name(others), "(others)");
        assert_eq!(frames.intern_within(2, "fourth"), others);
        assert_eq!([frames.intern_within(2, "first"), frames.intern_within(2, "second")], [first, second]);
    }

    #[test]
    fn equal_names_are_one_frame() {
        let mut frames = Frames::default();
        let ids: Vec<_> = (0..1000).map(|number| frames.intern(&format!("M!T.M{number}()"))).collect();
        assert_eq!(frames.intern("M!T.M7()"), ids[7]);
        assert_eq!(frames.len(), 1000);
        assert_eq!(frames.parts(ids[7]), ("M", "T.M7()"));
        for plain in ["CPU_TIME", "!x"] {
            let id = frames.intern(plain);
            assert_eq!(frames.parts(id), ("", plain));
        }
    }
}
