//! Names that would be markup or scripts, or would turn the text around them.

use std::path::Path;
use std::process::Command;

use nettrace_synth::clr::{MANAGED, Method, Recording};

use crate::browser::Browser;
use crate::dipc;

/// The private character in whose place recordings have half of a surrogate pair, which no string can have.
const HALF: char = '\u{e000}';
const NAME: &str = "</script><script>globalThis.wasRun=1</script><img src=x onerror=wasRun=1>\u{202e}\u{1b}[2J\u{2028}&quot;\"'`${wasRun=1}\u{e000}";

/// A thread with two samples in a method of that name, which throws an exception of that type and with that
/// message.
fn recording() -> Vec<u8> {
    let mut recording = Recording::new();
    recording.stacks(&[&[0x1008]]).thread(7);
    recording.at(5_000_000).method(&Method { signature: "", ..Method::new(0x1000, NAME, NAME) });
    with_half_pairs(&mut recording.last().payload);
    recording.at(10_000_000).sample(1, MANAGED);
    recording.at(15_000_000).exception(NAME, NAME).on(1);
    with_half_pairs(&mut recording.last().payload);
    recording.at(20_000_000).sample(1, MANAGED).bytes()
}

/// Puts half of a surrogate pair in the place of [`HALF`].
fn with_half_pairs(payload: &mut [u8]) {
    let half = u16::try_from(u32::from(HALF)).unwrap().to_le_bytes();
    while let Some(at) = payload.windows(2).position(|bytes| bytes == half) {
        payload[at..at + 2].copy_from_slice(&0xd800_u16.to_le_bytes());
    }
}

/// Replaces a name in a file with another name of the same length.
fn replace(bytes: &mut [u8], name: &str, by: &[u8]) {
    assert!(by.len() <= name.len());
    let starts: Vec<_> =
        (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(name.as_bytes())).collect();
    assert!(!starts.is_empty(), "{name}");
    for at in starts {
        bytes[at..at + by.len()].copy_from_slice(by);
    }
}

/// Asserts that a page has no element or control character of a name, as text and in the browser.
fn assert_own_markup_only(browser: Option<&Browser>, page: &Path) {
    let text = std::fs::read_to_string(page).unwrap();
    let what = page.display();
    assert!(!text.contains("<img") && !text.contains("</script><"), "{what}");
    let control = text.chars().find(|c| clr_events::is_control(*c) && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "{what}");
    if let Some(browser) = browser {
        let seen = browser.drive(
            page,
            "return { wasRun: globalThis.wasRun ?? null, images: document.images.length, shown: document.body.innerText };",
        );
        assert_eq!((&seen["wasRun"], &seen["images"]), (&().into(), &0.into()), "{what}");
        let shown = seen["shown"].as_str().unwrap();
        assert!(!shown.contains(|c| clr_events::is_control(c) && !c.is_whitespace()), "{what}: {shown}");
    }
}

/// Names of types, static fields and methods, and of the files themselves.
#[test]
fn no_page_has_markup_of_names() {
    const IMAGE: &[u8] = b"<img src=x onerror=wasRun=1>\x1b[2";
    const FILE: &str = "<img src=x onerror=wasRun=1>&quot;'";
    let browser = Browser::find();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let file = |ending: &str| format!("{FILE}{ending}");

    std::fs::write(at(&file(".nettrace")), recording()).unwrap();
    let recorded = file(".nettrace");
    dipc(folder.path(), &["convert", &recorded, "-f", "html", "-o", "page.html"]);
    dipc(folder.path(), &["convert", &recorded, "-f", "svg", "-o", "graph.svg"]);
    dipc(folder.path(), &["diff", &recorded, &recorded, "--format", "html", "-o", "diff.html"]);

    let mut heap = testdata::bytes("gcdump/files/net10.gcdump.xz");
    replace(&mut heap, "System.UnhandledExceptionEventHandler", IMAGE);
    replace(&mut heap, "System.OrdinalCaseSensitiveComparer", b"</script><img>\x1b\"'");
    std::fs::write(at(&file(".gcdump")), heap).unwrap();
    dipc(folder.path(), &["gcdump", "convert", &file(".gcdump"), "-f", "html", "-o", "heap.html"]);

    let mut core = testdata::bytes("cores/shop-heap.core.xz");
    replace(&mut core, "s_terminalFormatStringsInstance", &IMAGE[..31]);
    std::fs::write(at(&file(".core")), core).unwrap();
    // Not all metadata is in it, so that the exit code says that it is incomplete.
    let mut analyze = Command::new(env!("CARGO_BIN_EXE_dipc"));
    analyze.args(["dump", "analyze", &file(".core"), "heap", "--format", "html"]).current_dir(folder.path());
    std::fs::write(at("core.html"), analyze.output().unwrap().stdout).unwrap();

    for page in ["page.html", "diff.html", "heap.html", "core.html"] {
        assert_own_markup_only(browser.as_ref(), &at(page));
    }
    assert_own_markup_only(None, &at("graph.svg"));
    // The names are there.
    for page in ["diff.html", "heap.html", "core.html", "graph.svg"] {
        assert!(std::fs::read_to_string(at(page)).unwrap().contains("onerror=wasRun"), "{page}");
    }
}

#[test]
fn names_are_neither_markup_nor_bidi_controls() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("app.nettrace"), recording()).expect("a file");
    dipc(folder.path(), &["convert", "app.nettrace", "-f", "html"]);
    let page = folder.path().join("app.html");
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(!text.contains("wasRun") && !text.contains('\u{202e}'));
    let seen = browser.drive(
        &page,
        "const shown = [];
         for (const tab of ['flame', 'callers', 'top', 'threads', 'exceptions']) { at('tab-' + tab).click(); shown.push(document.body.innerText); }
         at('tab-flame').click();
         const parsed = new DOMParser().parseFromString(page.flame.svg(), 'image/svg+xml');
         return { wasRun: globalThis.wasRun ?? null, images: document.images.length, shown: shown.join(' '), scripts: parsed.querySelectorAll('script, img, parsererror').length };",
    );
    assert_eq!((&seen["wasRun"], &seen["images"], &seen["scripts"]), (&().into(), &0.into(), &0.into()));
    let shown = seen["shown"].as_str().unwrap();
    assert!(shown.contains("<img src=x") && shown.contains(r"\u202e\u001b[2J\u2028"), "{shown}");
    assert!(!shown.contains(|c| clr_events::is_control(c) && !c.is_whitespace()), "{shown}");
}
