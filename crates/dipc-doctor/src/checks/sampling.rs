//! The kernel's permission to sample the threads.

use crate::facts::Process;
use crate::{Evidence, Finding, Fix, RuntimeKind, SamplingEvidence, SamplingExtent, SamplingObstacle};

/// The highest level of `kernel.perf_event_paranoid` that permits a user samples with the time in the kernel.
const PARANOID_FOR_KERNEL: i32 = 1;
/// The highest level that permits a user samples in user mode.
const PARANOID_FOR_USER_MODE: i32 = 2;

/// Reports the samples that are permitted, and the least that would permit more; `None` on systems without
/// them.
pub(super) fn sampling(process: &Process) -> Option<Finding> {
    let facts = process.sampling.as_ref()?;
    let (extent, refusal) = match (&facts.kernel, &facts.user) {
        (Ok(()), _) => (SamplingExtent::Everything, None),
        (Err(refusal), Ok(())) => (SamplingExtent::UserMode, Some(refusal)),
        (Err(_), Err(refusal)) => (SamplingExtent::Nothing, Some(refusal)),
    };
    let is_native = process.image().is_some_and(|image| matches!(image.kind, RuntimeKind::NativeAot { .. }));
    let evidence = SamplingEvidence {
        obstacle: refusal.map(|(_, obstacle)| obstacle.clone()),
        error: refusal.map(|(error, _)| error.clone()),
        paranoid: facts.paranoid,
        has_capability: facts.has_capability,
        has_kernel_names: facts.has_kernel_names,
        sees_short_threads: facts.processors.is_ok(),
        process_uid: process.status.uid,
        sees_runtime: process.image.is_ok(),
        has_runtime_sampler: !is_native && (process.endpoint.is_ok() || process.image().is_some()),
        ..SamplingEvidence::new(extent)
    };
    let fix = refusal.and_then(|(_, obstacle)| match obstacle {
        SamplingObstacle::Paranoid(level) if *level > PARANOID_FOR_USER_MODE => {
            Some(Fix::LowerParanoid { paranoid: PARANOID_FOR_USER_MODE })
        }
        SamplingObstacle::Paranoid(_) if extent == SamplingExtent::Nothing => {
            Some(Fix::PermitSampling { paranoid: PARANOID_FOR_USER_MODE })
        }
        SamplingObstacle::Paranoid(_) => Some(Fix::PermitSampling { paranoid: PARANOID_FOR_KERNEL }),
        SamplingObstacle::OtherUser => Some(Fix::SampleAsUser { uid: process.status.uid }),
        SamplingObstacle::Seccomp => Some(Fix::PermitInContainer),
        SamplingObstacle::NotBuilt | SamplingObstacle::Unknown => None,
    });
    let evidence = Evidence::Sampling(evidence);
    // Samples of user mode are what most systems permit, and suffice for most questions.
    let finding = match extent {
        SamplingExtent::Nothing => Finding::warning(evidence),
        SamplingExtent::UserMode | SamplingExtent::Everything => Finding::ok(evidence),
    };
    Some(match fix {
        Some(fix) => finding.with_fix(fix),
        None => finding,
    })
}
