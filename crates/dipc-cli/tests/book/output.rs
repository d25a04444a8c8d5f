//! Comparison of an output with the output shown in a chapter.

use crate::session::Session;

/// Any lines, or any rest of a line.
pub(crate) const ELISION: char = '…';

/// What differs from run to run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Varies {
    numbers: bool,
    processes: bool,
}

impl Varies {
    pub(crate) fn parse(text: &str) -> Self {
        let mut varies = Self::default();
        for word in text.split_whitespace() {
            match word {
                "numbers" => varies.numbers = true,
                "processes" => varies.processes = true,
                other => panic!("'{other}' is nothing that may vary"),
            }
        }
        varies
    }

    /// The lines without those about processes that the session did not start: rows, which begin with a pid,
    /// and warnings.
    pub(crate) fn own_rows(self, mut lines: Vec<String>, session: &Session) -> Vec<String> {
        if self.processes {
            lines.retain(|line| {
                let row = line.strip_prefix("warning: process ").unwrap_or(line);
                let mut words = row.split([' ', ':']).filter(|word| !word.is_empty());
                let pid = words.next().and_then(|word| word.parse().ok());
                // A number alone is an exit code.
                let pid = words.next().and(pid);
                let counts_others = line.ends_with(" cannot be reached; dipc doctor says why.");
                let counts_candidates = line.starts_with("  and ") && line.ends_with(" more");
                !counts_others && !counts_candidates && pid.is_none_or(|pid| session.has_started(pid))
            });
        }
        lines
    }
}

/// Returns true if this was printed.
pub(crate) fn matches(expected: &[String], printed: &[String], varies: Varies) -> bool {
    let Some((first, rest)) = expected.split_first() else { return printed.is_empty() };
    if first.trim() == ELISION.to_string() {
        return (0..=printed.len()).any(|at| matches(rest, &printed[at..], varies));
    }
    printed
        .split_first()
        .is_some_and(|(line, others)| line_matches(first, line, varies) && matches(rest, others, varies))
}

fn line_matches(expected: &str, printed: &str, varies: Varies) -> bool {
    if !varies.numbers {
        return expected == printed
            || expected.strip_suffix(ELISION).is_some_and(|start| printed.starts_with(start));
    }
    let (expected, printed) = (places_of_numbers(expected), places_of_numbers(printed));
    expected == printed || expected.strip_suffix(ELISION).is_some_and(|start| printed.starts_with(start))
}

/// The units that follow numbers. They change with the number's size.
const UNITS: &[&str] = &["ns", "µs", "ms", "s", "B", "KB", "MB", "GB"];

/// The line with `#` for each number and its unit, and one blank for the blanks by which columns are aligned.
fn places_of_numbers(line: &str) -> String {
    let line = without_guids(line);
    let mut places = String::new();
    let mut rest = &*line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        places.push_str(&rest[..start]);
        places.push('#');
        let number = rest[start..].find(|c: char| !c.is_ascii_digit() && !".,:".contains(c));
        let number = &rest[start..number.map_or(rest.len(), |length| start + length)];
        rest = &rest[start + number.trim_end_matches(['.', ',', ':']).len()..];
        let unit_ends = |after: &str| !after.starts_with(|c: char| c.is_alphanumeric());
        let behind = rest.strip_prefix(' ').unwrap_or(rest);
        let unit = UNITS.iter().filter_map(|unit| behind.strip_prefix(unit)).find(|after| unit_ends(after));
        rest = unit.unwrap_or(rest);
    }
    places.push_str(rest);
    places.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line with 0 for each GUID.
fn without_guids(line: &str) -> String {
    let is_word = |c: char| c.is_ascii_hexdigit() || c == '-';
    let words = line.split_inclusive(|c: char| !is_word(c));
    words
        .map(|piece| {
            let word = piece.trim_end_matches(|c: char| !is_word(c));
            let is_guid = word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
            if is_guid { piece.replace(word, "0") } else { piece.to_owned() }
        })
        .collect()
}

#[test]
fn numbers_are_compared_by_their_places() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let is_printed = |expected: &str, printed: &str, varies: &str| {
        matches(&lines(expected), &lines(printed), Varies::parse(varies))
    };
    let expected = "PID  NAME\n 41  app\n…\nin 1.05 s: a.nettrace";
    assert!(is_printed(expected, "  PID  NAME\n12345  app\nx\ny\nin 980 ms: a.nettrace", "numbers"));
    assert!(!is_printed(expected, "  PID  NAME\n12345  app\nx\ny\nin 980 ms: a.nettrace", ""));
    assert!(!is_printed(expected, "PID  NAME\n12345  other\nin 980 ms: a.nettrace", "numbers"));
    assert!(!is_printed(expected, "PID  NAME\n app\nin 980 ms: a.nettrace", "numbers"));
    let guid = |text: &str| format!("Cookie {text}, it");
    let guids = ["261c7dc1-828e-400e-becb-23e6e0d844a4", "fabcdeff-abcd-abcd-abcd-abcdefabcdef"].map(guid);
    assert!(is_printed(&guids[0], &guids[1], "numbers") && !is_printed(&guids[0], &guids[1], ""));
    assert!(is_printed("{\"pid\":1,…", "{\"pid\":1,\"x\":2}", ""));
    assert!(!is_printed("{\"pid\":1,…", "{\"pid\":2,\"x\":2}", ""));
    assert!(!is_printed("a\n…", "b", "") && is_printed("a\n…", "a", ""));
}
