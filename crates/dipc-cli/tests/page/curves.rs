//! Counters as curves: their values, by `counters read` of the same recording, and what the page does with
//! them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::{LOOK, converted, dipc, open, recording};

const BOTH: &str = "counters/net10-json.nettrace";
const EVENT_COUNTERS: &str = "traces/net8-counters.nettrace";

/// The values of each curve that `counters read` has: name, and values with their times in nanoseconds.
fn reported(folder: &Path) -> BTreeMap<String, Vec<(u64, f64)>> {
    let output = dipc(folder, &["counters", "read", "app.nettrace", "--format", "jsonl"]);
    let mut series = BTreeMap::<_, Vec<_>>::new();
    for line in String::from_utf8(output.stdout).expect("text").lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = |name: &str| line[name].as_str().expect("a text");
        let label = if text("display_name").is_empty() { text("name") } else { text("display_name") };
        let separator = if ["mean", "sum"].contains(&text("kind")) { ':' } else { '=' };
        let tags = line["tags"].as_object().expect("tags").iter();
        let tags: Vec<_> =
            tags.map(|(key, tag)| format!("{key}{separator}{}", tag.as_str().unwrap())).collect();
        let tags = if tags.is_empty() { String::new() } else { format!(" {}", tags.join(",")) };
        let is_gauge = line["name"] == "dotnet.thread_pool.thread.count"
            || line["name"] == "dotnet.thread_pool.queue.length";
        let numbers: &[_] = match text("kind") {
            "sum" => &[("", "rate")],
            "counter" if is_gauge => &[("", "value")],
            "counter" => &[("", "rate"), (" total", "value")],
            "histogram" => &[(" p50", "p50"), (" p95", "p95"), (" p99", "p99"), (" count", "rate")],
            _ => &[("", "value")],
        };
        for (suffix, member) in numbers {
            if let Some(value) = line[member].as_f64() {
                let name = format!("{}: {label}{suffix}{tags}", text("provider"));
                series.entry(name).or_default().push((line["time_ns"].as_u64().expect("a time"), value));
            }
        }
    }
    series
}

/// The points of a curve: number of the bin and of values, least, largest, and the sum.
fn points(curve: &Value) -> Vec<(u64, u64, [f64; 3])> {
    let numbers = curve["points"].as_array().expect("points");
    let (mut at, mut bin, mut points) = (0, 0, Vec::new());
    while at < numbers.len() {
        bin += numbers[at].as_u64().expect("a bin");
        let count = numbers[at + 1].as_u64().expect("a count");
        let places = if count == 1 { [2, 2, 2] } else { [2, 3, 4] };
        points.push((bin, count, places.map(|place| numbers[at + place].as_f64().expect("a value"))));
        at += places[2] + 1;
    }
    points
}

#[test]
fn curves_are_the_values_that_counters_read_has() {
    for (name, least) in [(BOTH, 40), (EVENT_COUNTERS, 20), ("traces/net10-counters.nettrace", 20)] {
        let (folder, data) = converted(name);
        let reported = reported(folder.path());
        let curves = data["curves"].as_array().expect("curves");
        assert_eq!(data["curveCount"], reported.len(), "{name}");
        assert!(curves.len() >= least && curves.len() == reported.len().min(64), "{name}: {}", curves.len());
        for curve in curves {
            let text = |member: &str| curve[member].as_str().expect("a text").to_owned();
            let key = format!("{}: {}", text("provider"), text("name"));
            let values =
                reported.get(&key).unwrap_or_else(|| panic!("{name}: {key} of {:?}", reported.keys()));
            let width = curve["binNs"].as_u64().expect("a width");
            let mut expected = BTreeMap::<u64, Vec<f64>>::new();
            for (time, value) in values {
                expected.entry(time / width).or_default().push(*value);
            }
            let expected: Vec<_> = expected
                .iter()
                .map(|(bin, values)| {
                    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    (*bin, values.len() as u64, [least, most, values.iter().sum()])
                })
                .collect();
            assert_eq!(points(curve), expected, "{name}: {key}");
        }
    }
}

#[test]
fn the_first_lanes_are_cpu_memory_pool_and_exceptions() {
    for (name, expected) in [
        (EVENT_COUNTERS, ["CPU Usage", "Working Set", "GC Heap Size", "ThreadPool Queue Length"].as_slice()),
        (BOTH, &["dotnet.process.cpu.time cpu.mode=user", "dotnet.process.cpu.time cpu.mode=system"]),
    ] {
        let (_folder, data) = converted(name);
        let shown = data["curves"].as_array().expect("curves").iter().filter(|curve| curve["shown"] == true);
        let shown: Vec<_> = shown.map(|curve| curve["name"].as_str().expect("a name")).collect();
        assert_eq!(shown.get(..expected.len()), Some(expected), "{shown:?}");
        assert!((expected.len()..=8).contains(&shown.len()), "{shown:?}");
    }
}

