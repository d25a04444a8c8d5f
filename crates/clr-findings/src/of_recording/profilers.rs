//! Profilers and agents in the process.

use std::collections::HashMap;

use clr_events::ThreadState;
use clr_events::code::CodeOrigin;
use nettrace_export::units::{share, short_percent};
use nettrace_export::{FrameId, FrameKind};

use super::{OfRecording, processors_in_words};
use crate::finding::{Confidence, Details, Finding, FindingKind, Number};
use crate::thresholds;

/// Parts of the names of native modules that the runtime loads as profilers, in small letters.
const MODULES: [&str; 7] = [
    "profiler",
    "datadog.tracer",
    "newrelic",
    "oneagent",
    "appdynamics",
    "instrumentationengine",
    "opentelemetry.autoinstrumentation",
];

impl OfRecording<'_> {
    /// Native code of a profiler in the process that takes much of the processor time. Its callbacks run on
    /// the program's threads.
    pub(super) fn profiler(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let is_profiler = |frame: FrameId| {
            let is_native = profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Native);
            is_native && {
                let module = profile.frames.full_parts(frame).0.to_ascii_lowercase();
                MODULES.iter().any(|name| module.contains(name))
            }
        };
        let modules: HashMap<FrameId, &str> = profile
            .frames
            .iter()
            .map(|(frame, _)| frame)
            .filter(|frame| is_profiler(*frame))
            .map(|frame| (frame, profile.frames.full_parts(frame).0))
            .collect();
        let module = modules.values().min()?;
        let weight = self.part(|frame| modules.contains_key(&frame)).weight(ThreadState::Working);
        let working = profile.total().saturating_sub(profile.blocked());
        let (percent, processors) = (share(weight, working), self.average(weight));
        if percent < thresholds::PROFILER_SHARE || processors < thresholds::PROFILER_PROCESSORS {
            return None;
        }
        let cause = format!(
            "A profiler or an agent in the process takes {} of the processor time, {}: {}",
            short_percent(percent),
            processors_in_words(processors),
            clr_events::escape_controls(module),
        );
        Some(
            Finding::new(FindingKind::Profiler, processors, cause, Details::Methods)
                .with_object(Some((*module).to_owned()))
                .with_confidence(Confidence::Likely)
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }
}
