//! Arguments that are defined when their command is used.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

/// The arguments or subcommands of a command, which are defined when the command is used: defining all
/// commands' arguments takes as long as everything else that `dipc ps` does.
#[derive(Debug)]
pub(crate) struct Deferred<T>(T);

impl<T> Deferred<T> {
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Deferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }

    fn update_from_arg_matches_mut(&mut self, matches: &mut ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches_mut(matches)
    }
}

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| keep_description(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| keep_description(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Deferred<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| keep_description(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| keep_description(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

/// Adds arguments to a command. The comment on the type of a group of arguments would become the description
/// of the command.
fn keep_description(command: Command, augment: fn(Command) -> Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    augment(command).about(Resettable::from(about)).long_about(Resettable::from(long_about))
}
