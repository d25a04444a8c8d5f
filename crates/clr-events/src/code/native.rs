//! Native code in recordings of a whole machine (V6): mapped files, and symbols.

use core::fmt;

use nettrace::Ticks;

use crate::code::module::file_name;
use crate::code::ranges::Span;
use crate::code::string_table::{StringId, StringTable};
use crate::csharp::RuntimeName;

/// A file, or a part of one, in the memory of a process. Processes that share memory have mappings with the
/// same number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) last: u64,
    pub(crate) from: Ticks,
    pub(crate) id: u64,
    pub(crate) path: StringId,
}

impl Span for Mapping {
    #[inline]
    fn start(&self) -> u64 {
        self.start
    }
    #[inline]
    fn last(&self) -> u64 {
        self.last
    }
    #[inline]
    fn from(&self) -> Ticks {
        self.from
    }
    fn order(&self) -> (u64, u64) {
        (self.last, self.id)
    }
    fn merge_with(&mut self, other: &Self) -> bool {
        (self.last, self.id, self.path) == (other.last, other.id, other.path)
    }
}

/// A symbol as it is kept, among the symbols of its mapping.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) last: u64,
    pub(crate) name: StringId,
    /// The number of symbols that were added to the code map before: of two names for one range the first is
    /// kept.
    pub(crate) number: u32,
}

impl Span for Entry {
    #[inline]
    fn start(&self) -> u64 {
        self.start
    }
    #[inline]
    fn last(&self) -> u64 {
        self.last
    }
    fn order(&self) -> (u64, u64) {
        (self.last, self.number.into())
    }
    fn merge_with(&mut self, other: &Self) -> bool {
        // The first of several names for the same code counts, as in the existing tools.
        self.last == other.last
    }
}

/// Code that is known by a symbol of its file.
///
/// Prints as `file!symbol`. Code that .NET compiled while it ran, which perf maps list, prints as its method
/// does.
#[derive(Clone, Copy)]
pub struct Symbol<'m> {
    pub(crate) texts: &'m StringTable,
    pub(crate) entry: &'m Entry,
    pub(crate) mapping: &'m Mapping,
}

impl<'m> Symbol<'m> {
    /// The symbol as the recording has it.
    pub fn name(&self) -> &'m str {
        self.texts.get(self.entry.name)
    }
    /// The file that is mapped there.
    pub fn file(&self) -> &'m str {
        self.texts.get(self.mapping.path)
    }
    /// Returns the first address of the symbol.
    pub const fn start(&self) -> u64 {
        self.entry.start
    }

    /// Returns the identity that all addresses of the symbol share: path of the file, name.
    pub(crate) const fn identity(&self) -> (StringId, StringId) {
        (self.mapping.path, self.entry.name)
    }

    /// Module and method of compiled .NET code: `instance void [Module] Namespace.Type::Method(int32)[Tier]`.
    pub fn managed(&self) -> Option<(&'m str, &'m str)> {
        if !self.file().starts_with(DOUBLE_MAPPED) {
            return None;
        }
        let (returns, rest) = self.name().split_once(" [")?;
        let (module, rest) = rest.split_once("] ")?;
        let (method, tier) = rest.strip_suffix(']')?.rsplit_once('[')?;
        (!returns.is_empty() && !tier.is_empty()).then(|| (module, method.trim()))
    }

    /// The names of compiled .NET code as the runtime writes them, without the return type.
    pub(crate) fn runtime_name(&self) -> Option<RuntimeName<'m>> {
        let (_, method) = self.managed()?;
        let (path, signature) = method.split_at_checked(method.find('(')?)?;
        let (namespace, name) = path.rsplit_once("::")?;
        Some(RuntimeName { namespace, name, signature })
    }
}

/// The beginning of the path of memory with compiled code, which the runtime maps twice, for writing and for
/// running it.
///
/// # Source
/// `VMToOSInterface::CreateDoubleMemoryMapper` of dotnet/runtime: `memfd_create("doublemapper")`.
pub(super) const DOUBLE_MAPPED: &str = "/memfd:doublemapper";

impl fmt::Display for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.managed() {
            Some((module, method)) => write!(f, "{module}!{method}"),
            None => write!(f, "{}!{}", file_name(self.file()), self.name()),
        }
    }
}

impl fmt::Debug for Symbol<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({self} at {:#x})", self.start())
    }
}
