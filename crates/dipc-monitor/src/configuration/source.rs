//! The sources of a configuration, in the order of their precedence.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use dipc_client::dipc_transport::open_regular;

use super::finding::{Findings, Location};
use super::json::{self, MAX_DEPTH};
use super::schema;
use super::tree::Node;

/// Maximum size of a file to read, in bytes.
const MAX_FILE_SIZE: u64 = 4 << 20;
/// Maximum number of files of a directory to read.
const MAX_FILES: usize = 10_000;
/// The prefix of environment variables.
const PREFIX: &str = "DOTNETMONITOR_";
/// The name of a file of settings.
const SETTINGS: &str = "settings.json";

/// The sources of a configuration. Each overrides single values of earlier sources.
///
/// ```
/// use dipc_monitor::configuration::{Configuration, ConfigurationSources};
/// use std::time::Duration;
///
/// let file = r#"{ "GlobalCounter": { "IntervalSeconds": 10 } }"#;
/// let variable = ("DotnetMonitor_GlobalCounter__IntervalSeconds".to_owned(), "2".to_owned());
/// // Later sources override earlier ones.
/// let sources = ConfigurationSources::new().with_text("monitor.json", file).with_environment([variable]);
/// let checked = Configuration::read(&sources);
/// assert_eq!(checked.configuration.global_counter.interval, Duration::from_secs(2));
/// ```
#[derive(Debug, Default)]
pub struct ConfigurationSources {
    sources: Vec<Source>,
}

#[derive(Debug)]
enum Source {
    /// A JSON file, which may be missing unless the user named it.
    File { path: PathBuf, is_required: bool },
    /// JSON text, with a name for messages.
    Text { name: String, text: String },
    /// A directory with a file for each key.
    Directory(PathBuf),
    /// Variables, with and without the prefix.
    Environment(Vec<(String, String)>),
}

impl ConfigurationSources {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the list that dotnet-monitor uses, lowest precedence first: plain environment variables,
    /// `~/.config/dotnet-monitor/settings.json`, `/etc/dotnet-monitor/settings.json`, a file per key in
    /// `/etc/dotnet-monitor`, and variables `DotnetMonitor_…`.
    pub fn of_system(environment: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let environment: Vec<(String, String)> = environment
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let get = |name: &str| environment.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        let user = get("XDG_CONFIG_HOME")
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .or_else(|| get("HOME").map(|home| Path::new(home).join(".config")))
            .map(|path| path.join("dotnet-monitor"));
        let shared = PathBuf::from("/etc/dotnet-monitor");
        let (prefixed, plain): (Vec<_>, Vec<_>) =
            environment.iter().cloned().partition(|(name, _)| without_prefix(name).is_some());
        let mut sources = Self::new();
        sources.sources.push(Source::Environment(plain));
        if let Some(user) = user {
            sources.sources.push(Source::File { path: user.join(SETTINGS), is_required: false });
        }
        sources.sources.push(Source::File { path: shared.join(SETTINGS), is_required: false });
        sources.sources.push(Source::Directory(shared));
        sources.sources.push(Source::Environment(prefixed));
        sources
    }

    /// Adds a JSON file that has to exist.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(Source::File { path: path.into(), is_required: true });
        self
    }

    /// Adds a JSON document; `name` identifies its source in messages.
    #[must_use]
    pub fn with_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.sources.push(Source::Text { name: name.into(), text: text.into() });
        self
    }

    /// Adds a directory with a file for each key: `CollectionRules__Name__Trigger__Type`.
    #[must_use]
    pub fn with_directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.sources.push(Source::Directory(path.into()));
        self
    }

    /// Adds environment variables. Variables with the prefix `DotnetMonitor_`, in any case, are settings;
    /// other variables are, if they begin with the name of a section.
    #[must_use]
    pub fn with_environment(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        self.sources.push(Source::Environment(variables.into_iter().collect()));
        self
    }

    /// The files and directories, to be watched for changes.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.sources.iter().filter_map(|source| match source {
            Source::File { path, .. } | Source::Directory(path) => Some(&**path),
            Source::Text { .. } | Source::Environment(_) => None,
        })
    }

    /// Reads all sources into one tree.
    pub(crate) fn read(&self, findings: &mut Findings) -> Node {
        let mut root = Node::default();
        for source in &self.sources {
            source.read(&mut root, findings);
        }
        root
    }
}

impl Source {
    fn read(&self, root: &mut Node, findings: &mut Findings) {
        match self {
            Self::File { path, is_required } => match read_text(path) {
                Ok(text) => {
                    let number = findings.add_source(&path.display().to_string());
                    json::merge(&text, number, root, findings);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !is_required => {}
                Err(error) => unreadable(path, &error, findings),
            },
            Self::Text { name, text } => {
                let number = findings.add_source(name);
                json::merge(text, number, root, findings);
            }
            Self::Directory(path) => read_directory(path, root, findings),
            Self::Environment(variables) => {
                for (name, value) in variables {
                    let plain = || schema::ROOT.get(name.split("__").next()?).map(|_| &**name);
                    let Some(key) = without_prefix(name).or_else(plain) else { continue };
                    let number = findings.add_source(&format!("environment variable {name}"));
                    set(key, value, number, root);
                }
            }
        }
    }
}

/// Returns a variable's name without the prefix; `None` if it does not have it.
fn without_prefix(name: &str) -> Option<&str> {
    let (prefix, key) = name.split_at_checked(PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then_some(key)
}

/// Sets the value of a key with levels separated by two underscores.
fn set(key: &str, value: &str, source: u32, root: &mut Node) {
    let location = Location { source, ..Location::default() };
    let node = root.at_path(key.split("__").flat_map(|part| part.split(':')).take(MAX_DEPTH), location);
    node.value = Some(value.to_owned());
}

fn read_directory(path: &Path, root: &mut Node, findings: &mut Findings) {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return unreadable(path, &error, findings),
    };
    let mut names: Vec<OsString> =
        entries.filter_map(|entry| Some(entry.ok()?.file_name())).take(MAX_FILES).collect();
    names.sort();
    for name in names {
        let Some(key) = name.to_str() else { continue };
        let file = path.join(&name);
        // Volumes of Kubernetes have directories of their own. Their files are linked here.
        if key == SETTINGS || key.starts_with("ignore.") || !file.is_file() {
            continue;
        }
        match read_text(&file) {
            Ok(text) => {
                let number = findings.add_source(&file.display().to_string());
                set(
                    key,
                    text.strip_suffix('\n').map_or(&*text, |text| text.trim_end_matches('\r')),
                    number,
                    root,
                );
            }
            Err(error) => unreadable(&file, &error, findings),
        }
    }
}

fn unreadable(path: &Path, error: &io::Error, findings: &mut Findings) {
    let source = findings.add_source(&path.display().to_string());
    let location = Location { source, ..Location::default() };
    findings.error(location, "", format!("cannot read: {error}"), None);
}

/// Reads a regular file of at most [`MAX_FILE_SIZE`] bytes.
fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(MAX_FILE_SIZE + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_FILE_SIZE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 4 MiB"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("not UTF-8 at byte {at}"))
    })
}
