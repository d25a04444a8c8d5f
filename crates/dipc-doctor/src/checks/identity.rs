//! The process, its user and its namespaces.

use crate::facts::{Facts, Process};
use crate::{Evidence, Finding, Fix, ProcessEvidence, TracingObstacle, UserEvidence};

pub(super) fn process(facts: &Facts, process: &Process) -> Finding {
    let evidence = ProcessEvidence::Found { pid: facts.pid, name: process.name.clone() };
    Finding::ok(Evidence::Process(evidence))
}

pub(super) fn user(facts: &Facts, process: &Process) -> Finding {
    let (Some(process_uid), Some(own_uid)) = (process.status.uid, facts.own_uid) else {
        return Finding::unknown(Evidence::User(UserEvidence::Unknown));
    };
    let unreadable = process.environment.as_ref().err().cloned();
    let is_readable = unreadable.is_none();
    let evidence = Evidence::User(UserEvidence::Known { process_uid, own_uid, unreadable });
    if is_readable {
        return Finding::ok(evidence);
    }
    let fix = match (own_uid, &process.tracing_obstacle) {
        (_, Some(obstacle)) if is_specific(obstacle) => Fix::PermitTracing(obstacle.clone()),
        (0, _) => Fix::GrantPtrace,
        _ if own_uid == process_uid => Fix::RunAsRoot,
        _ => Fix::RunAsUser { uid: Some(process_uid) },
    };
    super::unless_reached(process, Finding::problem(evidence).with_fix(fix))
}

/// Returns true if the obstacle is more than another user.
fn is_specific(obstacle: &TracingObstacle) -> bool {
    !matches!(obstacle, TracingObstacle::Unknown | TracingObstacle::OtherUser { .. })
}

pub(super) fn container(facts: &Facts, process: &Process) -> Option<Finding> {
    let inner_pid = Some(process.status.inner_pid).filter(|inner| *inner != facts.pid);
    let has_own_files = process.has_own_files.unwrap_or(false);
    (inner_pid.is_some() || has_own_files)
        .then(|| Finding::warning(Evidence::Container { pid: facts.pid, inner_pid, has_own_files }))
}
