//! The process that series belong to: the labels of all of them, and `target_info`.

use std::borrow::Cow;

use super::family::{Family, FamilyKind};
use super::name::{label_name, plain};
use super::{Metric, add_tag, joined};
use crate::point::PointValue;

/// Maximum number of characters of an attribute's value: the process chooses it.
const MAX_VALUE_LENGTH: usize = 1000;
/// Maximum number of attributes of a process.
const MAX_ATTRIBUTES: usize = 200;
/// The attribute that distinguishes processes.
const INSTANCE: &str = "service.instance.id";
/// The value of `target_info`.
const ONE: &PointValue = &PointValue::Gauge(1.0);

/// A process with its attributes as a resource of OpenTelemetry.
///
/// The attributes become labels of `target_info`, with underscores for dots. The label `service_instance_id`,
/// which all series have as well, joins them:
/// `NAME * on (service_instance_id) group_left (container_id) target_info`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by those who export")]
pub struct TargetInfo {
    /// The name of the process.
    pub name: String,
    /// The pid of the process.
    pub pid: u32,
    /// The attributes; `service.instance.id` distinguishes processes with the same name and pid.
    pub attributes: Vec<(String, String)>,
}

/// The process of series.
#[derive(Debug)]
pub(super) struct Process {
    /// The first labels of its series.
    pub(super) labels: Vec<(&'static str, String)>,
    /// The labels of its `target_info`, in the same form as the labels of series.
    info: Option<Box<str>>,
}

impl Process {
    pub(super) fn named(name: Option<&str>, pid: Option<u32>) -> Self {
        let mut labels = Vec::new();
        labels.extend(name.map(|name| ("process_name", plain(name))));
        labels.extend(pid.map(|pid| ("process_pid", pid.to_string())));
        Self { labels, info: None }
    }

    pub(super) fn of_target(target: &TargetInfo) -> Self {
        let Self { mut labels, .. } = Self::named(Some(&target.name), Some(target.pid));
        let instance = target.attributes.iter().find(|(key, _)| key == INSTANCE);
        labels.extend(instance.map(|(_, value)| ("service_instance_id", plain(&cut(value)))));
        let mut info: Vec<_> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let ours = info.len();
        for (key, value) in target.attributes.iter().take(MAX_ATTRIBUTES) {
            let name = label_name(key);
            if info.iter().take(ours).all(|(known, _)| *known != name) {
                add_tag(&mut info, name, &cut(value));
            }
        }
        Self { labels, info: Some(joined(info)) }
    }
}

fn cut(value: &str) -> Cow<'_, str> {
    match value.char_indices().nth(MAX_VALUE_LENGTH) {
        Some((end, _)) => value.get(..end).unwrap_or_default().to_owned().into(),
        None => value.into(),
    }
}

/// The family of `target_info`.
pub(super) fn family() -> Family {
    let help = "The attributes of a process, as a resource of OpenTelemetry.".to_owned();
    Family { name: "target".to_owned(), kind: FamilyKind::Info, unit: String::new(), help }
}

/// Returns `target_info` of all processes that have it, ordered by label.
pub(super) fn metrics<'e>(
    family: &'e Family,
    processes: impl Iterator<Item = &'e Process>,
) -> Vec<Metric<'e>> {
    let mut labels: Vec<&str> = processes.filter_map(|process| process.info.as_deref()).collect();
    labels.sort_unstable();
    labels.dedup();
    let metric = |labels| Metric { family, labels, distinction: None, value: ONE, factor: 1.0 };
    labels.into_iter().map(metric).collect()
}
