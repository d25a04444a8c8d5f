//! The page that `dipc convert -f html` writes, in a real browser: its view of a part of a recording agrees
//! with the reports.
//!
//! A script that is put at the page's end does what a person does, by events of the DOM, and leaves what it
//! sees in the document. Without Chromium these tests say that they were not run; with
//! `$DIPC_REQUIRE_BROWSER` that is a failure.

mod agreement;
mod asynchronous;
mod bars;
#[allow(dead_code, reason = "the page of a monitor is opened from its server")]
mod browser;
mod curves;
mod data;
mod diff;
mod dropped;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../gcdump/tests/dump/mod.rs"]
mod dump;
mod heap;
mod heatmap;
mod hostile;
mod processes;
mod waterfall;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use browser::Browser;
use data::page_data;
use serde_json::Value;
use tempfile::TempDir;

/// A folder with a recording of testdata, unpacked.
fn recording(path: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let recording = folder.path().join("app.nettrace");
    testdata::write(&format!("{path}.xz"), &recording);
    (folder, recording)
}

fn dipc(folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_dipc")).current_dir(folder).args(arguments).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn report(folder: &Path, arguments: &[&str]) -> Value {
    let output = dipc(folder, &[&["report", "app.nettrace"], arguments, &["--format", "json"]].concat());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The data of a recording's page, and the folder with both.
fn converted(path: &str) -> (TempDir, Value) {
    let (folder, recording) = recording(path);
    dipc(folder.path(), &["convert", "app.nettrace", "-f", "html"]);
    let page = std::fs::read_to_string(recording.with_extension("html")).expect("a page");
    (folder, page_data(&page))
}

/// The page of a recording, and a browser to open it in; none where there is no browser, which is then said.
fn open(path: &str, options: &[&str]) -> Option<(TempDir, PathBuf, Browser)> {
    let browser = Browser::find()?;
    let (folder, recording) = recording(path);
    dipc(folder.path(), &[&["convert", "app.nettrace", "-f", "html"], options].concat());
    let page = recording.with_extension("html");
    Some((folder, page, browser))
}

const WEB: &str = "reference/net9-web.nettrace";

fn micros(value: &Value) -> f64 {
    value.as_f64().expect("a number") / 1000.0
}

/// Sorted weights, in microseconds. Each stack of each thread may lack a part of one.
fn assert_same(shown: &Value, reported: &[f64], what: &str) {
    let mut shown: Vec<_> = shown.as_array().unwrap().iter().map(|row| row.as_f64().unwrap()).collect();
    let mut reported = reported.to_vec();
    shown.sort_by(f64::total_cmp);
    reported.sort_by(f64::total_cmp);
    assert_eq!(shown.len(), reported.len(), "{what}");
    assert!(shown.iter().sum::<f64>() > 1000.0, "{what}: {shown:?}");
    for (shown, reported) in shown.iter().zip(&reported) {
        assert!((shown - reported).abs() < 60.0, "{what}: {shown} for {reported}");
    }
}

/// The methods that a report of a part of the time has.
fn methods(folder: &Path, options: &[&str]) -> Value {
    report(folder, &[&["topN", "-n", "100000"], options].concat())
}

fn column(report: &Value, name: &str) -> Vec<f64> {
    let rows = report["rows"].as_array().unwrap().iter();
    // Times below a microsecond on each thread are not on the page.
    rows.filter(|row| row["inclusive"] != 0).map(|row| micros(&row[name])).collect()
}

/// Options for a part of the time, which is in nanoseconds.
fn part(shown: &Value) -> [String; 4] {
    let time = |name: &str| format!("{}ms", shown[name].as_f64().unwrap() / 1e6);
    ["--from".to_owned(), time("from"), "--to".to_owned(), time("to")]
}

/// Functions of the scripts: rows are values of a table's column.
const LOOK: &str = "
    const column = n => [...document.querySelectorAll(`#table tbody td:nth-child(${n})`)].map(td => Number(td.dataset.value ?? 0));
    const cells = n => [...document.querySelectorAll(`#table tbody td:nth-child(${n})`)].map(td => td.textContent);
    const all = () => [...document.querySelectorAll('#table > button')].forEach(button => button.click());
    const tab = id => { at('tab-' + id).click(); all(); };
    const range = () => ({ from: Number(at('range').dataset.fromNs), to: Number(at('range').dataset.toNs) });
    const total = () => Number(at('main').dataset.total);
    const top = () => { tab('top'); return { ...range(), total: total(), self: column(2), total_: column(3), blocked: column(4) }; };
    // All frames, as the report has them.
    if (at('async').checked) at('async').click();
    const choose = (from, to) => { at('from').value = from; at('to').value = to; at('from').dispatchEvent(new Event('change')); };
";

#[test]
fn a_brushed_time_range_matches_its_report() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const whole = top();
            const over = document.querySelector('.u-over'), area = over.getBoundingClientRect();
            const mouse = (kind, x) => over.dispatchEvent(new MouseEvent(kind, {{ bubbles: true, clientX: area.left + x * area.width, clientY: area.top + 40, movementX: 5, movementY: 1, button: 0 }}));
            mouse('mouseenter', 0.74); mouse('mousemove', 0.74); mouse('mousedown', 0.74); mouse('mousemove', 0.76); mouse('mouseup', 0.76);
            await pause();
            const brushed = top();
            at('whole').click();
            const again = top();
            at('idle').click();
            const idle = total();
            at('blocked').click(); at('idle').click();
            return {{ whole, brushed, again, idle, working: total() }};"
        ),
    );
    let whole = methods(folder.path(), &[]);
    assert_eq!(seen["whole"], seen["again"], "all is shown again");
    let brushed = part(&seen["brushed"]).to_vec();
    let options: Vec<_> = brushed.iter().map(String::as_str).collect();
    let length = (seen["brushed"]["to"].as_f64().unwrap() - seen["brushed"]["from"].as_f64().unwrap()) / 1e6;
    assert!((70.0..100.0).contains(&length), "2 % of 4.1 s: {length} ms");
    let reported = methods(folder.path(), &options);
    for (shown, reported) in [(&seen["whole"], &whole), (&seen["brushed"], &reported)] {
        assert_same(&shown["self"], &column(reported, "exclusive"), "exclusive");
        assert_same(&shown["total_"], &column(reported, "inclusive"), "inclusive");
        assert_same(&shown["blocked"], &column(reported, "blocked"), "blocked");
        assert!((shown["total"].as_f64().unwrap() - micros(&reported["total"])).abs() < 500.0);
    }
    let with_idle = methods(folder.path(), &["--idle"]);
    assert!(
        (seen["idle"].as_f64().unwrap() - micros(&with_idle["total"])).abs() < 1000.0,
        "{}",
        seen["idle"]
    );
    let working = micros(&whole["total"]) - micros(&whole["blocked"]);
    assert!((seen["working"].as_f64().unwrap() - working).abs() < 500.0, "{working}: {}", seen["working"]);
}

