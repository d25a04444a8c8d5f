//! Names of methods from the memory of a process, for a recording that goes without the runtime's own list of them.
//!
//! A runtime that lists its methods walks all compiled code, with that of load contexts that are unloaded at this moment:
//! it looks for the metadata of a module that is gone, and ends with a segmentation fault. .NET 9.0.1 did so in one of 100
//! lists while a program unloaded contexts all the time, for the request of dotnet-trace as well, and never without the
//! keyword of compiled methods. So the runtime of such a program is not asked for the list (decision 109).

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub use linux::UnloadableCode;

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod elsewhere {
    use std::convert::Infallible;
    use std::fs::File;
    use std::io;

    use nettrace::{Events, Source};

    /// The code of a process that can unload code. Its memory is read only on Linux, on x86-64 and aarch64.
    #[derive(Debug)]
    pub struct UnloadableCode(Infallible);

    impl UnloadableCode {
        /// Returns nothing: the memory is not read.
        pub const fn find(_: u32) -> Option<Self> {
            None
        }

        /// Returns the names of the methods on the stacks of a recording.
        ///
        /// # Errors
        /// None.
        pub fn names_for(&self, _: Events<impl Source>) -> io::Result<File> {
            match self.0 {}
        }
    }
}
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub use elsewhere::UnloadableCode;
