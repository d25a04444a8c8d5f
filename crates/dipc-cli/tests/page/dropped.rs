//! The page that reads recordings in the browser, with the readers as WebAssembly: it gets files as a person
//! drops them, and makes the page that `dipc convert -f html` writes of them.
//!
//! `cargo xtask browser` builds that page and runs these tests: `$DIPC_BROWSER_PAGE` is its path. Without it
//! they are not run, which is said.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser::Browser;
use crate::data::page_data;
use crate::{dipc, recording};

fn find() -> Option<(Browser, PathBuf)> {
    let Some(page) = std::env::var_os("DIPC_BROWSER_PAGE") else {
        eprintln!(
            "NOT RUN: tests of the page that reads recordings: cargo xtask browser builds and tests it"
        );
        return None;
    };
    Some((Browser::find()?, page.into()))
}

/// Drops files onto the page, one set after another, and returns the page's state after each.
fn drop_files(browser: &Browser, page: &Path, folder: &TempDir, sets: &[&[(&str, Vec<u8>)]]) -> Vec<Value> {
    let files: Vec<Vec<Value>> = sets
        .iter()
        .map(|set| set.iter().map(|(name, bytes)| json!({ "name": name, "bytes": base64(bytes) })).collect())
        .collect();
    let copy = folder.path().join("reader.html");
    fs::copy(page, &copy).expect("the page");
    let script = format!(
        "const sets = {};
        const seen = [];
        for (const set of sets) {{
          const data = new DataTransfer();
          for (const {{ name, bytes }} of set) data.items.add(new File([Uint8Array.from(atob(bytes), c => c.charCodeAt(0))], name));
          const dropped = new DragEvent('drop', {{ bubbles: true, cancelable: true, dataTransfer: data }});
          document.body.dispatchEvent(dropped);
          const at = id => document.getElementById(id);
          await pause();
          for (let tries = 0; document.documentElement.dataset.state !== 'done' && tries < 1500; tries++) await pause();
          for (let tries = 0; !at('error').textContent && at('shown').contentDocument.documentElement.dataset.ready !== 'true' && tries < 400; tries++) await pause();
          const shown = at('shown').contentWindow.page;
          seen.push({{ prevented: dropped.defaultPrevented, error: at('error').textContent, page: at('shown').srcdoc,
            title: document.title, samples: shown?.recording.samples ?? null,
            tabs: shown?.tabs.map(tab => tab.id) ?? null, isVisible: at('shown').getBoundingClientRect().height > 300 }});
        }}
        return seen;",
        Value::from(files)
    );
    browser.drive_with_workers(&copy, &script).as_array().expect("what was seen").clone()
}

fn base64(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() / 3 * 4 + 4);
    for three in bytes.chunks(3) {
        let number =
            three.iter().fold(0u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for place in 0..=three.len() {
            let digit = DIGITS[(number >> (18 - 6 * place)) as usize & 63];
            let _ = write!(text, "{}", char::from(digit));
        }
        text.extend(std::iter::repeat_n('=', 3 - three.len()));
    }
    text
}

/// The page that `dipc convert` writes of a file in the folder.
fn converted(folder: &TempDir, name: &str) -> String {
    dipc(folder.path(), &["convert", name, "-f", "html", "-o", "converted.html"]);
    fs::read_to_string(folder.path().join("converted.html")).expect("a page")
}

/// Returns true if two pages are the same except for the compression of their data, which depends on the
/// features of a build.
fn are_same(made: &Value, expected: &str) -> bool {
    let made = made.as_str().expect("a text");
    let around = |page: &str| {
        let (before, rest) = page.split_once("id=\"data\">").expect("data");
        let (_, after) = rest.split_once('<').expect("the end of the data");
        [before, after].map(str::to_owned)
    };
    around(made) == around(expected) && page_data(made) == page_data(expected)
}

/// Samples of the runtime and of the kernel, requests, formats V6 and netperf, allocations alone, counters.
const RECORDINGS: [&str; 6] = [
    "reference/net9-web.nettrace",
    "traces/net9-kernel.nettrace",
    "traces/net10-gcverbose.nettrace",
    "traces/net10-exceptions.nettrace",
    "traces/v6-record-trace.nettrace",
    "traces/net9-background.nettrace",
];