#[test]
fn requests_collections_and_exceptions_match_the_reports() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const requests = () => {{ tab('requests'); return {{ names: cells(1), counts: column(3), errors: column(5), p50: column(6), p99: column(8), max: column(9) }}; }};
            const tables = () => {{
              const seen = {{ ...range(), requests: requests() }};
              tab('collections'); seen.paused = column(7); seen.starts = column(5);
              tab('exceptions'); seen.types = cells(1); seen.thrown = column(2);
              tab('slowest'); seen.slowest = column(3); seen.began = column(2);
              return seen;
            }};
            const whole = tables();
            choose(3.05, 3.2);
            return {{ whole, chosen: tables() }};"
        ),
    );
    let reported = report(folder.path(), &["requests", "--slowest", "1000"]);
    let whole = &seen["whole"]["requests"];
    let rows: Vec<_> = reported["rows"].as_array().unwrap().iter().filter(|row| row["count"] != 0).collect();
    assert_eq!(whole["names"].as_array().unwrap().len(), rows.len());
    let numbers = |list: &Value| -> Vec<f64> {
        list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
    };
    let mut found = 0;
    for row in rows.iter().filter(|row| row["role"] == "server") {
        let names = whole["names"].as_array().unwrap();
        let Some(place) = names.iter().position(|name| *name == row["name"]) else { continue };
        found += 1;
        let (counts, errors) = (numbers(&whole["counts"]), numbers(&whole["errors"]));
        assert!((counts[place] - row["count"].as_f64().unwrap()).abs() < f64::EPSILON, "{row}");
        assert!((errors[place] - row["errors"].as_f64().unwrap()).abs() < f64::EPSILON, "{row}");
        for (column, name) in [("p50", "p50_ns"), ("p99", "p99_ns"), ("max", "max_ns")] {
            let (shown, exact) = (numbers(&whole[column])[place], row["latencies"][name].as_f64().unwrap());
            assert!((shown / exact - 1.0).abs() < 0.03, "{column}: {shown} for {exact}");
        }
    }
    assert!(found >= 5, "{found} routes of {whole}");

    let gc = report(folder.path(), &["gc"]);
    let pauses: Vec<_> =
        gc["collections"].as_array().unwrap().iter().map(|row| micros(&row["pause_ns"]).floor()).collect();
    assert_eq!(numbers(&seen["whole"]["paused"]), pauses);

    let chosen = &seen["chosen"];
    let options = part(chosen);
    let options: Vec<_> = options.iter().map(String::as_str).collect();
    for (shown, options) in [(&seen["whole"], &[][..]), (chosen, &options[..])] {
        let exceptions = report(folder.path(), &[&["exceptions"], options].concat());
        let types = exceptions["types"].as_array().unwrap();
        let mut expected: Vec<_> = types.iter().map(|row| row["count"].as_f64().unwrap()).collect();
        let mut thrown = numbers(&shown["thrown"]);
        expected.sort_by(f64::total_cmp);
        thrown.sort_by(f64::total_cmp);
        assert_eq!(thrown, expected);
        // Every one of the slowest that began in that time.
        let (from, to) = (shown["from"].as_i64().unwrap(), shown["to"].as_i64().unwrap());
        let began = |row: &&Value| (from..to).contains(&row["start_ns"].as_i64().unwrap());
        let slowest = reported["slowest"].as_array().unwrap().iter().filter(began);
        let mut expected: Vec<_> = slowest.map(|row| micros(&row["duration_ns"]).floor() * 1000.0).collect();
        let mut slowest = numbers(&shown["slowest"]);
        expected.sort_by(f64::total_cmp);
        slowest.sort_by(f64::total_cmp);
        assert_eq!(slowest, expected);
    }
    let (all, some) = (&seen["whole"]["slowest"], &chosen["slowest"]);
    assert!(
        some.as_array().unwrap().len() < all.as_array().unwrap().len()
            && !some.as_array().unwrap().is_empty()
    );
}

