//! The samples of the whole machine, all the time: in a ring on disk that requests ask afterwards, and as
//! profiles for a collector.

mod export;
mod process_lives;
mod selection;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dipc_collect::kernel_samples::{
    CONTINUOUS_FREQUENCY, ContinuousEvent, ContinuousSampler, ContinuousSettings, ContinuousStatus,
    SegmentSinks,
};
use dipc_collect::profile_ring::{
    ProfileRing, RangeError, RangeRecording, RangeRequest, StoreEvent, read_range, stored_segments,
};
use dipc_collect::{Retention, StopSignal};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::filter::Filter;
use crate::monitor::ProcessObserver;
use crate::process::Watched;
use export::ProfileExport;
use selection::WatchedProcesses;

pub use export::ProfileExportConfig;

/// Maximum time for the samples of the last moments to reach the disk.
const COMPLETION: Duration = Duration::from_secs(5);
/// Maximum time since the end of a range for which the last moments are asked for.
const RECENT: Duration = Duration::from_secs(1);

/// The ring of a [`ContinuousProfile`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by callers, who decide on each field")]
pub struct ProfileRingConfig {
    /// The directory of the ring.
    pub directory: PathBuf,
    /// Maximum age of samples.
    pub keep: Duration,
    /// Maximum size of all recordings, in bytes.
    pub max_bytes: u64,
}

/// The settings of a [`ContinuousProfile`].
///
/// ```
/// use dipc_monitor::{ContinuousProfileConfig, ProfileRingConfig};
/// use std::time::Duration;
///
/// let keep = Duration::from_secs(24 * 3600);
/// let ring = ProfileRingConfig { directory: "/var/lib/dipc/profile".into(), keep, max_bytes: 1 << 30 };
/// let config = ContinuousProfileConfig::default().with_ring(Some(ring)).with_frequency(49);
/// assert_eq!((config.frequency, config.segment), (49, Duration::from_secs(60)));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ContinuousProfileConfig {
    /// The ring on disk, if samples are kept.
    pub ring: Option<ProfileRingConfig>,
    /// The collector of profiles, if there is one.
    pub export: Option<ProfileExportConfig>,
    /// The filters that all match the sampled processes.
    pub filters: Vec<Filter>,
    /// Samples per second of each processor.
    pub frequency: u32,
    /// The time of a recording, and of a profile.
    pub segment: Duration,
}

impl Default for ContinuousProfileConfig {
    /// Samples all processes 19 times a second, in recordings of a minute, for nobody.
    fn default() -> Self {
        Self {
            ring: None,
            export: None,
            filters: Vec::new(),
            frequency: CONTINUOUS_FREQUENCY,
            segment: Duration::from_secs(60),
        }
    }
}

impl ContinuousProfileConfig {
    /// With this [`ring`](Self::ring).
    #[must_use]
    pub fn with_ring(self, ring: Option<ProfileRingConfig>) -> Self {
        Self { ring, ..self }
    }

    /// With this [`export`](Self::export).
    #[must_use]
    pub fn with_export(self, export: Option<ProfileExportConfig>) -> Self {
        Self { export, ..self }
    }

    /// With these [`filters`](Self::filters).
    #[must_use]
    pub fn with_filters(self, filters: Vec<Filter>) -> Self {
        Self { filters, ..self }
    }

    /// With this [`frequency`](Self::frequency).
    #[must_use]
    pub fn with_frequency(self, frequency: u32) -> Self {
        Self { frequency, ..self }
    }

    /// With this time of a [`segment`](Self::segment).
    #[must_use]
    pub fn with_segment(self, segment: Duration) -> Self {
        Self { segment, ..self }
    }
}

impl fmt::Debug for ContinuousProfileConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContinuousProfileConfig").field("ring", &self.ring).finish_non_exhaustive()
    }
}

/// A message about the samples of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProfileMessage {
    /// The machine is sampled, as the words describe.
    Started(String),
    /// The kernel does not permit it, for a reason. What was kept before can be asked for.
    Refused(String),
    /// A recording could not be written. It waits in memory, and is tried again.
    StoreFailed(String),
    /// Recordings that waited are written.
    Recovered(usize),
    /// The oldest recording that waited was dropped: too many wait.
    Dropped,
    /// The profiles of a recording were not exported, for a reason.
    NotExported(String),
    /// The sampler has ended, for a reason.
    Ended(String),
}

impl fmt::Display for ProfileMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started(description) => write!(f, "{description}"),
            Self::Refused(error) => write!(f, "the machine is not sampled: {error}"),
            Self::StoreFailed(error) => {
                write!(f, "samples of the machine wait in memory until they can be written: {error}")
            }
            Self::Recovered(1) => write!(f, "the samples of the machine that waited are written"),
            Self::Recovered(count) => {
                write!(f, "the samples of the machine that waited are written, in {count} recordings")
            }
            Self::Dropped => write!(f, "samples of the machine are dropped: too many wait to be written"),
            Self::NotExported(error) => write!(f, "profiles of the machine are not sent: {error}"),
            Self::Ended(error) => write!(f, "the machine is no longer sampled: {error}"),
        }
    }
}

impl From<&ContinuousEvent> for ProfileMessage {
    fn from(event: &ContinuousEvent) -> Self {
        match event {
            ContinuousEvent::Store(StoreEvent::Failed(error)) => Self::StoreFailed(error.clone()),
            ContinuousEvent::Store(StoreEvent::Recovered { segments }) => Self::Recovered(*segments),
            ContinuousEvent::Ended(error) => Self::Ended(error.clone()),
            _ => Self::Dropped,
        }
    }
}

