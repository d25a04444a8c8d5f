//! Channels in known states, with known methods that wait (`testdata/workload/channels`), by the memory of
//! the process and by a core dump: the view's rows are the program's own account.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes, program_of_10};
use crate::workload::Target;

const PROGRAM: &str = "channels/channels.dll";

fn channels_and_what_waits_for_them_are_those_of_the_account(runtime: Runtime) {
    let Some(program) = runtime.program(PROGRAM) else { return };
    let elements = ["Done", "Invoice", "Mail", "Order", "Page", "Tick"];
    check(program, &elements, "6 channels with 99 items, 1 of them full; 4 wait to write, 5 to read\n");
}

/// The operations of .NET 10 are in rings of another form. Its framework is trimmed, and has no bounded
/// channels.
#[test]
fn channels_of_net_10_are_those_of_the_account() {
    let Some(program) = program_of_10(PROGRAM) else { return };
    let elements = ["Done", "Invoice", "Mail", "Page", "Tick"];
    check(program, &elements, "5 channels with 95 items; 0 wait to write, 5 to read\n");
}

fn check(program: Command, elements: &[&str], answer: &str) {
    let target = Target::start(program);
    let account: BTreeMap<String, Value> = serde_json::from_str(&target.line()).unwrap();
    assert!(account.keys().eq(elements), "{account:?}");
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let analyze = |words: &[&str]| run([&["dump", "analyze"], source, words].concat()).with_code(0);
        let report = analyze(&["channels", "--format", "json"]).json();
        let rows = report["rows"].as_array().unwrap();
        let row = |row: &Value| {
            let name = row["type"].as_str().unwrap();
            let element = name.split_once('<').and_then(|(_, element)| element.strip_suffix('>')).unwrap();
            let facts = ["items", "capacity", "waiting_to_write", "waiting_to_read"].map(|fact| &row[fact]);
            (element.to_owned(), json!(facts))
        };
        let found: BTreeMap<_, _> = rows.iter().map(row).collect();
        assert_eq!((found, &report["complete"]), (account.clone(), &json!(true)), "{report:#}");
        let flagged = |flag: &str| {
            let rows = rows.iter().filter(|row| row[flag] == true);
            rows.map(|row| row["type"].as_str().unwrap()).collect::<Vec<_>>()
        };
        let of_account = |element: &str, name: &str| {
            let name = format!("System.Threading.Channels.{name}<{element}>");
            elements.contains(&element).then_some(name).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(flagged("full"), of_account("Order", "BoundedChannel"));
        assert_eq!(flagged("completed"), of_account("Done", "UnboundedChannel"));
        let text = analyze(&["channels"]).text();
        assert!(text.starts_with(answer), "{text}");
        let writers = "Channels.PlaceOrder (3), Channels.AwaitPlace";
        assert_eq!(text.contains(writers), elements.contains(&"Order"), "{text}");
        // A channel as an object is what it contains.
        let ticks = rows.iter().find(|row| row["items"] == 93).unwrap()["address"].as_str().unwrap();
        let object = analyze(&["object", ticks, "--no-path", "--format", "json", "-n", "100"]).json();
        assert_eq!(object["content"]["elements"].as_array().map(Vec::len), Some(93), "{object:#}");
    }
}

on_runtimes!(channels_and_what_waits_for_them_are_those_of_the_account: net_3_1, net_8_0, net_9_0);