#[test]
fn wider_bins_have_the_requests_of_all_touched_bins() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const requests = () => {{ tab('requests'); return {{ ...range(), names: cells(1), counts: column(3), rates: column(4), max: column(9), note: document.querySelector('#table .note')?.textContent ?? '' }}; }};
            choose(3, 3.2);
            const exact = requests();
            const r = page.recording;
            r.spanBinNs = 100 * r.binNs;
            for (const cells of [r.spans, r.spanParts]) cells.bins = cells.bins.map(bin => Math.floor(bin / 100));
            choose(3.05, 3.17);
            const wide = requests();
            at('whole').click();
            const whole = requests();
            return {{ exact, wide, whole }};"
        ),
    );
    let [exact, wide] = ["exact", "wide"].map(|name| &seen[name]);
    assert!(!exact["names"].as_array().unwrap().is_empty(), "{seen}");
    for column in ["names", "counts", "rates", "max"] {
        assert_eq!(exact[column], wide[column], "{column}");
    }
    assert_eq!((&wide["from"], &wide["to"]), (&3_050_000_000u64.into(), &3_170_000_000u64.into()));
    let note = wide["note"].as_str().unwrap();
    assert!(note.starts_with("All requests from 3 s up to 3.2 s"), "{note}");
    assert_eq!((&exact["note"], &seen["whole"]["note"]), (&"".into(), &"".into()));
}

