//! The configuration with types.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use dipc_collect::Retention;

use crate::access::ApiKey;
use crate::filter::Filter;
use crate::rules::Rule;

use super::finding::Finding;
use super::store::StoreEgress;

/// The configuration of a monitor.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Configuration {
    /// The rules without errors, in order.
    pub rules: Vec<Rule>,
    /// The names of the rules with errors, which are not used.
    pub unusable_rules: Vec<String>,
    /// The destinations of artifacts.
    pub egress: BTreeMap<String, EgressProvider>,
    /// The diagnostic port.
    pub diagnostic_port: DiagnosticPort,
    /// The key of JSON Web Tokens.
    pub api_key: Option<ApiKey>,
    /// Directories.
    pub storage: Storage,
    /// The process for requests that do not name one: all filters match.
    pub default_process: Vec<Filter>,
    /// Intervals and limits of counters.
    pub global_counter: GlobalCounter,
    /// Exported metrics.
    pub metrics: Metrics,
    /// The samples of the machine, all the time.
    pub continuous_profiling: ContinuousProfiling,
}

/// The result of reading a configuration.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CheckedConfiguration {
    /// The parts without errors.
    pub configuration: Configuration,
    /// Faults, and parts without effect, in the order of the sources and lines.
    pub findings: Vec<Finding>,
    /// The number of findings beyond the first thousand.
    pub left_out: u64,
    /// The section that the file is a part of, if it is not a whole configuration: `CollectionRules`, for
    /// example.
    pub fragment_of: Option<String>,
}

/// The way to runtimes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "one end of a port connects")]
pub enum ConnectionMode {
    /// The monitor connects to runtimes.
    #[default]
    Connect,
    /// Runtimes connect to the monitor.
    Listen,
}

/// `DiagnosticPort`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a section of a configuration, with `..Default::default()`")]
pub struct DiagnosticPort {
    /// The way to runtimes.
    pub mode: ConnectionMode,
    /// The address of the port. In listen mode without one it is `dotnet-monitor.sock` in the shared
    /// directory.
    pub endpoint: Option<String>,
}

impl Configuration {
    /// Sets the limits on the artifacts of each egress directory.
    pub fn set_retention(&mut self, retention: Retention) {
        for provider in self.egress.values_mut() {
            if let EgressProvider::FileSystem(directory) = provider {
                directory.retention = retention;
            }
        }
    }

    /// The directory into which processes write their dumps: `DumpTempFolder`, or the one for dumps in
    /// `DefaultSharedPath`. `None` if neither is set.
    pub fn dump_folder(&self) -> Option<PathBuf> {
        let shared = || Some(self.storage.default_shared_path.as_ref()?.join("dumps"));
        self.storage.dump_temp_folder.clone().or_else(shared)
    }

    /// The address of the diagnostic port; `None` in connect mode.
    pub fn port_address(&self) -> Option<String> {
        if self.diagnostic_port.mode == ConnectionMode::Connect {
            return None;
        }
        let shared = self.storage.default_shared_path.as_ref();
        let in_shared = shared.map(|path| path.join("dotnet-monitor.sock").display().to_string());
        self.diagnostic_port.endpoint.clone().or(in_shared)
    }
}

/// `Storage`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a section of a configuration, with `..Default::default()`")]
pub struct Storage {
    /// The directory that monitor and processes share.
    pub default_shared_path: Option<PathBuf>,
    /// The directory into which processes write their dumps.
    pub dump_temp_folder: Option<PathBuf>,
}

/// `GlobalCounter`.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct GlobalCounter {
    /// The interval between values.
    pub interval: Duration,
    /// Maximum number of histograms of Meters.
    pub max_histograms: u32,
    /// Maximum number of time series of Meters.
    pub max_time_series: u32,
    /// Intervals of single providers, by name in lower case.
    pub providers: BTreeMap<String, Duration>,
}

impl Default for GlobalCounter {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            max_histograms: 20,
            max_time_series: 1000,
            providers: BTreeMap::new(),
        }
    }
}

impl GlobalCounter {
    /// Returns the interval of a provider's counters.
    pub fn interval_of(&self, provider: &str) -> Duration {
        self.providers.get(&provider.to_lowercase()).copied().unwrap_or(self.interval)
    }
}

/// `Metrics`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a section of a configuration, with `..Default::default()`")]
pub struct Metrics {
    /// True if `/metrics` is served.
    pub enabled: bool,
    /// Addresses that serve `/metrics` alone.
    pub endpoints: Vec<String>,
    /// True if the usual counters of the runtime and of ASP.NET are exported.
    pub include_default_providers: bool,
    /// EventCounters, of all counters of a provider if none is named.
    pub providers: Vec<CounterGroup>,
    /// Meters, with all instruments if none is named.
    pub meters: Vec<CounterGroup>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            enabled: true,
            endpoints: Vec::new(),
            include_default_providers: true,
            providers: Vec::new(),
            meters: Vec::new(),
        }
    }
}

/// Counters of a provider, or instruments of a Meter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterGroup {
    /// The name of the provider or Meter.
    pub name: String,
    /// The names of the counters or instruments; empty for all.
    pub counters: Vec<String>,
}

/// `ContinuousProfiling`. What is not set is as by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a section of a configuration, with `..Default::default()`")]
pub struct ContinuousProfiling {
    /// Maximum age of samples that are kept; zero to keep none.
    pub keep: Option<Duration>,
    /// Samples per second of each processor.
    pub frequency: Option<u32>,
    /// Maximum size of all samples that are kept, in bytes.
    pub max_bytes: Option<u64>,
    /// The directory of the samples.
    pub directory: Option<PathBuf>,
    /// The time of each recording of samples: a [segment](SEGMENTS).
    pub segment: Option<Duration>,
    /// True if stacks have the kernel's frames.
    pub kernel_frames: Option<bool>,
    /// The filters that all match the sampled processes, after those of the monitor.
    pub filters: Vec<Filter>,
}

/// The permitted times of a recording of samples: it is in memory until it ends.
pub const SEGMENTS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(600);

/// A destination of artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EgressProvider {
    /// A directory.
    FileSystem(DirectoryEgress),
    /// An object store.
    Store(StoreEgress),
    /// Another kind of store, which this program does not write to.
    Unsupported(&'static str),
}

/// `Egress:FileSystem:NAME`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct DirectoryEgress {
    /// The directory of the artifacts.
    pub directory: PathBuf,
    /// The directory in which they are written before they are complete; by default, the same.
    pub intermediate: Option<PathBuf>,
    /// Limits on the artifacts in the directory. The caller sets them: they are not part of the
    /// configuration.
    pub retention: Retention,
}