/// Functions of the scripts: the lanes as a reader has them.
const LANES: &str = "
    const lanes = () => [...document.querySelectorAll('#curves .curve')];
    const told = () => lanes().map(lane => ({ name: lane.getAttribute('aria-label'), text: lane.querySelector(':scope > div > span').textContent }));
    const table = () => [...document.querySelectorAll('#countervalues tbody tr')].map(row => ({ name: row.cells[0].textContent, values: [...row.querySelectorAll('td[data-value]')].map(cell => Number(cell.dataset.value)), count: Number(row.cells[4].textContent), provider: row.cells[5].textContent }));
    const openTable = async () => { at('countervalues').parentElement.open = true; await pause(); };
    // Folded at first.
    if (at('counters').hidden) page.toggleCounters();
";

#[test]
fn a_brush_shows_the_values_of_its_time() {
    let Some((folder, page, browser)) = open(BOTH, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{LANES}
            await openTable();
            const whole = {{ ...range(), rows: table(), told: told() }};
            const canvas = document.querySelector('#curves canvas'), area = canvas.getBoundingClientRect(), over = document.querySelector('.u-over').getBoundingClientRect();
            const point = (kind, share) => canvas.dispatchEvent(new PointerEvent(kind, {{ bubbles: true, clientX: area.left + share * area.width, clientY: area.top + 5, button: 0, pointerId: 1 }}));
            point('pointerdown', 0.3); point('pointermove', 0.5); point('pointermove', 0.7); point('pointerup', 0.7);
            const brushed = {{ ...range(), rows: table(), told: told(), moment: at('moment').textContent, caption: at('countervalues').caption.textContent }};
            // Between two values.
            const page_ = globalThis.page, curve = page_.recording.curves[0], bin = (curve.points[1].bin + 1) * curve.factor;
            page_.timeLine.choose(bin, bin + 1);
            const between = told()[0].text, before = curve.text(curve.points[1].mean);
            return {{ whole, brushed, between, before, edges: [area.left - over.left, area.right - over.right] }};"
        ),
    );
    let reported = reported(folder.path());
    for shown in [&seen["whole"], &seen["brushed"]] {
        let (from, to) = (shown["from"].as_u64().unwrap(), shown["to"].as_u64().unwrap());
        let rows = shown["rows"].as_array().unwrap();
        assert!(rows.len() >= 5, "{shown}");
        for (row, told) in rows.iter().zip(shown["told"].as_array().unwrap()) {
            let key = format!("{}: {}", row["provider"].as_str().unwrap(), row["name"].as_str().unwrap());
            let values = reported.get(&key).unwrap_or_else(|| panic!("{key}"));
            let inside = values.iter().filter(|(time, _)| (from..to).contains(time)).map(|(_, value)| *value);
            let inside: Vec<_> = inside.collect();
            assert_eq!(row["count"], inside.len(), "{key}: {shown}");
            assert!(inside.len() > 1, "{key}: {shown}");
            let shown: Vec<_> =
                row["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
            let least = inside.iter().copied().fold(f64::INFINITY, f64::min);
            let most = inside.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            assert_eq!((shown[0], shown[2]), (least, most), "{key}");
            let mean = inside.iter().sum::<f64>() / f64::from(u32::try_from(inside.len()).unwrap());
            assert!((shown[1] - mean).abs() <= mean.abs() * 1e-12, "{key}: {} for {mean}", shown[1]);
            let name = format!("{}, {}", row["name"].as_str().unwrap(), row["provider"].as_str().unwrap());
            assert_eq!(told["name"], name);
            assert!(told["text"].as_str().unwrap().starts_with("least "), "{told}");
        }
    }
    let (whole, brushed) = (&seen["whole"], &seen["brushed"]);
    let length = |shown: &Value| shown["to"].as_f64().unwrap() - shown["from"].as_f64().unwrap();
    let share = length(brushed) / length(whole);
    assert!((0.39..0.41).contains(&share), "{share}");
    assert_ne!(whole["told"], brushed["told"]);
    assert!(brushed["moment"].as_str().unwrap().contains("dotnet.process.cpu.time"), "{brushed}");
    assert!(brushed["caption"].as_str().unwrap().starts_with("Values of counters from "), "{brushed}");
    assert_eq!(seen["between"], format!("no value; {} before", seen["before"].as_str().unwrap()));
    for edge in seen["edges"].as_array().unwrap() {
        assert!(edge.as_f64().unwrap().abs() < 1.0, "lanes and the time line share an axis: {seen}");
    }
}

