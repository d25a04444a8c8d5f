//! The allocations that runtimes report, and the choice between their two kinds.

use clr_events::ClrEvent;
use clr_events::enums::GcAllocationKind;
use nettrace::Utf16;

/// An allocated object that represents others.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct SampledAllocation<'a> {
    /// The address of the object.
    pub address: u64,
    /// Bytes of the object, if the version of the event has them.
    pub object_size: Option<u64>,
    /// The heap that the object is in.
    pub kind: GcAllocationKind,
    /// The allocated bytes that the object represents.
    pub bytes: u64,
    /// The full name of the type.
    pub type_name: Utf16<'a>,
    /// True for the first object that was chosen at random: the earlier ones represent the same bytes, and
    /// have to be [forgotten](crate::LiveObjects::forget).
    pub replaces_earlier: bool,
}

/// The allocations of a stream that are followed as [`LiveObjects`](crate::LiveObjects).
///
/// `AllocationTick` reports the object that completed 100 KB, and `AllocationSampled`, which .NET 10 has, an
/// object that was chosen at random. With both, ticks are left out.
#[derive(Debug, Clone, Copy, Default)]
pub struct SampledAllocations {
    is_random: bool,
}

impl SampledAllocations {
    /// Returns the allocation that an event reports; `None` for other events, for ticks after an object that
    /// was chosen at random, and for ticks without an address (before version 3).
    pub fn choose<'a>(&mut self, view: &ClrEvent<'a>) -> Option<SampledAllocation<'a>> {
        match view {
            ClrEvent::AllocationTick(tick) if !self.is_random => Some(SampledAllocation {
                address: tick.address?,
                object_size: tick.object_size,
                kind: tick.allocation_kind,
                bytes: tick.allocation_amount64,
                type_name: tick.type_name,
                replaces_earlier: false,
            }),
            ClrEvent::AllocationSampled(sampled) => Some(SampledAllocation {
                address: sampled.address,
                object_size: Some(sampled.object_size),
                kind: sampled.allocation_kind,
                bytes: sampled.estimated_bytes(),
                type_name: sampled.type_name,
                replaces_earlier: !std::mem::replace(&mut self.is_random, true),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use clr_events::Provider;
    use nettrace_synth::{Value, payload};

    use super::*;

    #[test]
    fn objects_chosen_at_random_replace_those_of_ticks() {
        let mut allocations = SampledAllocations::default();
        let kind = Value::UInt32(0);
        let tick = |version, rest: &[Value]| {
            let values = [
                Value::UInt32(102_400),
                kind.clone(),
                Value::UInt16(0),
                Value::UInt64(102_400),
                Value::UInt64(0xff00),
                Value::string16("Shop.Order"),
                Value::UInt32(0),
            ];
            (10, version, payload(&[&values[..], rest].concat()))
        };
        let sampled = (
            303,
            0,
            payload(&[
                kind.clone(),
                Value::UInt16(0),
                Value::UInt64(0xff00),
                Value::string16("Shop.Order"),
                Value::UInt64(0x2000),
                Value::UInt64(24),
                Value::UInt64(0),
            ]),
        );
        let mut choose = |(id, version, payload): &(u32, u32, Vec<u8>)| {
            let view = ClrEvent::decode(Provider::Runtime, *id, *version, payload, 8).unwrap().unwrap();
            let of = allocations.choose(&view)?;
            assert_eq!(of.type_name.to_string(), "Shop.Order");
            Some((of.address, of.object_size, of.replaces_earlier))
        };
        let address = Value::UInt64(0x1000);
        assert_eq!(choose(&tick(2, &[])), None, "without an address");
        assert_eq!(choose(&tick(3, std::slice::from_ref(&address))), Some((0x1000, None, false)));
        let last = tick(4, &[address, Value::UInt64(32)]);
        assert_eq!(choose(&last), Some((0x1000, Some(32), false)));
        assert_eq!(choose(&sampled), Some((0x2000, Some(24), true)));
        assert_eq!(choose(&sampled), Some((0x2000, Some(24), false)));
        assert_eq!(choose(&last), None);
    }
}
