//! Peers that hold the diagnostic socket and do not behave.

use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::program::{Finished, Running, dipc, run, stat};

const MAGIC: &[u8; 14] = b"DOTNET_IPC_V1\0";

/// A listening socket that treats every connection the same, each in its own thread.
struct Peer {
    folder: tempfile::TempDir,
    /// The time limit of commands. It is long for a peer that answers: its thread may wait for a processor.
    timeout: &'static str,
}

impl Peer {
    fn start(treat: impl Fn(UnixStream) + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let treat = Arc::new(treat);
        // These threads end with the test program, at the latest.
        std::thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                let treat = Arc::clone(&treat);
                std::thread::spawn(move || treat(connection));
            }
        });
        Self { folder, timeout: "1s" }
    }

    /// Answers each request with these bytes and closes.
    fn answering(bytes: Vec<u8>) -> Self {
        let peer = Self::start(move |mut connection| {
            read_request(&mut connection);
            let _ = connection.write_all(&bytes);
        });
        Self { timeout: "60s", ..peer }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn info(&self) -> Finished {
        run(["info", "--endpoint", self.path().to_str().unwrap(), "--timeout", self.timeout])
    }

    fn trace(&self, output: &Path) -> Finished {
        let socket = self.path();
        let fixed = ["trace", "--endpoint", socket.to_str().unwrap(), "-o", output.to_str().unwrap()];
        let limits = ["--timeout", self.timeout, "--duration", "30s"];
        Running::start(dipc(fixed.into_iter().chain(limits))).finish()
    }
}

/// Reads one whole request; its command set and id.
fn read_request(connection: &mut UnixStream) -> [u8; 2] {
    let mut header = [0; 20];
    connection.read_exact(&mut header).unwrap();
    assert_eq!(&header[..14], MAGIC);
    let size = usize::from(u16::from_le_bytes([header[14], header[15]]));
    connection.read_exact(&mut vec![0; size - header.len()]).unwrap();
    [header[16], header[17]]
}

/// A reply with a payload.
fn reply(id: u8, payload: &[u8]) -> Vec<u8> {
    let size = u16::try_from(20 + payload.len()).unwrap();
    [MAGIC.as_slice(), &size.to_le_bytes(), &[0xff, id, 0, 0], payload].concat()
}

fn session_reply() -> Vec<u8> {
    reply(0, &7_u64.to_le_bytes())
}

#[test]
fn peer_never_answers() {
    let peer = Peer::start(|mut connection| {
        read_request(&mut connection);
        // Held open until the client gives up.
        let _ = connection.read(&mut [0]);
    });
    let start = Instant::now();
    peer.info().with_code(5).assert_error_names(&[peer.path().to_str().unwrap()]);
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.nettrace");
    peer.trace(&output).with_code(5).assert_error_names(&[peer.path().to_str().unwrap()]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(!output.exists(), "nothing was recorded, so nothing is left behind");
}

/// The reported time is the time of the whole exchange, not of its last step.
#[test]
fn peer_answers_a_byte_at_a_time() {
    let peer = Peer::start(|mut connection| {
        read_request(&mut connection);
        for byte in reply(0, &[0; 60]) {
            std::thread::sleep(Duration::from_millis(70));
            if connection.write_all(&[byte]).is_err() {
                return;
            }
        }
    });
    let told = peer.info().with_code(5);
    told.assert_error_names(&["no answer after "]);
    let after = told.stderr.split("no answer after ").nth(1).unwrap().split(" s").next().unwrap();
    // The last step waits for one byte.
    assert!(after.parse::<f64>().unwrap() > 0.5, "{}", told.stderr);
}

#[test]
fn peer_does_not_accept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _listener = UnixListener::bind(&path).unwrap();
    let path = path.to_str().unwrap();
    run(["info", "--endpoint", path, "--timeout", "1s"]).with_code(5).assert_error_names(&[path]);
}

#[test]
fn peer_answers_something_else() {
    let mut wrong_magic = reply(0, &[0; 8]);
    wrong_magic[3] = b'X';
    let mut too_small = reply(0, &[0; 8]);
    too_small[14..16].copy_from_slice(&19_u16.to_le_bytes());
    let not_a_reply = [MAGIC.as_slice(), &28_u16.to_le_bytes(), &[2, 2, 0, 0], &[0; 8]].concat();
    let short_payload = reply(0, &[1, 2, 3]);
    for bytes in
        [wrong_magic, too_small, not_a_reply, short_payload, b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]
    {
        let peer = Peer::answering(bytes.clone());
        let path = peer.path();
        peer.info().with_code(1).assert_error_names(&[path.to_str().unwrap()]);
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.nettrace");
        peer.trace(&output).with_code(1).assert_error_names(&[path.to_str().unwrap()]);
        assert!(!output.exists(), "{bytes:?}");
    }
}

