//! The actions of one execution of a rule: in order, side by side, and with outputs of earlier ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, fs, io};

use clr_conditions::Evaluator;
use dipc_client::{LiveReader, Startup};
use dipc_collect::StopSignal;
use jiff::Timestamp;

use super::{Context, RuleEvent, program};
use crate::artifact::{Artifact, ArtifactError, ArtifactSink};
use crate::configuration::{DirectoryEgress, EgressProvider};
use crate::egress::{Catalog, CompleteArtifact, EgressQueue, PartFile, RecordingNote, Unpublished};
use crate::live_session::MAX_DELAY;
use crate::operation::RunningOperation;
use crate::process::Watched;
use crate::rules::{ActionKind, Destination, Execution, Placeholders, StoppingEvent, used_actions};

/// Maximum wait between checks for the reasons to end.
const TICK: Duration = Duration::from_millis(100);
/// The stack of an action's thread.
const STACK: usize = 1 << 20;
/// Maximum time to wait for the heap of a process that is suspended at its start.
const MAX_SUSPENSION: Duration = Duration::from_secs(60);

/// An execution of a rule's actions.
pub(super) struct ActionList<'a> {
    pub(super) context: &'a Context,
    pub(super) egress: &'a BTreeMap<String, EgressProvider>,
    pub(super) process: &'a Arc<Watched>,
    pub(super) execution: &'a Execution,
    /// Given when the actions have to end.
    pub(super) stop: &'a StopSignal,
    /// Called when the process may run on: all actions have begun, or the run waits for one to complete.
    pub(super) begun: &'a dyn Fn(),
    /// Called with what happens to actions.
    pub(super) report: &'a dyn Fn(RuleEvent),
}

/// An action that has begun. It is cancelled when this is dropped.
struct RunningAction {
    name: Option<String>,
    type_name: &'static str,
    output: Option<&'static str>,
    progress: Receiver<Progress>,
    stop: StopSignal,
    /// The result, if it has ended at once.
    ended: Option<Result<Option<String>, String>>,
}

impl Drop for RunningAction {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

enum Progress {
    Begun,
    Ended(Result<Option<String>, String>),
}

/// The reason for which an execution has ended early.
struct Failed;

impl ActionList<'_> {
    /// Starts the actions in their order, and waits for their end. A failure stops the others.
    ///
    /// # Source
    /// `ActionListExecutor.cs` of dotnet-monitor.
    pub(super) fn run(&self) {
        // The failure was reported.
        let _ = self.run_all();
        (self.begun)();
    }

    fn run_all(&self) -> Result<(), Failed> {
        let mut values = self.placeholders();
        let mut running = Vec::<RunningAction>::new();
        for action in &self.execution.rule.actions {
            for name in used_actions(&action.kind) {
                let place = running.iter().position(|running| running.name.as_deref() == Some(&name));
                if let Some(place) = place {
                    (self.begun)();
                    let action = running.remove(place);
                    self.finish(action, &mut values)?;
                }
            }
            let started = self.start(action.name.clone(), &action.kind, &values)?;
            if action.wait_for_completion {
                (self.begun)();
                self.finish(started, &mut values)?;
            } else {
                running.push(started);
            }
        }
        (self.begun)();
        for action in running {
            self.finish(action, &mut values)?;
        }
        Ok(())
    }

    fn placeholders(&self) -> Placeholders {
        let mut values = Placeholders::default();
        let facts = &self.process.facts;
        values.set("Process.RuntimeId", self.process.uid.to_string());
        values.set("Process.ProcessId", facts.pid.to_string());
        values.set("Process.Name", &*facts.name);
        values.set("Process.CommandLine", facts.command_line.as_deref().unwrap_or_default());
        values.set("Monitor.HostName", &*self.context.host_name);
        values.set("Monitor.UnixTime", Timestamp::now().as_second().to_string());
        values
    }

    /// Starts an action, and waits until it has begun.
    fn start(
        &self,
        name: Option<String>,
        kind: &ActionKind,
        values: &Placeholders,
    ) -> Result<RunningAction, Failed> {
        let type_name = kind.type_name();
        let (sender, progress) = mpsc::channel();
        let mut action = RunningAction {
            name,
            type_name,
            output: kind.output(),
            progress,
            stop: StopSignal::new(),
            ended: None,
        };
        let started = match values.expand_action(kind) {
            ActionKind::Collect { artifact, destination, stopping_event } => {
                self.collect(artifact, destination, stopping_event.as_ref(), &mut action, sender)
            }
            ActionKind::Execute { path, arguments, ignore_exit_code } => {
                let arguments = values.expand_arguments(arguments.as_deref().unwrap_or_default());
                let stop = action.stop.clone();
                spawn("execute", move || {
                    let _ = sender.send(Progress::Begun);
                    let result = program::run(&path, &arguments, &stop).and_then(|code| {
                        let is_fine = code == 0 || ignore_exit_code;
                        if is_fine { Ok(code) } else { Err(format!("{path} has ended with {code}")) }
                    });
                    // Nobody waits for an action that was dropped.
                    let _ = sender.send(Progress::Ended(result.map(|code| Some(code.to_string()))));
                })
            }
            other => {
                action.ended = Some(self.command(&other));
                Ok(())
            }
        };
        if let Err(error) = started {
            return Err(self.failed(type_name, error));
        }
        if action.ended.is_none() {
            self.wait(&mut action, true);
        }
        if let Some(Err(error)) = &action.ended {
            return Err(self.failed(type_name, error.clone()));
        }
        Ok(action)
    }

