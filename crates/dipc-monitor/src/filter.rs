//! Filters of processes, as in dotnet-monitor's `DefaultProcess` and in its rules.

use dipc_client::dipc_transport;

/// Maximum length of a command line to keep, in bytes: the process chooses it.
const MAX_COMMAND_LINE: usize = 64 << 10;

/// The facts of a process that filters compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessFacts {
    /// The process id.
    pub pid: u32,
    /// The name of the process: that of its entry assembly, or of its executable.
    pub name: String,
    /// The command line, if it is known.
    pub command_line: Option<String>,
    /// The name of the entry assembly, if the runtime reports it (.NET 6 and later).
    pub entry_assembly: Option<String>,
}

impl ProcessFacts {
    /// The facts of a process with this name by the system alone.
    pub(crate) fn of_system(pid: u32, name: String) -> Self {
        let words = dipc_transport::command_line(pid).unwrap_or_default();
        let entry_assembly = dipc_client::entry_assembly(&words);
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        Self { pid, name, command_line: Some(cut(words.join(" "))), entry_assembly }
    }

    /// The name for people: the name of the entry assembly if the process runs `dotnet`, otherwise its own.
    pub(crate) fn title(&self) -> &str {
        let assembly = self.entry_assembly.as_deref().filter(|name| !name.is_empty());
        assembly.filter(|_| self.name == "dotnet").unwrap_or(&self.name)
    }
}

/// The fact that a filter compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "those of configurations of dotnet-monitor")]
pub enum FilterKey {
    /// The process id.
    ProcessId,
    /// The name of the process, or of the assembly that `dotnet` runs.
    ProcessName,
    /// The command line.
    CommandLine,
    /// The name of the entry assembly.
    ManagedEntryPointAssemblyName,
}

/// The way in which a value matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchType {
    /// The whole fact equals the value.
    #[default]
    Exact,
    /// The fact contains the value.
    Contains,
}

/// A condition on one fact of a process. Case is ignored.
///
/// ```
/// use dipc_monitor::{Filter, FilterKey, MatchType, ProcessFacts};
///
/// let filter = Filter {
///     key: FilterKey::CommandLine,
///     value: "shop.dll".to_owned(),
///     match_type: MatchType::Contains,
/// };
/// let mut facts = ProcessFacts::default();
/// // A fact that is not known never matches.
/// assert!(!filter.matches(&facts));
/// facts.command_line = Some("dotnet /srv/Shop.dll".to_owned());
/// assert!(filter.matches(&facts));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "a fact, a value and how they match")]
pub struct Filter {
    /// The fact.
    pub key: FilterKey,
    /// The value that the fact is compared with.
    pub value: String,
    /// The way in which it matches. Process ids always match exactly.
    pub match_type: MatchType,
}

impl Filter {
    /// Returns true if the process matches. An unknown fact never matches.
    pub fn matches(&self, process: &ProcessFacts) -> bool {
        match self.key {
            FilterKey::ProcessId => self.may_match(process.pid),
            // Either is the name of the process somewhere.
            FilterKey::ProcessName => self.matches_text(&process.name) || self.matches_text(process.title()),
            FilterKey::CommandLine => process.command_line.as_ref().is_some_and(|it| self.matches_text(it)),
            FilterKey::ManagedEntryPointAssemblyName => {
                process.entry_assembly.as_ref().is_some_and(|it| self.matches_text(it))
            }
        }
    }

    /// Returns true if a process with this id may match. Before it is asked, only the id is known.
    pub(crate) fn may_match(&self, pid: u32) -> bool {
        self.key != FilterKey::ProcessId || self.value.trim().parse() == Ok(pid)
    }

    fn matches_text(&self, fact: &str) -> bool {
        let (fact, value) = (fact.to_lowercase(), self.value.to_lowercase());
        match self.match_type {
            MatchType::Exact => fact == value,
            MatchType::Contains => fact.contains(&value),
        }
    }
}

/// Cuts a string of a length that the process chooses.
pub(crate) fn cut(mut text: String) -> String {
    cut_at(&mut text, MAX_COMMAND_LINE);
    text
}

/// Cuts a string longer than `most` bytes between two characters. Returns true if it was longer.
pub(crate) fn cut_at(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    text.shrink_to_fit();
    true
}

#[cfg(test)]
mod tests {
    use super::FilterKey::{CommandLine, ManagedEntryPointAssemblyName, ProcessId, ProcessName};
    use super::MatchType::{Contains, Exact};
    use super::*;

    #[test]
    fn all_keys_ignore_case_and_unknown_facts_do_not_match() {
        let process = ProcessFacts {
            pid: 4711,
            name: "Shop".into(),
            command_line: Some("/app/Shop --port 80".into()),
            entry_assembly: None,
        };
        let rows = [
            (ProcessId, "4711", Exact, true),
            (ProcessId, "471", Contains, false),
            (ProcessName, "shop", Exact, true),
            (ProcessName, "sho", Exact, false),
            (ProcessName, "SHO", Contains, true),
            (CommandLine, "--PORT", Contains, true),
            (CommandLine, "--port", Exact, false),
            (ManagedEntryPointAssemblyName, "", Contains, false),
        ];
        for (key, value, match_type, expected) in rows {
            let filter = Filter { key, value: value.into(), match_type };
            assert_eq!(filter.matches(&process), expected, "{filter:?}");
        }
    }

    #[test]
    fn a_process_that_dotnet_runs_has_two_names() {
        let process = ProcessFacts {
            pid: 7,
            name: "dotnet".into(),
            entry_assembly: Some("Shop".into()),
            ..ProcessFacts::default()
        };
        let matches = |value: &str, match_type| {
            Filter { key: ProcessName, value: value.into(), match_type }.matches(&process)
        };
        assert!(matches("shop", Exact) && matches("dotnet", Exact) && matches("ho", Contains));
        assert!(!matches("app", Contains));
    }

    #[test]
    fn only_an_id_excludes_a_process_before_its_answer() {
        let may_match =
            |key, value: &str| Filter { key, value: value.into(), match_type: Exact }.may_match(7);
        assert!(may_match(ProcessId, "7") && !may_match(ProcessId, "8") && may_match(ProcessName, "other"));
    }
}
