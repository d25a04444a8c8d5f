//! The samples of the whole machine, all the time, in a ring on disk that requests ask afterwards.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use dipc_collect::kernel_samples::{
    CONTINUOUS_FREQUENCY, ContinuousEvent, ContinuousSampler, ContinuousSettings, ContinuousStatus,
};
use dipc_collect::profile_ring::{
    ProfileRing, RangeError, RangeRecording, RangeRequest, Segment, StoreEvent, read_range, stored_segments,
};
use dipc_collect::{Retention, StopSignal};

/// Maximum time for the samples of the last moments to reach the disk.
const COMPLETION: Duration = Duration::from_secs(5);
/// Maximum time since the end of a range for which the last moments are asked for.
const RECENT: Duration = Duration::from_secs(1);

/// The settings of a [`ProfileHistory`].
///
/// ```
/// use dipc_monitor::ProfileHistoryConfig;
/// use std::time::Duration;
///
/// let day = Duration::from_secs(24 * 3600);
/// let config = ProfileHistoryConfig::new("/var/lib/dipc/profile".into()).with_keep(day).with_frequency(49);
/// assert_eq!((config.frequency, config.max_bytes), (49, 1 << 30));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ProfileHistoryConfig {
    /// The directory of the ring.
    pub directory: PathBuf,
    /// Maximum age of samples.
    pub keep: Duration,
    /// Maximum size of all recordings, in bytes.
    pub max_bytes: u64,
    /// Samples per second of each processor.
    pub frequency: u32,
    /// The time of a recording.
    pub segment: Duration,
}

impl ProfileHistoryConfig {
    /// Keeps a day in at most 1 GiB, with 19 samples a second in recordings of a minute.
    pub const fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            keep: Duration::from_secs(24 * 60 * 60),
            max_bytes: 1 << 30,
            frequency: CONTINUOUS_FREQUENCY,
            segment: Duration::from_secs(60),
        }
    }

    /// With this [`keep`](Self::keep).
    #[must_use]
    pub fn with_keep(self, keep: Duration) -> Self {
        Self { keep, ..self }
    }

    /// With these [`max_bytes`](Self::max_bytes).
    #[must_use]
    pub fn with_max_bytes(self, max_bytes: u64) -> Self {
        Self { max_bytes, ..self }
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

/// The samples of the machine over time.
#[derive(Debug)]
pub struct ProfileHistory {
    directory: PathBuf,
    /// The sampler, or the reason for which there is none.
    sampler: Result<ContinuousSampler, String>,
}

/// The state of a ring.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProfileState {
    pub(crate) status: ContinuousStatus,
    /// The number of recordings on disk.
    pub(crate) segments: usize,
    pub(crate) bytes: u64,
    /// The time that they cover.
    pub(crate) kept: Option<Segment>,
}

impl ProfileHistory {
    /// Opens the ring, and begins to sample. Where the kernel does not permit that, `log` has the reason, and
    /// the ring of an earlier run can still be asked.
    ///
    /// # Errors
    /// If the directory cannot be used; [`io::ErrorKind::WouldBlock`] if another monitor fills it.
    pub fn start(config: ProfileHistoryConfig, log: &ProfileLog) -> io::Result<Self> {
        let limits = Retention::default().with_age(Some(config.keep)).with_bytes(Some(config.max_bytes));
        let ring = ProfileRing::open(&config.directory, limits)?;
        let settings = ContinuousSettings { frequency: config.frequency, segment: config.segment };
        let of_sampler = Arc::clone(log);
        let report = move |event: &ContinuousEvent| of_sampler(&event.into());
        let sampler = ContinuousSampler::start(settings, ring, &mut (), report);
        log(&match &sampler {
            Ok(sampler) => ProfileMessage::Started(sampler.description().to_owned()),
            Err(error) => ProfileMessage::Refused(error.to_string()),
        });
        Ok(Self { directory: config.directory, sampler: sampler.map_err(|error| error.to_string()) })
    }

    /// The state of the ring.
    pub(crate) fn state(&self) -> ProfileState {
        let segments = stored_segments(&self.directory).unwrap_or_default();
        let kept = segments
            .first()
            .zip(segments.last())
            .map(|(first, last)| Segment { start_ms: first.segment.start_ms, end_ms: last.segment.end_ms });
        let status = match &self.sampler {
            Ok(sampler) => sampler.status(),
            Err(error) => {
                let mut status = ContinuousStatus::default();
                status.ended = Some(error.clone());
                status
            }
        };
        let bytes = segments.iter().fold(0_u64, |sum, stored| sum.saturating_add(stored.bytes));
        ProfileState { status, segments: segments.len(), bytes, kept }
    }

    /// Returns the recording of a range. Samples of the last moments are written first if the range has them.
    pub(crate) fn read(
        &self,
        request: &RangeRequest,
        stop: &StopSignal,
    ) -> Result<RangeRecording, RangeError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let last_ms = self.state().kept.map_or(0, |kept| kept.end_ms);
        let recent_ms = u64::try_from(now.saturating_sub(RECENT).as_millis()).unwrap_or(u64::MAX);
        if let Ok(sampler) = &self.sampler
            && request.to_ms > last_ms
            && last_ms < recent_ms
        {
            // Late samples are missing from the answer, not from the ring.
            sampler.complete_now(COMPLETION);
        }
        read_range(&self.directory, request, stop)
    }

    /// Ends the sampling, and writes the last recording.
    pub fn stop(&self) {
        if let Ok(sampler) = &self.sampler {
            sampler.stop();
        }
    }
}
