//! Methods and their code.

use core::fmt;

use nettrace::Ticks;

use crate::code::il_maps::IlMaps;
use crate::code::method_entry::Entry;
use crate::code::module::{Module, Modules};
use crate::code::string_table::{StringId, StringTable};
use crate::csharp::RuntimeName;
use crate::enums::MethodFlags;

/// The origin of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeKind {
    /// Compiled while the program ran.
    Jitted,
    /// Compiled before: ReadyToRun.
    Precompiled,
    /// Made while the program ran: a dynamic method or a stub of the runtime's.
    Dynamic,
}

/// The optimization tier of code.
///
/// # Source
/// Bits 7 to 9 of `MethodFlags`: `MethodFlagsJitOptimizationTier` of dotnet/runtime's `eventtrace.cpp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tier(pub u8);

macro_rules! tiers {
    ($($constant:ident = $number:literal, $name:literal;)*) => {
        #[allow(missing_docs, reason = "the runtime's names")]
        impl Tier {
            $(pub const $constant: Self = Self($number);)*

            /// The runtime's name for it.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($number => Some($name),)* _ => None }
            }
        }
    };
}

tiers! {
    UNKNOWN = 0, "Unknown";
    MIN_OPT_JITTED = 1, "MinOptJitted";
    OPTIMIZED = 2, "Optimized";
    QUICK_JITTED = 3, "QuickJitted";
    OPTIMIZED_TIER1 = 4, "OptimizedTier1";
    OPTIMIZED_TIER1_OSR = 5, "OptimizedTier1OSR";
    QUICK_JITTED_INSTRUMENTED = 6, "QuickJittedInstrumented";
    OPTIMIZED_TIER1_INSTRUMENTED = 7, "OptimizedTier1Instrumented";
}

impl MethodFlags {
    /// Returns the optimization tier; [`Tier::UNKNOWN`] for precompiled code.
    pub const fn tier(self) -> Tier {
        let [low, high, ..] = self.0.to_le_bytes();
        Tier((low >> 7) | (high & 3) << 1)
    }

    /// Returns true if the code is the part of its method that is seldom run.
    pub const fn is_cold(self) -> bool {
        self.0 >> 28 == 1
    }
}

/// A method, and the range of its code that contains an address.
///
/// Prints as TraceEvent does: `Module!Namespace.Type.Method(parameters)`.
///
/// ```
/// # use nettrace_synth::clr::{Method, Recording};
/// # let signature = "instance void  (int32)";
/// # let pay = Method { signature, ..Method::new(0x1000, "Shop.Cart", "Pay") };
/// # let recording = Recording::new().at(5).method(&pay).bytes();
/// # let mut code = clr_events::CodeMap::default();
/// # nettrace::SliceReader::new(&recording)?.for_each(|event| code.add(&event))?;
/// # let symbolizer = code.symbolizer();
/// # let code = symbolizer.resolve(Some(4242), 0x1010, nettrace::Ticks(9));
/// use clr_events::csharp::Detail;
///
/// let clr_events::code::Code::Method(method) = code else { return Err("not a method".into()) };
/// assert_eq!((method.start(), method.size(), method.token()), (0x1000, 0x100, 0x0600_0001));
/// let name = method.runtime_name().csharp(Detail::Short).ok_or("not a C# name")?;
/// assert_eq!(name.text, "Shop.Cart.Pay(int)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct Method<'m> {
    pub(crate) texts: &'m StringTable,
    pub(crate) il: Option<&'m IlMaps>,
    pub(crate) modules: &'m Modules,
    pub(crate) entry: &'m Entry,
}

impl<'m> Method<'m> {
    /// The module that it belongs to; `None` if the recording does not name it.
    pub fn module(&self) -> Option<Module<'m>> {
        self.modules.get(self.texts, self.entry.module)
    }
    /// The modules of its process that the recording names.
    pub fn modules(&self) -> impl Iterator<Item = Module<'m>> {
        self.modules.all(self.texts)
    }
    /// Namespace and type.
    pub fn namespace(&self) -> &'m str {
        self.texts.get(self.entry.namespace)
    }
    /// The name of the method.
    pub fn name(&self) -> &'m str {
        self.texts.get(self.entry.name)
    }
    /// The signature as the runtime writes it, return type first.
    pub fn signature(&self) -> &'m str {
        self.texts.get(self.entry.signature)
    }
    /// The parameter types in parentheses; empty if they are missing from the signature.
    pub fn parameters(&self) -> &'m str {
        let signature = self.signature();
        signature.find('(').and_then(|open| signature.get(open..)).unwrap_or_default()
    }
    /// The names as the runtime writes them.
    pub fn runtime_name(&self) -> RuntimeName<'m> {
        RuntimeName { namespace: self.namespace(), name: self.name(), signature: self.signature() }
    }
    /// The runtime's number for it.
    pub const fn id(&self) -> u64 {
        self.entry.method_id
    }
    /// The token in the module's metadata.
    pub const fn token(&self) -> u32 {
        self.entry.token
    }
    /// Returns the first address of the code.
    pub const fn start(&self) -> u64 {
        self.entry.start
    }
    /// Returns the size of the code in bytes.
    pub const fn size(&self) -> u32 {
        self.entry.size
    }
    /// The IL offset of the code at an address, in bytes from the beginning of the method's IL; `None` if a
    /// map was not recorded, or the code map does not [keep](crate::CodeMap::with_il_offsets) it. Runtimes
    /// map jitted code only.
    ///
    /// The address of a frame that called another, or the runtime, is the return address, which follows the
    /// call. The IL there may already belong to the next statement, so look up the address minus one.
    pub fn il_offset(&self, address: u64) -> Option<u32> {
        let native = u32::try_from(address.saturating_sub(self.entry.start)).ok()?;
        self.il?.find(self.entry.il, native)
    }
    /// Returns the runtime's flags for the code.
    pub const fn flags(&self) -> MethodFlags {
        self.entry.flags
    }
    /// Returns the origin of the code.
    pub const fn kind(&self) -> CodeKind {
        if self.entry.flags.contains(MethodFlags::DYNAMIC) {
            CodeKind::Dynamic
        } else if self.entry.flags.contains(MethodFlags::JITTED) {
            CodeKind::Jitted
        } else {
            CodeKind::Precompiled
        }
    }
    /// The time at which the code was loaded; `None` if it was loaded earlier, or if the time is unknown.
    pub fn loaded(&self) -> Option<Ticks> {
        Some(self.entry.from).filter(|from| from.0 != 0)
    }
    /// The time at which the code was unloaded; `None` if it stayed, or if the time is unknown.
    pub fn unloaded(&self) -> Option<Ticks> {
        Some(self.entry.to).filter(|to| to.0 != u64::MAX)
    }

    /// Returns the identity that all code of one method shares: path of the module, namespace, name,
    /// signature.
    pub(crate) fn identity(&self) -> (StringId, StringId, StringId, StringId) {
        let path = self.modules.path(self.entry.module);
        (path, self.entry.namespace, self.entry.name, self.entry.signature)
    }

    /// Returns true if an event has its name.
    pub(crate) fn is_named(&self) -> bool {
        !self.entry.is_unnamed()
    }
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module().map_or("?", |module| module.name());
        let namespace = self.namespace();
        let dot = if namespace.is_empty() { "" } else { "." };
        write!(f, "{module}!{namespace}{dot}{}{}", self.name(), self.parameters())
    }
}

impl fmt::Debug for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({self} at {:#x})", self.start())
    }
}
