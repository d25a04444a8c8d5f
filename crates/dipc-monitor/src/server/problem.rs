//! Errors as problem details (RFC 9457), with the members of dotnet-monitor's.

use std::collections::BTreeMap;

use hyper::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::body::AnswerBody;
use crate::artifact::{ArtifactError, RequestError};
use crate::egress::EgressError;
use crate::operation::TooMany;

/// An answer that is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    title: &'static str,
    detail: String,
    /// The faults by member of the request.
    errors: BTreeMap<String, Vec<String>>,
    header: Option<(HeaderName, &'static str)>,
}

#[derive(Serialize)]
struct Details<'p> {
    title: &'p str,
    status: u16,
    detail: &'p str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    errors: &'p BTreeMap<String, Vec<String>>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, title, detail: detail.into(), errors: BTreeMap::new(), header: None }
    }

    /// A request that is not valid.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Bad Request", detail)
    }

    /// A member of a request that is not valid.
    pub(super) fn invalid(member: &str, what: impl Into<String>) -> Self {
        let what = what.into();
        let mut problem = Self::bad_request(format!("{member}: {what}"));
        problem.title = "One or more validation errors occurred.";
        problem.errors.insert(member.to_owned(), vec![what]);
        problem
    }

    /// A missing feature, and its substitute.
    pub(super) fn not_implemented(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "Not Implemented", detail)
    }

    /// A request without a valid token.
    pub(super) fn unauthorized() -> Self {
        let detail = "send a token: 'Authorization: Bearer TOKEN'";
        let problem = Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", detail);
        Self { header: Some((WWW_AUTHENTICATE, "Bearer")), ..problem }
    }

    /// A method that a route does not have.
    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let detail = format!("the route has {allowed}");
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed", detail);
        Self { header: Some((ALLOW, allowed)), ..problem }
    }

    pub(super) fn response(self) -> Response<AnswerBody> {
        let details = Details {
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.detail,
            errors: &self.errors,
        };
        // Strings and numbers can be written.
        let json = serde_json::to_vec(&details).unwrap_or_default();
        let mut response = Response::new(AnswerBody::whole(json));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.extend(self.header.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Invalid { member, what } => Self::invalid(&member, what),
            RequestError::NoArtifact(_) => Self::bad_request(error.to_string()),
            RequestError::NotAcceptable(_) => {
                Self::new(StatusCode::NOT_ACCEPTABLE, "Not Acceptable", error.to_string())
            }
        }
    }
}

impl From<TooMany> for Problem {
    fn from(error: TooMany) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests", error.to_string())
    }
}

impl From<EgressError> for Problem {
    fn from(error: EgressError) -> Self {
        let text = error.to_string();
        match error {
            EgressError::Unknown(_) | EgressError::Unsupported(..) | EgressError::NotTaken(_) => {
                Self::invalid("egressProvider", text)
            }
            EgressError::Full | EgressError::NoSpace => {
                Self::new(StatusCode::TOO_MANY_REQUESTS, "Too Many Requests", text)
            }
            EgressError::Queue(_) => Self::new(StatusCode::SERVICE_UNAVAILABLE, "Service Unavailable", text),
        }
    }
}

impl From<ArtifactError> for Problem {
    fn from(error: ArtifactError) -> Self {
        Self::bad_request(error.to_string())
    }
}
