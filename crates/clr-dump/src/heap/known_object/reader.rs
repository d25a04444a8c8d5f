//! The elements of collections, by the fields of each.

use hashbrown::HashSet;

use super::{CHANNELS, Fields, KnownContent};
use crate::heap::Heap;
use crate::heap::object::Value;
use crate::memory::address::Address;
use crate::memory::offset;

/// Maximum number of values to read of an object.
const MAX_VALUES: usize = 1 << 16;
/// Maximum number of places, used or not, to look at for elements.
const MAX_PLACES: u32 = 1 << 18;
/// Maximum number of arrays of a queue: each has twice the places of the one before, up to millions.
const MAX_SEGMENTS: usize = 1 << 10;
/// Maximum number of nodes of a tree on the way to an element.
const MAX_DEPTH: usize = 128;
/// The offset of the first element of an array.
const ELEMENTS: u64 = 16;

/// The reading of collections.
pub(super) struct Reader<'d> {
    heap: Heap<'d>,
    /// Maximum number of elements.
    most: u32,
    /// The number of values that may still be read.
    left: usize,
}

impl<'d> Reader<'d> {
    pub(super) const fn new(heap: Heap<'d>, most: u32) -> Self {
        Self { heap, most, left: MAX_VALUES }
    }

    pub(super) fn list(&mut self, of: &Fields) -> Option<KnownContent> {
        let count = of.count("_size")?;
        self.elements(of.reference("_items")?, count, 0..count)
    }

    /// The top comes first.
    pub(super) fn stack(&mut self, of: &Fields) -> Option<KnownContent> {
        let count = of.count("_size")?;
        self.elements(of.reference("_array")?, count, (0..count).rev())
    }

    pub(super) fn queue(&mut self, of: &Fields) -> Option<KnownContent> {
        let (count, head, array) = (of.count("_size")?, of.count("_head")?, of.reference("_array")?);
        let length = self.heap.array_at(array)?.length;
        let place = |index: u32| head.wrapping_add(index).checked_rem(length).unwrap_or_default();
        self.elements(array, count, (0..count).map(place))
    }

    /// The elements of an array at some places.
    fn elements(
        &mut self,
        array: Address,
        count: u32,
        places: impl Iterator<Item = u32>,
    ) -> Option<KnownContent> {
        let array = self.heap.array_at(array)?;
        let places = places.take_while(|place| *place < array.length);
        let places = places.take(usize::try_from(self.most).unwrap_or_default());
        let mut elements = Vec::new();
        for place in places {
            if self.left == 0 {
                break;
            }
            elements.push(array.element(place, &mut self.left));
        }
        Some(KnownContent::Elements { elements, count: count.into() })
    }

    /// The entries of a hash table that are used: others have a link to the next free one.
    fn entries(
        &mut self,
        array: Address,
        used: u32,
        is_free: impl Fn(&Fields) -> bool,
    ) -> Option<Vec<Fields>> {
        let array = self.heap.array_at(array)?;
        let mut entries = Vec::new();
        for place in 0..used.min(array.length).min(MAX_PLACES) {
            if self.left == 0 || entries.len() >= usize::try_from(self.most).unwrap_or_default() {
                break;
            }
            let entry = Fields::of_structure(array.element(place, &mut self.left))?;
            if !is_free(&entry) {
                entries.push(entry);
            }
        }
        Some(entries)
    }

    pub(super) fn dictionary(&mut self, of: &Fields) -> Option<KnownContent> {
        let used = of.count("_count")?;
        let count = u64::from(used).saturating_sub(of.count("_freeCount")?.into());
        let is_free = |entry: &Fields| entry.number("next").is_none_or(|next| next < -1);
        let entries = match of.reference("_entries") {
            Some(array) => self.entries(array, used, is_free)?,
            None => Vec::new(),
        };
        let pair = |mut entry: Fields| Some((entry.take("key")?, entry.take("value")?));
        Some(KnownContent::Pairs { pairs: entries.into_iter().filter_map(pair).collect(), count })
    }

