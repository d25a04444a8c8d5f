//! The page at `/`: its document, and its appearance in a real browser.

use std::collections::BTreeSet;
use std::time::Duration;

use base64::Engine as _;
use clr_counters::prometheus::NameStyle;
use dipc_client::Uuid;
use dipc_monitor::{MetricsConfig, RulesConfig, Tokens};
use dipc_sim::{Identity, Runtime, Speed, Version};
use serde_json::{Value, json};
use sha2::Digest as _;

use crate::browser::{Browser, Tab};
use crate::{Fixture, await_that, counters, http, rules_config};

const READ: &str = "0123456789abcdef";
const ALL: &str = "aaaaaaaaaaaaaaaa";
/// A name of a process: a program's name is its last part, up to a space.
const HOSTILE: &str =
    "<img\tsrc=x\tonerror=globalThis.wasRun=1><script>globalThis.wasRun=2<\u{2215}script>\u{202e}\u{1b}[2J";

fn metrics() -> MetricsConfig {
    MetricsConfig::new(NameStyle::OpenTelemetry).with_interval(Duration::from_secs(1))
}

/// A monitor at a TCP port, where processes have the names that their runtimes state.
fn fixture(tokens: Tokens, rules: RulesConfig) -> Fixture {
    Fixture::observed("127.0.0.1:0".parse().unwrap(), tokens, Some(metrics()), rules, Vec::new(), |config| {
        config
    })
}

fn tokens() -> Tokens {
    Tokens::parse(&format!("read {READ}\nadmin {ALL}\n")).unwrap()
}

fn identity(pid: u32, program: &str) -> Identity {
    let mut identity = Identity::new(pid, Version::NET9);
    identity.command_line = format!("/srv/{program} --urls http://127.0.0.1");
    identity
}

fn add_hostile(fixture: &Fixture) -> Runtime {
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    fixture.add(Runtime::builder().identity(identity(4711, HOSTILE)).replay(recording).speed(Speed::Max))
}

/// The text between tags, without those that are data.
fn inline<'d>(document: &'d str, tag: &str) -> Vec<&'d str> {
    let (start, end) = (format!("<{tag}>"), format!("</{tag}>"));
    document.split(&*start).skip(1).map(|rest| rest.split(&*end).next().unwrap()).collect()
}

#[test]
fn the_page_needs_no_token_and_has_no_data() {
    let fixture = fixture(tokens(), RulesConfig::default());
    let _runtime = add_hostile(&fixture);
    let page = fixture.get("/");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(!page.text().contains("4711") && !page.text().contains("/srv/"));
    // All data come with a token of their scope.
    for path in ["/overview", "/counters", "/health", "/top", "/operations"] {
        assert_eq!(fixture.get(path).status, 401, "{path}");
    }
    let status = |path: &str, token: &str| {
        let header = format!("Authorization: Bearer {token}\r\n");
        http::receive(http::send(fixture.address(), "GET", path, &header, "")).status
    };
    assert_eq!(
        (status("/overview", READ), status("/counters", READ), status("/counters", ALL)),
        (200, 403, 200)
    );
    assert_eq!(http::receive(http::send(fixture.address(), "POST", "/", "", "")).status, 405);
}

#[test]
fn the_policy_allows_exactly_the_content_of_the_pages() {
    let fixture = Fixture::start();
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz");
    let _runtime = fixture.add(Runtime::builder().replay(recording).speed(Speed::Max));
    let page = fixture.get("/");
    let policy = page.header("content-security-policy").unwrap().to_owned();
    for part in ["default-src 'none'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'"] {
        assert!(policy.split("; ").any(|it| it == part), "{part}: {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http") && !policy.contains('*'), "{policy}");
    let accept = "Accept: text/html\r\n";
    let flame =
        http::receive(http::send(fixture.address(), "GET", "/flamegraph?durationSeconds=1", accept, ""));
    for (document, what) in [(page.text(), "the page"), (flame.text(), "a flame graph")] {
        for (tag, directive) in [("script", "script-src"), ("style", "style-src")] {
            let allowed = policy.split("; ").find_map(|part| part.strip_prefix(directive)).unwrap();
            let texts = inline(document, tag);
            assert!(!texts.is_empty(), "{tag} of {what}");
            for text in texts {
                let hash = base64::engine::general_purpose::STANDARD.encode(sha2::Sha256::digest(text));
                assert!(
                    allowed.contains(&format!("'sha256-{hash}'")),
                    "{tag} of {what}: {hash} in {allowed}"
                );
            }
        }
        // Neither loads anything, nor has handlers or styles in its markup.
        for word in ["src=\"", "href=\"http", " onclick=", " style=\"", "@import", "url(http"] {
            assert!(!document.contains(word), "{word} in {what}");
        }
    }
}

