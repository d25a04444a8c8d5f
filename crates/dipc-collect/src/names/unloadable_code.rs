//! Names of methods from the memory of a process, for a recording that goes without the runtime's own list of
//! them.
//!
//! A runtime that lists its methods walks all compiled code, with that of load contexts that are unloaded at
//! this moment: it looks for the metadata of a module that is gone, and ends with a segmentation fault. .NET
//! 9.0.1 did so in one of 100 lists while a program unloaded contexts all the time, for the request of
//! dotnet-trace as well, and never without the keyword of compiled methods. So the runtime of such a program
//! is not asked for the list (decision 109).

use std::collections::HashMap;

use clr_events::CodeMap;
use clr_events::code::Code;
use nettrace::{Event, Ticks};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use linux::{SampledNames, UnloadableCode};

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere {
    use std::convert::Infallible;
    use std::fs::File;
    use std::io;

    use super::StackAddresses;

    /// The code of a process that can unload code. Its memory is read only on Linux, on x86-64 and aarch64.
    #[derive(Debug)]
    pub struct UnloadableCode(Infallible);

    impl UnloadableCode {
        /// Returns nothing: the memory is not read.
        pub const fn find(_: u32) -> Option<Self> {
            None
        }

        /// Returns nothing: the memory is not read.
        pub const fn of_process(_: u32) -> Option<Self> {
            None
        }

        /// Returns the names of the methods on stacks.
        ///
        /// # Errors
        /// None.
        pub fn names_for(&self, _: Option<u64>, _: StackAddresses) -> io::Result<File> {
            match self.0 {}
        }
    }
}
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use elsewhere::UnloadableCode;

/// Maximum number of addresses to keep.
const MAX_ADDRESSES: usize = 1 << 17;

/// The addresses on the stacks of events, and the code that events name.
#[derive(Debug, Default)]
pub struct StackAddresses {
    code: CodeMap,
    /// The first event with each, and whether it is a return address there.
    addresses: HashMap<u64, (bool, Option<u64>, Ticks)>,
}

impl StackAddresses {
    /// Adds the addresses of an event, and the code that it names.
    pub fn add(&mut self, event: &Event<'_>) {
        self.code.add(event);
        for (depth, address) in event.stack().enumerate() {
            if self.addresses.len() < MAX_ADDRESSES {
                self.addresses.entry(address).or_insert((depth > 0, event.process_id(), event.time()));
            }
        }
    }

    /// The addresses that no event names, and whether they are return addresses.
    #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn unnamed(mut self) -> Vec<(u64, bool)> {
        let symbolizer = self.code.symbolizer();
        let of = |(address, (is_return, process, time))| match symbolizer.resolve(process, address, time) {
            Code::Unresolved(_) => Some((address, is_return)),
            Code::Method(_) | Code::Symbol(_) => None,
        };
        self.addresses.into_iter().filter_map(of).collect()
    }
}

#[cfg(test)]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests {
    use nettrace::SliceReader;
    use nettrace_synth::clr::{Method, Recording};

    use super::*;

    #[test]
    fn addresses_that_events_name_are_not_looked_up() {
        let pay = Method::new(0x1000, "Shop.Cart", "Pay");
        let mut recording = Recording::new();
        let recording =
            recording.stacks(&[&[0x9000, 0x1010, 0x9008]]).at(5).method(&pay).sample(1, 1).bytes();
        let mut stacks = StackAddresses::default();
        SliceReader::new(&recording).unwrap().for_each(|event| stacks.add(&event)).unwrap();
        let mut unnamed = stacks.unnamed();
        unnamed.sort_unstable();
        assert_eq!(unnamed, [(0x9000, false), (0x9008, true)]);
    }
}