    /// Waits until an action has ended or, with `until_begun`, has begun.
    fn wait(&self, action: &mut RunningAction, until_begun: bool) {
        let mut is_asked = false;
        loop {
            match action.progress.recv_timeout(TICK) {
                Ok(Progress::Begun) if until_begun => return,
                Ok(Progress::Begun) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Progress::Ended(result)) => action.ended = Some(result),
                Err(RecvTimeoutError::Disconnected) => {
                    action.ended.get_or_insert_with(|| Err("it was abandoned".to_owned()));
                }
            }
            if action.ended.is_some() {
                return;
            }
            if self.stop.is_cancelled() {
                action.stop.cancel();
            } else if self.stop.is_stopped() && !is_asked {
                is_asked = true;
                action.stop.stop();
            }
        }
    }

    /// Waits for the end of an action, and takes its output.
    fn finish(&self, mut action: RunningAction, values: &mut Placeholders) -> Result<(), Failed> {
        if action.ended.is_none() {
            self.wait(&mut action, false);
        }
        match action.ended.take() {
            Some(Ok(output)) => {
                if let (Some(name), Some(key), Some(value)) = (&action.name, action.output, &output) {
                    values.set_output(name, key, value);
                }
                (self.report)(RuleEvent::ActionCompleted { action: action.type_name, output });
                Ok(())
            }
            Some(Err(error)) => Err(self.failed(action.type_name, error)),
            None => Ok(()),
        }
    }

    fn failed(&self, action: &'static str, error: String) -> Failed {
        (self.report)(RuleEvent::ActionFailed { action, error });
        Failed
    }

    /// Carries out an immediate action.
    fn command(&self, kind: &ActionKind) -> Result<Option<String>, String> {
        let target = self.process.target();
        let text = |error: dipc_client::Error| error.to_string();
        match kind {
            ActionKind::LoadProfiler { path, clsid } => {
                target.startup_profiler(*clsid, path).map_err(text).map(|()| None)
            }
            ActionKind::SetEnvironmentVariable { name, value } => {
                target.set_environment_variable(name, value.as_deref()).map_err(text).map(|()| None)
            }
            ActionKind::GetEnvironmentVariable { name } => {
                let variables = target.environment().map_err(text)?;
                let pairs = variables.iter().filter_map(|variable| variable.split_once('='));
                let found = pairs.into_iter().find(|(known, _)| known == name);
                let value = found.map(|(_, value)| Some(value.to_owned()));
                value.ok_or_else(|| format!("the process has no environment variable {name}"))
            }
            other => Err(format!("{} is not supported", other.type_name())),
        }
    }

    /// Starts to collect an artifact.
    fn collect(
        &self,
        artifact: Artifact,
        destination: Destination,
        stopping_event: Option<&StoppingEvent>,
        action: &mut RunningAction,
        sender: Sender<Progress>,
    ) -> Result<(), String> {
        let (egress, is_store) = match (self.egress.get(&destination.egress), &self.context.queue) {
            (Some(EgressProvider::FileSystem(egress)), _) => (egress.clone(), false),
            (Some(EgressProvider::Store(_)), Some(queue)) => {
                let found = queue.destination(&destination.egress).map_err(|error| error.to_string())?;
                (found.files, true)
            }
            (Some(EgressProvider::Store(_)), None) => {
                return Err("artifacts for stores need the queue, which another monitor has".to_owned());
            }
            (Some(EgressProvider::Unsupported(kind)), _) => {
                return Err(format!("the egress provider {} is of {kind}", destination.egress));
            }
            (None, _) => return Err(format!("no egress provider is called {}", destination.egress)),
        };
        let condition = stopping_event.map(StoppingEvent::condition).transpose()?;
        let operations = &self.context.operations;
        let provider = destination.egress;
        let operation = operations.begin_for_rule(artifact.kind(), self.process, provider.clone());
        action.stop = operation.stop.clone();
        if matches!(artifact, Artifact::GcDump) && self.is_suspended() {
            // The process does not have a heap before it runs.
            (self.begun)();
        }
        let name = destination.name.unwrap_or_else(|| artifact.file_name(self.process, SystemTime::now()));
        let stopper = condition.map(|condition| Stopper {
            reader: LiveReader::new(MAX_DELAY),
            evaluator: Evaluator::new(condition),
            stop: operation.stop.clone(),
        });
        let rule = self.execution.rule.name.clone();
        let queue = self.context.queue.clone();
        let sink = FileSink {
            egress,
            name,
            rule,
            part: None,
            operation,
            sender,
            stopper,
            queue,
            provider,
            is_store,
        };
        let process = Arc::clone(self.process);
        spawn(artifact.kind().name(), move || collect(&artifact, &process, sink))
    }

    fn is_suspended(&self) -> bool {
        matches!(self.process.target().startup(), Ok(Startup::Suspended))
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(STACK);
    thread.spawn(work).map(|_| ()).map_err(|error| format!("start a thread: {error}"))
}

