//! The samples of the whole machine, all the time: in a ring on disk that requests ask afterwards, and as
//! profiles for a collector.

mod export;
mod process_lives;
mod selection;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// True if stacks have the kernel's frames.
    pub kernel_frames: bool,
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
            kernel_frames: true,
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

    /// With or without [`kernel_frames`](Self::kernel_frames).
    #[must_use]
    pub fn with_kernel_frames(self, kernel_frames: bool) -> Self {
        Self { kernel_frames, ..self }
    }

    /// With this time of a [`segment`](Self::segment).
    #[must_use]
    pub fn with_segment(self, segment: Duration) -> Self {
        Self { segment, ..self }
    }
}

impl ContinuousProfileConfig {
    fn settings(&self) -> ContinuousSettings {
        ContinuousSettings {
            frequency: self.frequency,
            segment: self.segment,
            kernel_frames: self.kernel_frames,
        }
    }

    fn directory(&self) -> Option<&Path> {
        self.ring.as_ref().map(|ring| &*ring.directory)
    }

    /// Returns true if a sampler with these settings can go on with the others.
    fn can_become(&self, other: &Self) -> bool {
        (self.frequency, self.kernel_frames, &self.filters, self.directory())
            == (other.frequency, other.kernel_frames, &other.filters, other.directory())
    }
}

impl ProfileRingConfig {
    fn limits(&self) -> Retention {
        Retention::default().with_age(Some(self.keep)).with_bytes(Some(self.max_bytes))
    }

    fn open(&self) -> io::Result<ProfileRing> {
        ProfileRing::open(&self.directory, self.limits())
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
pub struct ContinuousProfile {
    current: Mutex<Current>,
    watched: WatchedProcesses,
    export: Option<ProfileExport>,
    log: ProfileLog,
}

impl fmt::Debug for ContinuousProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContinuousProfile").field("current", &self.current).finish_non_exhaustive()
    }
}

/// The settings, and the sampler that has them.
#[derive(Debug)]
struct Current {
    config: ContinuousProfileConfig,
    /// The sampler, or the reason for which there is none; `None` if samples are neither kept nor sent.
    sampler: Option<Result<Arc<ContinuousSampler>, String>>,
    /// The samples of the samplers before, and the samples that they lost.
    before: (u64, u64),
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
    /// Opens the ring, and begins to sample, if samples are to be kept or exported. Where the kernel does not
    /// permit that, `log` has the reason, and the ring of an earlier run can still be asked.
    ///
    /// # Errors
    /// If the directory cannot be used, or a thread not be started; [`io::ErrorKind::WouldBlock`] if another
    /// monitor fills the ring.
    pub fn start(config: ContinuousProfileConfig, log: &ProfileLog) -> io::Result<Self> {
        let ring = config.ring.as_ref().map(ProfileRingConfig::open).transpose()?;
        let watched = WatchedProcesses::default();
        let export = config
            .export
            .clone()
            .map(|export| ProfileExport::start(export, watched.clone(), Arc::clone(log)))
            .transpose()?;
        let current = Current { config, sampler: None, before: (0, 0) };
        let profile = Self { current: Mutex::new(current), watched, export, log: Arc::clone(log) };
        profile.sample(&mut profile.current(), ring);
        Ok(profile)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to sample with the current settings.
    fn sample(&self, current: &mut Current, ring: Option<ProfileRing>) {
        let config = &current.config;
        if ring.is_none() && self.export.is_none() {
            current.sampler = None;
            return;
        }
        let sinks = SegmentSinks {
            ring,
            receiver: self.export.as_ref().map(ProfileExport::receiver),
            select: (!config.filters.is_empty()).then(|| self.watched.selector(config.filters.clone())),
        };
        let of_sampler = Arc::clone(&self.log);
        let report = move |event: &ContinuousEvent| of_sampler(&event.into());
        let sampler = ContinuousSampler::start(config.settings(), sinks, &mut (), report);
        (self.log)(&match &sampler {
            Ok(sampler) => ProfileMessage::Started(sampler.description().to_owned()),
            Err(error) => ProfileMessage::Refused(error.to_string()),
        });
        current.sampler = Some(sampler.map(Arc::new).map_err(|error| error.to_string()));
    }

    /// Applies other settings, except of the export. The limits of the ring and the time of a recording apply
    /// to the sampler that runs. For others it ends, which completes its recording, and another one begins.
    ///
    /// # Errors
    /// As [`start`](Self::start). Everything stays as it was if another directory cannot be used.
    pub fn apply(&self, config: ContinuousProfileConfig) -> io::Result<()> {
        let mut current = self.current();
        let before = &current.config;
        let has_changed =
            !before.can_become(&config) || (&before.ring, before.segment) != (&config.ring, config.segment);
        if !has_changed {
            return Ok(());
        }
        let config = ContinuousProfileConfig { export: before.export.clone(), ..config };
        if let Some(Ok(sampler)) = current.sampler.as_ref().filter(|_| before.can_become(&config)) {
            sampler.set_segment(config.segment);
            if let Some(ring) = &config.ring {
                sampler.set_limits(ring.limits());
            }
            current.config = config;
            return Ok(());
        }
        let is_same = before.directory() == config.directory();
        let open = || config.ring.as_ref().map(ProfileRingConfig::open).transpose();
        let other = if is_same { None } else { open()? };
        if let Some(Ok(sampler)) = current.sampler.take() {
            sampler.stop();
            let status = sampler.status();
            let (samples, lost) = current.before;
            current.before = (samples.saturating_add(status.samples), lost.saturating_add(status.lost));
        }
        // The sampler that has ended has locked it.
        let ring = if is_same { open() } else { Ok(other) };
        current.config = config.clone();
        match ring {
            Ok(ring) => {
                self.sample(&mut current, ring);
                Ok(())
            }
            Err(error) => {
                current.sampler = Some(Err(error.to_string()));
                Err(error)
            }
        }
    }

    /// The directory of the ring, if there is one.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.current().config.directory().map(Path::to_owned)
    }

