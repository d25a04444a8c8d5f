//! Requests of a real web server of .NET 10, recorded by `--profile aspnet` and reported.

use crate::program::{Recording, run};
use crate::web_server::WebServer;

#[test]
fn requests_of_a_server_of_net10_have_routes_statuses_and_times() {
    let Some(server) = WebServer::start() else { return };
    let recording = Recording::start(server.pid(), &["--profile", "aspnet"]);
    for _ in 0..10 {
        assert_eq!(server.get("/"), Some(406));
        assert_eq!(server.get("/nosuch"), Some(404));
    }
    let recorded = recording.interrupt();
    let file = recorded.file();
    let report = run(["report", file.to_str().unwrap(), "requests", "--slowest", "3", "--format", "json"]);
    let report = report.with_code(0).json();
    for (name, status) in [("GET /", "406"), ("GET /nosuch", "404")] {
        let rows = report["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"));
        assert_eq!((&row["count"], &row["errors"], &row["role"]), (&10.into(), &0.into(), &"server".into()));
        assert_eq!(row["statuses"], serde_json::json!([{"status": status, "count": 10}]));
        let total = row["latencies"]["total_ns"].as_u64().unwrap();
        let parts =
            ["on_thread_ns", "waiting_ns", "queued_ns"].map(|part| row["parts"][part].as_u64().unwrap());
        assert!(parts[0] > 0 && parts.iter().sum::<u64>() <= total, "{row}");
    }
    let slowest = report["slowest"].as_array().unwrap();
    assert_eq!(slowest.len(), 3);
    assert!(slowest.iter().all(|span| span["end"] == "stopped"), "{slowest:?}");
}
