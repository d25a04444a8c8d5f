//! The command set Process.

use crate::client::{Client, Step};
use crate::error::Error;
use crate::identity::Identity;
use crate::state::push_bounded;
use crate::version::Quirk;
use dipc_wire::{
    ApplyStartupHook, Environment, HResult, PerfMapType, SetEnvironmentVariable, encode_error, encode_ok,
};
use std::ops::ControlFlow;
use std::path::Path;

impl Client<'_> {
    /// Answers any form of ProcessInfo.
    pub(super) fn answer_process_info(&mut self, form: impl Fn(&Identity) -> Result<Vec<u8>, Error>) -> Step {
        let config = self.config();
        let reply = if self.state().suspended {
            form(&config.identity.while_suspended(config.version))
        } else {
            form(&config.identity)
        };
        self.reply(reply.unwrap_or_else(|_| encode_error(HResult::FAIL)))
    }

    /// Answers ProcessEnvironment: a reply, followed by the environment.
    pub(super) fn answer_process_environment(&mut self) -> Step {
        let environment = Environment(self.state().environment.clone());
        let encoded = environment.to_bytes().and_then(|(reply, block)| Ok((encode_ok(&reply)?, block)));
        let Ok((reply, block)) = encoded else {
            return self.reply(encode_error(HResult::FAIL));
        };
        if self.reply(reply)?.is_continue() {
            self.send(&block)?;
        }
        Ok(ControlFlow::Break(()))
    }

    pub(super) fn set_environment_variable(
        &mut self,
        SetEnvironmentVariable { name, value }: &SetEnvironmentVariable,
    ) -> Step {
        if value.is_none() && self.has(Quirk::DiesOfUnsetting) {
            return Ok(self.die());
        }
        let strict = self.has(Quirk::StrictVariableNames);
        let result = self.state().set_variable(name, value.as_deref(), strict);
        self.reply_result(result)
    }

    pub(super) fn enable_perf_map(&mut self, kind: PerfMapType) -> Step {
        if kind == PerfMapType::DISABLED || kind.name().is_none() {
            return self.reply_result(HResult::INVALID_ARGUMENT);
        }
        if self.state().suspended && self.has(Quirk::DiesOfEarlyPerfMap) {
            return Ok(self.die());
        }
        self.state().perf_map = kind;
        self.reply_result(HResult::OK)
    }

    pub(super) fn disable_perf_map(&mut self) -> Step {
        self.state().perf_map = PerfMapType::DISABLED;
        self.reply_result(HResult::OK)
    }

    /// Answers ApplyStartupHook. A suspended process does not check the path: it loads the hook when it is
    /// resumed.
    pub(super) fn apply_startup_hook(&mut self, ApplyStartupHook { path }: &ApplyStartupHook) -> Step {
        let suspended = self.state().suspended;
        let is_missing = !suspended && !Path::new(path).exists();
        if is_missing && self.has(Quirk::DiesOfMissingHook) {
            return Ok(self.die());
        }
        if is_missing && self.has(Quirk::RefusesMissingHook) {
            return self.reply_result(HResult::INVALID_ARGUMENT);
        }
        let result = push_bounded(&mut self.state().startup_hooks, path.clone());
        self.reply_result(result)
    }

    pub(super) fn resume_runtime(&mut self) -> Step {
        self.state().suspended = false;
        self.reply_result(HResult::OK)
    }
}
