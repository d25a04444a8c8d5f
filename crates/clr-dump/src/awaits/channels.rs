//! Channels: what they contain, and what waits to read from them or to write to them.
//!
//! # Source
//! dotnet/runtime `src/libraries/System.Threading.Channels/src/System/Threading/Channels`
//! (`BoundedChannel.cs`, `UnboundedChannel.cs`, `SingleConsumerUnboundedChannel.cs`, `RendezvousChannel.cs`,
//! `AsyncOperation.cs`) of .NET 8 to 10; for 3.1 dotnet/corefx, with the names of .NET 8.

use hashbrown::{HashMap, HashSet};

use crate::awaits::Awaits;
use crate::awaits::graph::{AwaitLinks, AwaitNode};
use crate::heap::known_object::KnownContent;
use crate::heap::object::Value;
use crate::heap::{Heap, HeapObject, HeapVisitor, HeapWalk};
use crate::memory::MemoryResult;
use crate::memory::address::{Address, TypeHandle};

/// The beginning of the names of channels' types.
const NAMESPACE: &str = "System.Threading.Channels.";
/// Their names without arguments.
const TYPES: [&str; 5] = [
    "BoundedChannel`1",
    RENDEZVOUS,
    "SingleConsumerUnboundedChannel`1",
    "UnboundedChannel`1",
    "UnboundedPrioritizedChannel`1",
];
/// Maximum number of channels of a heap.
const MAX_CHANNELS: usize = 1 << 16;
/// The type of channels without places for items.
const RENDEZVOUS: &str = "RendezvousChannel`1";
/// Maximum number of operations of a channel, and of all channels.
const MAX_OPERATIONS: usize = 1 << 16;
const MAX_ALL_OPERATIONS: usize = 1 << 18;
/// Maximum number of objects of a chain, and of all chains.
const MAX_CHAIN: usize = 64;
const MAX_ALL_CHAINS: usize = 1 << 20;
/// The fields with operations that wait: queues, rings by their first and their last operation, and one
/// operation.
const READERS: [&str; 6] = [
    "_blockedReaders",
    "_blockedReadersHead",
    "_blockedReader",
    "_waitingReadersHead",
    "_waitingReadersTail",
    "_waitingReader",
];
const WRITERS: [&str; 4] =
    ["_blockedWriters", "_blockedWritersHead", "_waitingWritersHead", "_waitingWritersTail"];

/// The channels of a heap.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Channels {
    /// The channels, by address.
    pub channels: Vec<Channel>,
    /// True if the limits cut off channels or chains.
    pub is_truncated: bool,
    /// The walk through the heap, with its gaps.
    pub walk: HeapWalk,
}

/// A channel (`System.Threading.Channels`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Channel {
    /// The address of the object.
    pub address: Address,
    /// The address of its MethodTable.
    pub type_handle: TypeHandle,
    /// The maximum number of items; `None` if it has none.
    pub capacity: Option<u64>,
    /// The number of unread items; `None` if the memory lacks it.
    pub items: Option<u64>,
    /// True if nothing is written any more (`ChannelWriter.Complete`).
    pub is_completed: bool,
    /// The operations that wait to read.
    pub readers: Vec<ChannelWaiter>,
    /// The operations that wait to write.
    pub writers: Vec<ChannelWaiter>,
}

impl Channel {
    /// Returns true if it contains as many items as it may. One without places for items is never full.
    pub fn is_full(&self) -> bool {
        self.items.zip(self.capacity).is_some_and(|(items, capacity)| capacity > 0 && items >= capacity)
    }
}

/// An operation of a channel that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChannelWaiter {
    /// The address of the operation.
    pub operation: Address,
    /// The methods and objects that await it, the innermost first: each object waits for its predecessor.
    /// Empty if nothing awaits it.
    pub chain: Vec<AwaitNode>,
}

impl Awaits<'_> {
    /// Reads the channels of the heap, with what waits for each.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for channel in dump.awaits().channels()?.channels {
    ///     println!("{:?} items, {} writers wait", channel.items, channel.writers.len());
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the memory lacks the collector's description of its heap.
    pub fn channels(self) -> MemoryResult<Channels> {
        let heap = self.dump.heap();
        let mut found = Found { heap, channels: Vec::new(), is_truncated: false };
        let walk = heap.walk(&mut found)?;
        if found.channels.is_empty() {
            return Ok(Channels { walk, ..Channels::default() });
        }
        let links = self.links()?;
        let index = links.nodes.iter().enumerate().map(|(index, node)| (node.address, index)).collect();
        let mut reader = Reader {
            heap,
            links: &links,
            index,
            operations: MAX_ALL_OPERATIONS,
            nodes: MAX_ALL_CHAINS,
            is_truncated: found.is_truncated || links.is_full,
        };
        let channels = found.channels.iter().map(|(address, of)| reader.channel(*address, *of)).collect();
        Ok(Channels { channels, is_truncated: reader.is_truncated, walk })
    }
}