#[test]
fn the_overview_has_containers_rules_and_operations() {
    let rules = rules_config(
        r#"{"CollectionRules": {"First": {"Trigger": {"Type": "Startup"}, "Actions": [
            {"Type": "SetEnvironmentVariable", "Settings": {"Name": "A", "Value": "b"}}]}}}"#,
    );
    let fixture = fixture(Tokens::default(), rules);
    let recording = counters();
    let runtime = Runtime::builder().identity(identity(4711, "shop")).replay(recording.clone()).looped();
    let _runtime = fixture.add(runtime);
    let overview = || fixture.get("/overview").json();
    await_that("the rule has run", || overview()["ruleEvents"].as_array().unwrap().len() == 2);
    assert_eq!(fixture.get("/trace?durationSeconds=1").status, 200);
    let seen = overview();
    let process = &seen["processes"][0];
    assert_eq!((&process["pid"], &process["name"]), (&4711.into(), &"shop".into()));
    assert_eq!(process["commandLine"], fixture.get("/process").json()["commandLine"]);
    // Its pid is its own statement, over TCP.
    assert!(process["uptimeSeconds"].is_null() && process["containerId"].is_null(), "{process}");
    let rule = &process["rules"][0];
    assert_eq!(
        (&rule["name"], &rule["state"], &rule["lifetimeOccurrences"]),
        (&"First".into(), &"Finished".into(), &1.into())
    );
    let texts: Vec<_> =
        seen["ruleEvents"].as_array().unwrap().iter().map(|event| event["text"].clone()).collect();
    assert!(texts[0].as_str().unwrap().starts_with("fired for the first time"), "{texts:?}");
    assert_eq!(texts[1], "SetEnvironmentVariable is done");
    let operation = &seen["operations"][0];
    assert_eq!((&operation["kind"], &operation["status"]), (&"trace".into(), &"Succeeded".into()));
    // The same as the route of the operation says.
    let id = operation["operationId"].as_str().unwrap();
    let mut alone = fixture.get(&format!("/operations/{id}")).json();
    alone["kind"] = "trace".into();
    assert_eq!(*operation, alone);
    await_that("there are counters", || fixture.get("/counters").json()[0]["cpuPercent"].is_number());
    let values = fixture.get("/counters").json()[0].clone();
    assert_eq!((&values["pid"], &values["uid"]), (&process["pid"], &process["uid"]));
    assert!(values["memoryBytes"].as_f64() > Some(1e7) && values["requestsPerSecond"].is_null(), "{values}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_local_process_has_its_uptime() {
    let fixture = Fixture::start();
    let _runtime = fixture.add(Runtime::builder());
    // The runtime is a thread of this test, whose start is at most as long ago as this machine's.
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
    let seen = fixture.get("/overview").json();
    let seconds = seen["processes"][0]["uptimeSeconds"].as_f64().unwrap();
    assert!(seconds < uptime && seconds < 3600.0, "{seconds} s of {uptime} s");
}

/// Functions of the scripts.
const LOOK: &str = "
    const at = id => document.getElementById(id);
    const cells = (box, n) => [...document.querySelectorAll(`#${box} tbody td:nth-child(${n})`)].map(td => td.textContent);
    const tab = async id => { at('tab-' + id).click(); await page.refresh(); };
    const sign = async token => { at('token').value = token; at('use').click(); await pause(); await page.refresh(); };
    const act = async (id, seconds = 1) => { const before = page.jobs.list.length; at('seconds').value = seconds; at('do-' + id).click();
      await wait(() => page.jobs.list.length > before && page.jobs.list[0].state !== 'running'); return page.jobs.list[0]; };
";

