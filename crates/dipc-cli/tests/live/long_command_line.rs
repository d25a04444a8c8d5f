//! A process with a command line that does not fit into a message of its runtime.

use serde_json::json;

use crate::monitor::Monitor;
use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::Workload;

#[test]
fn a_long_command_line_is_taken_from_the_system() {
    let Some(mut command) = Runtime::Net9_0.workload() else { return };
    command.args((0..2500).map(|number| format!("an-argument-of-some-length-{number}")));
    let workload = Workload::from_command(Runtime::Net9_0, command);
    let pid = workload.pid().to_string();
    let info = run(["info", "-p", &pid, "--format", "json"]).with_code(0);
    assert!(info.stderr.contains("The command line is longer than a message"), "{}", info.stderr);
    let process = info.json();
    assert_eq!((&process["entry_assembly"], &process["clr_version"]), (&"workload".into(), &"9.0.1".into()));
    assert!(process["command_line"].as_str().unwrap().ends_with("length-2499"));
    let doctor = run(["doctor", "-p", &pid]);
    assert!(doctor.text().contains("its command line is longer than a message"), "{}", doctor.text());
    let rule = json!({"Trigger": {"Type": "Startup"}, "Actions": [{"Type": "Execute", "Settings": {"Path": "/bin/true"}}]});
    let monitor = Monitor::start(workload.pid(), &json!({"Start": rule}));
    monitor.await_rule("Start", "Finished", 1);
    drop(monitor.interrupt());
}