struct Found<'d> {
    heap: Heap<'d>,
    channels: Vec<(Address, TypeHandle)>,
    is_truncated: bool,
}

impl HeapVisitor for Found<'_> {
    fn object(&mut self, object: &HeapObject) {
        let Some(name) = self.heap.dump.types().name(object.type_handle) else { return };
        let own = name.strip_prefix(NAMESPACE).and_then(|name| name.split('[').next());
        if own.is_none_or(|own| !TYPES.contains(&own)) {
            return;
        }
        self.is_truncated |= self.channels.len() >= MAX_CHANNELS;
        if !self.is_truncated {
            self.channels.push((object.address, object.type_handle));
        }
    }
}

struct Reader<'r> {
    heap: Heap<'r>,
    links: &'r AwaitLinks,
    /// The nodes of the links by the addresses of their objects.
    index: HashMap<Address, usize>,
    /// The operations and the objects of chains that may still be read.
    operations: usize,
    nodes: usize,
    /// True if a limit cut off something.
    is_truncated: bool,
}

impl Reader<'_> {
    fn channel(&mut self, address: Address, type_handle: TypeHandle) -> Channel {
        let name = self.heap.dump.types().name(type_handle).unwrap_or_default();
        // It hands each item over.
        let is_rendezvous = name.strip_prefix(NAMESPACE).is_some_and(|name| name.starts_with(RENDEZVOUS));
        Channel {
            address,
            type_handle,
            capacity: if is_rendezvous {
                Some(0)
            } else {
                self.heap.number_field(address, "_bufferedCapacity")
            },
            items: if is_rendezvous { Some(0) } else { self.items(address) },
            is_completed: self.heap.reference_field(address, "_doneWriting").is_some(),
            readers: self.waiters(address, &READERS),
            writers: self.waiters(address, &WRITERS),
        }
    }

    fn waiters(&mut self, channel: Address, fields: &[&str]) -> Vec<ChannelWaiter> {
        let mut waiters = Vec::new();
        for field in fields {
            let operations = self.operations(channel, field);
            let room = self.operations;
            self.is_truncated |= operations.len() > room || operations.len() >= MAX_OPERATIONS;
            self.operations = room.saturating_sub(operations.len());
            waiters.extend(operations.into_iter().take(room).map(|operation| self.waiter(operation)));
            if self.operations == 0 {
                self.is_truncated = true;
                break;
            }
        }
        waiters
    }

    fn items(&self, channel: Address) -> Option<u64> {
        let items = self.heap.reference_field(channel, "_items")?;
        self.heap.number_field(items, "_size").or_else(|| match self.heap.known_content(items, 0)? {
            KnownContent::Elements { count, .. } => Some(count),
            _ => None,
        })
    }

    /// The operations of a field that have not been cancelled, the oldest first.
    fn operations(&self, channel: Address, field: &str) -> Vec<Address> {
        let Some(first) = self.heap.reference_field(channel, field) else { return Vec::new() };
        let all = match self.heap.known_content(first, u32::try_from(MAX_OPERATIONS).unwrap_or_default()) {
            Some(KnownContent::Elements { elements, .. }) => {
                let address = |element: Value| match element {
                    Value::Reference { address, .. } => Some(address),
                    _ => None,
                };
                elements.into_iter().filter_map(address).collect()
            }
            _ => self.ring(first, field.ends_with("Tail")),
        };
        let is_open =
            |operation: &Address| self.heap.number_field(*operation, "_completionReserved").unwrap_or(0) == 0;
        all.into_iter().filter(is_open).collect()
    }

    /// The operations of a ring from its first one, or from the one after its last.
    fn ring(&self, end: Address, is_last: bool) -> Vec<Address> {
        let mut ring = Vec::new();
        let mut seen = HashSet::new();
        let mut next = Some(end);
        while let Some(operation) = next.filter(|of| ring.len() < MAX_OPERATIONS && seen.insert(*of)) {
            ring.push(operation);
            next = self.heap.reference_field(operation, "<Next>k__BackingField");
        }
        if is_last && !ring.is_empty() {
            ring.rotate_left(1);
        }
        ring
    }

    fn waiter(&mut self, operation: Address) -> ChannelWaiter {
        let state = self.heap.reference_field(operation, "_continuationState");
        let target = state.and_then(|state| self.heap.delegate_target(state).ok());
        let index = |of: Address| self.index.get(&of).copied();
        let first = state.and_then(index).or_else(|| target.and_then(index));
        let most = MAX_CHAIN.min(self.nodes);
        let chain = first.filter(|_| most > 0).map(|first| self.links.waiters_from(first, most));
        let chain = chain.unwrap_or_default();
        self.is_truncated |= first.is_some() && chain.len() >= most;
        self.nodes = self.nodes.saturating_sub(chain.len());
        ChannelWaiter { operation, chain }
    }
}