/// The first screen: what stands out, and the counters in one line.
#[test]
fn findings_are_first_and_counters_are_one_line() {
    let first = "{ findings: [...document.querySelectorAll('#findings li')].map(item => item.textContent), \
                 hidden: at('counters').hidden, strip: at('counterstrip').textContent }";
    let Some((_folder, page, browser)) = open("traces/net10-sample.nettrace", &[]) else { return };
    let seen = browser.drive(&page, &format!("return {first};"));
    // A cause is before the facts.
    let cause = seen["findings"][0].as_str().unwrap_or_default();
    assert!(cause.contains("waits for locks all the time") && cause.contains(" in Parked.Blocked"), "{seen}");
    let finding = seen["findings"][1].as_str().unwrap_or_default();
    assert!(finding.contains("Thread.PollGC.PollGCWorker (called from Spin.Hot)"), "{seen}");
    let Some((_folder, page, browser)) = open(BOTH, &[]) else { return };
    let seen = browser.drive(&page, &format!("return {first};"));
    assert_eq!(seen["hidden"], true, "{seen}");
    let strip = seen["strip"].as_str().unwrap();
    assert!(strip.contains(" MB · ") && !strip.contains(" 0 ·"), "{seen}");
}

#[test]
fn counters_are_chosen_and_named_without_a_mouse() {
    let Some((_folder, page, browser)) = open(BOTH, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{LANES}
            const first = lanes().length, choice = at('counterchoice').parentElement, summary = choice.querySelector('summary');
            summary.focus();
            const focused = document.activeElement === summary;
            summary.click();
            await pause();
            const boxes = [...document.querySelectorAll('#counterchoice input')];
            const box = boxes.find(box => !box.checked);
            box.focus();
            const name = box.parentElement.textContent, more = box === document.activeElement && (box.click(), lanes().length);
            const isThere = told().some(lane => lane.name.startsWith(name)), kept = document.activeElement === box, told_ = summary.textContent;
            box.click();
            const again = lanes().length;
            for (const box of boxes) if (box.checked) box.click();
            const none = lanes().length;
            for (const box of boxes) box.click();
            await openTable();
            const every = {{ lanes: lanes().length, rows: table().length, tall: at('counterchoice').clientHeight }};
            const groups = [...document.querySelectorAll('#counterchoice fieldset')].map(group => group.querySelector('legend').textContent);
            const named = [...document.querySelectorAll('button, input, select, summary, [tabindex], [role=group]')].filter(element => element.offsetParent)
              .filter(element => !(element.getAttribute('aria-label') || element.textContent.trim() || element.closest('label'))).map(element => element.outerHTML);
            const heads = [...document.querySelectorAll('#countervalues th')].every(th => ['row', 'col'].includes(th.scope));
            const hidden = [...document.querySelectorAll('#curves canvas')].every(canvas => canvas.getAttribute('aria-hidden') === 'true');
            const press = key => document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true, cancelable: true }}));
            press('k');
            const closed = at('counters').hidden && at('countersbutton').getAttribute('aria-expanded');
            press('k');
            return {{ first, focused, more, isThere, kept, told: told_, again, none, boxes: boxes.length, every, groups, named, heads, hidden, closed, open: at('countersbutton').getAttribute('aria-expanded') }};"
        ),
    );
    let number = |name: &str| seen[name].as_u64().unwrap_or_else(|| panic!("{name}: {seen}"));
    assert_eq!((number("more"), number("again"), number("none")), (number("first") + 1, number("first"), 0));
    assert_eq!(
        [&seen["focused"], &seen["isThere"], &seen["kept"], &seen["heads"], &seen["hidden"]],
        [&json!(true); 5],
        "{seen}"
    );
    assert_eq!(seen["every"]["lanes"], seen["boxes"]);
    assert_eq!(seen["every"]["rows"], seen["boxes"]);
    let told = format!("Choose counters: {} of {} are shown", number("more"), number("boxes"));
    assert_eq!(seen["told"], told);
    assert_eq!(seen["groups"], json!(["System.Runtime", "Workload-Counters", "Workload.Meter"]));
    assert_eq!(
        (&seen["named"], &seen["closed"], &seen["open"]),
        (&json!([]), &json!("false"), &json!("true"))
    );
}

