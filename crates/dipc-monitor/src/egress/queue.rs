//! Artifacts that requests were promised: on disk until they are where they belong.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use dipc_client::Uuid;
use jiff::Timestamp;

use super::delivery::Places;
use super::job::{Job, JobState};
use super::store_client::StoreClient;
use super::uploads;
use crate::artifact::{Artifact, ArtifactError, ArtifactKind, ArtifactSink};
use crate::configuration::{DirectoryEgress, EgressProvider};
use crate::live_session::RetryWait;
use crate::monitor::Monitor;
use crate::operation::{Operations, RunningOperation};
use crate::process::Watched;
use crate::server::StoredRequest;
use crate::stop::StopSignal;

/// The most jobs of a queue.
const MOST_JOBS: usize = 200;
/// The time after a restart in which the process of an incomplete job has to appear.
const RETURN: Duration = Duration::from_secs(120);
/// The time between looks for such processes.
const LOOK: Duration = Duration::from_millis(200);
/// The directory in the queue's with artifacts for stores.
const UPLOADS: &str = "uploads";
/// The bytes of artifacts for stores from which on further ones are refused.
const MOST_UPLOAD_BYTES: u64 = 16 << 30;
/// The stack of a collection's thread.
const STACK: usize = 1 << 20;

/// A queue of promised artifacts. A restart goes on where an end of the program, of any kind, left it.
#[derive(Debug, Clone)]
pub struct EgressQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    /// Locked while this program uses the queue.
    _lock: File,
    providers: Mutex<BTreeMap<String, EgressProvider>>,
    /// The client of object stores, if the program has one.
    stores: OnceLock<Arc<dyn StoreClient>>,
    /// The number of jobs.
    jobs: Mutex<usize>,
    is_over: AtomicBool,
    wake: (Mutex<()>, Condvar),
    /// The jobs of an earlier run, until they are taken up.
    earlier: Mutex<Vec<Job>>,
}

