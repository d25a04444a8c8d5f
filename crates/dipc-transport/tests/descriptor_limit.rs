//! The limit of descriptors of children. Alone in its process, since it changes the limit.
#![cfg(unix)]

use std::process::Command;

use dipc_transport::{descriptor_limit, raise_descriptor_limit, restore_descriptor_limit};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const BEFORE: u64 = 200;

fn limit_of_child(configure: impl FnOnce(&mut Command)) -> u64 {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -Sn"]);
    configure(&mut command);
    String::from_utf8(command.output().unwrap().stdout).unwrap().trim().parse().unwrap()
}

#[test]
fn a_child_begins_with_the_limit_from_before_it_was_raised() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(BEFORE), maximum }).unwrap();
    assert_eq!(limit_of_child(restore_descriptor_limit), BEFORE);

    let raised = raise_descriptor_limit().unwrap().unwrap();
    assert_eq!((raised.before, raised.now), (Some(BEFORE), descriptor_limit()));
    let now = raised.now.unwrap();
    assert!(now > BEFORE, "{raised:?}");
    // The second time there is nothing to raise, and the former limit is still known.
    assert_eq!(raise_descriptor_limit().unwrap(), Some(raised));
    assert_eq!(limit_of_child(|_| ()), now);
    assert_eq!(limit_of_child(restore_descriptor_limit), BEFORE);
    assert_eq!(descriptor_limit(), Some(now));
}
