//! Accepted artifacts: on disk until they are delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use dipc_client::Uuid;
use dipc_client::dipc_transport::open_own;
use dipc_collect::staged::move_over;
use dipc_collect::{Retention, RetryWait};

use super::collection::collect;
use super::job::{Job, JobState};
use super::store_client::StoreClient;
use super::uploads;
use crate::artifact::{Artifact, ArtifactError, ArtifactKind, StoredRequest};
use crate::configuration::{DirectoryEgress, EgressProvider};
use crate::monitor::Monitor;
use crate::operation::{Operations, RunningOperation};
use crate::process::Watched;
use crate::stop::WorkEnd;

/// Maximum number of jobs of a queue.
const MAX_JOBS: usize = 200;
/// The time after a restart in which the process of an incomplete job has to appear.
const RETURN: Duration = Duration::from_secs(120);
/// The time between looks for such processes.
const LOOK: Duration = Duration::from_millis(200);
/// Time between checks for the end of an operation after its destination has failed.
const MAX_WAIT: Duration = Duration::from_secs(1);
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
    end: WorkEnd,
    /// The jobs of an earlier run, until they are taken up.
    earlier: Mutex<Vec<Job>>,
}

/// A request that cannot be promised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EgressError {
    /// The configuration does not contain this provider.
    #[error("there is no egress provider '{0}'")]
    Unknown(String),
    /// The provider is a store that is not supported.
    #[error("the egress provider '{0}' is of {1}, which is not supported")]
    Unsupported(String, &'static str),
    /// The provider does not take such artifacts.
    #[error("the egress provider '{0}' is a data set, which takes recordings only: /trace and /snapshot")]
    NotTaken(String),
    /// Artifacts for stores take all the space that they may.
    #[error("artifacts of {} GB wait to be uploaded: more are refused until some have arrived", uploads::MAX_BYTES >> 30)]
    NoSpace,
    /// The queue is full.
    #[error("{MAX_JOBS} artifacts wait for their destination: more are refused until some have arrived")]
    Full,
    /// The queue cannot be written.
    #[error("the queue of artifacts: {0}")]
    Queue(io::Error),
}

impl From<io::Error> for EgressError {
    fn from(error: io::Error) -> Self {
        Self::Queue(error)
    }
}