fn visit(browser: &Browser, fixture: &Fixture) -> Tab {
    browser.visit(&format!("http://{}/", fixture.address()))
}

#[test]
fn actions_need_the_token_and_hostile_names_are_escaped() {
    let Some(browser) = Browser::find() else { return };
    let fixture = fixture(tokens(), RulesConfig::default());
    let _hostile = add_hostile(&fixture);
    let runtime = Runtime::builder().identity(identity(17, "shop")).replay(counters()).looped();
    let _shop = fixture.add(runtime.cookie(Uuid::from_u128(17)));
    let mut tab = visit(&browser, &fixture);
    let seen = tab.run(&format!(
        "{LOOK}
        const look = () => ({{ names: cells('table', 1), sign: !at('sign').hidden, said: at('signed').textContent, disabled: at('do-trace').disabled }});
        const without = look();
        await sign('{READ}x');
        const wrong = look();
        await sign('{READ}');
        await wait(() => cells('table', 1).length === 2);
        const read = {{ ...look(), note: document.querySelector('#table .note')?.textContent }};
        const refused = await act('trace');
        const failure = {{ state: refused.state, error: refused.error, shown: at('jobs').textContent }};
        await sign('{ALL}');
        await wait(() => page.state.counters.size === 2);
        const all = look();
        const kept = {{ local: localStorage.length, session: sessionStorage.length, cookie: document.cookie, address: location.href,
          token: at('token').value, document: document.documentElement.outerHTML.includes('{ALL}') }};
        return {{ without, wrong, read, failure, all, kept, text: document.body.innerText, images: document.images.length, scripts: document.scripts.length, wasRun: globalThis.wasRun ?? null }};"
    ));
    assert_eq!(seen["without"]["names"], json!([]));
    assert_eq!((&seen["without"]["sign"], &seen["without"]["disabled"]), (&true.into(), &true.into()));
    for look in ["without", "wrong"] {
        assert_eq!(seen[look]["said"], "send a token: 'Authorization: Bearer TOKEN'", "{look}");
    }
    assert_eq!(seen["wrong"]["names"], json!([]));
    assert_eq!(seen["read"]["said"], "The token is in use.");
    assert_eq!(seen["read"]["note"], "No counters: the token does not have the scope 'metrics'");
    let failure = &seen["failure"];
    assert_eq!(
        (&failure["state"], &failure["error"]),
        (&"failed".into(), &"the token does not have the scope 'artifacts'".into())
    );
    assert!(
        failure["shown"].as_str().unwrap().contains("the token does not have the scope 'artifacts'"),
        "{failure}"
    );
    let kept = json!({ "local": 0, "session": 0, "cookie": "", "address": format!("http://{}/", fixture.address()), "token": "", "document": false });
    assert_eq!(seen["kept"], kept);
    // A name is shown as it is, except for what steers a display.
    let shown = HOSTILE.replace('\t', "\\u0009").replace('\u{202e}', "\\u202e").replace('\u{1b}', "\\u001b");
    let text = seen["text"].as_str().unwrap();
    assert!(text.contains(&shown), "{text}");
    assert!(!text.contains(|c| clr_events::is_control(c) && !c.is_whitespace()), "{text}");
    assert_eq!((&seen["images"], &seen["wasRun"], &seen["scripts"]), (&0.into(), &Value::Null, &1.into()));

    // A recording is stopped where operations are listed, and is whole.
    let stopped = tab.run(&format!(
        "{LOOK}
        at('process').value = [...at('process').options].find(option => option.textContent === 'shop (17)').value;
        at('process').dispatchEvent(new Event('change'));
        at('seconds').value = 600;
        at('do-trace').click();
        await wait(() => page.jobs.list[0].bytes > 0);
        await tab('operations');
        const stop = document.querySelector('#table tbody button[aria-label^=\"Stop\"]'), label = stop.getAttribute('aria-label');
        stop.click();
        await wait(() => page.jobs.list[0].state !== 'running');
        await page.refresh();
        return {{ label, state: page.jobs.list[0].state, operation: page.state.operations.find(row => row.operationId === page.jobs.list[0].operation).status }};"
    ));
    let expected = json!({ "label": "Stop trace of shop (17)", "state": "here", "operation": "Succeeded" });
    assert_eq!(stopped, expected);

    // The artifact is exactly what the process sent.
    let recording = testdata::bytes("traces/net10-sample.nettrace.xz").len();
    let made = tab.run(&format!(
        "{LOOK}
        at('process').value = [...at('process').options].find(option => option.textContent.includes('(4711)')).value;
        at('process').dispatchEvent(new Event('change'));
        const job = await act('trace');
        const link = document.querySelector('#jobs a');
        await tab('operations');
        const row = [...document.querySelectorAll('#table tbody tr')].find(row => row.dataset.key === job.operation);
        const operation = [...row.cells].map(cell => cell.textContent);
        await tab('methods');
        at('measure').click();
        await wait(() => page.measured.methods?.report);
        const methods = {{ names: cells('table', 1).slice(0, 3), note: document.querySelector('#table .note').textContent }};
        const flame = await act('flamegraph');
        document.querySelector('#jobs a[target]').click();
        return {{ job: [job.state, job.bytes], link: [link.download, link.href.split('/')[0]], operation, methods, flame: [flame.state, flame.error], address: flame.url }};"
    ));
    assert_eq!(made["job"], json!(["here", recording]), "{made}");
    assert!(made["link"][0].as_str().unwrap().ends_with("_4711.nettrace"), "{made}");
    let operation = made["operation"].as_array().unwrap();
    assert_eq!((&operation[1], &operation[3]), (&"trace".into(), &"Succeeded".into()), "{operation:?}");
    assert!(operation[5].as_str().unwrap().contains("_4711.nettrace"), "{operation:?}");
    let token = format!("Authorization: Bearer {ALL}\r\n");
    let top = http::send(fixture.address(), "GET", "/top?pid=4711&durationSeconds=1&number=3", &token, "");
    let top = http::receive(top).json();
    let names: Vec<_> = top["rows"].as_array().unwrap().iter().map(|row| row["csharp"].clone()).collect();
    assert_eq!(made["methods"]["names"], Value::from(names));
    assert!(made["methods"]["note"].as_str().unwrap().contains("(4711), 1 s up to "), "{made}");
    assert_eq!(made["flame"], json!(["here", null]));
    // The flame graph runs its scripts, below the policy of the page that opened it.
    tab.follow(made["address"].as_str().unwrap());
    let flame =
        tab.run("return { title: document.title, rows: page.flame.rows.length, opener: globalThis.opener, hasTime: page.recording.hasTime, tabs: page.tabs.map(({ id }) => id) };");
    assert!(flame["hasTime"] == true && flame["tabs"].to_string().contains("\"threads\""), "{flame}");
    assert!(flame["rows"].as_u64() > Some(3) && flame["opener"].is_null(), "{flame}");
    assert!(flame["title"].as_str().unwrap().contains("(4711)"), "{flame}");
}

