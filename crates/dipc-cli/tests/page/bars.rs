//! Pages of bars, which have no script: growth between two heaps, and the memory of a process.

use std::path::Path;

use serde_json::Value;

use crate::browser::Browser;
use crate::dipc;
use crate::dump::Dump;

/// The rows and bars of a page, with their sizes by the browser.
const LOOK: &str = "
    const bars = [...document.querySelectorAll('.bar i')];
    return {
      title: document.title,
      answer: document.querySelector('.answer').textContent,
      rows: document.querySelectorAll('main > table > tbody > tr').length,
      names: [...document.querySelectorAll('main > table > tbody > tr')].map(row => row.lastChild.firstChild.textContent),
      shown: bars.filter(bar => bar.getBoundingClientRect().width > 0 && bar.getBoundingClientRect().height > 5).length,
      bars: bars.length,
      widest: Math.max(...[...document.querySelectorAll('.bar')].map(whole =>
        [...whole.children].reduce((sum, part) => sum + part.getBoundingClientRect().width, 0) / whole.getBoundingClientRect().width)),
      colours: new Set(bars.map(bar => getComputedStyle(bar).backgroundColor)).size,
      unset: bars.filter(bar => getComputedStyle(bar).backgroundColor === 'rgba(0, 0, 0, 0)').length,
      width: [document.documentElement.clientWidth, document.documentElement.scrollWidth],
    };";

/// Opens a page with its own policy, but for the script of this test.
fn look(browser: &Browser, page: &Path) -> Value {
    let text = std::fs::read_to_string(page).unwrap();
    assert!(!text.contains("<script"), "{text}");
    let policy = "style-src 'unsafe-inline'";
    assert_eq!(text.matches(policy).count(), 1);
    let text = text.replace(policy, "style-src 'unsafe-inline'; script-src 'unsafe-inline'");
    std::fs::write(page, text.replace("<html lang=\"en\">", "<html lang=\"en\" data-ready=\"true\">"))
        .unwrap();
    let seen = browser.drive(page, LOOK);
    assert_eq!((seen["unset"].as_u64(), &seen["bars"]), (Some(0), &seen["shown"]), "{seen}");
    assert!(
        (seen["widest"].as_f64().unwrap() - 1.0).abs() < 0.01,
        "the largest takes the whole width: {seen}"
    );
    assert!(seen["width"][1].as_u64() <= seen["width"][0].as_u64(), "{seen}");
    seen
}

/// Writes a heap in which a basket holds orders; the first of them has a label, if wanted.
fn write_heap(folder: &Path, name: &str, orders: u64, has_label: bool) {
    let order = |number: u64| 0x2000 + 0x20 * number;
    let mut objects = vec![(0x1000, 24 + 8 * orders, 1, orders)];
    objects.extend((0..orders).map(|number| (order(number), 24, 2, u64::from(has_label && number == 0))));
    let mut references: Vec<_> = (0..orders).map(order).collect();
    if has_label {
        objects.push((0x9000, 120, 3, 0));
        references.push(0x9000);
    }
    let dump = Dump::begun()
        .types(&[
            (1, 9, 0, "Shop.Basket", &[]),
            (2, 9, 0, "Shop.Order<b>", &[]),
            (3, 9, 0, "Shop.Label", &[]),
        ])
        .roots(&[(0x1000, 2, 0)])
        .objects(&objects)
        .references(&references)
        .stop(5)
        .module(9, "/app/shop.dll");
    std::fs::write(folder.join("app.nettrace"), dump.bytes()).unwrap();
    dipc(folder, &["gcdump", "convert", "app.nettrace", "-f", "gcdump", "-o", name]);
}

#[test]
fn growth_between_two_heaps_has_a_bar_for_each_type() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let files = ["before.gcdump", "after.gcdump"];
    write_heap(folder.path(), files[0], 2, true);
    write_heap(folder.path(), files[1], 40, false);
    let diff = |more: &[&str]| dipc(folder.path(), &[&["gcdump", "diff"], &files[..], more].concat());
    let json: Value = serde_json::from_slice(&diff(&["--format", "json"]).stdout).unwrap();
    diff(&["--format", "html", "-o", "growth.html"]);
    let page = folder.path().join("growth.html");
    dipc(folder.path(), &["diff", files[0], files[1], "--format", "html", "-o", "same.html"]);
    let same = std::fs::read_to_string(folder.path().join("same.html")).unwrap();
    assert_eq!(std::fs::read_to_string(&page).unwrap(), same);
    let seen = look(&browser, &page);
    assert_eq!(seen["title"], "before.gcdump → after.gcdump");
    let bytes = |row: &Value, name: &str| row[name].as_i64().unwrap();
    let rows = json["rows"].as_array().unwrap().iter();
    let changed: Vec<_> =
        rows.filter(|row| bytes(row, "bytes_before") != bytes(row, "bytes_after")).collect();
    assert_eq!(seen["rows"].as_u64(), Some(changed.len().min(500) as u64), "{seen}");
    let first = seen["names"][0].as_str().unwrap();
    assert!(first.starts_with(changed[0]["csharp"].as_str().unwrap()), "{first}");
    assert!(
        changed.len() == 3
            && seen["answer"].as_str().unwrap().contains(" more than before: +38 Shop.Order<b>"),
        "{seen}"
    );
}

#[test]
fn owners_and_their_growth_have_bars() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pid = std::process::id().to_string();
    if cfg!(target_os = "linux") {
        dipc(folder.path(), &["memory", "-p", &pid, "--format", "html", "-o", "memory.html"]);
        let seen = look(&browser, &folder.path().join("memory.html"));
        assert!(seen["rows"].as_u64() > Some(3) && seen["colours"].as_u64() > Some(2), "{seen}");
    }
    for (name, bytes) in [("before.json", 30_000_000), ("after.json", 90_000_000)] {
        let text = format!(
            r#"{{"rss_bytes": {}, "unattributed_bytes": 0, "owners": [{{"owner": "native-heap", "bytes": {bytes}}},
            {{"owner": "files", "bytes": {}}}]}}"#,
            100_000_000,
            100_000_000 - bytes
        );
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    dipc(folder.path(), &["diff", "before.json", "after.json", "--format", "html", "-o", "growth.html"]);
    let seen = look(&browser, &folder.path().join("growth.html"));
    assert_eq!((seen["rows"].as_u64(), seen["colours"].as_u64()), (Some(2), Some(2)), "{seen}");
}
