use dipc_doctor::{SamplingEvidence, SamplingExtent, SamplingObstacle};

use super::Words;

pub(super) fn sampling(evidence: &SamplingEvidence) -> Words {
    let names = if evidence.has_kernel_names { "" } else { ", without function names" };
    let seen = match evidence.extent {
        SamplingExtent::Everything => {
            format!("the kernel may sample it, with time in the kernel{names}: {}", reason(evidence))
        }
        SamplingExtent::UserMode => {
            "the kernel may sample it in user mode only: no time in the kernel, no stacks of waits".to_owned()
        }
        SamplingExtent::Nothing => match &evidence.error {
            Some(error) => format!("the kernel may not sample it: perf_event_open: {error}"),
            None => "the kernel may not sample it".to_owned(),
        },
        _ => return Words::unknown(evidence),
    };
    let words = Words::new(seen);
    let Some(cause) = evidence.obstacle.as_ref().map(|obstacle| cause(obstacle, evidence)) else {
        return words;
    };
    // Neither sampler is open to another user.
    let is_closed = !evidence.sees_runtime || evidence.obstacle == Some(SamplingObstacle::OtherUser);
    if evidence.extent != SamplingExtent::Nothing || is_closed {
        return words.because(cause);
    }
    words.because(if evidence.has_runtime_sampler {
        format!("{cause}; dipc trace, top and push then have the runtime sample itself")
    } else {
        format!("{cause}; no other sampler exists: the processor time of its threads can be seen in /proc")
    })
}

/// The right that permits all samples.
fn reason(evidence: &SamplingEvidence) -> String {
    match evidence.paranoid {
        _ if evidence.has_capability => "dipc has CAP_PERFMON or is root".to_owned(),
        Some(level) => format!("kernel.perf_event_paranoid is {level}"),
        None => "no setting is in the way".to_owned(),
    }
}

fn cause(obstacle: &SamplingObstacle, evidence: &SamplingEvidence) -> String {
    match obstacle {
        SamplingObstacle::Paranoid(level) if *level > 2 => {
            format!("kernel.perf_event_paranoid is {level}, and dipc lacks CAP_SYS_ADMIN")
        }
        SamplingObstacle::Paranoid(level) => {
            format!("kernel.perf_event_paranoid is {level}, and dipc lacks CAP_PERFMON")
        }
        SamplingObstacle::OtherUser => match evidence.process_uid {
            Some(uid) => format!("the process is of user {uid}, and dipc lacks CAP_PERFMON"),
            None => "the process is of another user, and dipc lacks CAP_PERFMON".to_owned(),
        },
        SamplingObstacle::Seccomp => {
            "a seccomp filter refuses the call, as the default filter of containers does".to_owned()
        }
        SamplingObstacle::NotBuilt => "this kernel has no performance events".to_owned(),
        _ => "none of the settings that dipc knows".to_owned(),
    }
}
