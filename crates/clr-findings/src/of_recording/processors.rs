//! Causes in processor time.

use std::collections::HashMap;

use clr_events::code::CodeOrigin;
use clr_events::{ThreadState, escape_controls};
use nettrace_export::report::{Timeline, ready_methods, working_methods};
use nettrace_export::units::{count, counted, nanoseconds, share, short_percent};
use nettrace_export::{FrameId, FrameKind};

use super::{OfRecording, per_second, processors_in_words};
use crate::finding::{Details, Finding, FindingKind, Number, in_method};
use crate::thresholds;

/// Namespaces of regular expressions.
const REGEX: &str = "System.Text.RegularExpressions.";

impl OfRecording<'_> {
    /// The regular expressions that keep processors busy, with the method of the user's code that runs most
    /// of them.
    pub(super) fn regex(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let is_regex = |frame: FrameId| {
            profile.frames.full_parts(frame).1.starts_with(REGEX) && !profile.frames.is_user_code(frame)
        };
        let part = self.part(is_regex);
        let (percent, processors) =
            self.of_work(part.weight(ThreadState::Working), part.weight(ThreadState::Ready))?;
        let method = part.method(|state| state == ThreadState::Working);
        let cause = format!(
            "Regular expressions take {} of the processor time, {}{}",
            short_percent(percent),
            processors_in_words(processors),
            in_method(method.as_deref()),
        );
        Some(
            Finding::new(FindingKind::Regex, processors, cause, Details::Methods)
                .with_method(method)
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// The method of the user's code that keeps processors busy, alone or with the framework's that it calls,
    /// if a thread never rests or the program uses all processors. Busy threads of a server do rest.
    pub(super) fn hot_method(&self) -> Option<Finding> {
        let profile = &self.overview.profile;
        let methods = working_methods(profile);
        let first = methods.iter().find(|method| profile.frames.is_user_code(method.method))?;
        let ready = ready_methods(profile).into_iter().find(|method| method.method == first.method);
        let (percent, processors) = self.of_work(first.weight, ready.map_or(0, |method| method.weight))?;
        if !self.has_tireless_thread() && !self.uses_all_processors() {
            return None;
        }
        let method = self.name(first.method);
        let cause = format!(
            "One method takes {} of the processor time, {}: {method}",
            short_percent(percent),
            processors_in_words(processors),
        );
        let called =
            first.called.map(|called| format!("most of it in {}, which it calls", self.name(called)));
        let threads = counted(first.threads, "thread", "threads");
        let is_unoptimized =
            self.overview.code_tiers.unoptimized.contains(profile.frames.full_parts(first.method).1);
        let unoptimized = is_unoptimized.then(|| {
            "its code is not optimized: it is of a debug build, or a debugger is attached".to_owned()
        });
        Some(
            Finding::new(FindingKind::HotMethod, processors, cause, Details::Methods)
                .with_method(Some(method))
                .with_evidence(unoptimized.into_iter().chain(called).chain([format!("on {threads}")]))
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// The share of a part of the processor time, in percent, and the processors that it keeps busy, if that
    /// is much, or would be with the processors that its `ready` threads lack.
    fn of_work(&self, weight: u64, ready: u64) -> Option<(f64, f64)> {
        let profile = &self.overview.profile;
        // Samples that do not distinguish running from waiting are no processor time.
        let total =
            profile.total().saturating_sub(profile.blocked()).saturating_sub(self.overview.unverified);
        let (percent, processors) = (share(weight, total), self.average(weight));
        let wanted = processors + self.lacking(ready);
        (percent >= thresholds::HOT_METHOD && wanted >= thresholds::HOT_PROCESSORS)
            .then_some((percent, processors))
    }

    /// The processors that ready threads lack, on average. The wait of a thread that mostly rests for a
    /// processor is no work that it would do with one.
    fn lacking(&self, ready: u64) -> f64 {
        if self.has_tireless_thread() { self.average(ready) } else { 0.0 }
    }

    /// Returns true if a thread runs all the time, or would if it had a processor.
    fn has_tireless_thread(&self) -> bool {
        let profile = &self.overview.profile;
        let mut threads: HashMap<_, u64> = HashMap::new();
        let wants_to_run = |state| matches!(state, ThreadState::Working | ThreadState::Ready);
        for total in profile.stack_totals.iter().filter(|total| wants_to_run(total.state)) {
            let sum = threads.entry(total.thread).or_default();
            *sum = sum.saturating_add(total.weight);
        }
        threads.into_values().any(|weight| 100.0 * self.average(weight) >= thresholds::TIRELESS)
    }

    fn uses_all_processors(&self) -> bool {
        let profile = &self.overview.profile;
        let busy = self.average(profile.total().saturating_sub(profile.blocked()));
        let processors = self.overview.stream.processors.unwrap_or(u32::MAX);
        100.0 * busy >= thresholds::ALL_PROCESSORS * f64::from(processors)
    }

    /// The share of the JIT compiler in the processor time, in percent, the processors that it keeps busy,
    /// and the user's method that most of it is for, if that is much.
    fn compilation(&self) -> Option<(f64, f64, Option<String>)> {
        let (percent, processors) = self.runtime_work(CodeOrigin::Jit)?;
        let is_jit = |frame| self.overview.profile.frames.kind(frame) == FrameKind::Code(CodeOrigin::Jit);
        let part = self.part(is_jit);
        let wanted = processors + self.lacking(part.weight(ThreadState::Ready));
        let is_much = percent >= thresholds::JIT_SHARE && wanted >= thresholds::JIT_PROCESSORS;
        is_much.then(|| (percent, processors, part.method(|state| state == ThreadState::Working)))
    }

    /// Methods of .NET itself that are compiled although their assemblies have code for them.
    pub(super) fn not_precompiled(&self) -> Option<Finding> {
        let code = &self.overview.code_tiers;
        if code.of_framework < thresholds::MIN_NOT_PRECOMPILED
            || share(code.of_framework, code.first_tier) < thresholds::NOT_PRECOMPILED
        {
            return None;
        }
        let (percent, processors, _) = self.compilation()?;
        let cause = format!(
            "The precompiled code of .NET is not used: {} of its methods were compiled, and the JIT compiler takes {} of \
             the processor time",
            count(code.of_framework),
            short_percent(percent),
        );
        let reasons =
            "reasons: DOTNET_ReadyToRun=0, a profiler or debugger that asks for it, or assemblies without it";
        Some(
            Finding::new(FindingKind::NotPrecompiled, processors, cause, Details::Jit)
                .with_evidence([reasons.to_owned()])
                .with_numbers([
                    Number::new("methods", code.of_framework as f64),
                    Number::new("cpu_percent", percent),
                ]),
        )
    }

    pub(super) fn jit(&self) -> Option<Finding> {
        let (percent, processors, method) = self.compilation()?;
        if !self.compiles_until_the_end() {
            return None;
        }
        let compiled = counted(self.overview.jit.methods, "method", "methods");
        let cause = format!(
            "The JIT compiler takes {} of the processor time, {}{}: {compiled} compiled, {} per second",
            short_percent(percent),
            processors_in_words(processors),
            in_method(method.as_deref()),
            count(per_second(self.overview.jit.methods, self.seconds)),
        );
        let slowest = self.overview.jit.slowest.iter().map(|row| escape_controls(&row.csharp).into_owned());
        let methods: Vec<_> = slowest.take(3).collect();
        let evidence = (!methods.is_empty()).then(|| format!("the longest: {}", methods.join(", ")));
        Some(
            Finding::new(FindingKind::JitStorm, processors, cause, Details::Jit)
                .with_method(method)
                .with_evidence(evidence)
                .with_numbers([Number::new("cpu_percent", percent), Number::new("processors", processors)]),
        )
    }

    /// Returns false if few methods were compiled in the last quarter of the time: a program that starts
    /// compiles what it runs first, once.
    fn compiles_until_the_end(&self) -> bool {
        let jit = &self.overview.jit;
        jit.is_empty() || share(self.in_last_quarter(&jit.timeline), jit.methods) >= thresholds::JIT_LATE
    }

    /// The number of methods, except for those that are made at run time, that are compiled per second in the
    /// last quarter of the time, if it is that of a program which starts: what grows meanwhile stops.
    pub(super) fn starts(&self) -> Option<u64> {
        let jit = &self.overview.jit;
        let made = self.in_last_quarter(&jit.dynamic);
        let compiled = self.in_last_quarter(&jit.timeline).saturating_sub(made);
        let rate = per_second(compiled, self.seconds / 4.0);
        (rate as f64 >= thresholds::STARTING_METHODS).then_some(rate)
    }

    fn in_last_quarter(&self, timeline: &Timeline) -> u64 {
        let begin = nanoseconds(self.overview.duration).saturating_mul(3) / 4;
        let slots = begin.checked_div(nanoseconds(timeline.slot)).unwrap_or_default();
        let late = timeline.sums.iter().skip(usize::try_from(slots).unwrap_or(usize::MAX));
        late.copied().fold(0, u64::saturating_add)
    }
}
