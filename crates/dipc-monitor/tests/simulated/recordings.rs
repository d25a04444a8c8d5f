//! What the monitor keeps in its directories: the list, the files, the pages of recordings.

use std::fs;
use std::sync::Arc;

use dipc_monitor::{BlackBoxConfig, BlackBoxMessage, BlackBoxes, EgressQueue, ProcessObserver, Tokens};
use dipc_sim::{Fault, Runtime, Speed};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::{Fixture, await_that, http, rules_config};

const READ: &str = "0123456789abcdef";
const ALL: &str = "aaaaaaaaaaaaaaaa";

/// A monitor with a directory for rules and requests, and one for bundles.
struct Kept {
    fixture: Fixture,
    folder: tempfile::TempDir,
}

impl Kept {
    /// Starts it with a rule for all processes, or for none.
    fn start(tokens: Tokens, has_rule: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let files = folder.path().join("files");
        let rules = rules_config(&format!(
            r#"{{"Egress": {{"FileSystem": {{"files": {{"DirectoryPath": {:?}}}}}}}, "CollectionRules": {{
                "First": {{"Filters": [{}], "Trigger": {{"Type": "Startup"}}, "Actions": [{{"Type": "CollectTrace", "Settings": {{
                    "Egress": "files", "Profile": "Cpu", "Duration": "00:00:01",
                    "ArtifactName": "sub/$(Process.ProcessId).nettrace"}}}}]}}}}}}"#,
            files.display(),
            if has_rule { "" } else { r#"{"ProcessName": "none"}"# }
        ));
        let queue = EgressQueue::open(&folder.path().join("queue")).unwrap();
        queue.set_providers(rules.egress.clone());
        let config = BlackBoxConfig::default().with_directory(Some(folder.path().join("bundles")));
        let boxes = Arc::new(BlackBoxes::new(config, Arc::new(|_: &BlackBoxMessage| ())));
        let observers = vec![Arc::clone(&boxes) as Arc<dyn ProcessObserver>];
        let address = "127.0.0.1:0".parse().unwrap();
        let fixture = Fixture::observed(address, tokens, None, rules, observers, |config| {
            config.with_queue(Some(queue)).with_black_boxes(Some(boxes))
        });
        Self { fixture, folder }
    }

    fn get(&self, path: &str, headers: &str) -> http::Answer {
        http::receive(http::send(self.fixture.address(), "GET", path, headers, ""))
    }

    fn list(&self) -> Vec<Value> {
        let list = self.get("/recordings", "").json();
        list.as_array().unwrap_or_else(|| panic!("{list}")).clone()
    }

    fn await_count(&self, count: usize) -> Vec<Value> {
        await_that("the recordings are listed", || self.list().len() >= count);
        let list = self.list();
        assert_eq!(list.len(), count, "{list:#?}");
        list
    }
}

fn recording() -> Vec<u8> {
    testdata::bytes("traces/net10-sample.nettrace.xz")
}

fn runtime() -> dipc_sim::Builder {
    Runtime::builder().replay(recording()).speed(Speed::Max).end_with_recording()
}

#[test]
fn artifacts_of_rules_and_requests_and_bundles_are_listed_and_sent() {
    let kept = Kept::start(Tokens::default(), true);
    assert_eq!(kept.list(), Vec::<Value>::new());
    let runtime = kept.fixture.add(runtime());
    let [of_rule] = &kept.await_count(1)[..] else { unreachable!() };
    let pid = runtime.pid();
    assert_eq!(
        (&of_rule["kind"], &of_rule["rule"], &of_rule["egressProviderName"], &of_rule["hasPage"]),
        (&json!("trace"), &json!("First"), &json!("files"), &json!(true))
    );
    assert_eq!(of_rule["name"], format!("sub/{pid}.nettrace"));
    assert_eq!(
        (&of_rule["process"]["pid"], of_rule["bytes"].as_u64()),
        (&json!(pid), Some(recording().len() as u64))
    );
    let operation = of_rule["operationId"].as_str().unwrap();
    assert_eq!(kept.get(&format!("/operations/{operation}"), "").json()["status"], "Succeeded");

    assert_eq!(kept.get("/trace?durationSeconds=-1&egressProvider=files", "").status, 202);
    let list = kept.await_count(2);
    let of_request = list.iter().find(|it| it["rule"].is_null()).unwrap();
    assert_eq!(of_request["process"]["uid"], of_rule["process"]["uid"]);

    // What others put there is not listed.
    fs::write(kept.folder.path().join("files/foreign.nettrace"), "x").unwrap();
    let path = |row: &Value| format!("/recordings/{}", row["id"].as_str().unwrap());
    let answer = kept.get(&path(of_request), "");
    assert_eq!((answer.status, answer.is_whole, answer.body == recording()), (200, true, true));
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    let disposition = answer.header("content-disposition").unwrap();
    assert_eq!(disposition, format!("attachment; filename={}", of_request["name"].as_str().unwrap()));

    let page = kept.get(&path(of_rule), "Accept: text/html\r\n");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    // Its rows are packed; a browser reads them in another test.
    assert!(page.text().starts_with("<!doctype html>") && page.body.len() > 50_000, "{}", page.body.len());
    for id in ["nosuch", "..", "%2e%2e%2fqueue", "..%2f..%2fetc%2fpasswd"] {
        assert_eq!(kept.get(&format!("/recordings/{id}"), "").status, 404, "{id}");
    }
    for path in ["/recordings/../queue", "/recordings/a/b"] {
        assert_eq!(kept.get(path, "").status, 404, "{path}");
    }
    assert_eq!(kept.list().len(), 2);
    // A deleted file is no longer listed.
    fs::remove_file(kept.folder.path().join(format!("files/sub/{pid}.nettrace"))).unwrap();
    assert_eq!((kept.get(&path(of_rule), "").status, kept.list().len()), (404, 1));
}

