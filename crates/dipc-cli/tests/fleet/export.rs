//! Recordings as tables.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::dipc;

/// Unpacks a recording of testdata.
fn recording(name: &str, to: &Path) -> String {
    let path = to.join(name);
    testdata::write(&format!("traces/{name}.xz"), &path);
    path.to_str().unwrap().to_owned()
}

fn files(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}

#[test]
fn lists_labels_and_damage() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-sample.nettrace", folder.path());
    let other = recording("net10-gcverbose.nettrace", folder.path());
    let cut = recording("net10-typed.nettrace", folder.path());
    fs::OpenOptions::new().write(true).open(&cut).unwrap().set_len(5000).unwrap();
    fs::write(format!("{other}.json"), r#"{"service": "billing", "version": 7}"#).unwrap();
    let to = folder.path().join("data");
    let arguments = ["export", &one, "--files-from", "-", "--to", to.to_str().unwrap(), "--format", "json"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(arguments)
        .args(["--label", "version=8"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{other}\n\n{cut}\n{one}\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(6), "{errors}");
    assert!(errors.contains("net10-typed.nettrace: cut"), "{errors}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["recordings"], 3);
    assert_eq!(summary["duplicates"], 1);
    assert_eq!(summary["incomplete"], 1);
    let services: Vec<_> = summary["shards"].as_array().unwrap().iter().map(|row| &row["service"]).collect();
    assert_eq!(services, ["billing", "unknown"]);
    assert!(to.join("events/date=2026-11-21/service=billing").is_dir());
    assert_eq!(files(&to), 2 * 8);

    // Again: nothing to do, and nothing is missing.
    let again = dipc(&["export", &one, &other, "--to", to.to_str().unwrap(), "--format", "json"]);
    assert_eq!(again.status.code(), Some(0));
    let summary: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!((&summary["recordings"], &summary["already"]), (&0.into(), &2.into()));
    assert_eq!(files(&to), 2 * 8);
}

#[test]
fn reads_labels_from_a_regular_file_of_bounded_size() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording("net10-sample.nettrace", folder.path());
    let to = folder.path().join("data");
    let export = || dipc(&["export", &file, "--to", to.to_str().unwrap()]);
    let labels = format!("{file}.json");
    fs::write(&labels, format!(r#"{{"service": "{}"}}"#, "x".repeat(1 << 20))).unwrap();
    let output = export();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains(".json") && errors.contains("at most 1048576 bytes"), "{errors}");
    if cfg!(unix) {
        // A pipe without a writer.
        fs::remove_file(&labels).unwrap();
        assert!(Command::new("mkfifo").arg(&labels).status().unwrap().success());
        let output = export();
        assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn unreadable_recordings_do_not_stop_an_export() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-typed.nettrace", folder.path());
    let text = folder.path().join("text");
    fs::write(&text, "no recording").unwrap();
    let to = folder.path().join("data");
    let output = dipc(&["export", text.to_str().unwrap(), "/nosuch", &one, "--to", to.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("Recordings: 1 exported, 0 already there, 0 listed twice, 2 failed"), "{table}");
    assert_eq!(dipc(&["export", "-", "--to", to.to_str().unwrap()]).status.code(), Some(2));
}

#[test]
fn redaction_is_the_same_in_each_export() {
    let folder = tempfile::tempdir().unwrap();
    let thrown = recording("net10-exceptions.nettrace", folder.path());
    let export = |to: &str, more: &[&str]| {
        let to = folder.path().join(to);
        let output = dipc(&[&["export", &thrown, "--to", to.to_str().unwrap()], more].concat());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let date = fs::read_dir(to.join("events")).unwrap().next().unwrap().unwrap().path();
        let file = fs::read_dir(date.join("service=unknown")).unwrap().next().unwrap().unwrap().path();
        (fs::read(file).unwrap(), errors)
    };
    let redact = ["--redact", "exception-messages", "--redact", "*/ProcessInfo.CommandLine"];
    let (plain, errors) = export("plain", &[]);
    assert!(!errors.contains("Redacted"), "{errors}");
    let (one, errors) = export("one", &redact);
    assert!(
        errors.contains("Microsoft-Windows-DotNETRuntime/Exception/Start.ExceptionMessage, "),
        "{errors}"
    );
    assert!(errors.contains("/ProcessInfo.CommandLine, "), "{errors}");
    let (other, _) = export("other", &redact);
    assert_eq!(one, other);
    assert_ne!(one, plain);
    let output = dipc(&["export", &thrown, "--to", "x", "--redact", "messages"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn promoted_fields_are_kept_by_the_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-gcverbose.nettrace", folder.path());
    let to = folder.path().join("data");
    let to = to.to_str().unwrap();
    let depth = "Microsoft-Windows-DotNETRuntime/GC/Start.Depth";
    let output = dipc(&["export", &one, "--to", to, "--promote", &format!("{depth}:long")]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let views = String::from_utf8(dipc(&["schema", to]).stdout).unwrap();
    let listed = format!("-- events.p_microsoft_windows_dotnetruntime_gc_start_depth: {depth}:long\n");
    assert!(views.starts_with(&listed), "{views}");
    let output = dipc(&["export", &one, "--to", to, "--promote", &format!("{depth}:double")]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("--promote: ") && errors.contains("help: a column keeps its field"), "{errors}");
    let output = dipc(&["export", &one, "--to", to, "--promote", "a/b.c:int"]);
    assert_eq!(output.status.code(), Some(2));
}

#[cfg(feature = "cloud")]
#[test]
fn rejects_invalid_store_addresses() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-typed.nettrace", folder.path());
    for (to, message) in [
        ("ftp://a/b", "ftp://a/b: this is not the address of a store"),
        ("s3:///b", "s3:///b: the name of the bucket is missing"),
        ("s3://a/../b", "s3://a/../b: "),
    ] {
        let output = dipc(&["export", &one, "--to", to]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{to}");
        assert!(errors.starts_with(&format!("error: --to: {message}")), "{errors}");
    }
}

/// Servers that check signatures as requests come refuse a query that is signed with `%20` and sent with `+`.
#[cfg(feature = "cloud")]
#[test]
fn signs_spaces_in_folders_as_sent() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-typed.nettrace", folder.path());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        client
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .unwrap();
        String::from_utf8(request).unwrap()
    });
    let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(["export", &one, "--to", "s3://fleet/it's a+b"])
        .envs([("AWS_ENDPOINT", &*address), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")])
        .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
        .output()
        .unwrap();
    let request = server.join().unwrap();
    let line = request.lines().next().unwrap();
    let query = "delimiter=%2F&list-type=2&prefix=it%27s%20a%2Bb%2F_promoted%2F";
    assert_eq!(line, format!("GET /fleet?{query} HTTP/1.1"));
    assert_eq!(output.status.code(), Some(1));
}

/// Each part of the list names a next one.
#[cfg(feature = "cloud")]
#[test]
fn a_list_without_end_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let one = recording("net10-typed.nettrace", folder.path());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let object = "<Contents><Key>f/_promoted/x</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>";
    let list = format!(
        "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>n</NextContinuationToken>{}</ListBucketResult>",
        object.repeat(50_000)
    );
    let answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}", list.len());
    // The thread ends with the tests.
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && client.read_exact(&mut byte).is_ok() {
                request.push(byte[0]);
            }
            // The client has enough at some time.
            let _ = client.write_all(answer.as_bytes());
        }
    });
    let output = Command::new(env!("CARGO_BIN_EXE_dipc"))
        .args(["export", &one, "--to", "s3://fleet/f"])
        .envs([("AWS_ENDPOINT", &*address), ("AWS_ALLOW_HTTP", "true"), ("AWS_REGION", "us-east-1")])
        .envs([("AWS_ACCESS_KEY_ID", "key"), ("AWS_SECRET_ACCESS_KEY", "secret")])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("the store answers with more than 64 MB"), "{errors}");
}