/// Runs a collection to its end.
fn collect(artifact: &Artifact, process: &Watched, mut sink: FileSink) {
    let stop = sink.operation.stop.clone();
    if matches!(artifact, Artifact::GcDump) {
        wait_until_resumed(process, &stop);
    }
    let result = artifact.collect(process, &stop, &mut sink);
    let FileSink { egress, part, operation, sender, queue, provider, is_store, name, rule, .. } = sink;
    let published = match (result, part) {
        (Ok(()), Some(part)) => part.publish().map_err(|Unpublished { error, file }| {
            let error = ArtifactError::Sink(error);
            (error.to_string(), file)
        }),
        (Ok(()), None) => Err(("there is nothing to write".to_owned(), None)),
        // The partial file is removed.
        (Err(error), _) => Err((error.to_string(), None)),
    };
    // A store gets a complete file, and a directory that has failed gets it when it can be written.
    let (file, error) = match published {
        Ok(path) => (Some(path), None),
        Err((error, file)) => (file, Some(error)),
    };
    let path = match (file, queue) {
        (Some(file), Some(queue)) if is_store || error.is_some() => {
            let directory = (!is_store).then_some(egress.directory);
            let kind = artifact.kind();
            let complete = CompleteArtifact { file: &file, name, provider, kind, directory };
            let taken = queue.take_over(complete, process, operation);
            taken.map_err(|error| error.to_string()).and_then(|place| {
                let place = place.map(|place| place.display().to_string());
                place.ok_or_else(|| {
                    "it was cancelled, or the monitor ends and the next one delivers it".to_owned()
                })
            })
        }
        (file, _) => {
            match (&file, &error) {
                (Some(file), Some(_)) => {
                    // The file takes space and is not listed anywhere.
                    let _ = fs::remove_file(file);
                }
                (Some(file), None) => {
                    let note = RecordingNote {
                        name: String::new(),
                        kind: artifact.kind().name().to_owned(),
                        pid: process.facts.pid,
                        uid: process.uid.to_string(),
                        process_name: process.title().to_owned(),
                        operation: Some(operation.id.to_string()),
                        rule: Some(rule),
                    };
                    // The artifact is in its place, listed or not.
                    let _ = Catalog::new(&egress.directory).add(file, note, &egress.retention);
                }
                (None, _) => {}
            }
            let file = file.map(|file| file.display().to_string()).unwrap_or_default();
            let path = error.map_or(Ok(file), Err);
            operation.end(path.clone().map(Some));
            path
        }
    };
    // Nobody waits for an action that was dropped.
    let _ = sender.send(Progress::Ended(path.map(Some)));
}

/// Waits while a process waits at its start, for a limited time.
fn wait_until_resumed(process: &Watched, stop: &StopSignal) {
    let until = Instant::now() + MAX_SUSPENSION;
    while Instant::now() < until
        && !stop.is_stopped()
        && !process.has_ended()
        && matches!(process.target().startup(), Ok(Startup::Suspended))
    {
        thread::sleep(TICK);
    }
}

/// A file as the destination of an artifact.
struct FileSink {
    egress: DirectoryEgress,
    name: String,
    rule: String,
    part: Option<PartFile>,
    operation: RunningOperation,
    sender: Sender<Progress>,
    stopper: Option<Stopper>,
    /// The queue for artifacts that cannot go to their directory, and for artifacts for stores.
    queue: Option<EgressQueue>,
    provider: String,
    is_store: bool,
}

impl ArtifactSink for FileSink {
    fn begin(&mut self) -> io::Result<()> {
        let spare = self.queue.as_ref().filter(|_| !self.is_store).map(EgressQueue::waiting_directory);
        self.part = Some(PartFile::create(&self.egress, &self.name, spare.as_deref())?);
        self.operation.begun();
        // Nobody waits for an action that was dropped.
        let _ = self.sender.send(Progress::Begun);
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Some(stopper) = &mut self.stopper {
            stopper.feed(bytes);
        }
        match &mut self.part {
            Some(part) => part.write(bytes),
            None => Err(io::Error::other("the artifact has not begun")),
        }
    }
}

/// The end of a trace at an event.
struct Stopper {
    reader: LiveReader,
    evaluator: Evaluator,
    stop: StopSignal,
}

impl Stopper {
    fn feed(&mut self, bytes: &[u8]) {
        if self.stop.is_stopped() {
            return;
        }
        self.reader.feed(bytes);
        // Otherwise the last event of each thread would be held until the next one arrives.
        self.reader.release();
        let (evaluator, stop) = (&mut self.evaluator, &self.stop);
        self.reader.for_each(|event| evaluator.event(event, |_| stop.stop()));
    }
}

impl fmt::Debug for FileSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSink").field("name", &self.name).finish_non_exhaustive()
    }
}
