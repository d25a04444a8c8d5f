//! .NET 10, as a single-file server program: what it does on request is in the recording.

use crate::program::Recording;
use crate::workload::McpServer;

#[test]
fn a_server_of_net10_is_recorded_at_work() {
    let Some(mut server) = McpServer::start() else { return };
    let recording = Recording::start(server.pid(), &[]);
    for id in 0..20 {
        let tools = server.request(100 + id, "tools/list", "{}");
        assert!(tools["tools"].as_array().is_some_and(|tools| !tools.is_empty()), "{tools}");
    }
    let recorded = recording.interrupt();
    let stat = recorded.stat(0);
    stat.assert_whole();
    assert_eq!(stat.lost(), 0);
    assert_eq!(stat.0["process_id"], server.pid());
    assert!(stat.provider("Microsoft-Windows-DotNETRuntimeRundown") > 1000, "{}", stat.0);
}
