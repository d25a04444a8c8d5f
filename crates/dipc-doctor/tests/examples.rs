//! The example, run on this machine.

#[path = "../examples/why.rs"]
#[expect(dead_code, reason = "its main")]
mod why;

#[test]
fn processes_are_counted_and_their_problems_are_lines() {
    let mut out = Vec::new();
    why::run(&mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    let mut lines = out.lines();
    let (count, rest) = lines.next().unwrap().split_once(' ').unwrap();
    assert!(count.parse::<usize>().is_ok() && rest == "processes look like .NET", "{out}");
    assert!(lines.all(|line| line.contains("; fix: ")), "{out}");
}
