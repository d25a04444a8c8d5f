//! The runtime's own description of its data: structures with the offsets of their fields, addresses of
//! variables, and the versions of *data contracts*, the algorithms that read them. CoreCLR exports it from
//! .NET 9 on, NativeAOT from .NET 11 on.
//!
//! It is read for itself, without a [`Runtime`](crate::Runtime), from any [`Memory`]; for any processor.
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use clr_dump::ProcessMemory;
//! use clr_dump::contracts::Contracts;
//!
//! let memory = ProcessMemory::open(4711)?;
//! if let Some(contracts) = Contracts::find(&memory, &memory.files()?)? {
//!     println!("threads: version {:?}", contracts.version("Thread"));
//!     println!("the next thread is at {:?}", contracts.offset("Thread", "LinkNext"));
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! # Source
//! dotnet/runtime `docs/design/datacontracts/contract-descriptor.md`, `data_descriptor.md`,
//! `src/native/managed/cdac/Microsoft.Diagnostics.DataContractReader` (`ContractDescriptorTarget.cs`: a
//! sub-descriptor is a variable with the address of its header).

mod descriptor;
mod error;
mod json;

use std::collections::VecDeque;

use hashbrown::HashSet;

pub use self::descriptor::Descriptor;
pub use self::error::ContractsError;
use crate::memory::Memory;
use crate::memory::address::Address;
use crate::memory::mapping::MappedFile;
use crate::runtime::elf_image::ElfImage;

/// The exported variable.
pub(crate) const SYMBOL: &str = "DotNetRuntimeContractDescriptor";
/// Maximum number of files to read headers of.
const MAX_FILES: usize = 4096;
/// Maximum number of descriptors of a runtime.
const MAX_DESCRIPTORS: usize = 16;

/// The order of the bytes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there are two")]
pub enum ByteOrder {
    /// The lowest byte is first.
    Little,
    /// The highest byte is first.
    Big,
}

/// A global value of the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Global {
    /// A constant.
    Number(u64),
    /// A string.
    Text(String),
    /// An address, of a variable for most names.
    Pointer(Address),
}

/// The facts that a runtime states: of its own descriptor, and of the sub-descriptors of its parts. The first
/// descriptor that states a fact counts.
#[derive(Debug, Clone)]
pub struct Contracts {
    descriptors: Vec<Descriptor>,
    errors: Vec<ContractsError>,
}

impl Contracts {
    /// Finds the descriptor of the first mapped file that exports one; `None` if no file does.
    ///
    /// # Errors
    /// If the runtime's own descriptor cannot be read.
    pub fn find(memory: &dyn Memory, files: &[MappedFile]) -> Result<Option<Self>, ContractsError> {
        for file in files.iter().filter(|file| file.file_offset == 0).take(MAX_FILES) {
            let Ok(Some(image)) = ElfImage::read(memory, file.start.get()) else { continue };
            if let Ok(Some(symbol)) = image.symbol(memory, SYMBOL) {
                return Self::read(memory, Address::new(symbol.address)).map(Some);
            }
        }
        Ok(None)
    }

    /// Reads the descriptor at an address, and its sub-descriptors. Those that cannot be read are left out:
    /// [`errors`](Self::errors).
    ///
    /// # Errors
    /// If the descriptor itself cannot be read.
    pub fn read(memory: &dyn Memory, address: Address) -> Result<Self, ContractsError> {
        let mut json_left = descriptor::MAX_JSON;
        let (first, parts) = Descriptor::read(memory, "", address.get(), &mut json_left)?;
        let words = first.words(memory);
        let mut contracts = Self { descriptors: vec![first], errors: Vec::new() };
        let mut parts = VecDeque::from(parts);
        let mut seen: HashSet<u64> = [address.get()].into_iter().collect();
        while let Some((name, variable)) = parts.pop_front() {
            let error = |at: u64, problem: String| {
                let (field, address) = (format!("subDescriptors.{name}"), Address::new(at));
                ContractsError { field, address, problem }
            };
            let read = match words.pointer(variable) {
                // The part has not started.
                Ok(0) => continue,
                Err(missing) => Err(error(variable, missing.to_string())),
                Ok(at) if seen.contains(&at) => Err(error(variable, format!("{at:#x} was read before"))),
                Ok(_) if seen.len() >= MAX_DESCRIPTORS => Err(error(variable, "one too many".to_owned())),
                Ok(at) => {
                    seen.insert(at);
                    Descriptor::read(memory, &name, at, &mut json_left)
                }
            };
            match read {
                Ok((descriptor, more)) => {
                    contracts.descriptors.push(descriptor);
                    parts.extend(more);
                }
                Err(error) if contracts.errors.len() < MAX_DESCRIPTORS => contracts.errors.push(error),
                Err(_) => {}
            }
        }
        Ok(contracts)
    }

    /// The descriptors: the runtime's own, and then those of its parts.
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// Errors of sub-descriptors that were left out.
    pub fn errors(&self) -> &[ContractsError] {
        &self.errors
    }

    /// The contracts and their versions, as `1` (.NET 10), `c1` (CoreCLR 11) and `n1` (NativeAOT 11).
    pub fn versions(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.descriptors.iter().flat_map(|descriptor| &descriptor.contracts);
        all.map(|(name, version)| (name.as_str(), version.as_str()))
    }

    /// The version of a contract; `None` if the runtime does not have it.
    pub fn version(&self, contract: &str) -> Option<&str> {
        self.versions().find(|(name, _)| *name == contract).map(|(_, version)| version)
    }

    /// The offset of a field.
    pub fn offset(&self, type_name: &str, field: &str) -> Option<u64> {
        let of = |descriptor: &Descriptor| descriptor.types.get(type_name)?.fields.get(field).copied();
        self.descriptors.iter().find_map(of)
    }

    /// The size of a structure in bytes.
    pub fn size(&self, type_name: &str) -> Option<u64> {
        self.descriptors.iter().find_map(|descriptor| descriptor.types.get(type_name)?.size)
    }

    /// A global value.
    pub fn global(&self, name: &str) -> Option<&Global> {
        self.descriptors.iter().find_map(|descriptor| descriptor.globals.get(name))
    }

    /// A global value that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.global(name)? {
            Global::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// A global value that is a string.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.global(name)? {
            Global::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A global value that is an address, of a variable for most names.
    pub fn pointer(&self, name: &str) -> Option<Address> {
        match self.global(name)? {
            Global::Pointer(address) => Some(*address),
            _ => None,
        }
    }
}
