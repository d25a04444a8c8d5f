//! The attributes of a process's resource.

use std::time::Duration;

use dipc_client::{Timeouts, Uuid};
use linux_proc_stat::Container;

use crate::process::Watched;

/// Maximum number of attributes that the environment of a process can set.
const MAX_ATTRIBUTES: usize = 128;

/// The time for a process to state its environment.
const ANSWER: Duration = Duration::from_secs(3);

/// Returns the attributes, each key once. In order of precedence: attributes given by the user of the
/// monitor, `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` in the environment of the process, attributes
/// of the process and its container. Asks the process for its environment, once.
pub fn attributes(process: &Watched, given: &[(String, String)]) -> Vec<(String, String)> {
    let mut attributes = given.to_vec();
    for (key, value) in process.attributes.get_or_init(|| own_attributes(process)) {
        add(&mut attributes, key, value.clone());
    }
    attributes
}

/// Returns true if the process has stated its environment, or has been asked for it.
pub(crate) fn is_known(process: &Watched) -> bool {
    process.attributes.get().is_some()
}

/// Returns the attributes of a process that is not watched, by the system: a program without .NET, or one
/// that has not answered. `name` and `container` are as its samples have them. Its environment, which any
/// user can set, changes neither its number nor its container and pod.
pub(crate) fn attributes_of_system(
    pid: u32,
    name: Option<&str>,
    container: Option<&str>,
    given: &[(String, String)],
) -> Vec<(String, String)> {
    let mut attributes = given.to_vec();
    // A process of another user may keep it to itself, and one that has ended has none.
    let environment = dipc_client::ProcessView::of(pid).environment().unwrap_or_default();
    let environment = Environment(&environment);
    let mut add = |key: &str, value: String| add(&mut attributes, key, value);
    let of_system = Container::of_process(pid).unwrap_or_default();
    add("process.pid", pid.to_string());
    add("container.id", container.map(str::to_owned).or(of_system.id).unwrap_or_default());
    add("k8s.pod.uid", of_system.pod_uid.unwrap_or_default());
    for (key, value) in environment.service() {
        add(&key, value);
    }
    let name = name.unwrap_or_default();
    add("service.name", name.to_owned());
    add("process.executable.name", name.to_owned());
    add("process.executable.path", executable_path(pid));
    for (key, value) in environment.pod() {
        add(key, value);
    }
    attributes
}

/// Returns the attributes of a process that has ended: its samples have them.
pub(crate) fn attributes_of_ended(
    pid: u32,
    name: Option<&str>,
    container: Option<&str>,
    given: &[(String, String)],
) -> Vec<(String, String)> {
    let mut attributes = given.to_vec();
    add(&mut attributes, "process.pid", pid.to_string());
    add(&mut attributes, "container.id", container.unwrap_or_default().to_owned());
    let name = name.unwrap_or_default();
    add(&mut attributes, "service.name", name.to_owned());
    add(&mut attributes, "process.executable.name", name.to_owned());
    attributes
}

/// Adds an attribute, unless its key exists or the value is empty.
fn add(attributes: &mut Vec<(String, String)>, key: &str, value: String) {
    if !value.is_empty() && attributes.iter().all(|(known, _)| known != key) {
        attributes.push((key.to_owned(), value));
    }
}

fn own_attributes(process: &Watched) -> Vec<(String, String)> {
    // .NET Core 3.1 does not answer: the system may.
    let target = process.target().clone().with_timeouts(Timeouts::each(ANSWER));
    let environment = target.environment().unwrap_or_default();
    let environment = Environment(&environment);
    let mut attributes = Vec::new();
    let mut add = |key: &str, value: String| add(&mut attributes, key, value);
    for (key, value) in environment.service() {
        add(&key, value);
    }
    add("service.name", process.title().to_owned());
    let instance = if process.uid.is_nil() { Uuid::new_v4() } else { process.uid };
    // Without it, two processes of one service cannot be told apart.
    add("service.instance.id", instance.to_string());
    add("process.executable.name", process.facts.name.clone());
    add("process.executable.path", process.system_pid().map(executable_path).unwrap_or_default());
    add("process.runtime.name", ".NET".to_owned());
    let version = process.runtime_version.as_deref().and_then(|version| version.split(['+', ' ']).next());
    add("process.runtime.version", version.unwrap_or_default().to_owned());
    let Container { id, pod_uid, .. } = process.container().clone();
    add("container.id", id.unwrap_or_default());
    add("k8s.pod.uid", pod_uid.unwrap_or_default());
    for (key, value) in environment.pod() {
        add(key, value);
    }
    attributes
}

/// The path of a process's program; empty if it cannot be read.
fn executable_path(pid: u32) -> String {
    let link = std::fs::read_link(format!("/proc/{pid}/exe"));
    link.map(|path| path.display().to_string()).unwrap_or_default()
}

/// The variables by which manifests pass on fields of the downward API.
const KUBERNETES: [(&str, &[&str]); 4] = [
    ("k8s.pod.name", &["K8S_POD_NAME", "POD_NAME", "MY_POD_NAME"]),
    ("k8s.namespace.name", &["K8S_NAMESPACE", "POD_NAMESPACE", "MY_POD_NAMESPACE"]),
    ("k8s.node.name", &["K8S_NODE_NAME", "NODE_NAME", "MY_NODE_NAME"]),
    ("k8s.container.name", &["K8S_CONTAINER_NAME", "CONTAINER_NAME"]),
];

struct Environment<'e>(&'e [String]);

impl Environment<'_> {
    /// The value of a variable; empty without it.
    fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find_map(|variable| variable.strip_prefix(name)?.strip_prefix('='));
        found.unwrap_or_default()
    }

    /// The attributes that its variables for OpenTelemetry set, the most important first.
    fn service(&self) -> Vec<(String, String)> {
        let mut attributes = vec![("service.name".to_owned(), self.get("OTEL_SERVICE_NAME").to_owned())];
        attributes.extend(parse_list(self.get("OTEL_RESOURCE_ATTRIBUTES")));
        attributes
    }

    /// The attributes of the pod, in Kubernetes.
    fn pod(&self) -> Vec<(&'static str, String)> {
        // Elsewhere the variables mean something else.
        if self.get("KUBERNETES_SERVICE_HOST").is_empty() {
            return Vec::new();
        }
        let value = |names: &[&str]| names.iter().map(|name| self.get(name)).find(|value| !value.is_empty());
        let named = KUBERNETES.iter().map(|(key, names)| (*key, value(names).unwrap_or_default().to_owned()));
        named.chain([("k8s.pod.name", self.get("HOSTNAME").to_owned())]).collect()
    }
}

/// Parses `key=value,key=value` with values in percent encoding.
fn parse_list(text: &str) -> Vec<(String, String)> {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.map(|(key, value)| (key.trim().to_owned(), percent_decoded(value.trim())));
    pairs.filter(|(key, _)| !key.is_empty()).take(MAX_ATTRIBUTES).collect()
}

fn percent_decoded(text: &str) -> String {
    // Only in a form do these mean something.
    let text = text.replace('+', "%2B").replace('&', "%26").replace('=', "%3D");
    let mut pairs = form_urlencoded::parse(text.as_bytes());
    pairs.next().map(|(text, _)| text.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_percent_encoding() {
        let expected = [("service.name", "a b"), ("k", "x=y+z"), ("empty", "")];
        let expected: Vec<_> = expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        assert_eq!(parse_list("service.name=a%20b, k = x%3Dy+z,=3,nothing,empty="), expected);
        assert_eq!(parse_list(""), []);
    }
}