/// A request that cannot be promised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The configuration has no such provider.
    #[error("there is no egress provider '{0}'")]
    Unknown(String),
    /// The provider is a store that is not supported.
    #[error("the egress provider '{0}' is of {1}, which is not supported")]
    Unsupported(String, &'static str),
    /// The provider does not take such artifacts.
    #[error("the egress provider '{0}' is a data set, which takes recordings only: /trace and /snapshot")]
    NotTaken(String),
    /// Artifacts for stores take all the space that they may.
    #[error("artifacts of {} GB wait to be uploaded: more are refused until some have arrived", MOST_UPLOAD_BYTES >> 30)]
    NoSpace,
    /// The queue is full.
    #[error("{MOST_JOBS} artifacts wait for their destination: more are refused until some have arrived")]
    Full,
    /// The queue cannot be written.
    #[error("the queue of artifacts: {0}")]
    Queue(#[from] io::Error),
}

impl EgressQueue {
    /// Opens the queue in a directory, which is created, for this program alone.
    ///
    /// # Errors
    /// Those of the file system; [`io::ErrorKind::WouldBlock`] if another monitor uses it.
    pub fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        #[cfg(unix)]
        fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let lock = File::options().create(true).append(true).open(directory.join("lock"))?;
        lock.try_lock()?;
        let earlier = Job::read_all(directory)?;
        uploads::remove_abandoned(&directory.join(UPLOADS), &earlier);
        Ok(Self(Arc::new(Shared {
            directory: directory.to_owned(),
            _lock: lock,
            providers: Mutex::default(),
            stores: OnceLock::new(),
            jobs: Mutex::new(earlier.len()),
            is_over: AtomicBool::new(false),
            wake: (Mutex::default(), Condvar::new()),
            earlier: Mutex::new(earlier),
        })))
    }

    /// Sets the client of object stores, once; without it, they are not supported.
    #[must_use]
    pub fn with_stores(self, client: Arc<dyn StoreClient>) -> Self {
        // A second one has no effect.
        let _ = self.0.stores.set(client);
        self
    }

    /// Sets the providers that requests can name.
    pub fn set_providers(&self, providers: BTreeMap<String, EgressProvider>) {
        *lock(&self.0.providers) = providers;
    }

    /// The directories of its providers, by the names of these.
    pub(crate) fn directories(&self) -> BTreeMap<String, PathBuf> {
        crate::egress::directories(&lock(&self.0.providers))
    }

    /// The number of artifacts that have not arrived.
    pub fn len(&self) -> usize {
        *lock(&self.0.jobs)
    }

    /// Whether all have arrived.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes up the jobs of an earlier run. An incomplete artifact is collected again, if its process
    /// appears.
    pub fn resume(&self, monitor: &Arc<Monitor>, operations: &Operations) {
        let jobs = std::mem::take(&mut *lock(&self.0.earlier));
        for job in jobs {
            let queue = self.clone();
            let (monitor, operations) = (Arc::downgrade(monitor), operations.clone());
            let thread = thread::Builder::new().name("egress".to_owned()).stack_size(STACK);
            // Without a thread it stays for the next start.
            let _ = thread.spawn(move || {
                let find = |job: &Job| {
                    let processes = monitor.upgrade()?.processes();
                    let is_same = |process: &Arc<Watched>| {
                        process.uid.to_string() == job.uid && process.facts.pid == job.pid
                    };
                    processes.into_iter().find(is_same)
                };
                queue.resume_job(job, &operations, find);
            });
        }
    }

    /// Ends the work on the queue. What has not arrived stays in it.
    pub fn close(&self) {
        self.0.is_over.store(true, Ordering::Release);
        let _guard = lock(&self.0.wake.0);
        self.0.wake.1.notify_all();
    }

    /// Promises an artifact: when this returns, it arrives even if the program ends. `operation` is begun.
    ///
    /// # Errors
    /// If it cannot be promised.
    pub(crate) fn promise(
        &self,
        operation: RunningOperation,
        process: Arc<Watched>,
        artifact: Artifact,
        request: StoredRequest,
        tags: BTreeSet<String>,
        provider: &str,
    ) -> Result<(), EgressError> {
        let destination = self.destination(provider)?;
        if let Some(EgressProvider::Store(store)) = lock(&self.0.providers).get(provider)
            && !store.takes(artifact.kind())
        {
            return Err(EgressError::NotTaken(provider.to_owned()));
        }
        self.count()?;
        let job = Job {
            id: operation.id.to_string(),
            state: JobState::Collecting,
            provider: provider.to_owned(),
            name: artifact.file_name(&process, Timestamp::now()),
            delivered: None,
            is_upload: destination.is_store,
            directory: destination.files.directory,
            intermediate: destination.files.intermediate,
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            process_name: process.facts.name.clone(),
            tags,
            request,
        };
        let begun = job.store(&self.0.directory, &|| Ok(())).and_then(|()| {
            let (queue, job) = (self.clone(), job.clone());
            let thread = thread::Builder::new().name(artifact.kind().name().to_owned()).stack_size(STACK);
            thread.spawn(move || queue.collect(job, &artifact, &process, operation)).map(|_| ())
        });
        begun.map_err(|error| {
            self.forget(&job);
            error.into()
        })
    }

    /// Takes over a complete file in the directory of [`destination`](Self::destination), which arrives even if
    /// the program ends. Returns its place once it has arrived; `None` if the queue is closed before.
    ///
    /// # Errors
    /// If it cannot be taken over.
    pub(crate) fn take_over(
        &self,
        file: &Path,
        (name, provider): (String, String),
        kind: ArtifactKind,
        process: &Watched,
        operation: RunningOperation,
    ) -> Result<Option<PathBuf>, EgressError> {
        let job = Job {
            id: operation.id.to_string(),
            state: JobState::Complete,
            provider,
            is_upload: true,
            directory: self.0.directory.join(UPLOADS),
            intermediate: None,
            name,
            delivered: None,
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            process_name: process.facts.name.clone(),
            tags: BTreeSet::new(),
            // It is not collected again: only its kind is of use.
            request: StoredRequest::of_kind(kind),
        };
        match self.count().and_then(|()| self.store_file(&job, file)) {
            Ok(()) => Ok(self.deliver(job, operation)),
            Err(error) => {
                // It would be removed by the next run.
                let _ = fs::remove_file(file);
                operation.end(Err(error.to_string()));
                Err(error)
            }
        }
    }

    /// Stores a job that was counted, with its complete file.
    fn store_file(&self, job: &Job, file: &Path) -> Result<(), EgressError> {
        let stored = job.places().and_then(|places| {
            fs::rename(file, &places.part)?;
            job.store(&self.0.directory, &|| Ok(())).inspect_err(|_| places.remove_part())
        });
        stored.map_err(|error| {
            self.forget(job);
            error.into()
        })
    }

    /// Counts a job.
    ///
    /// # Errors
    /// If there are as many as may be.
    fn count(&self) -> Result<(), EgressError> {
        let mut jobs = lock(&self.0.jobs);
        if *jobs >= MOST_JOBS {
            return Err(EgressError::Full);
        }
        *jobs += 1;
        Ok(())
    }

    /// Returns the destination of a provider.
    ///
    /// # Errors
    /// If there is none, or too much waits to be uploaded.
    pub(crate) fn destination(&self, provider: &str) -> Result<Destination, EgressError> {
        let unsupported = |kind| Err(EgressError::Unsupported(provider.to_owned(), kind));
        match lock(&self.0.providers).get(provider) {
            Some(EgressProvider::FileSystem(egress)) => {
                return Ok(Destination { files: egress.clone(), is_store: false });
            }
            Some(EgressProvider::Store(store)) if self.0.stores.get().is_none() => {
                return unsupported(store.kind());
            }
            Some(EgressProvider::Store(_)) => {}
            Some(EgressProvider::Unsupported(kind)) => return unsupported(kind),
            None => return Err(EgressError::Unknown(provider.to_owned())),
        }
        let directory = self.0.directory.join(UPLOADS);
        if uploads::size_of(&directory) >= MOST_UPLOAD_BYTES {
            return Err(EgressError::NoSpace);
        }
        Ok(Destination { files: DirectoryEgress { directory, ..DirectoryEgress::default() }, is_store: true })
    }

    /// Uploads the complete file of a job.
    fn upload(&self, job: &Job, file: &Path) -> io::Result<PathBuf> {
        let provider = lock(&self.0.providers).get(&job.provider).cloned();
        let Some(EgressProvider::Store(store)) = provider else {
            let what = format!("the configuration has no store '{}' any more", job.provider);
            return Err(io::Error::new(io::ErrorKind::NotFound, what));
        };
        let client = self.0.stores.get().ok_or(io::ErrorKind::Unsupported)?;
        client.upload(&store, &job.name, file)?;
        Ok(store.address(&job.name).into())
    }

    /// Removes the record of a job that has ended.
    fn forget(&self, job: &Job) {
        job.remove(&self.0.directory);
        let mut jobs = lock(&self.0.jobs);
        *jobs = jobs.saturating_sub(1);
    }

    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }

    fn wait(&self, time: Duration) {
        let guard = lock(&self.0.wake.0);
        if !self.is_over() {
            drop(self.0.wake.1.wait_timeout(guard, time));
        }
    }

    /// Goes on with a job of an earlier run. `find` returns its process once it is known.
    fn resume_job(&self, job: Job, operations: &Operations, find: impl Fn(&Job) -> Option<Arc<Watched>>) {
        let artifact = job.request.artifact();
        let (Ok(id), Ok(artifact), Ok(uid)) = (Uuid::try_parse(&job.id), artifact, Uuid::try_parse(&job.uid))
        else {
            // Another version wrote it.
            return;
        };
        let operation = operations.begin_again(
            id,
            artifact.kind(),
            (job.pid, uid, job.process_name.clone()),
            job.tags.clone(),
            job.provider.clone(),
        );
        if job.state != JobState::Collecting {
            self.deliver(job, operation);
            return;
        }
        let until = Instant::now() + RETURN;
        while Instant::now() < until && !operation.stop.is_stopped() {
            if self.is_over() {
                return;
            }
            if let Some(process) = find(&job) {
                self.collect(job, &artifact, &process, operation);
                return;
            }
            self.wait(LOOK);
        }
        if let Ok(places) = job.places() {
            places.remove_part();
        }
        self.forget(&job);
        operation.end(Err("the monitor was restarted, and the process has not returned".to_owned()));
    }

    /// Collects the artifact of a job, and delivers it.
    fn collect(&self, mut job: Job, artifact: &Artifact, process: &Watched, operation: RunningOperation) {
        let result = job.places().map_err(ArtifactError::Sink).and_then(|places| {
            let result = collect_part(&places, artifact, process, &operation);
            if result.is_err() {
                places.remove_part();
            }
            result
        });
        let result = result.and_then(|()| {
            job.state = JobState::Complete;
            job.store(&self.0.directory, &|| Ok(())).map_err(ArtifactError::Sink)
        });
        match result {
            Ok(()) => drop(self.deliver(job, operation)),
            // It is collected again after the next start.
            Err(ArtifactError::Cancelled) if self.is_over() => {}
            Err(error) => {
                self.forget(&job);
                operation.end(Err(error.to_string()));
            }
        }
    }

    /// Delivers a complete file, again and again until it has arrived, and returns its place; `None` if the
    /// queue is closed before.
    fn deliver(&self, mut job: Job, operation: RunningOperation) -> Option<PathBuf> {
        let mut retry = RetryWait::new();
        loop {
            let upload = |job: &Job, file: &Path| self.upload(job, file);
            match deliver_once(&mut job, &self.0.directory, &|| Ok(()), &upload) {
                Ok(path) => {
                    job.add_note(&path);
                    // The limits as they are now: those of the request's time may have been changed.
                    if !job.is_upload
                        && let Ok(Destination { files, is_store: false }) = self.destination(&job.provider)
                        && files.directory == job.directory
                    {
                        super::limit(&files.directory, &path, &files.retention);
                    }
                    let mut jobs = lock(&self.0.jobs);
                    *jobs = jobs.saturating_sub(1);
                    drop(jobs);
                    operation.end(Ok(Some(path.display().to_string())));
                    return Some(path);
                }
                Err(error) => operation.retrying(&error.to_string()),
            }
            let until = Instant::now() + retry.next();
            while Instant::now() < until {
                if self.is_over() {
                    return None;
                }
                self.wait(until.saturating_duration_since(Instant::now()));
            }
        }
    }
}