#[test]
fn lanes_fit_narrow_and_wide_windows_in_light_and_dark() {
    let Some((_folder, page, browser)) = open(BOTH, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{LANES}
            const seen = [], luminance = text => {{
              const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
              return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            }};
            for (const width of [360, 768, 1180]) for (const theme of ['light', 'dark']) {{
              document.body.style.width = width + 'px';
              document.documentElement.dataset.theme = theme;
              page.repaint();
              // As its observer does, for which this browser may have no frame.
              if (page.timeLine.width !== at('plot').clientWidth) page.timeLine.build();
              await pause();
              const canvas = document.querySelector('#curves canvas'), area = canvas.getBoundingClientRect(), over = document.querySelector('.u-over').getBoundingClientRect();
              const [curve, field] = ['curve', 'field'].map(name => page.palette.get(name)), [one, other] = [luminance(curve), luminance(field)].sort((a, b) => b - a);
              // Pixels of the curve's own colour.
              const wanted = curve.match(/[\\d.]+/g).map(Number), {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
              let drawn = 0;
              for (let place = 0; place < data.length; place += 4) if (wanted.slice(0, 3).every((part, index) => Math.abs(data[place + index] - part) < 12)) drawn++;
              seen.push({{ width, theme, fits: area.right <= width + 0.5, aligned: Math.abs(area.left - over.left) < 1 && Math.abs(area.right - over.right) < 1, drawn, contrast: (one + 0.05) / (other + 0.05) }});
            }}
            return seen;"
        ),
    );
    let seen = seen.as_array().expect("a list");
    assert_eq!(seen.len(), 6);
    for shown in seen {
        assert_eq!((&shown["fits"], &shown["aligned"]), (&json!(true), &json!(true)), "{shown}");
        assert!(shown["contrast"].as_f64().unwrap() >= 3.0, "{shown}");
        assert!(shown["drawn"].as_u64().unwrap() > 20, "{shown}");
    }
}

/// Long recordings: what is shown of a part, where bins are wider than the page's.
#[test]
fn peaks_are_found_in_wide_bins_and_masks() {
    let Some((_folder, page, browser)) = open(BOTH, &[]) else { return };
    let seen = browser.drive(
        &page,
        "// Bins of 10 ms of a page with 1 ms: 2 values with a peak, one below zero, one far away.
        const curve = new Curve({ provider: 'P', name: 'n', unit: 'By/s', shown: true, binNs: 1e7, points: [0, 2, 1, 9, 10, 1, 1, -3, 1, 1, 4, 50, 1, 7] }, 0, 1e6);
        const of = (from, to, mask) => { const { count, least, most, mean } = curve.values({ from, to, mask }); return count ? [count, least, mean, most] : 0; };
        const mask = new Uint8Array(600);
        mask[25] = 1;
        return {
          values: [of(0, 600), of(5, 6), of(10, 20), of(9, 11), of(30, 520), of(0, 600, mask), of(30, 40, mask)], low: curve.low, high: curve.high,
          gap: curve.gap, before: curve.at(519).mean, texts: [[1.5, 's/s'], [2e6, 'By'], [3, 'MB'], [0.25, 's'], [4, '{request}/s'], [-1500, 'By'], [5, ''], [5, '/s'], [1e300, 'By'], [12.6, '%']].map(([value, unit]) => quantity(value, unit)) };",
    );
    assert_eq!(
        seen["values"],
        json!([[5, -3, 3.6, 9], [2, 1, 5, 9], [1, -3, -3, -3], [3, -3, 7.0 / 3.0, 9], 0, [1, 4, 4, 4], 0])
    );
    assert_eq!((&seen["low"], &seen["high"], &seen["gap"]), (&json!(-3), &json!(9), &json!(4)));
    assert_eq!(seen["before"], 4);
    assert_eq!(
        seen["texts"],
        json!([
            "150 %",
            "2 MB",
            "3 MB",
            "250 ms",
            "4 request/s",
            "-1.5 KB",
            "5",
            "5 /s",
            "1.00e+300 By",
            "12.6 %"
        ])
    );
}

#[test]
fn a_recording_without_samples_has_its_curves() {
    let Some(browser) = Browser::find() else { return };
    let (folder, path) = recording("counters/net10-csv.nettrace");
    let output = dipc(folder.path(), &["convert", "app.nettrace", "-f", "html"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("the page has no flame graph"));
    let seen = browser.drive(
        &path.with_extension("html"),
        &format!("{LANES} return {{ lanes: told(), tabs: [...at('tabs').children].map(tab => tab.textContent), time: at('time').hidden }};"),
    );
    assert_eq!(seen["time"], false);
    assert!(!seen["tabs"].as_array().expect("tabs").contains(&json!("Methods")), "{seen}");
    let lanes = seen["lanes"].as_array().expect("lanes");
    assert!(lanes.len() > 4 && lanes.iter().all(|lane| lane["text"] != "no value"), "{seen}");
}
