//! Reuse of code addresses after unloading.

use std::collections::BTreeMap;

use clr_events::ClrEvent;

/// Unloaded code that is remembered; more than that counts as used again.
const REMEMBERED: usize = 1 << 18;

/// Counts the times at which code was loaded where other code had been unloaded: within one generation an
/// address means one thing.
#[derive(Debug, Default)]
pub(in crate::profile) struct AddressGenerations {
    generation: u32,
    /// Unloaded code: where it ends, by process and where it begins.
    unloaded: BTreeMap<(Option<u64>, u64), u64>,
}

impl AddressGenerations {
    pub(in crate::profile) const fn generation(&self) -> u32 {
        self.generation
    }

    /// Adds a method that is loaded or unloaded.
    pub(in crate::profile) fn add(&mut self, process: Option<u64>, view: &ClrEvent<'_>) {
        match view {
            ClrEvent::MethodUnloadVerbose(method) => {
                self.unload(process, method.method_start_address, method.method_size);
            }
            ClrEvent::MethodUnload(method) => {
                self.unload(process, method.method_start_address, method.method_size);
            }
            ClrEvent::MethodLoadVerbose(method) => {
                self.load(process, method.method_start_address, method.method_size);
            }
            ClrEvent::MethodLoad(method) => {
                self.load(process, method.method_start_address, method.method_size);
            }
            _ => {}
        }
    }

    fn unload(&mut self, process: Option<u64>, start: u64, size: u32) {
        self.unloaded.insert((process, start), start.saturating_add(size.into()));
        if self.unloaded.len() > REMEMBERED {
            self.next();
        }
    }

    fn load(&mut self, process: Option<u64>, start: u64, size: u32) {
        let end = start.saturating_add(size.into());
        let before = self.unloaded.range((process, 0)..(process, end)).next_back();
        if before.is_some_and(|(_, until)| *until > start) {
            self.next();
        }
    }

    fn next(&mut self) {
        self.generation = self.generation.saturating_add(1);
        self.unloaded.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_in_the_place_of_unloaded_code_begins_a_generation() {
        let mut address_generations = AddressGenerations::default();
        address_generations.load(None, 100, 50);
        address_generations.unload(None, 100, 50);
        for (process, start, generation) in
            [(None, 60, 0), (None, 150, 0), (Some(1), 100, 0), (None, 149, 1), (None, 149, 1)]
        {
            address_generations.load(process, start, 40);
            assert_eq!(address_generations.generation(), generation, "{start}");
        }
    }
}
