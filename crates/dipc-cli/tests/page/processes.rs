//! Recordings of many processes: each has a lane, which selects it.

use serde_json::Value;

use crate::{LOOK, micros, open, part, report};

const MACHINE: &str = "events/three-processes.nettrace";

#[test]
fn each_process_has_a_lane_with_its_name_and_container() {
    let Some((folder, page, browser)) = open(MACHINE, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const labels = () => [...document.querySelectorAll('#plot button.label')], whole = total();
            const rows = labels().map(label => {{
              label.click();
              const row = {{ name: label.textContent, title: label.title, pressed: label.getAttribute('aria-pressed'), total: total() }};
              label.click();
              return row;
            }});
            const again = total();
            choose(0.5, 1);
            labels()[0].click();
            const chosen = {{ ...range(), total: total() }};
            labels()[0].click();
            at('search').value = 'Spin.Hot';
            at('search').dispatchEvent(new Event('input'));
            const found = at('found').textContent;
            at('whole').click();
            const few = labels().length, drawn = new Set();
            const {{ ctx }} = page.timeLine.plot, fill = ctx.fillRect.bind(ctx);
            ctx.fillRect = (x, y, ...size) => {{ drawn.add(Math.floor((y / (devicePixelRatio || 1) - page.timeLine.lanesTop) / 15)); fill(x, y, ...size); }};
            page.timeLine.drawLanes();
            at('lanes').click();
            return {{ whole, again, rows, chosen, found, few, drawn: drawn.size, all: labels().map(label => label.textContent) }};"
        ),
    );
    let by_process = report(folder.path(), &["topN", "--by", "cpu", "--by-process"]);
    let rows = by_process["processes"].as_array().unwrap();
    let lanes = seen["rows"].as_array().unwrap();
    assert!(rows.len() > 2 && lanes.len() == rows.len(), "{seen}");
    assert_eq!(seen["whole"], seen["again"]);
    for (lane, row) in lanes.iter().zip(rows) {
        // The busiest is first in both.
        let name = format!("{} ({})", row["name"].as_str().unwrap(), row["pid"]);
        assert_eq!((&lane["name"], &lane["pressed"]), (&Value::from(name), &Value::from("true")), "{row}");
        let close = (lane["total"].as_f64().unwrap() - micros(&row["weight"])).abs() < 500.0;
        assert!(close, "{lane}: {row}");
        let group = row["container"].as_str().or(row["control_group"].as_str()).unwrap();
        assert!(lane["title"].as_str().unwrap().ends_with(&format!("\n{group}")), "{lane}: {row}");
    }
    assert!(rows.iter().any(|row| row["container"].is_string()), "{by_process}");
    // A part of the time of one of them.
    let [from, from_time, to, to_time] = part(&seen["chosen"]);
    let pid = rows[0]["pid"].to_string();
    let options = ["topN", "--by", "cpu", "--pid", &pid, &from, &from_time, &to, &to_time];
    let reported = micros(&report(folder.path(), &options)["total"]);
    let shown = seen["chosen"]["total"].as_f64().unwrap();
    // A sample at each edge, of 5.1 ms.
    assert!(reported > 100_000.0 && (shown - reported).abs() < 10_200.0, "{shown}: {reported}");
    assert!(seen["found"].as_str().unwrap().ends_with("% in stacks with it"), "{}", seen["found"]);
    assert!(!seen["found"].as_str().unwrap().starts_with("0 "), "{}", seen["found"]);
    // Their threads are below them on request.
    assert_eq!((&seen["few"], &seen["drawn"]), (&lanes.len().into(), &lanes.len().into()));
    assert!(seen["all"].as_array().unwrap().len() > lanes.len(), "{}", seen["all"]);
}