/// The copied rows of a table, by the titles of its columns.
fn copied(text: &Value, title: &str) -> Vec<String> {
    let mut lines = text.as_str().unwrap().lines().map(|line| line.split('\t'));
    let titles = lines.next().unwrap().collect::<Vec<_>>();
    let place =
        titles.iter().position(|each| *each == title).unwrap_or_else(|| panic!("{title} in {titles:?}"));
    lines.map(|mut line| line.nth(place).unwrap().to_owned()).collect()
}

#[test]
fn copied_text_is_exact_and_has_units() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const copies = {{ flame: page.copyText() }};
            for (const {{ id }} of page.tabs.slice(2)) {{ tab(id); copies[id] = page.copyText(); }}
            return copies;"
        ),
    );
    let sum = |texts: Vec<String>| texts.iter().map(|text| text.parse::<f64>().unwrap()).sum::<f64>();
    let reported = methods(folder.path(), &[]);
    let total = reported["total"].as_f64().unwrap();
    for table in ["top", "flame"] {
        let own = sum(copied(&seen[table], "Self (ns)"));
        assert!((own - total).abs() < 500_000.0, "{table}: {own} of {total} ns");
    }
    let gc = report(folder.path(), &["gc"]);
    let rows = gc["collections"].as_array().unwrap();
    let expected: Vec<_> =
        rows.iter().map(|row| (row["pause_ns"].as_u64().unwrap() / 1000 * 1000).to_string()).collect();
    assert_eq!(copied(&seen["collections"], "Paused (ns)"), expected);
    let sizes: Vec<_> = rows.iter().map(|row| row["after_bytes"].to_string()).collect();
    assert_eq!(copied(&seen["collections"], "After (bytes)"), sizes);
    let titles: Vec<_> = ["requests", "slowest", "threads", "exceptions"]
        .map(|name| seen[name].as_str().unwrap().lines().next().unwrap().to_owned())
        .to_vec();
    assert_eq!(
        titles,
        [
            "Name\tKind\tCount\tPer second\tErrors\tp50 (ns)\tp90 (ns)\tp99 (ns)\tLongest (ns)\tWhere the time went",
            "Name\tStart (ns)\tDuration (ns)\tStatus\tWhere the time went",
            "Thread\tId\tWorking (ns)\tBlocked (ns)\tIdle (ns)",
            "Type\tThrown\tFirst message\tFirst (ns)\tLast (ns)",
        ]
    );
}

