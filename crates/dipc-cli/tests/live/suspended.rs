//! Calls that the runtime suspends without state machines, as .NET 11 lays them out, made by hand on earlier
//! runtimes (`testdata/workload/suspended`): no runtime of .NET 11 has been tried.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::{Runtime, on_runtimes};
use crate::workload::Target;

/// Longer than threads take on a loaded machine until they wait for one another.
const PATIENCE: Duration = Duration::from_secs(60);

/// The chain of a group, innermost first.
fn chain(group: &Value) -> String {
    let link = |link: &Value| match link["kind"].as_str().unwrap() {
        "method" => link["method"].as_str().unwrap().to_owned(),
        kind => format!("{kind} {}", link["type"].as_str().unwrap().rsplit('.').next().unwrap()),
    };
    group["links"].as_array().unwrap().iter().map(link).collect::<Vec<_>>().join(" < ")
}

fn calls_without_state_machines_are_in_chains_of_awaits(runtime: Runtime) {
    let Some(program) = runtime.program("suspended/suspended.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), format!("ready {}", target.pid()));
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        let report = run([&["async"], source, &["--format", "json"]].concat()).with_code(0).json();
        let groups = report["groups"].as_array().unwrap();
        let found: BTreeMap<_, _> =
            groups.iter().map(|of| (chain(of), of["chains"].as_u64().unwrap())).collect();
        let expected = [
            ("task RuntimeAsyncTask<int> < Suspended.Checkout", 1),
            ("task Task<int> < Suspended.Store.Read() < Suspended.Cart.Total() < Suspended.Cart.Pay()", 1),
            ("task Task<int> < Suspended.Store.Read() < Suspended.Store.Find() < Suspended.Checkout", 3),
            ("task Task<int> < Suspended.Wait < Suspended.Cart.Pay()", 1),
        ];
        assert_eq!(found, expected.map(|(chain, count)| (chain.to_owned(), count)).into(), "{report:#}");
        assert_eq!((&report["methods"], &report["complete"]), (&15.into(), &true.into()));
        let text = run([&["async"], source, &["--type", "Checkout"]].concat()).with_code(0).text();
        assert!(text.contains("3 chains, the first from"), "{text}");
        assert!(
            text.contains("  Suspended.Store.Read()\n  Suspended.Store.Find()\n  Suspended.Checkout"),
            "{text}"
        );
        assert!(text.contains("its methods run, or are about to"), "{text}");
    }
}

on_runtimes!(calls_without_state_machines_are_in_chains_of_awaits: net_8_0, net_9_0);

fn requests_and_waits_follow_calls_without_state_machines(runtime: Runtime) {
    let Some(program) = runtime.program("suspended/requests.dll") else { return };
    let target = Target::start(program);
    assert_eq!(target.line(), "ready");
    let pid = target.pid().to_string();
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("core").into_os_string().into_string().unwrap();
    let expected: BTreeSet<_> = ["dispatcher: monitor", "holder: task", "runner: monitor", "waiter: task"]
        .map(ToOwned::to_owned)
        .into();
    // The threads are on their way.
    let deadline = Instant::now() + PATIENCE;
    while deadlocks(&["-p", &pid]) != expected {
        assert!(Instant::now() < deadline, "{:?}", deadlocks(&["-p", &pid]));
    }
    run(["dump", "-p", &pid, "--type", "heap", "--stream", "-o", &core]).with_code(0);
    for source in [&["-p", &*pid][..], &[&*core]] {
        assert_eq!(deadlocks(source), expected);
        let report = run([&["dump", "analyze"], source, &["requests", "--format", "json"]].concat());
        let report = report.with_code(0).json();
        let row = |direction: &str| {
            let row = &report[direction]["rows"][0];
            json!([
                report[direction]["requests"],
                row["state"],
                row["method"],
                row["url"],
                row["in"],
                row["chain"]
            ])
        };
        let task = "System.Threading.Tasks.Task<int>";
        let process = "Microsoft.AspNetCore.Server.Kestrel.Core.Internal.Http.HttpProtocol.ProcessRequests()";
        assert_eq!(
            row("incoming"),
            json!([
                1,
                "handler",
                "PUT",
                "/suspended/1",
                "Program.Stock.Find()",
                [task, "Program.Stock.Find()", process]
            ])
        );
        assert_eq!(
            row("outgoing"),
            json!([
                1,
                "waiting for response",
                "DELETE",
                "http://shop/suspended/2",
                "System.Net.Http.HttpConnection.SendAsync()",
                [task, "System.Net.Http.HttpConnection.SendAsync()", "Program.Shop.Fetch()"]
            ])
        );
    }
}

/// The threads of deadlocks, each with the kind of its wait.
fn deadlocks(source: &[&str]) -> BTreeSet<String> {
    let report = run([&["dump", "analyze"], source, &["--format", "json"]].concat()).with_code(0).json();
    let rows = report["deadlocks"].as_array().unwrap().iter().flat_map(|cycle| cycle.as_array().unwrap());
    rows.map(|row| format!("{}: {}", row["name"].as_str().unwrap_or("?"), row["kind"].as_str().unwrap()))
        .collect()
}

on_runtimes!(requests_and_waits_follow_calls_without_state_machines: net_8_0, net_9_0);
