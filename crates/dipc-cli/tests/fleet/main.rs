//! `dipc export`, and its message without the writer of tables.

#[cfg(feature = "export")]
mod export;

use std::process::{Command, Output};

fn dipc(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dipc")).args(arguments).output().unwrap()
}

#[test]
fn standard_input_is_refused_and_labels_are_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("data");
    let to = to.to_str().unwrap();
    let output = dipc(&["export", "x", "--to", to, "--label", "shop"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("'shop' is not NAME=VALUE"));
    assert_eq!(dipc(&["export", "--to", to]).status.code(), Some(2));
}

#[test]
fn views_are_printed_for_each_engine() {
    for dialect in ["duckdb", "datafusion", "spark", "clickhouse"] {
        let output = dipc(&["schema", "some/data", "--dialect", dialect]);
        assert_eq!(output.status.code(), Some(0));
        let sql = String::from_utf8(output.stdout).unwrap();
        assert!(sql.contains("some/data/events"), "{sql}");
        for view in
            ["top_methods", "inclusive", "requests", "gc_pauses", "allocations", "exceptions", "compare"]
        {
            assert!(sql.contains(&format!("VIEW {view} AS")), "{dialect}: {view}");
        }
    }
}

#[test]
#[cfg(unix)]
fn a_query_is_run_by_the_duckdb_that_is_installed() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let sql = |path: &std::path::Path| {
        Command::new(env!("CARGO_BIN_EXE_dipc"))
            .args(["sql", data.to_str().unwrap(), "SELECT 1", "--format", "json"])
            .env("PATH", path)
            .output()
            .unwrap()
    };
    let output = sql(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no data set"));
    std::fs::create_dir_all(data.join("recordings")).unwrap();
    let output = sql(folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("https://duckdb.org/install"));
    let program = folder.path().join("duckdb");
    std::fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 3\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = sql(folder.path());
    assert_eq!(output.status.code(), Some(3));
    let called = String::from_utf8_lossy(&output.stdout);
    assert!(called.starts_with("-batch -json -c CREATE OR REPLACE VIEW events AS"), "{called}");
    assert!(called.ends_with("SELECT 1\n"), "{called}");
}

#[test]
#[cfg(not(feature = "export"))]
fn says_where_to_find_the_missing_writer() {
    let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(["export", "x", "--to", "y"])
        .env("PATH", "")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("install.sh --fleet, "), "{message}");
    let archive = format!("dipc-fleet-{}-{}-", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    assert!(message.contains(&archive) || cfg!(not(any(target_os = "linux", windows))), "{message}");
}

#[test]
#[cfg(all(unix, not(feature = "export")))]
fn the_program_with_the_writer_is_started() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("dipc-fleet");
    std::fs::write(&program, "#!/bin/sh\necho \"$@\"\nexit 6\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(["export", "a b", "--to", "y"])
        .env("PATH", folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "export a b --to y\n");
}
