//! Paths, their methods and the scopes that they need.

use hyper::Method;

use crate::access::Scope;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route<'p> {
    /// The page, which does not hold data.
    Page,
    Overview,
    Counters,
    Processes,
    Process,
    Environment,
    Dump,
    GcDump,
    Trace,
    Logs,
    LiveMetrics,
    Metrics,
    Info,
    Health,
    Stacks,
    Exceptions,
    FlameGraph,
    Top,
    Requests,
    Why,
    Memory,
    Parameters,
    Snapshot,
    Operations,
    Operation(&'p str),
    Profile,
    Recordings,
    Recording(&'p str),
    Rules,
    Rule(&'p str),
}

impl<'p> Route<'p> {
    pub(super) fn parse(path: &'p str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        if path.is_empty() {
            return Some(Self::Page);
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        if let Some((first, rest)) = path.split_once('/') {
            return match first {
                _ if rest.is_empty() || rest.contains('/') => None,
                "operations" => Some(Self::Operation(rest)),
                "recordings" => Some(Self::Recording(rest)),
                "collectionrules" => Some(Self::Rule(rest)),
                _ => None,
            };
        }
        Some(match path {
            "overview" => Self::Overview,
            "counters" => Self::Counters,
            "processes" => Self::Processes,
            "process" => Self::Process,
            "env" => Self::Environment,
            "dump" => Self::Dump,
            "gcdump" => Self::GcDump,
            "trace" => Self::Trace,
            "logs" => Self::Logs,
            "livemetrics" => Self::LiveMetrics,
            "metrics" => Self::Metrics,
            "info" => Self::Info,
            "health" => Self::Health,
            "stacks" => Self::Stacks,
            "exceptions" => Self::Exceptions,
            "flamegraph" => Self::FlameGraph,
            "top" => Self::Top,
            "requests" => Self::Requests,
            "why" => Self::Why,
            "memory" => Self::Memory,
            "parameters" => Self::Parameters,
            "snapshot" => Self::Snapshot,
            "operations" => Self::Operations,
            "profile" => Self::Profile,
            "recordings" => Self::Recordings,
            "collectionrules" => Self::Rules,
            _ => return None,
        })
    }

    /// The methods, as the header `Allow` lists them.
    pub(super) const fn methods(self) -> &'static str {
        match self {
            Self::Trace | Self::Logs | Self::LiveMetrics | Self::Exceptions => "GET, POST",
            Self::Parameters => "POST",
            Self::Operation(_) => "GET, DELETE",
            _ => "GET",
        }
    }

    /// The scope that a token needs; `None` for routes without a token.
    pub(super) fn scope(self, method: &Method) -> Option<Scope> {
        Some(match self {
            Self::Page => return None,
            Self::Metrics | Self::LiveMetrics | Self::Counters => Scope::Metrics,
            Self::Operation(_) if method == Method::DELETE => Scope::Artifacts,
            Self::Overview
            | Self::Processes
            | Self::Process
            | Self::Info
            | Self::Health
            | Self::Operations
            | Self::Operation(_)
            | Self::Recordings
            | Self::Rules
            | Self::Rule(_) => Scope::Read,
            // The environment often has passwords.
            _ => Scope::Artifacts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_have_methods_and_scopes() {
        let rows = [
            ("/processes", "GET", Scope::Read),
            ("/trace/", "GET, POST", Scope::Artifacts),
            ("/env", "GET", Scope::Artifacts),
            ("/metrics", "GET", Scope::Metrics),
            ("/health", "GET", Scope::Read),
            ("/overview", "GET", Scope::Read),
            ("/counters", "GET", Scope::Metrics),
            ("/operations/7", "GET, DELETE", Scope::Read),
            ("/parameters", "POST", Scope::Artifacts),
            ("/flamegraph", "GET", Scope::Artifacts),
            ("/top", "GET", Scope::Artifacts),
            ("/requests", "GET", Scope::Artifacts),
            ("/why", "GET", Scope::Artifacts),
            ("/memory", "GET", Scope::Artifacts),
            ("/profile", "GET", Scope::Artifacts),
            ("/recordings", "GET", Scope::Read),
            ("/recordings/0a1b", "GET", Scope::Artifacts),
        ];
        for (path, methods, scope) in rows {
            let route = Route::parse(path).unwrap();
            assert_eq!((route.methods(), route.scope(&Method::GET)), (methods, Some(scope)), "{path}");
        }
        assert_eq!(Route::parse("/").unwrap().scope(&Method::GET), None);
        for path in ["", "//", "/recordings/a/b", "/operations//", "/operations/7/8", "/Processes", "/x"] {
            assert_eq!(Route::parse(path), None, "{path}");
        }
        assert_eq!(Route::Operation("7").scope(&Method::DELETE), Some(Scope::Artifacts));
    }
}
