//! Well-formed recordings of every version, written by `nettrace-synth`: they are read as written, in every
//! form and order, cut anywhere, and alike in all forms after the fuzzer has changed them.
//!
//! The plans of recordings and the properties are those of nettrace's own tests. Of the input, eight bytes
//! seed the plan, and every six bytes behind them are a change: what to do, where, and with which byte.

#![no_main]

#[path = "../../crates/nettrace/tests/synth/plan.rs"]
mod plan;
#[path = "../../crates/nettrace/tests/synth/properties.rs"]
mod properties;
#[path = "../../crates/nettrace/tests/reading/mod.rs"]
mod reading;
#[path = "../../crates/nettrace/tests/synth/values.rs"]
mod values;
#[path = "../../crates/nettrace/tests/synth/writing.rs"]
mod writing;

use libfuzzer_sys::fuzz_target;
use plan::{Plan, Version};
use properties::{Harm, Place};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const VERSIONS: [Version; 6] = [Version::V1, Version::V2, Version::V3, Version::V4, Version::V5, Version::V6];

fuzz_target!(|input: &[u8]| {
    let Some((&[version, property], rest)) = input.split_first_chunk::<2>() else { return };
    let Some((seed, rest)) = rest.split_first_chunk::<8>() else { return };
    let Some(plan) = plan_of(VERSIONS[usize::from(version) % VERSIONS.len()], *seed) else { return };
    let places: Vec<_> =
        rest.chunks_exact(4).take(20).map(|bytes| place([bytes[0], bytes[1], bytes[2], bytes[3]])).collect();
    let result = match property % 16 {
        0 => properties::cut_anywhere(&plan),
        1 => properties::byte_by_byte(&plan),
        2 => properties::time_order(&plan, &places),
        3 => properties::round_trip(&plan, &places),
        _ => {
            let harms: Vec<_> = rest.chunks_exact(6).take(64).map(harm).collect();
            properties::read_alike(&plan, &harms, &places)
        }
    };
    if let Err(error) = result {
        panic!("{error} of {plan:?}");
    }
});

fn plan_of(version: Version, seed: [u8; 8]) -> Option<Plan> {
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &seed.repeat(4));
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    plan::plans(version).new_tree(&mut runner).ok().map(|tree| tree.current())
}

const fn place(bytes: [u8; 4]) -> Place {
    Place(u32::from_le_bytes(bytes))
}

fn harm(bytes: &[u8]) -> Harm {
    let [operation, value, rest @ ..] = bytes else { unreachable!("a chunk has six bytes") };
    let at = place([rest[0], rest[1], rest[2], rest[3]]);
    match operation % 8 {
        0 => Harm::Insert(at, vec![*value; usize::from(operation >> 3) + 1]),
        1 => Harm::Remove(at, Place(at.0.saturating_add(u32::from(*value) << 20))),
        _ => Harm::Set(at, *value),
    }
}
