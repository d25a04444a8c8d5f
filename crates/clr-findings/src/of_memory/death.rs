//! The end of the process.

use clr_dump::DeathCause;
use clr_events::escape_controls;
use nettrace_export::units::counted;

use crate::finding::{Confidence, Details, Finding, FindingKind};
use crate::memory_facts::MemoryFacts;

/// The end of the process.
pub(super) fn death(memory: &MemoryFacts) -> Option<Finding> {
    let death = memory.death.as_ref()?;
    let thread = memory.threads.iter().find(|thread| thread.tid == death.tid);
    let exception =
        thread.and_then(|thread| thread.exception.as_ref()).map(|(name, message)| match message {
            Some(message) => format!("{}: {}", escape_controls(name), escape_controls(message)),
            None => escape_controls(name).into_owned(),
        });
    let method = thread.and_then(|thread| thread.method.clone());
    let what = match (&death.cause, &exception) {
        (DeathCause::UnhandledException, Some(exception)) => {
            format!("died of an unhandled exception: {exception}")
        }
        (DeathCause::UnhandledException, None) => "died of an unhandled exception".to_owned(),
        (DeathCause::OnlyException, Some(exception)) => format!("died, and one thread threw {exception}"),
        (DeathCause::FailFast(Some(message)), _) => {
            format!("ended itself by Environment.FailFast: {}", escape_controls(message))
        }
        (DeathCause::FailFast(None), _) => "ended itself by Environment.FailFast".to_owned(),
        (DeathCause::StackOverflow(frames), _) => {
            format!("died of a stack overflow of {}", counted(*frames as u64, "frame", "frames"))
        }
        (DeathCause::Signal(signal), _) => format!("died of signal {signal}"),
        _ => "died".to_owned(),
    };
    let place = method.as_deref().map_or_else(String::new, |method| format!(", in {method}"));
    let confidence =
        if death.cause == DeathCause::OnlyException { Confidence::Likely } else { Confidence::Certain };
    Some(
        Finding::new(FindingKind::Death, f64::MAX, format!("The process {what}{place}"), Details::Exceptions)
            .with_method(method)
            .with_object(exception)
            .with_evidence(thread.map(|thread| format!("on {}", thread.label())))
            .with_confidence(confidence),
    )
}