    pub(super) fn hash_set(&mut self, of: &Fields) -> Option<KnownContent> {
        // .NET Core 3.1 has other names, and marks free entries in another way.
        let (array, used, free) = if of.get("_slots").is_some() {
            (of.reference("_slots"), of.count("_lastIndex")?, 0)
        } else {
            (of.reference("_entries"), of.count("_count")?, of.count("_freeCount")?)
        };
        let count = match of.get("_slots") {
            Some(_) => of.count("_count")?.into(),
            None => u64::from(used).saturating_sub(free.into()),
        };
        let is_free = |entry: &Fields| match entry.number("hashCode") {
            Some(code) => code < 0,
            None => entry.number("Next").is_none_or(|next| next < -1),
        };
        let entries = match array {
            Some(array) => self.entries(array, used, is_free)?,
            None => Vec::new(),
        };
        let value = |mut entry: Fields| entry.take("Value").or_else(|| entry.take("value"));
        Some(KnownContent::Elements { elements: entries.into_iter().filter_map(value).collect(), count })
    }

    pub(super) fn concurrent_dictionary(&mut self, of: &Fields) -> Option<KnownContent> {
        let (heap, memory) = (self.heap, self.heap.memory());
        let tables = Fields::read(heap, of.reference("_tables")?)?;
        let buckets = tables.reference("_buckets")?;
        let counters = heap.array_at(tables.reference("_countPerLock")?)?;
        let mut count = 0_u64;
        for index in 0..counters.length.min(MAX_PLACES) {
            if let Value::Signed(number) = counters.element(index, &mut self.left) {
                count = count.saturating_add(u64::try_from(number).unwrap_or_default());
            }
        }
        let mut pairs = Vec::new();
        let mut seen = HashSet::new();
        let most = usize::try_from(self.most).unwrap_or_default();
        for index in 0..memory.u32(buckets.at(8)).ok()?.min(MAX_PLACES) {
            let at = offset(buckets.get(), u64::from(index).wrapping_mul(8).wrapping_add(ELEMENTS));
            let mut node = memory.pointer(at).ok().filter(|node| !node.is_null());
            while let Some(of) = node {
                if pairs.len() >= most || !seen.insert(of) {
                    break;
                }
                let mut fields = Fields::read(heap, of)?;
                node = fields.reference("_next");
                pairs.push((fields.take("_key")?, fields.take("_value")?));
            }
        }
        Some(KnownContent::Pairs { pairs, count })
    }

    pub(super) fn concurrent_queue(&mut self, of: &Fields) -> Option<KnownContent> {
        let mut segment = of.reference("_head");
        let (mut elements, mut count, mut seen) = (Vec::new(), 0_u64, HashSet::new());
        while let Some(address) = segment.filter(|address| seen.insert(*address)) {
            let fields = Fields::read(self.heap, address)?;
            segment = fields.reference("_nextSegment");
            let Value::Structure { fields: ends, .. } = fields.get("_headAndTail")? else { return None };
            let end = |name: &str| {
                let value = ends.iter().find(|of| of.field.name == name).map(|of| &of.value);
                value.and_then(|value| match value {
                    Value::Signed(number) => Some(*number),
                    _ => None,
                })
            };
            let (head, slots) = (end("Head")?, self.heap.array_at(fields.reference("_slots")?)?);
            for index in 0..slots.length.min(MAX_PLACES) {
                let position = head.wrapping_add(index.into());
                let place = position & i64::from(slots.length).wrapping_sub(1);
                let element = slots.element(u32::try_from(place).ok()?, &mut self.left);
                let mut slot = Fields::of_structure(element)?;
                // A slot is full if its number is the next after its position.
                if slot.number("SequenceNumber")? != position.wrapping_add(1) {
                    break;
                }
                count = count.saturating_add(1);
                if elements.len() < usize::try_from(self.most).unwrap_or_default() {
                    elements.push(slot.take("Item")?);
                }
            }
            if self.left == 0 {
                return None;
            }
        }
        Some(KnownContent::Elements { elements, count })
    }

