//! The code at an address, and the reasons for addresses without a name.

use core::fmt;

use nettrace::Ticks;

use crate::code::code_map::CodeMap;
use crate::code::il_matcher::IlMatcher;
use crate::code::method::Method;
use crate::code::module::file_name;
use crate::code::native::Symbol;
use crate::code::process::Process;
use crate::code::ranges::Ranges;
use crate::csharp::RuntimeName;

/// An index from addresses to code, made after all code events of a recording were added.
#[derive(Debug, Clone, Copy)]
pub struct Symbolizer<'m> {
    map: &'m CodeMap,
}

/// The code at an address. Prints as the name, or as the address without one.
///
/// ```
/// # use nettrace_synth::clr::{Method, Recording};
/// # let signature = "instance void  (int32)";
/// # let pay = Method { signature, ..Method::new(0x1000, "Shop.Cart", "Pay") };
/// # let recording = Recording::new().at(5).method(&pay).bytes();
/// # let mut code = clr_events::CodeMap::default();
/// # nettrace::SliceReader::new(&recording)?.for_each(|event| code.add(&event))?;
/// # let (symbolizer, time) = (code.symbolizer(), nettrace::Ticks(9));
/// use clr_events::code::Code;
///
/// match symbolizer.resolve(Some(4242), 0x1010, time) {
///     Code::Method(method) => assert_eq!((method.namespace(), method.name()), ("Shop.Cart", "Pay")),
///     Code::Symbol(symbol) => println!("{} in {}", symbol.name(), symbol.file()),
///     Code::Unresolved(unresolved) => println!("{:#x}: {:?}", unresolved.address, unresolved.reason),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[allow(
    clippy::exhaustive_enums,
    reason = "a caller handles each: an address is a method, a symbol or neither"
)]
pub enum Code<'m> {
    /// Code of a .NET method.
    Method(Method<'m>),
    /// Native code with a symbol.
    Symbol(Symbol<'m>),
    /// No named code.
    Unresolved(Unresolved<'m>),
}

/// An address without a name.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Unresolved<'m> {
    /// The address.
    pub address: u64,
    /// The reason for the missing name.
    pub reason: UnresolvedReason,
    /// V6: the file that is mapped there; empty where none is known.
    pub file: &'m str,
}

/// The reason why an address is not resolved to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnresolvedReason {
    /// The recording does not contain events about code of the process.
    NoCode,
    /// The recording does not contain a rundown, the only events about code that was loaded before it began,
    /// precompiled code above all.
    NoRundown,
    /// The method there was reported without a name.
    Unnamed,
    /// The address is not in a method: the code is a helper or stub of the runtime, or native.
    NoMethod,
    /// A file is mapped there, without a symbol for the address in the recording.
    NoSymbol,
    /// More code was reported than the limit allows.
    LeftOut,
}

impl fmt::Display for UnresolvedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCode => "the recording tells of no code of this process",
            Self::NoRundown => {
                "the recording has no rundown, which alone names what was loaded before it began"
            }
            Self::Unnamed => "the recording tells of the method without its name",
            Self::NoMethod => "no method lies there: a helper or stub of the runtime, or native code",
            Self::NoSymbol => "the recording has no symbol for this place of the file",
            Self::LeftOut => "more code was told of than is kept",
        })
    }
}

impl CodeMap {
    /// Sorts the ranges that were added since the last call, and returns an index from addresses to code.
    pub fn symbolizer(&mut self) -> Symbolizer<'_> {
        self.symbols.values_mut().for_each(Ranges::sort);
        self.processes.values_mut().for_each(Process::sort);
        Symbolizer { map: self }
    }
}

impl<'m> Symbolizer<'m> {
    /// Returns the code at an address of a process at a time. Before V6 a recording has one process.
    pub fn resolve(&self, process: Option<u64>, address: u64, time: Ticks) -> Code<'m> {
        self.find(process, address, time).0
    }

    /// Returns the code at the address, and whether it is the same at all times.
    pub fn find(self, pid: Option<u64>, address: u64, time: Ticks) -> (Code<'m>, bool) {
        let map = self.map;
        let (texts, il) = (&map.texts, map.il.as_ref().map(IlMatcher::maps));
        let unresolved = |reason, file| Code::Unresolved(Unresolved { address, reason, file });
        let Some(process) = map.processes.get(&pid.unwrap_or(0)) else {
            return (unresolved(UnresolvedReason::NoCode, ""), true);
        };
        let mut is_only = true;
        let mut reason = if process.is_cut {
            UnresolvedReason::LeftOut
        } else if process.methods.len() == 0 {
            UnresolvedReason::NoCode
        } else if process.has_rundown {
            UnresolvedReason::NoMethod
        } else {
            UnresolvedReason::NoRundown
        };
        if let Some(found) = process.methods.find(address, time)
            && let Some(entry) = process.methods.get(found.index)
        {
            let method = Method { texts, il, modules: &process.modules, entry };
            if method.is_named() {
                return (Code::Method(method), found.is_only);
            }
            is_only = found.is_only;
            reason = UnresolvedReason::Unnamed;
        }
        let mapping = process.mappings.find(address, time).and_then(|found| {
            is_only &= found.is_only;
            process.mappings.get(found.index)
        });
        let Some(mapping) = mapping else { return (unresolved(reason, ""), is_only) };
        let symbols = map.symbols.get(&mapping.id);
        let symbol = symbols.and_then(|symbols| symbols.get(symbols.find(address, time)?.index));
        if let Some(entry) = symbol {
            return (Code::Symbol(Symbol { texts, entry, mapping }), is_only);
        }
        if reason == UnresolvedReason::NoCode {
            reason = UnresolvedReason::NoSymbol;
        }
        (unresolved(reason, texts.get(mapping.path)), is_only)
    }
}

impl<'m> Code<'m> {
    /// The name of the module or file; empty where none is known.
    pub fn module(&self) -> &'m str {
        match self {
            Self::Method(method) => method.module().map_or("", |module| module.name()),
            Self::Symbol(symbol) => symbol.managed().map_or(file_name(symbol.file()), |(module, _)| module),
            Self::Unresolved(unresolved) => file_name(unresolved.file),
        }
    }

    /// The names of the method as the runtime writes them; `None` for native code and code without a name.
    pub fn runtime_name(&self) -> Option<RuntimeName<'m>> {
        match self {
            Self::Method(method) => Some(method.runtime_name()),
            Self::Symbol(symbol) => symbol.runtime_name(),
            Self::Unresolved(_) => None,
        }
    }

    /// Returns true if there is a name for it.
    pub const fn is_named(&self) -> bool {
        !matches!(self, Self::Unresolved(_))
    }
}

impl fmt::Display for Code<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Method(method) => method.fmt(f),
            Self::Symbol(symbol) => symbol.fmt(f),
            Self::Unresolved(unresolved) => write!(f, "{:#x}", unresolved.address),
        }
    }
}
