//! The page of a heap: it agrees with the reports.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use prost::Message as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::browser::Browser;
use crate::dipc;
use crate::dump::Dump;

/// A folder with a heap of testdata, unpacked.
fn heap() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    testdata::write("gcdump/files/net10.gcdump.xz", &folder.path().join("app.gcdump"));
    folder
}

/// The page of that heap, and a browser to open it in; none where there is no browser, which is then said.
fn open() -> Option<(TempDir, PathBuf, Browser)> {
    let browser = Browser::find()?;
    let folder = heap();
    dipc(folder.path(), &["gcdump", "convert", "app.gcdump", "-f", "html"]);
    let page = folder.path().join("app.html");
    Some((folder, page, browser))
}

/// The parts of google/pprof's `profile.proto` that a test reads.
#[derive(prost::Message)]
struct PprofProfile {
    #[prost(message, repeated, tag = "2")]
    sample: Vec<PprofSample>,
    #[prost(string, repeated, tag = "6")]
    strings: Vec<String>,
}

#[derive(prost::Message)]
struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
}

#[test]
fn a_heap_profile_has_all_objects_below_their_holders() {
    let folder = heap();
    let report = dipc(folder.path(), &["gcdump", "report", "app.gcdump", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    dipc(folder.path(), &["gcdump", "convert", "app.gcdump", "-f", "pprof"]);
    let mut bytes = Vec::new();
    let packed = File::open(folder.path().join("app.pb.gz")).unwrap();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let profile = PprofProfile::decode(&*bytes).unwrap();
    let sum = |place: usize| profile.sample.iter().map(|sample| sample.values[place]).sum::<i64>();
    assert_eq!((json!(sum(0)), json!(sum(1))), (report["objects"].clone(), report["bytes"].clone()));
    // From the root of all over a group to a type, at least.
    assert!(profile.sample.iter().any(|sample| sample.locations.len() > 4));
    for name in
        ["inuse_objects", "inuse_space", "count", "bytes", "[.NET Roots]", "System.Private.CoreLib.dll"]
    {
        assert!(profile.strings.iter().any(|text| text == name), "{name}: {:?}", profile.strings);
    }
}

#[test]
fn types_trees_and_paths_match_the_reports() {
    let Some((folder, page, browser)) = open() else { return };
    let report = dipc(folder.path(), &["gcdump", "report", "app.gcdump", "--format", "json"]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let paths = ["gcdump", "paths", "app.gcdump", "--type", "string", "--head", "1", "--format", "json"];
    let paths: Value = serde_json::from_slice(&dipc(folder.path(), &paths).stdout).unwrap();
    let seen = browser.drive(
        &page,
        "const seen = { title: document.title, sums: at('summary').textContent };
         seen.tiles = document.querySelectorAll('#map div').length;
         document.querySelector('#map div').click();
         seen.trail = at('trail').querySelectorAll('button').length;
         at('trail').querySelector('button').click();
         seen.back = at('trail').querySelectorAll('button').length;
         at('tab-tree').click();
         const first = at('tree').tBodies[0].rows;
         seen.tree = [...first].slice(0, 2).map(line => [line.node.name, line.node.retained]);
         const before = first.length;
         first[1].click();
         seen.opened = first.length - before;
         first[1].click();
         seen.closed = first.length - before;
         at('tab-types').click();
         seen.types = data.types.slice(0, 50).map(type => [type.name, type.objects, type.bytes, type.retained]);
         at('search').value = 'STRING';
         at('search').dispatchEvent(new Event('input'));
         seen.found = [...at('types').tBodies[0].rows].map(line => line.lastChild.textContent);
         at('search').value = 'string';
         at('search').dispatchEvent(new Event('input'));
         [...at('types').tBodies[0].rows].find(line => line.lastChild.textContent.startsWith('string [')).click();
         seen.path = [...at('paths').querySelector('ol').children].map(step => step.textContent);
         document.querySelector('[data-order=retained]').click();
         seen.retained = [...at('types').tBodies[0].rows].slice(0, 1).map(line => line.lastChild.textContent);
         seen.visible = [...document.querySelectorAll('main section')].filter(part => !part.hidden).map(part => part.id);
         const press = key => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
         const back = () => getComputedStyle(document.body).backgroundColor;
         seen.themes = [0, 1].map(() => { press('d'); return [document.documentElement.dataset.theme, back()]; });
         press('1');
         seen.keyed = [...document.querySelectorAll('main section')].filter(part => !part.hidden).map(part => part.id);
         return seen;",
    );
    // As on the page of a recording.
    assert_eq!(seen["themes"], json!([["light", "rgb(255, 255, 255)"], ["dark", "rgb(22, 24, 29)"]]));
    assert_eq!(seen["keyed"], json!(["view-map"]));
    assert_eq!(seen["title"], "app.gcdump");
    assert!(seen["sums"].as_str().unwrap().contains(" objects of 2.69 MB, "), "{}", seen["sums"]);
    assert!(seen["tiles"].as_u64() > Some(50), "{}", seen["tiles"]);
    assert_eq!((&seen["trail"], &seen["back"]), (&json!(2), &json!(1)));
    assert_eq!(seen["tree"][0], json!(["[.NET Roots]", report["bytes"]]));
    assert!(seen["opened"].as_u64() > Some(0) && seen["closed"] == 0, "{seen}");
    let rows = report["rows"].as_array().unwrap().iter().take(50);
    let rows: Vec<_> =
        rows.map(|row| json!([row["csharp"], row["objects"], row["bytes"], row["retained_bytes"]])).collect();
    assert_eq!(seen["types"], json!(rows));
    let found = seen["found"].as_array().unwrap();
    assert!(found.len() > 3, "{found:?}");
    assert!(found.iter().all(|name| name.as_str().unwrap().to_lowercase().contains("string")), "{found:?}");
    // The root of all roots is not shown.
    let steps = &paths["paths"][0]["csharp"].as_array().unwrap()[1..];
    assert_eq!(seen["path"].as_array().unwrap(), steps);
    assert_eq!(seen["visible"], json!(["view-types"]));
    assert!(std::fs::metadata(&page).unwrap().len() < 5_000_000);
}

#[test]
fn no_name_of_a_type_is_markup() {
    const NAME: &str = "</script><script>globalThis.wasRun=1</script><img src=x onerror=wasRun=1>\u{202e}\u{1b}[2J&quot;\"'`${wasRun=1}";
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let dump = Dump::begun()
        .types(&[(1, 9, 0, NAME, &[])])
        .roots(&[(0x1000, 2, 0)])
        .objects(&[(0x1000, 24, 1, 1), (0x1020, 48, 1, 0)])
        .references(&[0x1020]);
    std::fs::write(folder.path().join("app.nettrace"), dump.stop(5).bytes()).unwrap();
    dipc(folder.path(), &["gcdump", "convert", "app.nettrace", "-f", "html"]);
    let page = folder.path().join("app.html");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(!text.contains("<img") && !text.contains('\u{202e}') && !text.contains('\u{1b}'));
    let seen = browser.drive(
        &page,
        "const shown = [];
         for (const tab of ['map', 'tree', 'types']) { at('tab-' + tab).click(); shown.push(document.body.innerText); }
         at('types').tBodies[0].rows[0].click();
         shown.push(at('paths').innerText);
         return { wasRun: globalThis.wasRun ?? null, images: document.images.length, shown: shown.join(' ') };",
    );
    assert_eq!((&seen["wasRun"], &seen["images"]), (&Value::Null, &json!(0)));
    let shown = seen["shown"].as_str().unwrap();
    assert!(shown.contains("<img src=x") && shown.contains(r"\u202e\u001b[2J"), "{shown}");
}

#[test]
fn type_names_cannot_forge_lines() {
    let folder = tempfile::tempdir().unwrap();
    let dump = Dump::begun()
        .types(&[(1, 9, 0, "A\u{1b}]0;title\u{7}\n  9  Forged\u{202e}B", &[])])
        .roots(&[(0x1000, 2, 0)])
        .objects(&[(0x1000, 24, 1, 0)])
        .stop(5)
        .module(9, "/app/m\n\u{1b}[2J.dll");
    std::fs::write(folder.path().join("app.nettrace"), dump.bytes()).unwrap();
    for format in ["table", "csv", "json", "dotnet-gcdump"] {
        let shown = dipc(folder.path(), &["gcdump", "report", "app.nettrace", "--format", format]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown}");
        assert!(!shown.lines().any(|line| line.starts_with("  9  Forged")), "{shown}");
    }
    let tool = dipc(folder.path(), &["gcdump", "report", "app.nettrace", "--format", "dotnet-gcdump"]);
    let tool = String::from_utf8(tool.stdout).unwrap();
    let row =
        "             24         1  A\\u001b>0;title\\u0007\\n  9  Forged\\u202eB  [m\\n\\u001b<2J.dll]";
    assert_eq!(
        tool.lines().last().map(|line| line.replace('[', "<").replace(']', ">")),
        Some(row.replace('[', "<").replace(']', ">"))
    );
}

#[test]
fn a_long_path_has_its_ends() {
    const OBJECTS: u64 = 2000;
    let folder = tempfile::tempdir().unwrap();
    let names = ["A".repeat(4000), "B".repeat(4000)];
    let address = |object: u64| 0x1000 + 0x20 * object;
    let last = OBJECTS - 1;
    let objects: Vec<_> = (0..OBJECTS)
        .map(|it| (address(it), 24, if it == last { 3 } else { 1 + it % 2 }, u64::from(it < last)))
        .collect();
    let references: Vec<_> = (1..OBJECTS).map(address).collect();
    let dump = Dump::begun()
        .types(&[(1, 9, 0, &names[0], &[]), (2, 9, 0, &names[1], &[]), (3, 9, 0, "End", &[])])
        .roots(&[(address(0), 2, 0)])
        .objects(&objects)
        .references(&references);
    std::fs::write(folder.path().join("app.nettrace"), dump.stop(5).bytes()).unwrap();
    let paths = ["gcdump", "paths", "app.nettrace", "--type", "End", "--format", "json"];
    let json = dipc(folder.path(), &paths).stdout;
    // Two forms of the names of two hundred steps.
    assert!(json.len() < 2 * 200 * 4100, "{} bytes", json.len());
    let json: Value = serde_json::from_slice(&json).unwrap();
    let path = &json["paths"][0];
    let steps = path["steps"].as_array().unwrap();
    // Three groups of roots are the first.
    assert_eq!((steps.len(), path["steps_left_out"].as_u64()), (200, Some(OBJECTS + 3 - 200)));
    assert_eq!((&steps[3], &steps[99], &steps[199]), (&json!(names[0]), &json!(names[0]), &json!("End")));
    assert_eq!(path["csharp"].as_array().map(Vec::len), Some(200));
}