    fn sampler(&self) -> Option<Arc<ContinuousSampler>> {
        self.current().sampler.as_ref()?.as_ref().ok().cloned()
    }

    /// The state of the sampler and its ring; `None` if samples are neither kept nor sent.
    pub(crate) fn state(&self) -> Option<ProfileState> {
        let segments = self.directory().and_then(|directory| stored_segments(&directory).ok());
        let segments = segments.unwrap_or_default();
        let current = self.current();
        let status = match current.sampler.as_ref()? {
            Ok(sampler) => sampler.status(),
            Err(error) => {
                let mut status = ContinuousStatus::default();
                status.ended = Some(error.clone());
                status
            }
        };
        let (samples, lost) = current.before;
        Some(ProfileState {
            samples: samples.saturating_add(status.samples),
            lost_samples: lost.saturating_add(status.lost),
            recordings: segments.len(),
            bytes: segments.iter().fold(0_u64, |sum, stored| sum.saturating_add(stored.bytes)),
            start_ms: segments.first().map(|first| first.segment.start_ms),
            end_ms: segments.last().map(|last| last.segment.end_ms),
            waiting_recordings: status.ring.waiting,
            dropped_recordings: status.ring.dropped,
            error: status.ended.or(status.ring.error),
        })
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
        let last_ms = self.state().and_then(|state| state.end_ms).unwrap_or(0);
        let recent_ms = u64::try_from(now.saturating_sub(RECENT).as_millis()).unwrap_or(u64::MAX);
        if let Some(sampler) = self.sampler()
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
        if let Some(sampler) = self.sampler() {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ring(directory: &Path, keep: u64) -> ProfileRingConfig {
        ProfileRingConfig {
            directory: directory.to_owned(),
            keep: Duration::from_secs(keep),
            max_bytes: 1 << 20,
        }
    }

    /// As far as the kernel permits no samples, the sampler is the reason for that.
    #[test]
    fn a_ring_is_opened_moved_and_closed_by_other_settings() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        let off = ContinuousProfileConfig::default();
        let log: ProfileLog = Arc::new(|_| {});
        let profile = ContinuousProfile::start(off.clone(), &log).unwrap();
        assert!(profile.state().is_none() && profile.directory().is_none());
        profile.apply(off.clone().with_ring(Some(ring(&first, 60)))).unwrap();
        assert!(profile.state().is_some());
        assert_eq!(profile.directory(), Some(first.clone()));
        let is_used = |directory: &Path| {
            ring(directory, 60).open().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        };
        let may_sample = profile.sampler().is_some();
        assert_eq!(is_used(&first), may_sample);
        // The same sampler has other limits; another frequency needs another.
        let sampler = profile.sampler();
        profile.apply(off.clone().with_ring(Some(ring(&first, 30)))).unwrap();
        assert!(sampler.iter().all(|sampler| Arc::ptr_eq(sampler, &profile.sampler().unwrap())));
        let other = off.clone().with_ring(Some(ring(&first, 30))).with_frequency(49);
        profile.apply(other.clone()).unwrap();
        assert!(sampler.iter().all(|sampler| !Arc::ptr_eq(sampler, &profile.sampler().unwrap())));
        assert_eq!(is_used(&first), may_sample);
        // A directory that another monitor fills leaves everything as it is.
        let theirs = ring(&second, 60).open().unwrap();
        let moved = other.with_ring(Some(ring(&second, 60)));
        assert_eq!(profile.apply(moved.clone()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(profile.directory(), Some(first.clone()));
        drop(theirs);
        profile.apply(moved).unwrap();
        assert_eq!((is_used(&first), is_used(&second)), (false, may_sample));
        profile.apply(off).unwrap();
        assert!(profile.state().is_none() && !is_used(&second));
        // What was sampled is there.
        for directory in [first, second] {
            assert_eq!(stored_segments(&directory).unwrap().is_empty(), !may_sample);
        }
    }
}