#[test]
fn search_switches_callers_copy_and_export() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const search = text => {{ at('search').value = text; at('search').dispatchEvent(new Event('input')); return at('found').textContent; }};
            const found = search('/Monitor.Wait[(]/'), wrong = search('/(/'), none = search('no such method');
            tab('top');
            search('Monitor.Wait');
            const rows = cells(1);
            search('');
            const blocked = cells(1);
            tab('flame');
            const depth = () => page.flame.rows.length, before = depth(), sum = total();
            at('async').click();
            const folded = {{ depth: depth(), total: total(), plumbing: page.weights.top().filter(row => /AsyncMethodBuilderCore|MoveNext/.test(page.weights.tree.names[row.name])).length }};
            const written = page.weights.top().some(row => page.weights.tree.names[row.name].includes('HttpProtocol.ProcessRequests'));
            at('async').click();
            at('frames').value = 'mine'; at('frames').dispatchEvent(new Event('change'));
            const mine = {{ total: total(), kinds: [...new Set(page.weights.top().map(row => page.weights.tree.kind(row.name)))] }};
            at('frames').value = 'all'; at('frames').dispatchEvent(new Event('change'));
            at('bythread').click();
            const threads = page.flame.root.kids.map(box => page.flame.text(box));
            at('bythread').click();
            tab('top');
            document.querySelector('#table tbody tr').click();
            const callers = {{ tab: at('main').dataset.tab, method: at('detail').querySelector('b').textContent, first: page.flame.text(page.flame.zoom) }};
            let copied, svg;
            Object.defineProperty(navigator, 'clipboard', {{ value: {{ writeText: async text => {{ copied = text; }} }} }});
            at('copy').click();
            tab('flame');
            URL.createObjectURL = blob => {{ svg = blob; return '#'; }};
            at('svg').click();
            const text = await svg.text(), parsed = new DOMParser().parseFromString(text, 'image/svg+xml');
            const image = {{ rects: parsed.querySelectorAll('rect').length, error: !!parsed.querySelector('parsererror'), titles: [...parsed.querySelectorAll('title')].map(title => title.textContent).slice(0, 3) }};
            tab('threads');
            const rowsOfThreads = cells(1).length;
            document.querySelector('#table tbody tr').click();
            const one = {{ total: total(), working: column(3)[0], waiting: column(4)[0], chosen: document.querySelectorAll('tr[aria-selected=true]').length }};
            return {{ found, wrong, none, rows, blocked, before, sum, folded, written, mine, threads, callers, copied, image, rowsOfThreads, one }};"
        ),
    );
    let report = methods(folder.path(), &["--inclusive"]);
    let waits = report["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["frame"].as_str().unwrap().contains("Monitor.Wait("));
    let percent = waits.unwrap()["inclusive_percent"].as_f64().unwrap();
    let found = seen["found"].as_str().unwrap().strip_suffix("% in stacks with it").unwrap();
    assert!((found.parse::<f64>().unwrap() - percent).abs() < 0.02, "{found} for {percent}");
    assert_eq!(
        (&seen["wrong"], &seen["none"]),
        (&"not a regular expression".into(), &"0.00% in stacks with it".into())
    );
    let rows = seen["rows"].as_array().unwrap();
    assert!(
        !rows.is_empty() && rows.iter().all(|row| row.as_str().unwrap().contains("Monitor.Wait")),
        "{rows:?}"
    );
    assert!(seen["blocked"].as_array().unwrap().len() > rows.len());

    let without_plumbing = &seen["folded"];
    assert!(without_plumbing["depth"].as_u64() < seen["before"].as_u64(), "{without_plumbing}");
    assert_eq!(
        (&without_plumbing["total"], &without_plumbing["plumbing"]),
        (&seen["sum"], &0.into()),
        "no time is lost by folding"
    );
    assert_eq!(seen["written"], true, "async methods have their own names");
    assert_eq!(seen["mine"]["total"], seen["sum"]);
    let kinds = seen["mine"]["kinds"].as_array().unwrap();
    assert!(
        kinds.iter().all(|kind| kind == "mine" || kind == "other") && kinds.contains(&"mine".into()),
        "{kinds:?}"
    );
    assert!(
        seen["threads"].as_array().unwrap().iter().all(|name| name.as_str().unwrap().starts_with("Thread ("))
    );

    let callers = &seen["callers"];
    assert_eq!(callers["tab"], "callers");
    assert!(
        callers["method"] == callers["first"] && callers["first"].as_str().unwrap().contains("Monitor.Wait"),
        "{callers}"
    );
    assert!(seen["copied"].as_str().unwrap().contains("Monitor.Wait"), "{}", seen["copied"]);
    let image = &seen["image"];
    assert!(image["error"] == false && image["rects"].as_u64().unwrap() > 100, "{image}");
    assert!(image["titles"][0].as_str().unwrap().starts_with("all: 5"), "{image}");

    let one = &seen["one"];
    assert_eq!(
        (&one["chosen"], one["working"].as_f64().unwrap() + one["waiting"].as_f64().unwrap()),
        (&1.into(), one["total"].as_f64().unwrap())
    );
    assert!(seen["rowsOfThreads"].as_u64().unwrap() > 5);
}

#[test]
fn keys_match_the_mouse() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const press = (key, target = document.body, more = {{}}) => target.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true, cancelable: true, ...more }}));
            press('3');
            const third = at('main').dataset.tab;
            press('1');
            press('/');
            const searching = document.activeElement.id;
            press('Escape', at('search'));
            const before = range();
            press('ArrowLeft', at('plot'));
            const shorter = range();
            press('ArrowRight', at('plot'));
            const moved = range();
            press('ArrowLeft', at('plot'), {{ shiftKey: true }});
            const shortest = range();
            press('Escape', at('plot'));
            const whole = range();
            press('ArrowDown', at('graph')); press('ArrowDown', at('graph')); press('Enter', at('graph'));
            const zoomed = page.flame.zoom.depth;
            press('Escape');
            const out = page.flame.zoom.depth;
            press('i');
            const idle = at('idle').checked;
            const colour = () => getComputedStyle(document.body).backgroundColor;
            press('d'); const light = colour();
            press('d'); const dark = colour();
            press('?');
            const notes = [...document.querySelectorAll('#notes li')].map(note => note.textContent);
            return {{ third, searching, before, shorter, moved, shortest, whole, zoomed, out, idle, light, dark, isOpen: !at('about').hidden, notes }};"
        ),
    );
    assert_eq!((&seen["third"], &seen["searching"]), (&"top".into(), &"search".into()));
    let length = |name: &str| seen[name]["to"].as_f64().unwrap() - seen[name]["from"].as_f64().unwrap();
    assert!(length("shorter") < length("before") && length("shortest") < length("moved"), "{seen}");
    assert_eq!(seen["whole"], seen["before"]);
    assert!(
        seen["zoomed"].as_u64().unwrap() >= 1
            && seen["out"].as_u64().unwrap() < seen["zoomed"].as_u64().unwrap()
    );
    assert_eq!(seen["idle"], true);
    assert!(seen["light"] == "rgb(255, 255, 255)" && seen["dark"] == "rgb(22, 24, 29)", "{seen}");
    assert_eq!(seen["isOpen"], true);
    let notes = seen["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note.as_str().unwrap().contains("bins of 1 ms")), "{notes:?}");
}

