//! Any text as what people write on command lines: what is parsed is printed as text that parses to the same.

#![no_main]

use std::collections::BTreeSet;

use clr_conditions::{Condition, Evaluator, StreamEnd};
use dipc_client::{Address, Level, Providers, parse_level};
use dipc_sim::{Fault, Version};
use libfuzzer_sys::fuzz_target;
use nettrace::RelativeTime;

fuzz_target!(|text: &str| dipc_fuzz::bounded(text.len(), || check(text)));

fn check(text: &str) {
    match Providers::parse(text) {
        Ok(providers) => {
            let names: BTreeSet<_> =
                providers.iter().map(|provider| provider.name.to_ascii_lowercase()).collect();
            assert_eq!(names.len(), providers.iter().len(), "a provider is there twice");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Some(level) = parse_level(text) {
        assert!(level <= Level::VERBOSE, "{level} from {text:?}");
    }
    match text.parse::<Address>() {
        Ok(address) => assert_eq!(address.to_string().parse::<Address>().ok(), Some(address)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(version) = text.parse::<Version>() {
        assert_eq!(version.to_string().parse::<Version>().ok(), Some(version));
    }
    match Condition::parse(text) {
        Ok(condition) => {
            assert!(Condition::parse_for_counters(text).is_ok());
            assert!(condition.requests().iter().all(|request| !request.name.is_empty()));
            let mut evaluator = Evaluator::new(condition);
            if let Some(met) = evaluator.end(StreamEnd::Crash, RelativeTime::START) {
                assert!(!met.what.is_empty());
            }
        }
        Err(error) => assert!(error.position() <= text.chars().count() && !error.message().is_empty()),
    }
    if let Ok(fault) = text.parse::<Fault>() {
        assert_eq!(fault.to_string().parse::<Fault>().ok(), Some(fault));
    }
}
