//! A version's section of CHANGELOG.md.

use std::fs;

use anyhow::{Context as _, Result};

use crate::task::workspace;

/// A version's section of the changelog.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Section {
    /// `YYYY-MM-DD`; `None` for a version that has not been released.
    pub(super) date: Option<String>,
    pub(super) text: String,
}

/// Returns the version's section of CHANGELOG.md.
pub(super) fn changelog(version: &str) -> Result<Section> {
    let changelog = fs::read_to_string(workspace::root().join("CHANGELOG.md"))?;
    section(&changelog, version).with_context(|| {
        format!("CHANGELOG.md has no section `## {version} - YYYY-MM-DD` (or `- unreleased`) with text")
    })
}

fn section(changelog: &str, version: &str) -> Option<Section> {
    let mut sections = changelog.split("\n## ").skip(1);
    let section = sections.find(|section| section.split_whitespace().next() == Some(version))?;
    let (heading, text) = section.split_once('\n')?;
    let date = heading.split_once(" - ")?.1.trim();
    let is_date = date.len() == 10 && date.chars().all(|c| c.is_ascii_digit() || c == '-');
    if text.trim().is_empty() || !(is_date || date == "unreleased") {
        return None;
    }
    Some(Section { date: is_date.then(|| date.to_owned()), text: text.trim().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str =
        "# Changelog\n\n## 0.2.0 - unreleased\n\n- New\n\n## 0.1.0 - 2026-11-22\n\n- First\n";

    #[test]
    fn a_section_has_its_date_and_its_own_text() {
        let first = Section { date: Some("2026-11-22".to_owned()), text: "- First".to_owned() };
        assert_eq!(section(CHANGELOG, "0.1.0"), Some(first));
        let next = Section { date: None, text: "- New".to_owned() };
        assert_eq!(section(CHANGELOG, "0.2.0"), Some(next));
    }

    #[test]
    fn versions_without_section_date_or_text_are_missing() {
        assert_eq!(section(CHANGELOG, "0.1"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0\n\n- First\n", "0.1.0"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0 - soon\n\n- First\n", "0.1.0"), None);
        assert_eq!(section("# Changelog\n\n## 0.1.0 - 2026-11-22\n\n## 0.0.1 - 2026-11-21\n", "0.1.0"), None);
    }
}