#[test]
fn files_of_bundles_are_listed() {
    let kept = Kept::start(Tokens::default(), false);
    let recording = testdata::bytes("traces/net10-exceptions.nettrace.xz");
    let crashing = Runtime::builder().replay(recording).speed(Speed::Max);
    let _runtime =
        crashing.fault(Fault::DieInTheMiddle { after: 120_000 }).connect(&kept.fixture.port).unwrap();
    let of_bundle =
        |list: &[Value]| list.iter().filter(|it| it["kind"] == "crash").cloned().collect::<Vec<_>>();
    await_that("the bundle is listed", || of_bundle(&kept.list()).len() == 2);
    for row in of_bundle(&kept.list()) {
        let name = row["name"].as_str().unwrap();
        assert!(row["egressProviderName"].is_null() && name.contains(".crash/"), "{row}");
        let answer = kept.get(&format!("/recordings/{}", row["id"].as_str().unwrap()), "");
        let file = fs::read(kept.folder.path().join("bundles").join(name)).unwrap();
        assert_eq!((answer.status, answer.body == file), (200, true), "{name}");
    }
}

#[test]
fn files_need_the_scope_of_artifacts() {
    let tokens = Tokens::parse(&format!("read {READ}\nadmin {ALL}\n")).unwrap();
    let kept = Kept::start(tokens, true);
    let _runtime = kept.fixture.add(runtime());
    let header = |token: &str| format!("Authorization: Bearer {token}\r\n");
    let list = || kept.get("/recordings", &header(READ)).json();
    await_that("it is listed", || list().as_array().is_some_and(|list| !list.is_empty()));
    let path = format!("/recordings/{}", list()[0]["id"].as_str().unwrap());
    assert_eq!(kept.get("/recordings", "").status, 401);
    assert_eq!((kept.get(&path, "").status, kept.get(&path, &header(READ)).status), (401, 403));
    assert_eq!(kept.get(&path, &header(ALL)).status, 200);
}

#[test]
fn the_page_opens_a_recording_that_is_kept() {
    let Some(browser) = Browser::find() else { return };
    let kept = Kept::start(Tokens::default(), true);
    let _runtime = kept.fixture.add(runtime());
    kept.await_count(1);
    let mut tab = browser.visit(&format!("http://{}/", kept.fixture.address()));
    let seen = tab.run(
        "const at = id => document.getElementById(id);
        at('tab-recordings').click(); await page.refresh();
        await wait(() => document.querySelectorAll('#table tbody button').length === 2);
        const row = [...document.querySelectorAll('#table tbody td')].map(td => td.textContent);
        for (const label of ['Page', 'Load']) {
          document.querySelector(`#table tbody button[aria-label^=\"${label}\"]`).click();
          await wait(() => page.jobs.list[0].title === (label === 'Page' ? 'Page' : 'File') && page.jobs.list[0].state !== 'running');
        }
        const [file, opened] = page.jobs.list;
        document.querySelector('#jobs a[target]').click();
        return { row, file: [file.state, file.bytes, file.name], opened: [opened.state, opened.isPage], address: opened.url };",
    );
    assert_eq!(seen["opened"], json!(["here", true]), "{seen}");
    assert_eq!((&seen["file"][0], &seen["file"][1]), (&json!("here"), &json!(recording().len())), "{seen}");
    assert!(seen["row"][1].as_str().unwrap().contains("rule First"), "{seen}");
    tab.follow(seen["address"].as_str().unwrap());
    let opened = tab.run("return { rows: page.flame.rows.length, hasTime: page.recording.hasTime };");
    assert!(opened["rows"].as_u64() > Some(3) && opened["hasTime"] == true, "{opened}");
}
