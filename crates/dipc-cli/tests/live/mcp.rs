//! `dipc mcp`, spoken to as an agent's program does: a JSON-RPC message on each line.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::run;
use crate::runtime::Runtime;
use crate::workload::Target;

struct Agent {
    server: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    last: u64,
}

impl Agent {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut server = Command::new(env!("CARGO_BIN_EXE_dipc"))
            .args(["mcp", "--folder", folder.to_str().unwrap()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = server.stdin.take();
        let answers = BufReader::new(server.stdout.take().unwrap());
        let mut agent = Self { server, requests, answers, last: 0 };
        let client = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        });
        let answer = agent.request("initialize", &client);
        assert_eq!(answer["serverInfo"]["name"], "dipc");
        assert!(answer["instructions"].as_str().unwrap().contains("never instructions"));
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.requests.as_mut().unwrap(), "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, parameters: &Value) {
        self.last += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": parameters});
        self.send(&request);
    }

    fn request(&mut self, method: &str, parameters: &Value) -> Value {
        self.begin(method, parameters);
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], self.last, "{answer}");
        answer["result"].clone()
    }

    fn tools(&mut self) -> Vec<String> {
        let list = self.request("tools/list", &json!({}));
        let names = list["tools"].as_array().unwrap().iter();
        names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Calls a tool. Returns its answer, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let result = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
    }

    fn answer(&mut self, tool: &str, arguments: &Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{tool}: {text}");
        text
    }

    fn refusal(&mut self, tool: &str, arguments: &Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(is_error, "{tool}: {text}");
        text
    }

    /// The server ends when its agent closes its input.
    fn end(mut self) {
        self.requests = None;
        assert_eq!(self.server.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Of a failed test; otherwise it has ended.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn hung() -> Option<Target> {
    let command = Runtime::Net9_0.program("incidents/hang.dll")?;
    let target = Target::start_waiting(command);
    assert_eq!(target.line(), "started");
    Some(target)
}

#[test]
fn an_agent_finds_a_planted_deadlock() {
    let Some(target) = hung() else { return };
    let pid = target.pid();
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path(), &[]);
    assert!(!agent.tools().contains(&"dump".to_owned()));
    assert!(agent.answer("ps", &json!({})).contains(&pid.to_string()));
    // The threads need a moment to block one another.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let why = agent.answer("why", &json!({"pid": pid, "seconds": 2}));
        if why.contains("Cause      Deadlock: teller-") {
            assert!(why.starts_with(&format!("dipc why --process-id={pid} --duration=2s: done\n")), "{why}");
            break;
        }
        assert!(Instant::now() < deadline, "{why}");
    }
    assert!(agent.answer("locks", &json!({"pid": pid})).contains("Bank.Transfer("));
    let recorded = agent.answer("profile", &json!({"pid": pid, "output": "hang.nettrace", "seconds": 2}));
    assert!(recorded.contains("Deadlock: teller-"), "{recorded}");
    assert!(agent.answer("why", &json!({"file": "hang.nettrace"})).contains("Cause      Deadlock: teller-"));
    let again = agent.refusal("profile", &json!({"pid": pid, "output": "hang.nettrace", "seconds": 2}));
    assert!(again.contains("exists already"), "{again}");
    agent.end();
}

#[test]
fn the_parts_of_a_long_answer_are_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path(), &[]);
    let mut answer = agent.answer("help", &json!({"topic": "scripts"}));
    let mut read = String::new();
    loop {
        assert!(answer.len() < 25_000, "{}", answer.len());
        let (_, data) = answer.split_once("<data ").unwrap();
        let (mark, data) = data.split_once(">\n").unwrap();
        let (data, next) = data.split_once(&format!("</data {mark}>\n")).unwrap();
        read.push_str(data);
        let Some((_, from)) = next.rsplit_once("The next part: tool more, answer 1, from ") else { break };
        let from: u64 = from.trim_end().trim_end_matches('.').parse().unwrap();
        answer = agent.answer("more", &json!({"answer": 1, "from": from}));
    }
    assert!(read.len() > 25_000, "{}", read.len());
    assert!(read == run(["help", "scripts"]).with_code(0).text(), "{read}");
    agent.refusal("more", &json!({"answer": 7, "from": 0}));
    agent.end();
}

#[test]
fn control_and_contents_are_kept_back() {
    let Some(target) = hung() else { return };
    let pid = target.pid();
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path(), &["--privacy"]);
    let refused = agent.refusal("dump", &json!({"pid": pid, "output": "core"}));
    assert!(refused.contains("--allow-control"), "{refused}");
    let refused = agent.refusal("dump_contents", &json!({"pid": pid, "view": "strings"}));
    assert!(refused.contains("--privacy"), "{refused}");
    let list = agent.answer("ps", &json!({}));
    assert!(list.contains(&format!("\"pid\": {pid}")) && !list.contains("hang.dll"), "{list}");
    agent.answer("profile", &json!({"pid": pid, "output": "a.nettrace", "seconds": 1}));
    let file = folder.path().join("a.nettrace");
    let plain = run(["report", file.to_str().unwrap()]).with_code(0).text();
    assert!(plain.contains("incidents/hang.dll"), "{plain}");
    let redacted = agent.answer("report", &json!({"file": "a.nettrace"}));
    assert!(redacted.contains("Recorded") && !redacted.contains("incidents/hang.dll"), "{redacted}");
    let watched = agent.answer("why", &json!({"pid": pid, "seconds": 1}));
    assert!(watched.contains("Looked at") && !watched.contains("incidents/hang.dll"), "{watched}");
    agent.end();

    let mut agent = Agent::start(folder.path(), &["--allow-control"]);
    agent.answer("dump", &json!({"pid": pid, "output": "core", "content": "mini"}));
    assert!(agent.answer("locks", &json!({"core": "core"})).contains("teller-1"));
    agent.end();
}

#[test]
fn a_cancelled_call_ends_its_command_and_not_the_server() {
    let Some(target) = hung() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path(), &[]);
    let watch = json!({"pid": target.pid(), "seconds": 600});
    agent.begin("tools/call", &json!({"name": "why", "arguments": watch}));
    let request = agent.last;
    let children = format!("/proc/{0}/task/{0}/children", agent.server.id());
    let runs = || !std::fs::read_to_string(&children).unwrap().trim().is_empty();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !runs() {
        assert!(Instant::now() < deadline, "no command runs");
        std::thread::sleep(Duration::from_millis(20));
    }
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request}});
    agent.send(&cancel);
    let answer = agent.answer("help", &json!({"topic": "hang"}));
    assert!(answer.contains("it answers nothing"), "{answer}");
    while runs() {
        assert!(Instant::now() < deadline, "the command goes on");
        std::thread::sleep(Duration::from_millis(20));
    }
    agent.end();
}
