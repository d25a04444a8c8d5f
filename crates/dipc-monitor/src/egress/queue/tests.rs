use std::cell::Cell;
use std::io::Write as _;

use super::*;

fn job(root: &Path, name: &str) -> Job {
    Job {
        id: Uuid::from_u128(7).to_string(),
        state: JobState::Collecting,
        provider: "files".to_owned(),
        is_upload: false,
        directory: root.join("artifacts"),
        intermediate: None,
        name: name.to_owned(),
        delivered: None,
        pid: 1,
        uid: Uuid::nil().to_string(),
        process_name: "shop".to_owned(),
        tags: BTreeSet::new(),
        request: StoredRequest::default(),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// One run of the program over a job: it is collected if necessary, and delivered.
fn run(job: &mut Job, queue: &Path, step: crate::egress::delivery::Step<'_>) -> io::Result<()> {
    if job.state == JobState::Collecting {
        let mut file = job.places()?.create()?.file;
        file.write_all(b"the ")?;
        step()?;
        file.write_all(b"artifact")?;
        file.sync_all()?;
        step()?;
        job.state = JobState::Complete;
        job.store(queue, step)?;
    }
    step()?;
    let upload = |_: &Job, _: &Path| unreachable!("it is for a directory");
    deliver_once(job, queue, step, &upload).map(|_| ())
}

/// The program ends at each step in turn, and at each step of the run after it.
#[test]
fn whenever_the_program_ends_the_artifact_arrives_once_and_whole() {
    let mut ends = 0;
    for first in 0.. {
        let mut is_last = false;
        for second in 0..=first + 2 {
            let folder = tempfile::tempdir().unwrap();
            let queue = folder.path().join("queue");
            fs::create_dir(&queue).unwrap();
            let artifacts = folder.path().join("artifacts");
            fs::create_dir(&artifacts).unwrap();
            // Another file has the name.
            fs::write(artifacts.join("a.nettrace"), "other").unwrap();
            job(folder.path(), "a.nettrace").store(&queue, &|| Ok(())).unwrap();
            for (run_number, most) in [first, second, usize::MAX].into_iter().enumerate() {
                let left = Cell::new(most);
                let step = || match left.get().checked_sub(1) {
                    Some(fewer) => {
                        left.set(fewer);
                        Ok(())
                    }
                    None => Err(io::ErrorKind::Interrupted.into()),
                };
                for mut job in Job::read_all(&queue).unwrap() {
                    let result = run(&mut job, &queue, &step);
                    ends += usize::from(result.is_err());
                    is_last |= run_number == 0 && result.is_ok();
                }
            }
            assert_eq!(names(&artifacts), ["a-2.nettrace", "a.nettrace"], "{first}, {second}");
            assert_eq!(fs::read(artifacts.join("a-2.nettrace")).unwrap(), b"the artifact");
            assert_eq!(fs::read(artifacts.join("a.nettrace")).unwrap(), b"other");
            assert_eq!(names(&queue), [""; 0], "{first}, {second}");
        }
        if is_last {
            assert!(first > 8 && ends > 50, "{first} steps, {ends} ends");
            return;
        }
    }
}

#[test]
fn a_queue_is_of_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let queue = EgressQueue::open(folder.path()).unwrap();
    assert_eq!(EgressQueue::open(folder.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(queue);
    // Records of other versions, and foreign files, are left alone.
    fs::write(folder.path().join("x.job.json"), "{").unwrap();
    let job = job(folder.path(), "a");
    job.store(folder.path(), &|| Ok(())).unwrap();
    let queue = EgressQueue::open(folder.path()).unwrap();
    assert_eq!((queue.len(), lock(&queue.0.earlier).clone()), (1, vec![job]));
    assert!(names(folder.path()).contains(&"x.job.json".to_owned()));
}
