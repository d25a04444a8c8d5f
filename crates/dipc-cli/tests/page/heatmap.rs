//! The heat map of a page: its cells against reports of the same parts of the time, by mouse and by keys.

use serde_json::{Value, json};

use crate::{LOOK, WEB, assert_same, column, methods, micros, open, part};

/// Functions of the scripts: a cell by its number, as a person clicks it.
const HEAT: &str = "
    const map = () => page.heatMap, canvas = () => at('heatmap');
    const place = cell => { const area = canvas().getBoundingClientRect(), m = map(), rows = m.grid.rows;
      return { clientX: area.left + m.left + (Math.floor(cell / rows) + 0.5) * m.cell[0], clientY: area.top + (cell % rows + 0.5) * m.cell[1] }; };
    const point = (kind, cell, more = {}) => canvas().dispatchEvent(new PointerEvent(kind, { bubbles: true, pointerId: 1, button: 0, ...place(cell), ...more }));
    const drag = (from, to, more) => { point('pointerdown', from, more); point('pointermove', to, more); point('pointerup', to, more); };
    const press = (key, more = {}) => canvas().dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
    const hottest = () => [...map().values.keys()].sort((a, b) => map().values[b] - map().values[a]);
    const chosen = () => map().chosen ? [...map().chosen.keys()].filter(cell => map().chosen[cell]) : [];
";

#[test]
fn selected_cells_match_the_reports_of_their_times() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{HEAT}
            const whole = top();
            at('heatbutton').click();
            await pause();
            const [first, ...others] = hottest(), second = others.find(cell => Math.abs(cell - first) > 5);
            drag(first, first);
            const one = {{ ...top(), chosen: chosen(), text: at('cell').textContent }};
            drag(second, second, {{ ctrlKey: true }});
            const two = {{ ...top(), chosen: chosen().length, told: at('chosen').textContent }};
            tab('threads');
            two.threads = column(3).reduce((a, b) => a + b, 0) + column(4).reduce((a, b) => a + b, 0);
            drag(first, first, {{ ctrlKey: true }});
            const left = {{ ...top(), chosen: chosen() }};
            const rows = map().grid.rows;
            drag(rows + 10, 3 * rows + 19);
            const block = {{ ...top(), chosen: chosen().length }};
            at('whole').click();
            return {{ whole, first, second, one, two, left, block, again: top(), cells: map().grid.cells, rows, cellNs: map().grid.cellNs, sum: map().values.reduce((a, b) => a + b, 0) }};"
        ),
    );
    assert_eq!((&seen["rows"], &seen["cellNs"]), (&100.into(), &10_000_000.into()));
    assert_eq!(
        (&seen["one"]["chosen"], &seen["left"]["chosen"]),
        (&json!([seen["first"]]), &json!([seen["second"]]))
    );
    assert!(seen["one"]["text"].as_str().unwrap().ends_with("chosen"), "{}", seen["one"]["text"]);
    let of = |shown: &Value| {
        let options = part(shown);
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        methods(folder.path(), &options)
    };
    let (one, other) = (of(&seen["one"]), of(&seen["left"]));
    for (shown, reported) in [(&seen["one"], &one), (&seen["left"], &other)] {
        let length = shown["to"].as_f64().unwrap() - shown["from"].as_f64().unwrap();
        assert!((length - 1e7).abs() < 1.0, "{length} ns");
        assert_same(&shown["self"], &column(reported, "exclusive"), "exclusive");
        assert_same(&shown["total_"], &column(reported, "inclusive"), "inclusive");
    }
    // Two cells with others between them: what lies between does not count.
    let two = &seen["two"];
    let both = micros(&one["total"]) + micros(&other["total"]);
    assert!((two["total"].as_f64().unwrap() - both).abs() < 500.0, "{both}: {two}");
    assert_eq!((&two["chosen"], &two["threads"]), (&2.into(), &two["total"]));
    assert!(two["told"].as_str().unwrap().contains("2 cells"), "{two}");
    let hull = of(two);
    assert!(micros(&hull["total"]) > both * 1.5, "{hull}: more was between");
    // Ten rows of each of three columns.
    assert_eq!(seen["block"]["chosen"], 30);
    let rows = [("1.1s", "1.2s"), ("2.1s", "2.2s"), ("3.1s", "3.2s")].map(|(from, to)| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dipc"));
        let arguments = ["report", "app.nettrace", "topN", "--from", from, "--to", to, "--format", "json"];
        let output = command.current_dir(folder.path()).args(arguments).output().unwrap();
        // There is no report of a time without samples.
        let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| json!({"total": 0}));
        micros(&report["total"])
    });
    let (shown, expected) = (seen["block"]["total"].as_f64().unwrap(), rows.iter().sum::<f64>());
    assert!((shown - expected).abs() < 500.0 && expected > 0.0, "{shown} for {expected}");
    assert_eq!(seen["again"], seen["whole"]);
    assert_eq!(seen["sum"], seen["whole"]["total"], "every sample is in a cell");
}

