//! The book's structure: chapters, contents, links and included files.

use std::fs;

use crate::{CHAPTERS, chapter};

/// The text of a chapter without its code blocks.
fn prose(text: &str) -> String {
    let mut is_code = false;
    let lines = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The targets of the links of a text.
fn links(text: &str) -> Vec<String> {
    let ends = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target.to_owned()).collect()
}

#[test]
fn every_chapter_is_in_the_contents_and_has_a_test() {
    let summary = fs::read_to_string(chapter::folder().join("SUMMARY.md")).unwrap();
    assert_eq!(links(&summary), CHAPTERS, "SUMMARY.md beside the chapters that are tested");
    let mut files: Vec<_> = fs::read_dir(chapter::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.strip_suffix(".md").is_some_and(|name| name != "SUMMARY"))
        .collect();
    files.sort();
    let mut chapters = CHAPTERS.to_vec();
    chapters.sort_unstable();
    assert_eq!(files, chapters);
}

#[test]
fn links_lead_somewhere() {
    for file in CHAPTERS {
        let text = fs::read_to_string(chapter::folder().join(file)).unwrap();
        for link in links(&prose(&text)).iter().filter(|link| !link.starts_with("https://")) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { file } else { path };
            let target = fs::read_to_string(chapter::folder().join(path));
            let target = target.unwrap_or_else(|error| panic!("{file}: {link}: {error}"));
            assert!(anchor.is_empty() || anchors(&target).contains(&anchor.to_owned()), "{file}: {link}");
        }
    }
}

/// The names by which mdBook lets headings be linked to.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line.trim_start_matches('#').trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || " _-".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

#[test]
fn included_files_are_there() {
    for file in CHAPTERS {
        let text = fs::read_to_string(chapter::folder().join(file)).unwrap();
        for included in text.split("{{#include ").skip(1) {
            let (path, _) = included.split_once("}}").unwrap();
            assert!(chapter::folder().join(path).is_file(), "{file}: {path}");
        }
    }
}

/// Commands that are shown are run: no block is in a language by which that could be forgotten.
#[test]
fn blocks_are_of_languages_that_tests_know() {
    for file in CHAPTERS {
        let text = fs::read_to_string(chapter::folder().join(file)).unwrap();
        let fences: Vec<_> = text.lines().filter(|line| line.starts_with("```")).step_by(2).collect();
        for fence in fences {
            assert!(["```console", "```rust", "```yaml", "```text"].contains(&fence), "{file}: {fence}");
            assert!(
                fence != "```rust" || text.contains("```rust\n{{#include "),
                "{file}: Rust code is included"
            );
        }
    }
}
