use dipc_doctor::dipc_transport::Error;
use dipc_doctor::{MissingSocketReason, SocketEvidence, StaleSocketsEvidence};

use super::Words;

pub(super) fn socket(evidence: &SocketEvidence) -> Words {
    match evidence {
        SocketEvidence::Found { path } => Words::new(path.display().to_string()),
        SocketEvidence::Missing { folder, reason } => {
            Words::new(format!("it has no diagnostic socket in {}", folder.display()))
                .because(missing(reason))
        }
        SocketEvidence::Rejected(error) => {
            let words = Words::new(error.to_string());
            match &**error {
                Error::ForeignSocket { .. } => words.because(
                    "someone else put a socket in the place of this process's socket, perhaps to intercept its messages; dipc sends nothing there",
                ),
                Error::NotASocket { .. } => {
                    words.because("a file with the name of its socket is in the way")
                }
                _ => words,
            }
        }
        SocketEvidence::ProcessNotVisible { count, example } => Words::new(format!(
            "sockets of processes that are not visible from here: {count}, such as {}",
            example.display()
        ))
        .because("they are in another pid namespace, as in a container that shares the folder with this one"),
        other => Words::unknown(other),
    }
}

fn missing(reason: &MissingSocketReason) -> String {
    match reason {
        MissingSocketReason::Removed { path, may_be_dump } => {
            let by_dump = "by the runtime itself after a dump request, or ";
            format!(
                "the runtime still listens on {}, but the file was removed: {}by something that clears temporary files",
                path.display(),
                if *may_be_dump { by_dump } else { "" },
            )
        }
        MissingSocketReason::Cut { path, length, limit } => format!(
            "{}: the runtime cut its name, and listens on {}",
            too_long(*length, *limit),
            path.display()
        ),
        MissingSocketReason::Elsewhere { path } => {
            format!("it listens on {}: its TMPDIR was changed after its start", path.display())
        }
        MissingSocketReason::Disabled { setting } => format!("{setting} switches it off"),
        MissingSocketReason::PathTooLong { length, limit } => too_long(*length, *limit),
        MissingSocketReason::NoFolder { path } => {
            format!("the folder {} does not exist, or no longer does", path.display())
        }
        MissingSocketReason::ReadOnly { path, mount } => {
            format!("{} is in a read-only file system (mounted at {mount})", path.display())
        }
        MissingSocketReason::Unknown => {
            "its file was removed and its socket closed, or the folder may not be written by its user, or the runtime has \
             only just begun to start"
                .to_owned()
        }
        other => format!("{other:?}"),
    }
}

fn too_long(length: usize, limit: usize) -> String {
    format!("a socket's path has at most {limit} bytes, and this one would have {length}")
}

pub(super) fn stale(evidence: &StaleSocketsEvidence) -> Words {
    match evidence {
        StaleSocketsEvidence::SamePid { count, folder } => Words::new(format!(
            "{count} older socket{} with its pid in {}, left behind by earlier processes with that pid",
            if *count == 1 { "" } else { "s" },
            folder.display()
        ))
        .because(
            "dipc checks the start time in the name, and does not confuse them with this process's socket",
        ),
        StaleSocketsEvidence::Ended { count, example } => Words::new(format!(
            "sockets of processes that have ended: {count}, such as {}",
            example.display()
        ))
        .because("a runtime that crashes or is killed leaves its socket behind; dipc ignores such sockets"),
        other => Words::unknown(other),
    }
}