#[test]
fn cells_are_reached_and_named_without_a_mouse() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{HEAT}
            const whole = range();
            document.body.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'h', bubbles: true, cancelable: true }}));
            canvas().focus();
            await pause();
            const texts = [at('cell').textContent];
            press('ArrowDown'); press('ArrowRight');
            texts.push(at('cell').textContent);
            press(' ');
            const one = {{ ...range(), chosen: chosen() }};
            press('ArrowRight'); press(' ');
            const two = chosen();
            press(' ');
            const removed = chosen();
            press('ArrowDown', {{ shiftKey: true }}); press('ArrowDown', {{ shiftKey: true }}); press('ArrowRight', {{ shiftKey: true }});
            const block = chosen();
            for (let i = 0; i < 300; i++) press('ArrowUp');
            for (let i = 0; i < 300; i++) press('ArrowLeft');
            const corner = map().cursor;
            for (let i = 0; i < 300; i++) {{ press('ArrowRight'); press('ArrowDown'); }}
            const end = map().cursor[0] * map().grid.rows + map().cursor[1];
            const focus = document.activeElement.id;
            press('Escape');
            const escaped = range();
            const named = [...document.querySelectorAll('button, input, select, [tabindex], [role=application], [role=tab]')].filter(element => element.offsetParent)
              .filter(element => !(element.getAttribute('aria-label') || element.textContent.trim() || element.closest('label'))).map(element => element.outerHTML);
            const heading = canvas().getAttribute('aria-label'), described = at(canvas().getAttribute('aria-describedby')).getAttribute('role');
            const open = at('heatbutton').getAttribute('aria-expanded');
            at('heatbutton').click();
            return {{ whole, texts, one, two, removed, block, corner, end, cells: map().grid.cells, focus, escaped, named, heading, described, open, closed: at('heat').hidden && at('heatbutton').getAttribute('aria-expanded') }};"
        ),
    );
    let texts: Vec<_> = seen["texts"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    assert!(
        texts[0].starts_with("0 s to 0.01 s: ") && texts[1].starts_with("1.01 s to 1.02 s: "),
        "{texts:?}"
    );
    let one = &seen["one"];
    assert_eq!((&one["from"], &one["to"]), (&1_010_000_000u64.into(), &1_020_000_000u64.into()));
    assert_eq!(
        [&one["chosen"], &seen["two"], &seen["removed"], &seen["block"]],
        [&json!([101]), &json!([101, 201]), &json!([101]), &json!([201, 202, 203, 301, 302, 303])]
    );
    assert_eq!((&seen["corner"], &seen["focus"]), (&json!([0, 0]), &"heatmap".into()));
    // No key leaves the cells.
    assert!(seen["end"].as_u64() < seen["cells"].as_u64(), "{seen}");
    assert_eq!((&seen["escaped"], &seen["named"]), (&seen["whole"], &json!([])));
    let heading = seen["heading"].as_str().unwrap();
    assert!(heading.contains("a column is 1 s, a row 10 ms"), "{heading}");
    assert_eq!(
        (&seen["described"], &seen["open"], &seen["closed"]),
        (&"status".into(), &"true".into(), &"false".into())
    );
}

#[test]
fn the_map_fits_narrow_and_wide_windows_in_light_and_dark() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}{HEAT}
            at('heatbutton').click();
            const hot = hottest()[0], colour = cell => {{
              const m = map(), ratio = devicePixelRatio, grid = m.grid, x = m.left + (Math.floor(cell / grid.rows) + 0.5) * m.cell[0], y = (cell % grid.rows + 0.5) * m.cell[1];
              return [...canvas().getContext('2d').getImageData(Math.floor(x * ratio), Math.floor(y * ratio), 1, 1).data].join(' ');
            }};
            const seen = [];
            for (const width of [360, 768, 1180]) for (const theme of ['light', 'dark']) {{
              document.body.style.width = width + 'px';
              document.documentElement.dataset.theme = theme;
              page.repaint();
              await pause(); await pause();
              const area = canvas().getBoundingClientRect(), m = map();
              const cold = [...m.values.keys()].find(cell => !m.values[cell]);
              const before = colour(hot);
              drag(hot, hot);
              const after = colour(hot);
              at('whole').click();
              seen.push({{ width, theme, fits: area.right <= width, columns: m.left + m.cell[0] * m.grid.columns <= area.width, before, after, cold: colour(cold) }});
            }}
            return seen;"
        ),
    );
    let seen = seen.as_array().unwrap();
    assert_eq!(seen.len(), 6);
    for shown in seen {
        assert_eq!((&shown["fits"], &shown["columns"]), (&true.into(), &true.into()), "{shown}");
        let colours = ["before", "after", "cold"].map(|name| shown[name].as_str().unwrap());
        assert!(colours[0] != colours[1] && colours[0] != colours[2] && colours[1] != colours[2], "{shown}");
    }
    for pair in seen.chunks(2) {
        assert_ne!(pair[0]["cold"], pair[1]["cold"], "light and dark");
    }
}