impl EgressQueue {
    /// Opens the queue in a directory, which is created, for this program alone.
    ///
    /// # Errors
    /// If the file system fails; [`io::ErrorKind::WouldBlock`] if another monitor uses the directory.
    pub fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        #[cfg(unix)]
        fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        let lock = open_own(&directory.join("lock"), File::options().create(true).append(true))?;
        lock.try_lock()?;
        let earlier = Job::read_all(directory)?;
        let parts: Vec<_> = earlier.iter().filter_map(|job| Some(job.places().ok()?.part)).collect();
        uploads::remove_abandoned(&directory.join(uploads::NAME), &parts);
        Ok(Self(Arc::new(Shared {
            directory: directory.to_owned(),
            _lock: lock,
            providers: Mutex::default(),
            stores: OnceLock::new(),
            jobs: Mutex::new(earlier.len()),
            end: WorkEnd::default(),
            earlier: Mutex::new(earlier),
        })))
    }

    /// Sets the client of object stores, once; without it, they are not supported.
    #[must_use]
    pub fn with_stores(self, client: Arc<dyn StoreClient>) -> Self {
        // A second client is ignored.
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

    /// Returns true if all have arrived.
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
        self.0.end.end();
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
            name: artifact.file_name(&process, SystemTime::now()),
            delivered: None,
            is_upload: destination.is_store,
            directory: destination.files.directory,
            intermediate: destination.files.intermediate,
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            process_name: process.title().to_owned(),
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

    /// The directory in which artifacts wait that cannot go to their own.
    pub(crate) fn waiting_directory(&self) -> PathBuf {
        self.0.directory.join(uploads::NAME)
    }

    /// Takes over a complete file, which arrives even if the program ends. Returns its place once it has
    /// arrived; `None` if the queue is closed before.
    ///
    /// # Errors
    /// If it cannot be taken over. Then the file is removed.
    pub(crate) fn take_over(
        &self,
        artifact: CompleteArtifact<'_>,
        process: &Watched,
        operation: RunningOperation,
    ) -> Result<Option<PathBuf>, EgressError> {
        let waiting = self.waiting_directory();
        let is_upload = artifact.directory.is_none();
        let job = Job {
            id: operation.id.to_string(),
            state: JobState::Complete,
            provider: artifact.provider,
            is_upload,
            directory: artifact.directory.unwrap_or_else(|| waiting.clone()),
            intermediate: (!is_upload).then_some(waiting),
            name: artifact.name,
            delivered: None,
            pid: process.facts.pid,
            uid: process.uid.to_string(),
            process_name: process.title().to_owned(),
            tags: BTreeSet::new(),
            // The artifact is not collected again: only its kind is of use.
            request: StoredRequest::of_kind(artifact.kind),
        };
        match self.count().and_then(|()| self.store_file(&job, artifact.file)) {
            Ok(()) => Ok(self.deliver(job, operation)),
            Err(error) => {
                // The next run would remove the file.
                let _ = fs::remove_file(artifact.file);
                operation.end(Err(error.to_string()));
                Err(error)
            }
        }
    }

    /// Stores a job that was counted, with its complete file.
    fn store_file(&self, job: &Job, file: &Path) -> Result<(), EgressError> {
        let stored = job.places().and_then(|places| {
            fs::create_dir_all(self.waiting_directory())?;
            move_over(file, &places.part)?;
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
    /// If the maximum number is reached.
    fn count(&self) -> Result<(), EgressError> {
        let mut jobs = lock(&self.0.jobs);
        if *jobs >= MAX_JOBS {
            return Err(EgressError::Full);
        }
        *jobs += 1;
        Ok(())
    }

    /// Returns the destination of a provider.
    ///
    /// # Errors
    /// If the provider is unknown, or too much waits to be uploaded.
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
        let directory = self.0.directory.join(uploads::NAME);
        if uploads::size_of(&directory) >= uploads::MAX_BYTES {
            return Err(EgressError::NoSpace);
        }
        Ok(Destination { files: DirectoryEgress { directory, ..DirectoryEgress::default() }, is_store: true })
    }

    /// Returns the limits of a job's directory. They may have changed since the request.
    fn limits(&self, job: &Job) -> Retention {
        match self.destination(&job.provider) {
            Ok(Destination { files, is_store: false }) if files.directory == job.directory => files.retention,
            _ => Retention::default(),
        }
    }

    /// Uploads the complete file of a job.
    fn upload(&self, job: &Job, file: &Path) -> io::Result<PathBuf> {
        let provider = lock(&self.0.providers).get(&job.provider).cloned();
        let Some(EgressProvider::Store(store)) = provider else {
            let what = format!("the configuration no longer has the store '{}'", job.provider);
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
            if self.0.end.is_over() {
                return;
            }
            if let Some(process) = find(&job) {
                self.collect(job, &artifact, &process, operation);
                return;
            }
            self.0.end.pause(LOOK);
        }
        if let Ok(places) = job.places() {
            places.remove_part();
        }
        self.forget(&job);
        operation.end(Err("the monitor was restarted, and the process has not returned".to_owned()));
    }

    /// Collects the artifact of a job, and delivers it. If its directory cannot be written, it waits in that
    /// of the queue.
    fn collect(&self, mut job: Job, artifact: &Artifact, process: &Watched, operation: RunningOperation) {
        let waiting = Job { intermediate: Some(self.waiting_directory()), ..job.clone() };
        let places = job.places().and_then(|places| Ok((places, waiting.places()?.part)));
        let result = places.map_err(ArtifactError::Sink).and_then(|(places, spare)| {
            let spare = (!job.is_upload).then_some(spare);
            let result = collect(&places, spare.clone(), artifact, process, &operation);
            if result.is_err() {
                places.remove_part();
                // The spare file only exists if the first place has failed.
                let _ = spare.map(fs::remove_file);
            }
            result
        });
        match result {
            Ok(part) => {
                if part.failure.is_some() {
                    job.intermediate = waiting.intermediate;
                }
                job.state = JobState::Complete;
                // Without room for it, the record stays that of an artifact that is collected again.
                let _ = job.store(&self.0.directory, &|| Ok(()));
                self.deliver(job, operation);
            }
            // The artifact is collected again after the next start.
            Err(ArtifactError::Cancelled) if self.0.end.is_over() => {}
            Err(error) => {
                self.forget(&job);
                operation.end(Err(error.to_string()));
            }
        }
    }

    /// Delivers a complete file, again and again until it has arrived, and returns its place; `None` if the
    /// queue is closed or the operation cancelled before.
    fn deliver(&self, mut job: Job, operation: RunningOperation) -> Option<PathBuf> {
        let mut retry = RetryWait::default();
        loop {
            let upload = |job: &Job, file: &Path| self.upload(job, file);
            match deliver_once(&mut job, &self.0.directory, &|| Ok(()), &upload) {
                Ok(path) => {
                    job.list(&path, &self.limits(&job));
                    let mut jobs = lock(&self.0.jobs);
                    *jobs = jobs.saturating_sub(1);
                    drop(jobs);
                    operation.end(Ok(Some(path.display().to_string())));
                    return Some(path);
                }
                Err(error) => operation.retrying(&error.to_string()),
            }
            let until = Instant::now() + retry.next_wait();
            while Instant::now() < until {
                if self.0.end.is_over() {
                    return None;
                }
                if operation.is_cancelled() {
                    if let Ok(places) = job.places() {
                        places.remove_part();
                    }
                    self.forget(&job);
                    return None;
                }
                self.0.end.pause(until.saturating_duration_since(Instant::now()).min(MAX_WAIT));
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

/// A complete artifact of a rule, which the queue takes over.
#[derive(Debug)]
pub(crate) struct CompleteArtifact<'f> {
    pub(crate) file: &'f Path,
    pub(crate) name: String,
    pub(crate) provider: String,
    pub(crate) kind: ArtifactKind,
    /// The directory that it is for; `None` for a store.
    pub(crate) directory: Option<PathBuf>,
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
