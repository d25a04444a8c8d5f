//! The parts of owners, in bounded memory.

use std::cmp::Reverse;
use std::sync::Arc;

use hashbrown::HashMap;
use linux_proc_stat::MappingSizes;

use super::owner::{MemoryOwner, OwnedMemory, OwnedPart};
use crate::memory::address::Address;

/// Maximum number of parts of an owner in the result.
const MAX_PARTS: usize = 1 << 12;
/// The number of parts at which small ones are dropped.
const MAX_KEPT: usize = MAX_PARTS * 2;

/// The identity of a part: mappings without a name are parts by address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct PartName {
    pub(super) name: Arc<str>,
    pub(super) tid: Option<u32>,
    /// Zero for parts that several mappings make up.
    pub(super) address: u64,
}

impl PartName {
    pub(super) fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), tid: None, address: 0 }
    }
}

/// The memory of owners, while it is added up.
#[derive(Debug, Default)]
pub(super) struct Shares {
    owners: HashMap<MemoryOwner, Share>,
}

#[derive(Debug, Default)]
struct Share {
    sizes: MappingSizes,
    mapped: u64,
    parts: HashMap<PartName, OwnedPart>,
    /// The number of parts that were dropped.
    dropped: u64,
}

impl Shares {
    /// Adds memory of a part of an owner.
    pub(super) fn add(
        &mut self,
        owner: MemoryOwner,
        part: Option<&PartName>,
        start: u64,
        mapped: u64,
        sizes: &MappingSizes,
    ) {
        let share = self.owners.entry(owner).or_default();
        share.sizes.add(sizes);
        share.mapped = share.mapped.saturating_add(mapped);
        // Reserved addresses without memory are not parts of their own.
        let is_reserved = |part: &&PartName| part.address != 0 && *sizes == MappingSizes::default();
        let Some(part) = part.filter(|part| !is_reserved(part)) else { return };
        let part = share.parts.entry(part.clone()).or_insert_with(|| OwnedPart {
            name: Arc::clone(&part.name),
            tid: part.tid,
            address: Address::new(start),
            sizes: MappingSizes::default(),
            mapped: 0,
        });
        part.sizes.add(sizes);
        part.mapped = part.mapped.saturating_add(mapped);
        if share.parts.len() >= MAX_KEPT {
            share.drop_small_parts();
        }
    }

    /// The owners with any memory, the largest first.
    pub(super) fn finish(self) -> Vec<OwnedMemory> {
        let owned = self.owners.into_iter().map(|(owner, share)| share.finish(owner));
        let has_memory = |owned: &OwnedMemory| owned.sizes != MappingSizes::default();
        let mut owned: Vec<_> = owned.filter(has_memory).collect();
        owned.sort_by_key(|owned| (Reverse(owned.sizes.resident), owned.owner));
        owned
    }
}

impl Share {
    fn drop_small_parts(&mut self) {
        let mut sizes: Vec<u64> = self.parts.values().map(|part| part.sizes.resident).collect();
        sizes.sort_unstable_by_key(|size| Reverse(*size));
        let least = sizes.get(MAX_PARTS).copied().unwrap_or_default();
        let mut left = MAX_PARTS;
        self.parts.retain(|_, part| {
            let is_kept = left > 0 && part.sizes.resident >= least;
            left = left.saturating_sub(usize::from(is_kept));
            self.dropped = self.dropped.saturating_add(u64::from(!is_kept));
            is_kept
        });
    }

    fn finish(self, owner: MemoryOwner) -> OwnedMemory {
        let count = u64::try_from(self.parts.len()).unwrap_or(u64::MAX);
        let mut parts: Vec<_> = self.parts.into_values().collect();
        parts.sort_by_key(|part| (Reverse(part.sizes.resident), part.address));
        parts.truncate(MAX_PARTS);
        OwnedMemory {
            owner,
            sizes: self.sizes,
            mapped: self.mapped,
            parts,
            part_count: count.saturating_add(self.dropped),
        }
    }
}
