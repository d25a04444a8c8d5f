//! Compiled code by the way in which it was compiled, as far as it is slower than it could be.

use std::collections::HashSet;
use std::ops::Range;

use clr_events::code::Tier;
use clr_events::enums::MethodFlags;
use clr_events::view::MethodCode;
use clr_events::{ClrEvent, EventSet, Provider, ids};
use nettrace::{Event, Metadata};

/// The code of a recording that could be faster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeTiersReport {
    /// The number of methods that were compiled for the first time, that is not again with optimizations.
    pub first_tier: u64,
    /// Those of .NET itself that are precompiled as a rule: neither generic nor made at run time.
    pub of_framework: u64,
    /// The methods without optimizations, as in a debug build: `Namespace.Type.Method(parameters)`, as
    /// TraceEvent writes them without the module. At most 65,536.
    pub unoptimized: HashSet<String>,
}

/// Gathers the tiers of code, as `Method/LoadVerbose` and the rundown have them. .NET Core 3.0 or later.
///
/// # Memory
/// Bounded: 65,536 names.
#[derive(Debug, Default)]
pub struct CodeTiers(CodeTiersReport);

const MAX_METHODS: usize = 1 << 16;
const SYSTEM: &str = "System.";
/// The place of the flags in the payloads, in all versions.
const FLAGS: Range<usize> = 32..36;

/// Methods that are loaded, and the methods at the end of a session.
static METHODS: EventSet = EventSet::new(&[
    (Provider::Runtime, ids::runtime::METHOD_LOAD_VERBOSE),
    (Provider::Rundown, ids::rundown::METHOD_DC_STOP_VERBOSE),
]);

impl CodeTiers {
    /// Returns true if [`add`](Self::add) looks at events of a kind.
    pub fn needs(kind: &Metadata) -> bool {
        METHODS.contains(kind)
    }

    /// Adds an event, which may be of any kind.
    pub fn add(&mut self, event: &Event<'_>) {
        if !METHODS.contains(event.metadata()) {
            return;
        }
        // Most methods have names that are not needed.
        let Some(flags) = event.payload().get(FLAGS).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()) else {
            return;
        };
        let flags = MethodFlags(u32::from_le_bytes(flags));
        let is_first = matches!(flags.tier(), Tier::MIN_OPT_JITTED | Tier::OPTIMIZED | Tier::QUICK_JITTED);
        let is_loaded = is_first && event.id() == ids::runtime::METHOD_LOAD_VERBOSE;
        if flags.tier() != Tier::MIN_OPT_JITTED && !is_loaded {
            return;
        }
        match ClrEvent::of(event).ok().flatten() {
            Some(ClrEvent::MethodLoadVerbose(method)) => {
                self.count(&method);
                self.add_unoptimized(&method);
            }
            Some(ClrEvent::MethodDcStopVerbose(method)) => self.add_unoptimized(&method),
            _ => {}
        }
    }

    /// Counts a method that was compiled for the first time.
    fn count(&mut self, method: &MethodCode<'_>) {
        let flags = method.method_flags;
        if !flags.contains(MethodFlags::JITTED) || flags.contains(MethodFlags::DYNAMIC) {
            return;
        }
        let report = &mut self.0;
        report.first_tier = report.first_tier.saturating_add(1);
        let is_generic = flags.contains(MethodFlags::GENERIC);
        if !is_generic && method.method_namespace.chars().take(SYSTEM.len()).eq(SYSTEM.chars()) {
            report.of_framework = report.of_framework.saturating_add(1);
        }
    }

    fn add_unoptimized(&mut self, method: &MethodCode<'_>) {
        if method.method_flags.tier() != Tier::MIN_OPT_JITTED || self.0.unoptimized.len() >= MAX_METHODS {
            return;
        }
        let texts = [method.method_namespace, method.method_name, method.method_signature];
        let [namespace, name, signature] = texts.map(|text| text.to_string());
        let parameters = signature.find('(').and_then(|open| signature.get(open..)).unwrap_or_default();
        self.0.unoptimized.insert(format!("{namespace}.{name}{parameters}"));
    }

    /// Returns the report.
    pub fn finish(self) -> CodeTiersReport {
        self.0
    }
}