/// Grids of recordings from a second to a month: cells are whole bins, and columns whole cells.
#[test]
fn columns_are_seconds_or_longer_for_long_recordings() {
    let Some((_folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        "const grids = [];
        for (const [bins, ms] of [[900, 1], [4100, 1], [5000, 10], [4000, 20], [4900, 100], [3600, 1000], [4320, 20000], [2700, 1000000]]) {
          const grid = new HeatGrid({ bins, binNs: ms * 1e6 });
          const chosen = new Uint8Array(grid.cells);
          chosen[0] = chosen[grid.cells - 1] = 1;
          const range = grid.range(chosen);
          grids.push({ column: grid.columnNs / 1e9, cell: grid.cellNs / 1e6, rows: grid.rows, columns: grid.columns, covers: grid.cells * grid.size >= bins && grid.columns * grid.rows >= grid.cells,
            masked: range.mask?.reduce((a, b) => a + b, 0) ?? range.to - range.from, size: grid.size, back: [...grid.touched(range)].reduce((a, b) => a + b, 0) });
        }
        return grids;",
    );
    let columns: Vec<_> = seen
        .as_array()
        .unwrap()
        .iter()
        .map(|grid| {
            assert_eq!((&grid["covers"], &grid["back"]), (&true.into(), &2.into()), "{grid}");
            assert!(grid["masked"].as_u64().unwrap() <= 2 * grid["size"].as_u64().unwrap(), "{grid}");
            assert!(grid["columns"].as_u64().unwrap() <= 170, "{grid}");
            ["column", "cell", "rows"].map(|name| grid[name].as_u64().unwrap())
        })
        .collect();
    assert_eq!(
        columns,
        [
            [1, 10, 100],
            [1, 10, 100],
            [1, 10, 100],
            [1, 20, 50],
            [10, 100, 100],
            [60, 1000, 60],
            [600, 20_000, 30],
            [87_000, 1_000_000, 87]
        ]
    );
}

#[test]
fn a_picked_request_shows_the_parts_of_its_time() {
    let Some((folder, page, browser)) = open(WEB, &[]) else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            tab('slowest');
            const rows = [...document.querySelectorAll('#table tbody tr')].length, picked = [];
            for (let index = 0; index < Math.min(rows, 20); index++) {{
              at('whole').click();
              const line = document.querySelectorAll('#table tbody tr')[index], start = column(2)[index], length = column(3)[index];
              line.dispatchEvent(new KeyboardEvent('keydown', {{ key: 'Enter', bubbles: true }}));
              const box = at('detail').querySelector('.request');
              const marks = [...box.querySelectorAll('.parts tr:last-child .bar i')].map(mark => [parseFloat(mark.style.left), parseFloat(mark.style.width)]);
              picked.push({{ start, length, ...range(), caption: box.querySelector('caption').textContent, parts: [...box.querySelectorAll('.parts tr:not(.split) th')].map(th => th.textContent), shares: [...box.querySelectorAll('.parts tr:not(.split) td:nth-child(3)')].map(td => parseFloat(td.textContent)), marks }});
            }}
            return picked;"
        ),
    );
    let gc = crate::report(folder.path(), &["gc"]);
    let mut marks = 0;
    for picked in seen.as_array().unwrap() {
        let number = |name: &str| picked[name].as_f64().unwrap();
        // Its time is chosen, up to the edges of bins of a millisecond.
        assert!(
            number("from") <= number("start") && number("to") >= number("start") + number("length"),
            "{picked}"
        );
        assert!(number("to") - number("from") <= number("length") + 2e6, "{picked}");
        assert_eq!(
            picked["parts"],
            json!(["queued", "on a thread", "waiting", "calls", "GC pause"]),
            "{picked}"
        );
        let shares: Vec<_> =
            picked["shares"].as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1.0, "{picked}");
        assert!(picked["caption"].as_str().unwrap().contains(" from "), "{picked}");
        for mark in picked["marks"].as_array().unwrap().iter().filter(|mark| mark[1] != 0) {
            marks += 1;
            let at = number("start") + number("length") * mark[0].as_f64().unwrap() / 100.0;
            let is_pause = gc["collections"].as_array().unwrap().iter().any(|row| {
                let (start, pause) = (row["start_ns"].as_f64().unwrap(), row["pause_ns"].as_f64().unwrap());
                at >= start - 3e6 && at <= start + pause + 3e6
            });
            assert!(is_pause, "{at}: {picked}");
        }
    }
    assert!(marks > 3, "{seen}");
}