/// The destination of artifacts.
#[derive(Debug)]
pub(crate) struct Destination {
    /// The directory, or for a store that in which artifacts wait.
    pub(crate) files: DirectoryEgress,
    pub(crate) is_store: bool,
}

/// Delivers a complete file, by `upload` if it is for a store, and removes its record.
fn deliver_once(
    job: &mut Job,
    queue: &Path,
    step: super::delivery::Step<'_>,
    upload: &dyn Fn(&Job, &Path) -> io::Result<PathBuf>,
) -> io::Result<PathBuf> {
    let places = job.places()?;
    let path = if let Some(path) = &job.delivered {
        path.clone()
    } else {
        let path = if job.is_upload { upload(job, &places.part)? } else { places.deliver(step)? };
        step()?;
        job.state = JobState::Delivered;
        job.delivered = Some(path.clone());
        job.store(queue, step)?;
        path
    };
    step()?;
    places.remove_part();
    step()?;
    job.remove(queue);
    Ok(path)
}

/// Collects an artifact into its part, which is durable afterwards.
fn collect_part(
    places: &Places,
    artifact: &Artifact,
    process: &Watched,
    operation: &RunningOperation,
) -> Result<(), ArtifactError> {
    let stop: StopSignal = operation.stop.clone();
    let mut sink = PartSink { places, operation, file: None };
    artifact.collect(process, &stop, &mut sink)?;
    let file = sink.file.ok_or_else(|| ArtifactError::Failed("there is nothing to write".to_owned()))?;
    let file = file.into_inner().map_err(|error| ArtifactError::Sink(error.into_error()))?;
    file.sync_all().map_err(ArtifactError::Sink)
}

/// The part of a job as the destination of an artifact.
struct PartSink<'s> {
    places: &'s Places,
    operation: &'s RunningOperation,
    file: Option<io::BufWriter<File>>,
}

impl ArtifactSink for PartSink<'_> {
    fn begin(&mut self) -> io::Result<()> {
        self.file = Some(io::BufWriter::with_capacity(super::BUFFER, self.places.create()?));
        self.operation.begun();
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.write_all(bytes),
            None => Err(io::Error::other("the artifact has not begun")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
