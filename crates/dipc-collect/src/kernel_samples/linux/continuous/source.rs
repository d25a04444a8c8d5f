//! The kernel's events of a continuous sampler: those of the machine, or of this user's processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linux_sampler::{Record, RecordBatch, RecordDecoder, Sampler, SamplerConfig, Trial};

use super::super::drain::Drain;
use super::super::machine::{OpenScope, open_own};
use super::super::process_filter::ProcessFilter;
use super::own_processes::OwnProcesses;
use super::{BUFFER_PAGES, MAX_QUEUED_BYTES};
use crate::kernel_samples::SampleError;

/// Opened events, and the thread that reads them.
pub(super) struct Source {
    config: SamplerConfig,
    drain: Drain,
    decoder: RecordDecoder,
    stop: Arc<AtomicBool>,
    filter: Option<ProcessFilter>,
    /// The processes of this user that are sampled; `None` if all of the machine are.
    own: Option<OwnProcesses>,
}

/// A source, with the permissions that the kernel granted.
pub(super) struct OpenSource {
    pub(super) source: Source,
    pub(super) access: linux_sampler::Access,
}

impl Source {
    /// Opens the events of the machine; where the kernel does not permit that, those of the processes of this
    /// user and of their children.
    pub(super) fn open(
        config: SamplerConfig,
        mut filter: Option<ProcessFilter>,
    ) -> Result<OpenSource, SampleError> {
        let config = config.with_buffer_pages(BUFFER_PAGES);
        match Sampler::open(&config) {
            Ok(sampler) => {
                let access = sampler.access();
                let source = Self::start(config, sampler, filter, None);
                Ok(OpenSource { source, access })
            }
            Err(error) => {
                let pids = existing(filter.as_mut());
                let OpenScope { sampler, config: own_config, .. } =
                    open_own(SampleError::Open(error), &pids, &config, false)
                        // None of them exists so far: others are sampled once they do.
                        .or_else(|error| open_own(error, &[std::process::id()], &config, true))?;
                let access = sampler.access();
                let own = OwnProcesses::new(&pids);
                let source = Self::start(own_config, sampler, filter, Some(own));
                Ok(OpenSource { source, access })
            }
        }
    }

    fn start(
        config: SamplerConfig,
        sampler: Sampler,
        filter: Option<ProcessFilter>,
        own: Option<OwnProcesses>,
    ) -> Self {
        let (reader, decoder) = sampler.into_parts();
        let stop = Arc::new(AtomicBool::new(false));
        let drain = Drain::start(reader, false, MAX_QUEUED_BYTES, Arc::clone(&stop));
        Self { config, drain, decoder, stop, filter, own }
    }

    /// The settings of the events.
    pub(super) const fn config(&self) -> &SamplerConfig {
        &self.config
    }

    /// Returns true if all processes of the machine are sampled.
    pub(super) const fn is_machine(&self) -> bool {
        self.own.is_none()
    }

    /// Ends the sampling: [`next`](Self::next) returns the remaining records, and then `None`.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Returns the next batch, within a moment.
    pub(super) fn next(&self) -> Option<Result<RecordBatch, SampleError>> {
        self.drain.next()
    }

    /// Passes on the records of chosen processes.
    pub(super) fn for_each<E>(
        &mut self,
        batch: &RecordBatch,
        mut add: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Self { decoder, filter, own, .. } = self;
        for record in decoder.records(batch) {
            if let Some(own) = own {
                own.note(&record.kind);
            }
            if filter.as_mut().is_none_or(|filter| filter.takes(&record)) {
                add(&record)?;
            }
        }
        Ok(())
    }

    /// Opens the events again if processes of this user exist that they are not of, such as those of a new
    /// login. The source has to be at its end, after a [`stop`](Self::stop).
    pub(super) fn reopened(self) -> Result<Self, SampleError> {
        let machine = self.config.with_scope(linux_sampler::Scope::Machine).with_children(false);
        Self::open(machine, self.filter).map(|opened| opened.source)
    }

    /// Returns true if processes of this user exist that are not sampled.
    pub(super) fn misses_processes(&mut self) -> bool {
        let Some(own) = &mut self.own else { return false };
        let existing = existing(self.filter.as_mut());
        own.miss(&existing, |pid| Trial::of_process(pid).is_ok_and(|trial| trial.user.is_ok()))
    }
}

/// The chosen processes that exist.
fn existing(filter: Option<&mut ProcessFilter>) -> Vec<u32> {
    let mut pids = linux_proc_stat::process_ids().unwrap_or_default();
    if let Some(filter) = filter {
        pids.retain(|pid| i32::try_from(*pid).is_ok_and(|pid| filter.has(pid)));
    }
    pids
}
