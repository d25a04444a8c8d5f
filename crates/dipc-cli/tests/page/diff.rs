//! The differential flame graph of `dipc diff --format html`.

use serde_json::Value;

use crate::browser::Browser;
use crate::dipc;

fn open() -> Option<(tempfile::TempDir, std::path::PathBuf, Browser)> {
    let browser = Browser::find()?;
    let (folder, _) = crate::recording("diff/base.nettrace");
    std::fs::rename(folder.path().join("app.nettrace"), folder.path().join("base.nettrace")).unwrap();
    let (other, _) = crate::recording("diff/new.nettrace");
    std::fs::copy(other.path().join("app.nettrace"), folder.path().join("new.nettrace")).unwrap();
    dipc(folder.path(), &["diff", "base.nettrace", "new.nettrace", "--format", "html", "-o", "diff.html"]);
    let page = folder.path().join("diff.html");
    Some((folder, page, browser))
}

/// What is seen of a graph: frames that are shown, with their widths by the browser.
const LOOK: &str = "
    const frames = id => [...document.querySelectorAll(`#${id} g[role=button]`)].filter(box => box.style.display !== 'none');
    const wide = id => Math.max(...frames(id).map(box => box.querySelector('rect').getBoundingClientRect().width));
    const key = (box, key) => box.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
";

#[test]
fn both_graphs_zoom_search_and_have_names() {
    let Some((folder, page, browser)) = open() else { return };
    let seen = browser.drive(
        &page,
        &format!(
            "{LOOK}
            const picture = document.querySelector('#picture svg'), result = {{}};
            for (const id of ['new', 'base']) {{
              const before = frames(id), root = graphs.find(graph => graph.root.box.parentNode.id === id).root.box;
              const inner = before.find(box => {{ const w = box.querySelector('rect').getBoundingClientRect().width; return w > 30 && w < wide(id) / 3; }});
              const name = inner.querySelector('title').textContent.split('\\n')[0];
              const narrow = inner.querySelector('rect').getBoundingClientRect().width;
              inner.dispatchEvent(new MouseEvent('click', {{ bubbles: true }}));
              const zoomed = frames(id).length, now = inner.querySelector('rect').getBoundingClientRect().width, all = wide(id);
              root.focus();
              key(root, 'Escape');
              key(document.activeElement, 'ArrowDown');
              const below = document.activeElement !== root && document.activeElement.getAttribute('role') === 'button';
              key(document.activeElement, 'ArrowUp');
              result[id] = {{ count: before.length, again: frames(id).length, zoomed, narrow, now, all, name, below, back: document.activeElement === root,
                named: before.every(box => box.getAttribute('aria-label')), tabs: before.filter(box => box.getAttribute('tabindex') === '0').length,
                colours: [...new Set(before.map(box => getComputedStyle(box.querySelector('rect')).fill))].length,
                told: document.getElementById('detail').textContent.length }};
            }}
            const search = document.getElementById('search');
            search.value = 'System.'; search.dispatchEvent(new Event('input'));
            result.found = document.getElementById('found').textContent;
            result.dim = [...document.querySelectorAll('#picture g[role=button]')].filter(box => box.style.opacity === '0.25').length;
            result.labels = [...document.querySelectorAll('#picture g g[aria-hidden] text')].map(text => text.textContent).filter(text => /base|%/.test(text));
            result.width = [picture.getBoundingClientRect().width, document.documentElement.clientWidth, document.documentElement.scrollWidth];
            return result;"
        ),
    );
    for graph in ["new", "base"] {
        let seen = &seen[graph];
        let number = |name: &str| seen[name].as_f64().unwrap();
        assert!(number("count") > 20.0, "{seen}");
        assert_eq!(seen["again"], seen["count"], "{seen}");
        assert!(number("zoomed") < number("count") && number("now") > number("narrow") * 2.9, "{seen}");
        assert!((number("now") - number("all")).abs() < 1.0, "{seen}");
        for name in ["below", "back", "named"] {
            assert_eq!(seen[name], true, "{name}: {seen}");
        }
        assert_eq!((number("tabs"), number("told") > 20.0), (1.0, true), "{seen}");
        assert!(number("colours") >= 2.0, "{seen}");
    }
    assert!(seen["found"].as_str().unwrap().ends_with(" frames") && seen["dim"].as_u64() > Some(0), "{seen}");
    assert_eq!(seen["labels"], serde_json::json!([]), "labels are names");
    assert_eq!(seen["width"][1], seen["width"][2], "nothing is beside the window");
    let text = std::fs::read_to_string(folder.path().join("diff.html")).unwrap();
    assert!(!text.contains("src=") && !text.contains("href="), "nothing is loaded");
}

/// The text of each frame can be read on its colour, in light and dark: a contrast of 4.5 by WCAG.
#[test]
fn labels_have_contrast_in_light_and_dark() {
    let Some((_folder, page, browser)) = open() else { return };
    let seen = browser.drive(
        &page,
        "const result = {};
        const svg = document.querySelector('svg.diff');
        const light = colour => { const [r, g, b] = colour.match(/\\d+/g).map(Number).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const rules = [...svg.querySelector('style').sheet.cssRules];
        const dark = rules.find(rule => rule.media).cssRules[0].style, bright = rules.find(rule => rule.selectorText === '.diff').style;
        for (const [theme, style] of [['light', bright], ['dark', dark]]) {
          for (const name of [...style]) svg.style.setProperty(name, style.getPropertyValue(name));
          for (const name of ['w1', 'w2', 'w3', 'w4', 'b1', 'b2', 'b3', 'b4', 'n', 'u', 'back']) {
            const rect = svg.appendChild(document.createElementNS(svg.namespaceURI, 'rect'));
            rect.setAttribute('class', name);
            const [a, b] = [getComputedStyle(rect).fill, getComputedStyle(svg.querySelector('text')).fill].map(light);
            result[theme + ' ' + name] = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          }
        }
        return result;",
    );
    let contrasts = seen.as_object().unwrap();
    assert_eq!(contrasts.len(), 22);
    for (name, contrast) in contrasts {
        assert!(contrast.as_f64().unwrap() >= 4.5, "{name}: {contrast}");
    }
    assert!(contrasts.values().collect::<std::collections::HashSet<&Value>>().len() > 10);
}