/// A receiver of messages. It is called from other threads, and must not block.
pub type ProfileLog = Arc<dyn Fn(&ProfileMessage) + Send + Sync>;

/// The samples of the machine over time. Add this to the observers of a [`Monitor`](crate::Monitor).
#[derive(Debug)]
pub struct ContinuousProfile {
    /// The directory of the ring, if there is one.
    directory: Option<PathBuf>,
    /// The sampler, or the reason for which there is none.
    sampler: Result<ContinuousSampler, String>,
    watched: WatchedProcesses,
    export: Option<ProfileExport>,
}

/// The state of the sampler and its ring.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProfileState {
    pub(crate) samples: u64,
    /// The samples that the kernel lost.
    pub(crate) lost_samples: u64,
    /// The number of recordings on disk.
    pub(crate) recordings: usize,
    pub(crate) bytes: u64,
    /// The time that they cover, in milliseconds since 1970.
    #[serde(rename = "from", serialize_with = "calendar_time")]
    pub(crate) start_ms: Option<u64>,
    #[serde(rename = "to", serialize_with = "calendar_time")]
    pub(crate) end_ms: Option<u64>,
    /// Recordings that could not be written so far, and wait in memory.
    pub(crate) waiting_recordings: usize,
    pub(crate) dropped_recordings: u64,
    /// The reason for which recordings wait, or for which the machine is not sampled.
    pub(crate) error: Option<String>,
}

#[allow(clippy::ref_option, reason = "the fields are passed like this")]
fn calendar_time<S: Serializer>(ms: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    let time = ms.and_then(|ms| Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok());
    time.map(|time| time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()).serialize(serializer)
}

impl ContinuousProfile {
    /// Opens the ring, and begins to sample. Where the kernel does not permit that, `log` has the reason, and
    /// the ring of an earlier run can still be asked.
    ///
    /// # Errors
    /// If the directory cannot be used, or a thread not be started; [`io::ErrorKind::WouldBlock`] if another
    /// monitor fills the ring.
    pub fn start(config: ContinuousProfileConfig, log: &ProfileLog) -> io::Result<Self> {
        let directory = config.ring.as_ref().map(|ring| ring.directory.clone());
        let open = |ring: &ProfileRingConfig| {
            let limits = Retention::default().with_age(Some(ring.keep)).with_bytes(Some(ring.max_bytes));
            ProfileRing::open(&ring.directory, limits)
        };
        let ring = config.ring.as_ref().map(open).transpose()?;
        let watched = WatchedProcesses::default();
        let export = config
            .export
            .map(|export| ProfileExport::start(export, watched.clone(), Arc::clone(log)))
            .transpose()?;
        let settings = ContinuousSettings { frequency: config.frequency, segment: config.segment };
        let sinks = SegmentSinks {
            ring,
            receiver: export.as_ref().map(ProfileExport::receiver),
            select: (!config.filters.is_empty()).then(|| watched.selector(config.filters)),
        };
        let of_sampler = Arc::clone(log);
        let report = move |event: &ContinuousEvent| of_sampler(&event.into());
        let sampler = ContinuousSampler::start(settings, sinks, &mut (), report);
        log(&match &sampler {
            Ok(sampler) => ProfileMessage::Started(sampler.description().to_owned()),
            Err(error) => ProfileMessage::Refused(error.to_string()),
        });
        Ok(Self { directory, sampler: sampler.map_err(|error| error.to_string()), watched, export })
    }

    /// The directory of the ring, if there is one.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The state of the sampler and its ring.
    pub(crate) fn state(&self) -> ProfileState {
        let segments = self.directory().and_then(|directory| stored_segments(directory).ok());
        let segments = segments.unwrap_or_default();
        let status = match &self.sampler {
            Ok(sampler) => sampler.status(),
            Err(error) => {
                let mut status = ContinuousStatus::default();
                status.ended = Some(error.clone());
                status
            }
        };
        ProfileState {
            samples: status.samples,
            lost_samples: status.lost,
            recordings: segments.len(),
            bytes: segments.iter().fold(0_u64, |sum, stored| sum.saturating_add(stored.bytes)),
            start_ms: segments.first().map(|first| first.segment.start_ms),
            end_ms: segments.last().map(|last| last.segment.end_ms),
            waiting_recordings: status.ring.waiting,
            dropped_recordings: status.ring.dropped,
            error: status.ended.or(status.ring.error),
        }
    }

    /// Returns the recording of a range, from the ring in `directory`. Samples of the last moments are
    /// written first if the range has them.
    pub(crate) fn read(
        &self,
        directory: &Path,
        request: &RangeRequest,
        stop: &StopSignal,
    ) -> Result<RangeRecording, RangeError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let last_ms = self.state().end_ms.unwrap_or(0);
        let recent_ms = u64::try_from(now.saturating_sub(RECENT).as_millis()).unwrap_or(u64::MAX);
        if let Ok(sampler) = &self.sampler
            && request.to_ms > last_ms
            && last_ms < recent_ms
        {
            // Late samples are missing from the answer, not from the ring.
            sampler.complete_now(COMPLETION);
        }
        read_range(directory, request, stop)
    }

    /// Ends the sampling, writes the last recording, and exports its profiles.
    pub fn stop(&self) {
        if let Ok(sampler) = &self.sampler {
            sampler.stop();
        }
        if let Some(export) = &self.export {
            export.stop();
        }
    }
}

impl ProcessObserver for ContinuousProfile {
    fn started(&self, process: &Arc<Watched>) {
        self.watched.add(process);
    }

    fn ended(&self, process: &Arc<Watched>) {
        self.watched.remove(process);
    }
}
