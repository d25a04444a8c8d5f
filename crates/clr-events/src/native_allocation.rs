//! Allocations outside the runtime's heap, followed by probes.

use nettrace::{Event, Metadata, Value};

/// The kind of an event about native allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "the events of linux-sampler")]
pub enum NativeAllocationKind {
    /// Memory was allocated.
    Allocated,
    /// Memory is freed.
    Freed,
    /// The probes ended.
    End,
}

/// An event about native allocations: what `malloc` and others return, and what is freed.
///
/// ```no_run
/// use clr_events::{NativeAllocation, NativeAllocationKind};
///
/// let mut in_use = std::collections::HashMap::new();
/// let mut events = nettrace::Reader::new(std::fs::File::open("app.nettrace")?)?;
/// while let Some(event) = events.next()? {
///     match NativeAllocationKind::of(event.metadata()).and_then(|kind| kind.read(&event)) {
///         Some(NativeAllocation::Allocated { address, bytes, .. }) => _ = in_use.insert(address, bytes),
///         Some(NativeAllocation::Freed { address, .. }) => _ = in_use.remove(&address),
///         _ => {}
///     }
/// }
/// println!("{} bytes are in use", in_use.values().sum::<u64>());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Source
/// linux-sampler's recordings: `native_alloc`, `native_free` and `native_alloc_end` of `Universal.Events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the events of linux-sampler")]
pub enum NativeAllocation {
    /// Memory was allocated.
    Allocated {
        /// The address.
        address: u64,
        /// The requested bytes.
        size: u64,
        /// The bytes that it represents: more than its own, if smaller ones are followed at random.
        bytes: u64,
    },
    /// Memory is freed.
    Freed {
        /// The address.
        address: u64,
        /// The bytes of the range that is freed, which can be a part of an allocation, or several; zero for
        /// the allocation at the address.
        size: u64,
    },
    /// The probes ended.
    End(NativeAllocationEnd),
}

/// Counts and cost of the probes of native allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NativeAllocationEnd {
    /// The least bytes that an allocation represents: 1 if all are followed.
    pub interval: u64,
    /// Calls of the probed functions.
    pub hits: u64,
    /// The nanoseconds that these took longer.
    pub cost_ns: u64,
    /// The processor time of the process meanwhile.
    pub cpu_ns: u64,
    /// The time from the first probe to the end.
    pub duration_ns: u64,
    /// Lost records of allocations.
    pub lost_allocations: u64,
    /// Lost records of freed memory, which looks like memory in use.
    pub lost_frees: u64,
    /// Allocations beyond the limit of what is followed.
    pub left_out: u64,
    /// True if the probes were removed early because of their cost.
    pub is_beyond_limit: bool,
}

impl NativeAllocationKind {
    /// The kind of the events with this metadata; `None` for all other events.
    pub fn of(metadata: &Metadata) -> Option<Self> {
        match (metadata.provider(), metadata.name()) {
            ("Universal.Events", "native_alloc") => Some(Self::Allocated),
            ("Universal.Events", "native_free") => Some(Self::Freed),
            ("Universal.Events", "native_alloc_end") => Some(Self::End),
            _ => None,
        }
    }

    /// Returns what an event of this kind states; `None` if fields are missing.
    pub fn read(self, event: &Event<'_>) -> Option<NativeAllocation> {
        let mut numbers = event.fields().map_while(|field| match field {
            Ok((_, Value::U64(number))) => Some(number),
            _ => None,
        });
        let mut next = || numbers.next();
        Some(match self {
            Self::Allocated => {
                let (bytes, size, address) = (next()?, next()?, next()?);
                NativeAllocation::Allocated { address, size, bytes }
            }
            Self::Freed => NativeAllocation::Freed { address: next()?, size: next().unwrap_or(0) },
            Self::End => NativeAllocation::End(NativeAllocationEnd {
                interval: next()?,
                hits: next()?,
                cost_ns: next()?,
                cpu_ns: next()?,
                duration_ns: next()?,
                lost_allocations: next()?,
                lost_frees: next()?,
                left_out: next()?,
                is_beyond_limit: next()? != 0,
            }),
        })
    }
}