/// The connection ends where more should come: at once, within the header, within the payload it announced.
#[test]
fn peer_hangs_up() {
    let whole = reply(0, &[0; 40]);
    for end in [0, 1, 19, 20, 59] {
        let peer = Peer::answering(whole[..end].to_vec());
        peer.info().with_code(1).assert_error_names(&[peer.path().to_str().unwrap()]);
    }
}

#[test]
fn peer_refuses() {
    // E_FAIL, and the runtime's own "bad encoding".
    for (hresult, shown) in [(0x8000_4005_u32, "0x80004005"), (0x8013_1384, "0x80131384")] {
        let peer = Peer::answering(reply(0xff, &hresult.to_le_bytes()));
        peer.info().with_code(4).assert_error_names(&[peer.path().to_str().unwrap(), shown]);
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.nettrace");
        peer.trace(&output).with_code(4).assert_error_names(&[shown]);
        assert!(!output.exists());
    }
}

/// Any Error frame is a failure, even one that says S_OK.
#[test]
fn peer_refuses_with_success() {
    let peer = Peer::answering(reply(0xff, &0_u32.to_le_bytes()));
    peer.info().with_code(4).assert_error_names(&["0x00000000"]);
}

/// A recorded stream after the reply, all at once, then the end as if the process had died.
#[test]
fn stream_arrives_with_the_reply_and_ends_early() {
    let recording = testdata::bytes("traces/net10-typed.nettrace.xz");
    for (end, code) in [(recording.len(), 0), (recording.len() - 1, 6), (recording.len() / 2, 6), (200, 6)] {
        let stream = recording[..end].to_vec();
        let bytes = [session_reply(), stream.clone()].concat();
        let peer = Peer::answering(bytes);
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out.nettrace");
        let finished = peer.trace(&output).with_code(code);
        assert_eq!(
            std::fs::read(&output).unwrap(),
            stream,
            "every byte that came is kept: {}",
            finished.stderr
        );
        assert_eq!(stat(&output, code).0["truncated"], code == 6);
    }
}

/// A stream that falls silent is no failure while it records, and one after the stop.
#[test]
fn peer_never_ends_the_stream() {
    let peer = Peer::start(|mut connection| {
        if read_request(&mut connection) == [2, 1] {
            let _ = connection.write_all(&session_reply());
            return;
        }
        let _ = connection.write_all(&[session_reply(), b"Nettrace".to_vec()].concat());
        let _ = connection.read(&mut [0]);
    });
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.nettrace");
    let socket = peer.path();
    let fixed = ["trace", "--endpoint", socket.to_str().unwrap(), "-o", output.to_str().unwrap()];
    let finished = Running::start(dipc(fixed.into_iter().chain(["--timeout", "1s", "--duration", "2s"])))
        .finish()
        .with_code(5);
    finished.assert_error_names(&[socket.to_str().unwrap()]);
    assert_eq!(std::fs::read(&output).unwrap(), b"Nettrace", "what came is kept");
}

/// Without a limit, commands that read the stream stop its session: it would go on for as long as the
/// process.
#[test]
fn a_peer_with_an_unreadable_stream() {
    let (stopped, is_stopped) = std::sync::mpsc::channel();
    let is_stopped = std::sync::Mutex::new(is_stopped);
    let peer = Peer::start(move |mut connection| match read_request(&mut connection) {
        [2, 1] => {
            let _ = connection.write_all(&session_reply());
            let _ = stopped.send(());
        }
        [2, _] => {
            let stream = [b"Nettrace".as_slice(), &[0xff; 64]].concat();
            let _ = connection.write_all(&[session_reply(), stream].concat());
            // The stream ends when the session is stopped.
            let _ = is_stopped.lock().unwrap().recv();
        }
        _ => {
            let _ = connection.write_all(&reply(0xff, &0x8013_1385_u32.to_le_bytes()));
        }
    });
    let socket = peer.path();
    let socket = socket.to_str().unwrap();
    for command in [&["counters", "monitor", "--plain"][..], &["events"]] {
        let arguments = command.iter().copied().chain(["--endpoint", socket, "--timeout", "5s"]);
        let finished = Running::start(dipc(arguments)).finish();
        assert!(finished.stderr.contains("cannot be read"), "{command:?}: {finished:?}");
    }
}
