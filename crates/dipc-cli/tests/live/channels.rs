//! Channels in known states, with known methods that wait (`testdata/workload/channels`), by the memory of
//! the process and by a core dump: the view's rows are the program's own account.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Target;

fn channels_and_what_waits_for_them_are_those_of_the_account(runtime: Runtime) {
    let Some(program) = runtime.program("channels/channels.dll") else { return };
    let target = Target::start(program);
    let account: BTreeMap<String, Value> = serde_json::from_str(&target.line()).unwrap();
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
            rows.map(|row| row["type"].as_str().unwrap()).collect::<Vec<_>>().concat()
        };
        assert_eq!(flagged("full"), "System.Threading.Channels.BoundedChannel<Order>");
        assert_eq!(flagged("completed"), "System.Threading.Channels.UnboundedChannel<Done>");
        let text = analyze(&["channels"]).text();
        assert!(
            text.starts_with("6 channels with 99 items, 1 of them full; 4 wait to write, 5 to read\n"),
            "{text}"
        );
        assert!(text.contains("Channels.PlaceOrder (3), Channels.AwaitPlace"), "{text}");
        // A channel as an object is what it contains.
        let ticks = rows.iter().find(|row| row["items"] == 93).unwrap()["address"].as_str().unwrap();
        let object = analyze(&["object", ticks, "--no-path", "--format", "json", "-n", "100"]).json();
        assert_eq!(object["content"]["elements"].as_array().map(Vec::len), Some(93), "{object:#}");
    }
}

on_runtimes!(channels_and_what_waits_for_them_are_those_of_the_account: net_3_1, net_8_0, net_9_0);