    /// The queue of a channel with one reader: a list of arrays.
    pub(super) fn one_reader_queue(&mut self, of: &Fields) -> Option<KnownContent> {
        let mut segment = of.reference("_head");
        let (mut elements, mut count, mut seen) = (Vec::new(), 0_u64, HashSet::new());
        while let Some(address) = segment.filter(|address| seen.insert(*address)) {
            if seen.len() > MAX_SEGMENTS {
                return None;
            }
            let mut fields = Fields::read(self.heap, address)?;
            segment = fields.reference("_next");
            let array = self.heap.array_at(fields.reference("_array")?)?;
            let ends = Fields::of_structure(fields.take("_state")?)?;
            let (first, last) = (ends.count("_first")?, ends.count("_last")?);
            // The length is a power of two.
            let used = last.wrapping_sub(first) & array.length.wrapping_sub(1);
            count = count.saturating_add(used.into());
            for index in 0..used.min(array.length) {
                if self.left == 0 || elements.len() >= usize::try_from(self.most).unwrap_or_default() {
                    break;
                }
                let place = first.wrapping_add(index) & array.length.wrapping_sub(1);
                elements.push(array.element(place, &mut self.left));
            }
        }
        Some(KnownContent::Elements { elements, count })
    }

    /// The items of a channel are in a collection, which is no channel.
    pub(super) fn channel(&mut self, of: &Fields) -> Option<KnownContent> {
        let items = of.reference("_items")?;
        let is_channel = self.heap.type_name(items)?.starts_with(CHANNELS);
        if is_channel { None } else { self.heap.known_content(items, self.most) }
    }

    pub(super) fn immutable_list(&mut self, of: &Fields) -> Option<KnownContent> {
        let root = of.reference("_root")?;
        let count = Fields::read(self.heap, root)?.number("_count")?;
        let nodes = self.nodes(root, "_height")?;
        let elements = nodes.into_iter().filter_map(|mut node| node.take("_key")).collect();
        Some(KnownContent::Elements { elements, count: u64::try_from(count).ok()? })
    }

    /// A tree of buckets: each has the pairs with one hash code.
    pub(super) fn immutable_dictionary(&mut self, of: &Fields) -> Option<KnownContent> {
        let count = u64::try_from(of.number("_count")?).ok()?;
        let most = usize::try_from(self.most).unwrap_or_default();
        let mut pairs = Vec::new();
        for mut node in self.nodes(of.reference("_root")?, "_height")? {
            let mut bucket = Fields::of_structure(node.take("_value")?)?;
            let others = bucket.reference("_additionalElements");
            let others = others.map_or(Some(Vec::new()), |root| self.nodes(root, "_height"))?;
            let first = bucket.take("_firstValue")?;
            let others = others.into_iter().filter_map(|mut node| node.take("_key"));
            for pair in std::iter::once(first).chain(others) {
                let mut pair = Fields::of_structure(pair)?;
                if pairs.len() < most {
                    pairs.push((pair.take("key")?, pair.take("value")?));
                }
            }
        }
        Some(KnownContent::Pairs { pairs, count })
    }

    /// The first nodes of a binary tree in their order. A node without a height is empty.
    fn nodes(&mut self, root: Address, height: &str) -> Option<Vec<Fields>> {
        let most = usize::try_from(self.most).unwrap_or_default();
        let mut nodes = Vec::new();
        let mut above: Vec<Fields> = Vec::new();
        let mut next = Some(root);
        while nodes.len() < most {
            if let Some(address) = next {
                let node = Fields::read(self.heap, address)?;
                self.left = self.left.checked_sub(1)?;
                if above.len() >= MAX_DEPTH {
                    return None;
                }
                next = node.reference("_left");
                if node.number(height)? > 0 {
                    above.push(node);
                } else {
                    next = None;
                }
                continue;
            }
            let Some(node) = above.pop() else { break };
            next = node.reference("_right");
            nodes.push(node);
        }
        Some(nodes)
    }
}