#[test]
fn a_button_of_each_process_shows_its_diagnosis() {
    let Some(browser) = Browser::find() else { return };
    let fixture = fixture(tokens(), RulesConfig::default());
    let _hostile = add_hostile(&fixture);
    let recording = testdata::bytes("stacks/net9-deadlock.nettrace.xz");
    let runtime = Runtime::builder().identity(identity(17, "shop")).replay(recording).speed(Speed::Max);
    let _shop = fixture.add(runtime.cookie(Uuid::from_u128(17)));
    let mut tab = visit(&browser, &fixture);
    let seen = tab.run(&format!(
        "{LOOK}
        const violations = [];
        document.addEventListener('securitypolicyviolation', event => violations.push(event.violatedDirective));
        const why = async name => {{
          await tab('processes');
          [...document.querySelectorAll('#table tbody button')].find(button => button.getAttribute('aria-label') === `Why? ${{name}}`).click();
          const begun = {{ tab: page.tab, process: at('process').selectedOptions[0].textContent, measure: at('measure').textContent }};
          await wait(() => page.measured.why && !page.measured.why.cancel);
          return {{ ...begun, labels: cells('table', 1), texts: cells('table', 2), said: at('detail').textContent }};
        }};
        at('seconds').value = 1;
        await sign('{READ}');
        await wait(() => cells('table', 1).length === 2);
        const refused = await why('shop (17)');
        await sign('{ALL}');
        const shop = await why('shop (17)');
        const hostile = page.state.processes.find(({{ pid }}) => pid === 4711).name;
        // The answer about one process does not become that about another.
        page.why(page.state.processes.find(({{ pid }}) => pid === 17));
        const other = await why(`${{hostile}} (4711)`);
        return {{ refused, shop, other, violations, images: document.images.length, scripts: document.scripts.length }};"
    ));
    let refused = &seen["refused"];
    assert_eq!(refused["said"], "the token does not have the scope 'artifacts'", "{refused}");
    assert_eq!(refused["labels"], json!([]));
    let shop = &seen["shop"];
    assert_eq!(
        (&shop["tab"], &shop["process"], &shop["measure"]),
        (&"why".into(), &"shop (17)".into(), &"Cancel".into())
    );
    let token = format!("Authorization: Bearer {ALL}\r\nAccept: text/plain\r\n");
    let answer = std::cell::OnceCell::new();
    // The request that the page has cancelled ends a moment later.
    await_that("the monitor asks again", || {
        let ask = http::send(fixture.address(), "GET", "/why?pid=17&durationSeconds=1", &token, "");
        let received = http::receive(ask);
        received.status != 429 && answer.set(received).is_ok()
    });
    let answer = answer.into_inner().unwrap();
    let row = |line: &str| (line[..9].trim().to_owned(), line[11..].to_owned());
    let (labels, texts): (Vec<_>, Vec<_>) = answer.text().lines().map(row).unzip();
    assert_eq!((&shop["labels"], &shop["texts"]), (&json!(labels), &json!(texts)), "{shop}");
    assert!(labels[0] == "Cause" && texts[0].starts_with("Deadlock: "), "{texts:?}");
    let other = &seen["other"];
    assert!(other["process"].as_str().unwrap().ends_with("(4711)"), "{other}");
    assert!(other["labels"].as_array().unwrap().contains(&"Process".into()), "{other}");
    assert!(!other["texts"].to_string().contains("Deadlock"), "{other}");
    assert_eq!((&seen["violations"], &seen["images"], &seen["scripts"]), (&json!([]), &0.into(), &1.into()));
}