#[test]
fn a_dropped_recording_has_the_page_of_convert() {
    let Some((browser, page)) = find() else { return };
    for path in RECORDINGS {
        let (folder, recording) = recording(path);
        let expected = converted(&folder, "app.nettrace");
        let bytes = fs::read(recording).unwrap();
        let seen = drop_files(&browser, &page, &folder, &[&[("app.nettrace", bytes)]]);
        assert_eq!(seen[0]["error"], "", "{path}");
        assert!(are_same(&seen[0]["page"], &expected), "{path}: another page");
        let of_page = page_data(&expected);
        assert_eq!(seen[0]["samples"], of_page["samples"], "{path}");
        assert_eq!((&seen[0]["isVisible"], &seen[0]["prevented"]), (&true.into(), &true.into()), "{path}");
        assert!(
            seen[0]["title"].as_str().unwrap().starts_with("app.nettrace – "),
            "{path}: {}",
            seen[0]["title"]
        );
    }
}

/// The accounting of threads next to a recording changes the page: it is used if it is dropped, too.
#[test]
fn companion_files_of_a_recording_are_used() {
    let Some((browser, page)) = find() else { return };
    let (folder, recorded) = recording("diff/base.nettrace");
    let alone = converted(&folder, "app.nettrace");
    let (_other, account) = recording("diff/base.threads.nettrace");
    fs::copy(&account, folder.path().join("app.threads.nettrace")).unwrap();
    let with_account = converted(&folder, "app.nettrace");
    assert!(alone != with_account, "the account changes nothing");
    let [recorded, account] = [recorded, account].map(|path| fs::read(path).unwrap());
    let both = [("app.threads.nettrace", account), ("app.nettrace", recorded.clone())];
    let seen = drop_files(&browser, &page, &folder, &[&both, &[("app.nettrace", recorded)]]);
    assert_eq!((&seen[0]["error"], &seen[1]["error"]), (&"".into(), &"".into()));
    assert!(are_same(&seen[0]["page"], &with_account), "another page with the account");
    assert!(are_same(&seen[1]["page"], &alone), "another page without it");
}

/// The intact parts of a damaged file are shown, and the page says what is missing; other files have a
/// sentence.
#[test]
fn damaged_and_foreign_files_are_explained() {
    let Some((browser, page)) = find() else { return };
    let (folder, whole) = recording("reference/net9-web.nettrace");
    let whole = fs::read(whole).unwrap();
    let cut = whole[..whole.len() / 2].to_vec();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle..middle + 5000].fill(0xff);
    let mut expected = Vec::new();
    for bytes in [&cut, &damaged] {
        fs::write(folder.path().join("app.nettrace"), bytes).unwrap();
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_dipc"))
            .current_dir(folder.path())
            .args(["convert", "app.nettrace", "-f", "html", "-o", "converted.html"])
            .output()
            .unwrap();
        assert_eq!(run.status.code(), Some(6), "{}", String::from_utf8_lossy(&run.stderr));
        expected.push(fs::read_to_string(folder.path().join("converted.html")).unwrap());
    }
    let sets: [&[(&str, Vec<u8>)]; 7] = [
        &[("app.nettrace", cut)],
        &[("app.nettrace", damaged)],
        &[("notes.txt", b"not a recording at all, but a text".to_vec())],
        &[("app.nettrace.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03 some bytes".to_vec())],
        &[("empty.nettrace", Vec::new())],
        &[("a.nettrace", whole.clone()), ("b.nettrace", whole.clone())],
        &[("app.nettrace", whole)],
    ];
    let seen = drop_files(&browser, &page, &folder, &sets);
    for (seen, expected) in seen.iter().zip(&expected) {
        assert_eq!(seen["error"], "");
        assert!(are_same(&seen["page"], expected), "another page");
    }
    let errors = [
        "not a nettrace or netperf recording",
        "decompress it first",
        "may have ended before",
        "one recording at a time",
    ];
    let told: Vec<_> = seen[2..6].iter().map(|seen| seen["error"].as_str().unwrap()).collect();
    for (told, error) in told.iter().zip(errors) {
        assert!(told.contains(error), "{told}");
    }
    assert!(told[0].starts_with("notes.txt cannot be read: "), "{told:?}");
    assert_eq!(seen[2]["isVisible"], false, "an earlier page stays: {}", told[0]);
    assert_eq!((&seen[6]["error"], &seen[6]["isVisible"]), (&"".into(), &true.into()), "after an error");
}