#[test]
fn a_flame_graph_is_the_page_without_time() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    dipc(folder.path(), &["convert", "app.nettrace", "-f", "flamegraph", "-o", "app.html"]);
    let seen = browser.drive(
        &page,
        "return { hasTime: !at('time').hidden, tabs: [...at('tabs').children].map(tab => tab.textContent), total: Number(at('main').dataset.total) };",
    );
    assert_eq!(
        (&seen["hasTime"], &seen["tabs"]),
        (&false.into(), &serde_json::json!(["Flame graph", "Callers", "Methods", "Threads"]))
    );
    let reported = methods(folder.path(), &[]);
    assert!((seen["total"].as_f64().unwrap() - micros(&reported["total"])).abs() < 500.0);
    let data = page_data(&std::fs::read_to_string(&page).unwrap());
    assert_eq!(data["bins"], 1);
}

/// Recordings of every kind open without an error in a script, and show the reports' sums.
#[test]
fn every_kind_of_recording_has_its_page() {
    for (path, options, metric) in [
        ("traces/net10-all.nettrace", &[][..], "wall"),
        ("traces/v6-record-trace.nettrace", &[], "cpu"),
        ("traces/net9-joined.nettrace", &[], "wall"),
        ("traces/net9-kernel.nettrace", &[], "cpu"),
        ("traces/net9-kernel.nettrace", &["--by", "off-cpu"], "off-cpu"),
        ("traces/net10-gcverbose.nettrace", &["--by", "alloc"], "alloc"),
        ("traces/net10-exceptions.nettrace", &["--by", "exception"], "exception"),
    ] {
        let Some((folder, page, browser)) = open(path, options) else { return };
        let seen = browser.drive(&page, "return { total: Number(at('main').dataset.total), scale: page.recording.scale, tab: at('main').dataset.tab, rows: page.flame.rows.length };");
        let reported = methods(folder.path(), &["--by", metric]);
        let total = reported["total"].as_f64().unwrap() / seen["scale"].as_f64().unwrap();
        let shown = seen["total"].as_f64().unwrap();
        assert!((shown - total).abs() <= total / 1000.0 && total > 0.0, "{path}: {shown} of {total}");
        assert!(seen["tab"] == "flame" && seen["rows"].as_u64().unwrap() > 2, "{path}: {seen}");
    }
    // No samples, but collections.
    let Some((folder, page, browser)) = open("traces/net9-background.nettrace", &[]) else { return };
    let runtime = ["--provider", "Microsoft-Windows-DotNETRuntime"];
    dipc(folder.path(), &[&["edit", "app.nettrace", "-o", "gc.nettrace"], &runtime[..]].concat());
    dipc(folder.path(), &["convert", "gc.nettrace", "-f", "html", "-o", "app.html"]);
    let seen = browser.drive(&page, "return { tab: at('main').dataset.tab, notes: at('notes').textContent, bands: page.timeLine.bands.map(band => band.label) };");
    assert_eq!(seen["tab"], "collections", "{seen}");
    assert!(seen["notes"].as_str().unwrap().contains("has no samples of threads"), "{seen}");
    assert!(seen["bands"].as_array().unwrap().contains(&"GC pauses".into()), "{seen}");
}

