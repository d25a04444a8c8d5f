//! Memory that is free and kept: the first lines have the heap and the number, and the twins, which keep as
//! much in one piece, have no finding.

use serde_json::Value;

use super::{assert_begins_with, causes, start, until_found};
use crate::program::run;

#[test]
fn why_finds_a_native_heap_that_is_free() {
    let Some(target) = start("fragments", &["native"]) else { return };
    let parts = ["MB of the native heap are free and not given back", "Codec.open", "malloc_trim"];
    let causes = until_found(&target, &parts);
    // 297,000 chunks of 1,008 bytes; the runtime itself frees some memory.
    let free = causes[0]["numbers"].as_array().unwrap().iter().find(|number| number["name"] == "free_bytes");
    let free = free.unwrap()["value"].as_f64().unwrap();
    assert!((free - 297_000.0 * 1008.0).abs() < 8e6, "{causes:?}");
}

#[test]
fn why_finds_free_memory_between_large_objects() {
    let Some(target) = start("fragments", &["loh"]) else { return };
    let parts = [" of the large object heap are free between objects", "is of byte[]", "Album.shown"];
    until_found(&target, &parts);
}

#[test]
fn why_finds_pinned_objects_that_keep_memory() {
    let Some(target) = start("fragments", &["pinned"]) else { return };
    until_found(&target, &[" of generation 2 are free between objects; ", " objects of byte[] between it "]);
}

#[test]
fn why_finds_no_free_memory_that_was_given_back() {
    for incident in ["native", "loh", "pinned"] {
        let Some(target) = start("fragments", &[incident, "healthy"]) else { return };
        assert_eq!(causes(&target), Vec::<Value>::new(), "{incident}");
    }
}

#[test]
fn why_finds_free_memory_in_cores() {
    let Some(target) = start("fragments", &["native"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let core = folder.path().join("fragments.dmp");
    let core = core.to_str().unwrap();
    run(["dump", "-p", &target.pid().to_string(), "-o", core]).with_code(0);
    let text = run(["why", core]).with_code(0).text();
    assert_begins_with(
        &text,
        &["MB of the native heap are free and not given back to the system", "Codec.open"],
    );
}