/// Rules with a name that must not become markup, and an artifact that is kept in a folder.
fn rules_of_every_view(folder: &std::path::Path) -> RulesConfig {
    rules_config(
        &r#"{"GlobalCounter": {"IntervalSeconds": 1}, "Egress": {"FileSystem": {"files": {"DirectoryPath": "FOLDER"}}},
            "CollectionRules": {
            "First": {"Trigger": {"Type": "Startup"}, "Actions": [
                {"Type": "SetEnvironmentVariable", "Settings": {"Name": "A", "Value": "b"}},
                {"Type": "CollectTrace", "Settings": {"Egress": "files", "Profile": "Cpu", "Duration": "00:00:01"}}]},
            "<b>Much work</b> of the garbage collector in a short time": {"Trigger": {"Type": "EventCounter", "Settings": {
                "ProviderName": "System.Runtime", "CounterName": "cpu-usage", "GreaterThan": 99}}}}}"#
            .replace("FOLDER", folder.to_str().unwrap()),
    )
}

#[test]
fn every_view_fits_and_is_named_and_readable() {
    let Some(browser) = Browser::find() else { return };
    let folder = tempfile::tempdir().unwrap();
    let rules = rules_of_every_view(folder.path());
    let fixture = fixture(Tokens::default(), rules);
    let _hostile = add_hostile(&fixture);
    let _others: Vec<_> = (1..=3)
        .map(|number| {
            let identity =
                identity(number, &format!("service{}", "-of-the-shop".repeat(number as usize * 3)));
            fixture.add(Runtime::builder().identity(identity).replay(counters()).looped())
        })
        .collect();
    let mut tab = visit(&browser, &fixture);
    tab.run(&format!(
        "{LOOK}
        await wait(() => page.state.counters.size === 4 && [...page.state.counters.values()].some(row => row.cpuPercent));
        await act('trace');
        await tab('methods'); at('measure').click();
        await tab('recordings');
        for (let n = 0; !page.state.recordings.length && n < 600; n++) {{ await pause(); await page.refresh(); }}
        await tab('requests'); at('measure').click();
        await tab('why'); at('measure').click();
        await wait(() => page.measured.methods?.report && page.measured.requests?.report && page.measured.why?.report);
        at('pause').click();"
    ));
    let mut backgrounds = BTreeSet::new();
    for is_dark in [false, true] {
        for width in [360, 768, 1440] {
            tab.set_screen(width, is_dark);
            let seen = tab.run(&format!(
                "{LOOK}
                // The contrast ratio of WCAG 2, of text and its background.
                const light = colour => {{ const [r, g, b] = colour.match(/[\\d.]+/g).map(part => {{ const c = part / 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }}); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }};
                const behind = element => {{ for (let it = element; it; it = it.parentElement) {{ const colour = getComputedStyle(it).backgroundColor; if (!/, 0\\)$|transparent/.test(colour)) return colour; }} return 'rgb(255, 255, 255)'; }};
                const views = [];
                for (const {{ id }} of [...at('tabs').children]) {{
                  at(id).click();
                  const wide = [...document.querySelectorAll('html, #table, #more, #jobs')].filter(part => part.scrollWidth > part.clientWidth).map(part => part.id || 'document');
                  const faint = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
                  for (let node = walker.nextNode(); node; node = walker.nextNode()) {{
                    const element = node.parentElement;
                    if (!node.data.trim() || !element.checkVisibility() || element.closest('script, style, option, [disabled]')) continue;
                    const [one, other] = [light(getComputedStyle(element).color), light(behind(element))], ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
                    if (ratio < 4.5) faint.push([node.data.slice(0, 30), ratio]);
                  }}
                  views.push({{ id, rows: document.querySelectorAll('main tbody tr').length, wide, faint, markup: document.querySelectorAll('main :is(b, img, script)').length }});
                }}
                return {{ views, back: getComputedStyle(document.body).backgroundColor, width: innerWidth }};"
            ));
            assert_eq!(seen["width"], width);
            backgrounds.insert(seen["back"].to_string());
            for view in seen["views"].as_array().unwrap() {
                assert_eq!(view["wide"], json!([]), "{width}, dark {is_dark}: {view}");
                assert_eq!(view["faint"], json!([]), "{width}, dark {is_dark}: {view}");
                assert_eq!(view["markup"], 0, "{view}");
                assert!(view["rows"].as_u64() > Some(0), "{view}");
            }
        }
    }
    assert_eq!(backgrounds.len(), 2, "{backgrounds:?}");
    // Controls have names for screen readers.
    let tree = tab.call("Accessibility.getFullAXTree", &json!({}));
    let mut named = 0;
    for node in tree["nodes"].as_array().unwrap() {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        let is_used =
            ["button", "link", "tab", "textbox", "searchbox", "spinbutton", "combobox"].contains(&role);
        if is_used && node["ignored"] != true {
            assert!(node["name"]["value"].as_str().is_some_and(|name| !name.is_empty()), "{node}");
            named += 1;
        }
    }
    assert!(named > 15, "{named}");
    // Keys do what the mouse does, and a row that has the focus keeps it.
    let keys = tab.run(&format!(
        "{LOOK}
        const press = (key, target = document.body) => target.dispatchEvent(new KeyboardEvent('keydown', {{ key, bubbles: true, cancelable: true }}));
        press('1');
        const first = at('main').dataset.tab;
        press('/');
        const searching = document.activeElement.id;
        at('search').value = 'of-the-shop'; at('search').dispatchEvent(new Event('input'));
        const found = at('found').textContent;
        press('Escape', at('search'));
        const row = document.querySelectorAll('#table tbody tr')[2];
        row.focus();
        press('Enter', row);
        await page.refresh();
        const kept = document.activeElement.dataset.key === row.dataset.key && document.activeElement !== row && at('process').value === row.dataset.key;
        const chosen = document.querySelectorAll('#table tr[aria-selected=true]').length;
        press('ArrowRight', at('tab-processes'));
        const next = [at('main').dataset.tab, document.activeElement.id];
        press('d');
        return {{ first, searching, found, kept, chosen, next, theme: document.documentElement.dataset.theme }};"
    ));
    let expected = json!({ "first": "processes", "searching": "search", "found": "3 rows", "kept": true, "chosen": 1,
        "next": ["requests", "tab-requests"], "theme": "light" });
    assert_eq!(keys, expected);
}