/// The page opens on CPU time, the busiest thread first. Threads that could run and had no processor are
/// apart from those that waited, in lanes, tables and graph.
#[test]
fn the_kernels_samples_have_lanes_of_work_waits_and_readiness() {
    let Some((folder, page, browser)) = open("traces/net9-kernel.nettrace", &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const r = page.recording, colours = new Set(), {{ ctx }} = page.timeLine.plot;
            const fill = ctx.fillRect.bind(ctx);
            ctx.fillRect = (...box) => {{ colours.add(ctx.fillStyle); fill(...box); }};
            page.timeLine.drawLanes();
            const hex = name => {{ const before = ctx.fillStyle; ctx.fillStyle = page.palette.get(name); const value = ctx.fillStyle; ctx.fillStyle = before; return value; }};
            tab('threads');
            const titles = [...document.querySelectorAll('#table thead th')].map(th => th.textContent.trim());
            const sums = [3, 4, 5].map(n => column(n).reduce((a, b) => a + b, 0));
            tab('flame');
            const working = total(), legend = at('legend').textContent, series = page.timeLine.bands[0].series.map(({{ name }}) => name);
            at('blocked').click();
            return {{ states: r.states, scale: r.scale, titles, sums, whole: total(), working, legend, series, lanes: page.timeLine.busiest.map(lane => lane.sum(WORKING)), kinds: [...new Set(r.kinds)],
              drawn: ['working', 'ready', 'waiting', 'resting'].map(name => colours.has(hex(name))) }};"
        ),
    );
    assert_eq!(seen["drawn"], serde_json::json!([true, true, true, true]), "{seen}");
    let wall = methods(folder.path(), &["--by", "wall"]);
    let cpu = micros(&methods(folder.path(), &["--by", "cpu"])["total"]);
    let close = |shown: &Value, expected: f64| (shown.as_f64().unwrap() - expected).abs() < 500.0;
    assert!(close(&seen["whole"], micros(&wall["total"])), "{seen}");
    assert!(close(&seen["working"], cpu), "{seen}");
    assert_eq!(seen["series"], serde_json::json!(["working"]), "waits are shown on request");
    let lanes: Vec<_> = seen["lanes"].as_array().unwrap().iter().map(|lane| lane.as_f64().unwrap()).collect();
    assert!(lanes[0] > 0.0 && lanes.is_sorted_by(|one, other| one >= other), "{seen}");
    let titles: Vec<_> = seen["titles"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert!(titles.iter().any(|title| title.starts_with("Ready")), "{titles:?}");
    let [working, blocked, ready] = [0, 1, 2].map(|at| seen["sums"][at].as_f64().unwrap());
    assert!((working - cpu).abs() < 500.0, "{seen}");
    assert!((blocked + ready - micros(&wall["blocked"])).abs() < 500.0, "{seen}");
    // The workload slept for 220 ms; its 250 ms of computing had the processor for the rest.
    assert!((220_000.0..240_000.0).contains(&blocked) && ready > 300_000.0, "{seen}");
    let legend = seen["legend"].as_str().unwrap();
    for name in ["kernel", "runtime", "native", "ready to run"] {
        assert!(legend.contains(name), "{legend}");
    }
}

