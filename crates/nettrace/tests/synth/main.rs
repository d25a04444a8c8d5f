//! Random recordings of every version, written by `nettrace-synth` and read back in every form.

#[path = "../reading/mod.rs"]
mod reading;

mod ended_threads;
mod order;
mod plan;
mod properties;
mod values;
mod writing;

use plan::Version;
use properties::{Harm, Place, byte_by_byte, cut_anywhere, read_alike, round_trip, time_order};
use proptest::prelude::*;

/// 64 random recordings of each version for each property, or as many as the environment variable
/// `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let default = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { 64 };
    ProptestConfig { cases, ..default }
}

fn places() -> impl Strategy<Value = Vec<Place>> {
    prop::collection::vec(any::<u32>().prop_map(Place), 0..20)
}

fn harms() -> impl Strategy<Value = Vec<Harm>> {
    let place = || any::<u32>().prop_map(Place);
    let bytes = prop_oneof![Just(0u8), Just(0xff), Just(0x80), any::<u8>()];
    let harm = prop_oneof![
        4 => (place(), bytes.clone()).prop_map(|(at, byte)| Harm::Set(at, byte)),
        1 => (place(), place()).prop_map(|(from, to)| Harm::Remove(from, to)),
        1 => (place(), prop::collection::vec(bytes, 1..20)).prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
    ];
    prop::collection::vec(harm, 1..5)
}

macro_rules! properties {
    ($($module:ident: $version:expr;)*) => { $(
        mod $module {
            use super::*;

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn is_read_as_written(plan in plan::plans($version), places in places()) {
                    round_trip(&plan, &places)?;
                }

                #[test]
                fn in_time_order(plan in plan::plans($version), places in places()) {
                    time_order(&plan, &places)?;
                }
            }

            proptest! {
                #![proptest_config(config())]

                #[test]
                fn damaged_is_read_alike(plan in plan::plans($version), harms in harms(), places in places()) {
                    read_alike(&plan, &harms, &places)?;
                }
            }

            proptest! {
                // Each case reads as often as the recording has bytes.
                #![proptest_config(ProptestConfig { cases: config().cases / 32 + 1, ..config() })]

                #[test]
                fn cut_at_every_offset(plan in plan::plans($version)) {
                    cut_anywhere(&plan)?;
                }

                #[test]
                fn pushed_byte_by_byte(plan in plan::plans($version)) {
                    byte_by_byte(&plan)?;
                }
            }
        }
    )* };
}

mod random {
    use super::*;

    properties! {
        v1: Version::V1;
        v2: Version::V2;
        v3: Version::V3;
        v4: Version::V4;
        v5: Version::V5;
        v6: Version::V6;
    }
}
