//! The examples, run on a recording.

#[path = "../../nettrace/tests/reference/files.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod files;
#[path = "../examples/flame_graph.rs"]
#[expect(dead_code, reason = "its main")]
mod flame_graph;

use std::fs;
use std::path::Path;

#[test]
fn a_flame_graph_shows_allocated_types() {
    let bytes = files::bytes_of(&files::testdata().join("traces/net10-gcverbose.nettrace.xz"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (recording, page) = (folder.join("example.nettrace"), folder.join("example.html"));
    fs::write(&recording, bytes).expect("a file");
    flame_graph::flame_graph(&recording, &page).expect("a page");
    let page = fs::read_to_string(page).expect("a page");
    // The page's data is compressed: the beginning of gzip, in base64.
    assert!(page.contains("id=\"data\">H4sI") && page.ends_with("</html>\n"), "{} bytes", page.len());
}