/// Of allocations alone the flame graph is of these.
#[test]
fn a_page_without_thread_samples_shows_the_other_data() {
    let (folder, _) = recording("traces/net10-gcverbose.nettrace");
    let convert = |options: &[&str]| {
        let arguments = [&["convert", "app.nettrace", "-f", "html", "-o", "page.html"], options].concat();
        let run =
            Command::new(env!("CARGO_BIN_EXE_dipc")).current_dir(folder.path()).args(arguments).output();
        let run = run.expect("the program runs");
        let page = std::fs::read_to_string(folder.path().join("page.html")).expect("a page");
        (run.status.code(), String::from_utf8(run.stderr).expect("a text"), page)
    };
    let (code, messages, page) = convert(&[]);
    assert_eq!(code, Some(0), "{messages}");
    assert!(messages.contains("no samples of threads: the flame graph is of"), "{messages}");
    let (data, allocated) = (page_data(&page), report(folder.path(), &["topN", "--by", "alloc"]));
    assert_eq!(data["unit"], "bytes");
    assert!(data["samples"].as_u64() > Some(0) && allocated["total"].as_u64() > Some(0), "{allocated}");
    // A metric without events is an error, and leaves the page that is there.
    for metric in ["contention", "wall"] {
        let (code, messages, left) = convert(&["--by", metric]);
        assert_eq!(code, Some(1), "{messages}");
        assert!(messages.contains("the recording has no "), "{messages}");
        assert!(left == page, "another page");
    }
}

/// Two collections that begin within a millisecond have different starts, and a name without room for its
/// parameters shows that it has some.
#[test]
fn times_and_names_are_not_cut_without_a_sign() {
    let Some((folder, page, browser)) = open("traces/net9-background.nettrace", &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            tab('collections');
            const starts = cells(5).map(cell => cell.split(' ')[0]);
            const fitting = (name, width) => fit(name, width * 6, label => label.length * 6);
            tab('flame');
            const box = page.flame.root.kids[0];
            page.flame.pick(box);
            return {{ starts, title: at('graph').title, name: page.flame.text(box), names: [
              fitting('App!Shop.Loader.LoadProjectIntoConfiguration(A, B, C, D)', 50), fitting('App!Shop.Loader.LoadProjectIntoConfiguration(A, B, C, D)', 42),
              fitting('App!Shop.Loader.Run()', 12), fitting('App!Shop.Loader.Run', 10)] }};"
        ),
    );
    let collections = report(folder.path(), &["gc"]);
    let rows = collections["collections"].as_array().unwrap().iter();
    let starts: Vec<f64> = rows.map(|row| micros(&row["start_ns"]).floor() / 1e6).collect();
    let apart = starts.windows(2).map(|two| two[1] - two[0]).fold(f64::MAX, f64::min);
    assert!(apart < 0.01, "{starts:?}");
    let shown: Vec<f64> = seen["starts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|start| start.as_str().unwrap().parse().unwrap())
        .collect();
    assert_eq!(shown, starts);
    assert_eq!(
        seen["names"],
        serde_json::json!([
            "Loader.LoadProjectIntoConfiguration(A, B, C, D)",
            "Loader.LoadProjectIntoConfiguration(…)",
            "Loader.Run()",
            "Loader.Run"
        ])
    );
    assert_eq!(seen["title"], seen["name"]);
}
