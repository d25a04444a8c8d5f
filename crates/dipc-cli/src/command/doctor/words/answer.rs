use dipc_doctor::{AnswerEvidence, TimeoutReason};

use super::Words;

pub(super) fn answer(evidence: &AnswerEvidence) -> Words {
    match evidence {
        AnswerEvidence::Answered { command, after } => {
            let milliseconds = after.as_secs_f64() * 1000.0;
            Words::new(match command {
                Some(command) => format!("it answered {command} in {milliseconds:.1} ms"),
                None => format!("it answered in {milliseconds:.1} ms that it does not know the question"),
            })
        }
        AnswerEvidence::Refused { error, after } => {
            let milliseconds = after.as_secs_f64() * 1000.0;
            Words::new(format!("it answered in {milliseconds:.1} ms, with an error: {error}")).because(
                "its command line is longer than a message: all other commands work, and dipc takes the missing information from the system",
            )
        }
        AnswerEvidence::TimedOut { error, reason } => timed_out(Words::new(error.to_string()), *reason),
        AnswerEvidence::OtherProcess(error) => Words::new(error.to_string()).because(
            "another process listens on its socket: it inherited it, or planted one; nothing was sent to it",
        ),
        AnswerEvidence::NoListener(error) => Words::new(error.to_string())
            .because("the part of the runtime that listened has ended, or the file is not its own"),
        AnswerEvidence::Failed(error) => Words::new(error.to_string()),
        other => Words::unknown(other),
    }
}

fn timed_out(words: Words, reason: TimeoutReason) -> Words {
    match reason {
        TimeoutReason::Overload => words.because(
            "the runtime does not get to its diagnostic port: its machine is overloaded, or its memory is being collected \
             or swapped",
        ),
        TimeoutReason::OtherClients { connections } => words.because(format!(
            "the runtime serves one client at a time; {connections} other connection{} to its socket {} open, and a silent client or a long command holds up all others",
            if connections == 1 { "" } else { "s" },
            if connections == 1 { "is" } else { "are" },
        )),
        _ => words,
    }
}
