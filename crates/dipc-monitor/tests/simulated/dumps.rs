//! Dumps go by a folder that the process and the monitor both see.

use std::fs;
use std::path::Path;

use dipc_monitor::{MonitorConfig, RulesConfig, Tokens};
use dipc_sim::Runtime;

use crate::Fixture;

fn with_folder(folder: &Path, dumps: Option<&Path>) -> Fixture {
    let config = MonitorConfig::default()
        .with_port(Some(folder.join("port").as_path().into()))
        .with_dump_folder(dumps.map(Path::to_path_buf));
    Fixture::monitored(config, Tokens::default(), None, RulesConfig::default(), Vec::new(), |config| config)
}

fn is_dump_of(bytes: &[u8], runtime: &Runtime) -> bool {
    String::from_utf8_lossy(bytes).contains(&format!("process {}\n", runtime.pid()))
}

#[test]
fn a_dump_uses_the_configured_folder() {
    let folder = tempfile::tempdir().unwrap();
    let dumps = folder.path().join("dumps");
    let fixture = with_folder(folder.path(), Some(&dumps));
    // A visible process, and a process with the pid of another process here: only the folder is shared.
    for builder in [Runtime::builder(), Runtime::builder().pid(1)] {
        let runtime = fixture.add(builder);
        let answer = fixture.get(&format!("/dump?uid={}", runtime.identity().runtime_cookie));
        assert!(answer.status == 200 && is_dump_of(&answer.body, &runtime), "{}", answer.text());
        assert_eq!(runtime.state().dumps[0].parent(), Some(&*dumps));
    }
    // They take space, and have arrived.
    assert_eq!(fs::read_dir(&dumps).unwrap().count(), 0);
}

#[test]
fn a_dump_of_a_visible_process_uses_its_temporary_folder() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = with_folder(folder.path(), None);
    let runtime = fixture.add(Runtime::builder());
    let answer = fixture.get("/dump");
    assert!(answer.status == 200 && is_dump_of(&answer.body, &runtime), "{}", answer.text());
    let path = runtime.state().dumps[0].clone();
    assert_eq!((path.parent(), path.exists()), (Some(Path::new("/tmp")), false));
}

/// The pid that a runtime states is from its own namespace, and may belong to another process here.
#[test]
#[cfg(target_os = "linux")]
fn a_stated_pid_leads_to_no_other_process() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = with_folder(folder.path(), None);
    let runtime = fixture.add(Runtime::builder().pid(1));
    let process = fixture.monitor.processes().remove(0);
    assert_eq!((process.facts.pid, process.target().pid()), (1, Some(std::process::id())));
    let answer = fixture.get("/dump");
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("set Storage:DumpTempFolder"), "{}", answer.text());
    assert!(runtime.state().dumps.is_empty());
    let row = &fixture.get("/overview").json()["processes"][0];
    assert_eq!((&row["pid"], &row["uptimeSeconds"]), (&1.into(), &serde_json::Value::Null));
}
