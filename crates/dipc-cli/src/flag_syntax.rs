//! The forms of flags that the dotnet-* tools accept besides clap's: `--flag:value`, and values of switches,
//! `--switch:true`.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{Arg, ArgAction, Command, CommandFactory as _};

use crate::cli::{Cli, subcommand};

/// Returns the words of a command line with `--flag:value` as `--flag=value`, `--switch:true` as `--switch`
/// and without `--switch:false`. Only flags of the command are changed, and nothing after `--`.
pub(crate) fn normalize(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let words: Vec<_> = words.collect();
    if !words.iter().any(|word| Flag::parse(word).is_some()) {
        return words;
    }
    rewrite(words, &Cli::command())
}

fn rewrite(words: Vec<OsString>, root: &Command) -> Vec<OsString> {
    let mut rewritten = Vec::with_capacity(words.len());
    let mut command = Cow::Borrowed(root);
    let mut words = words.into_iter();
    rewritten.extend(words.next());
    while let Some(word) = words.next() {
        if word == "--" {
            rewritten.push(word);
            rewritten.extend(words);
            break;
        }
        let found =
            Flag::parse(&word).and_then(|flag| Some((flag.find_in(&command).or(flag.find_in(root))?, flag)));
        if let Some((arg, flag)) = found {
            rewritten.extend(flag.in_form_of(arg));
        } else {
            if let Some(found) = word.to_str().and_then(|word| subcommand(&command, word)) {
                command = Cow::Owned(found);
            }
            rewritten.push(word);
        }
    }
    rewritten
}

/// A flag with its value in one word.
#[derive(Debug, Clone, Copy)]
struct Flag<'w> {
    /// `--flag` or `-f`.
    name: &'w str,
    value: &'w str,
}

impl<'w> Flag<'w> {
    fn parse(word: &'w OsString) -> Option<Self> {
        let word = word.to_str().filter(|word| word.starts_with('-'))?;
        let (name, value) = word.split_at_checked(word.find([':', '='])?)?;
        Some(Self { name, value: value.get(1..)? })
    }

    fn find_in<'c>(&self, command: &'c Command) -> Option<&'c Arg> {
        command.get_arguments().find(|arg| self.names(arg))
    }

    fn names(&self, arg: &Arg) -> bool {
        if let Some(name) = self.name.strip_prefix("--") {
            return arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name));
        }
        let mut letters = self.name.chars().skip(1);
        letters.next().is_some_and(|letter| arg.get_short() == Some(letter)) && letters.next().is_none()
    }

    /// Returns the word that clap accepts for it; `None` for a switch that is off.
    fn in_form_of(self, arg: &Arg) -> Option<OsString> {
        let Self { name, value } = self;
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            if value.eq_ignore_ascii_case("true") {
                return Some(name.into());
            }
            if value.eq_ignore_ascii_case("false") {
                return None;
            }
        }
        Some(format!("{name}={value}").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        let words: Vec<_> = normalize(words).into_iter().map(|word| word.into_string().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn a_colon_after_a_flag_is_an_equals_sign() {
        for (line, expected) in [
            ("dipc collect -p:7 --resume-runtime:false", "dipc collect -p=7 --resume-runtime=false"),
            ("dipc trace --dport:/tmp/a,connect", "dipc trace --dport=/tmp/a,connect"),
            ("dipc trace --providers:A:1:4", "dipc trace --providers=A:1:4"),
            ("dipc trace --providers=A:1:4", "dipc trace --providers=A:1:4"),
            ("dipc perfmap on --type:all", "dipc perfmap on --type=all"),
            ("dipc trace --show-child-io:true -- a --b:c", "dipc trace --show-child-io -- a --b:c"),
            ("dipc trace --fail-on-loss:False -p 1", "dipc trace -p 1"),
            ("dipc -q:true ps", "dipc -q ps"),
        ] {
            assert_eq!(normal(line), expected);
        }
    }

    #[test]
    fn leaves_other_arguments_unchanged() {
        for line in [
            "dipc trace --providers A:1:4 --nosuch:1",
            "dipc stat --resume-runtime:false",
            "dipc trace -p 1 -x:y",
            "dipc stat a:b",
        ] {
            assert_eq!(normal(line), line);
        }
    }
}
