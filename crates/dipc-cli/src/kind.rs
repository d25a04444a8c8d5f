//! The kinds of events of a recording, each looked up once for many events.

use std::collections::HashMap;

use nettrace::Event;

use crate::event_name::EventName;

/// What all events of a kind have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) provider: String,
    pub(crate) id: u32,
    pub(crate) version: u32,
    pub(crate) level: u32,
    pub(crate) keywords: u64,
    pub(crate) opcode: Option<u8>,
    /// The name as the recording has it.
    raw_name: String,
}

impl Kind {
    fn new(event: &Event<'_>) -> Self {
        Self {
            provider: event.provider().to_owned(),
            id: event.id(),
            version: event.version(),
            level: event.level(),
            keywords: event.keywords(),
            opcode: event.opcode(),
            raw_name: event.name().to_owned(),
        }
    }

    /// The name as it is shown.
    pub(crate) fn name(&self) -> EventName<'_> {
        EventName::new(&self.raw_name, self.id, self.opcode)
    }

    /// Whether the event is of this kind. Recordings may define a number again, and V6 lets single events differ.
    fn is_of(&self, event: &Event<'_>) -> bool {
        self.id == event.id()
            && self.version == event.version()
            && self.level == event.level()
            && self.keywords == event.keywords()
            && self.opcode == event.opcode()
            && self.provider == event.provider()
            && self.raw_name == event.name()
    }
}

/// The kinds met so far, with something of the caller's for each.
#[derive(Debug)]
pub(crate) struct Kinds<T> {
    met: Vec<(Kind, T)>,
    /// Index + 1 by the recording's number of the kind: runtimes number from 1.
    dense: Vec<u32>,
    /// The same for numbers that a runtime would never give.
    sparse: HashMap<u32, u32>,
}

/// Numbers below this are looked up in an array; a recording that uses larger ones cannot make us allocate for them.
const DENSE: u32 = 1 << 16;

impl<T> Kinds<T> {
    pub(crate) fn new() -> Self {
        Self { met: Vec::new(), dense: Vec::new(), sparse: HashMap::new() }
    }

    /// The entry of the event's kind, made by `make` when the kind is new.
    pub(crate) fn entry(&mut self, event: &Event<'_>, make: impl FnOnce(&Kind) -> T) -> &mut T {
        let number = event.metadata().id();
        let index = match self.index(number) {
            Some(index) if self.met[index].0.is_of(event) => index,
            _ => self.add(number, event, make),
        };
        &mut self.met[index].1
    }

    fn index(&self, number: u32) -> Option<usize> {
        let entry = if number < DENSE { self.dense.get(number as usize) } else { self.sparse.get(&number) };
        entry.and_then(|entry| entry.checked_sub(1)).map(|index| index as usize)
    }

    #[cold]
    fn add(&mut self, number: u32, event: &Event<'_>, make: impl FnOnce(&Kind) -> T) -> usize {
        // A kind that was replaced and comes back is found again, so that no alternation makes the list grow.
        let index = self.met.iter().position(|(kind, _)| kind.is_of(event)).unwrap_or_else(|| {
            let kind = Kind::new(event);
            let value = make(&kind);
            self.met.push((kind, value));
            self.met.len() - 1
        });
        let entry = u32::try_from(index + 1).unwrap_or(0);
        if number < DENSE {
            let place = number as usize;
            if self.dense.len() <= place {
                self.dense.resize(place + 1, 0);
            }
            self.dense[place] = entry;
        } else {
            self.sparse.insert(number, entry);
        }
        index
    }
}

impl<T> IntoIterator for Kinds<T> {
    type Item = (Kind, T);
    type IntoIter = std::vec::IntoIter<(Kind, T)>;

    /// The kinds in the order in which they were met.
    fn into_iter(self) -> Self::IntoIter {
        self.met.into_iter()
    }
}
