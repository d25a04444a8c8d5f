//! Attributes, resources and scopes, which all signals share.

use prost::{Message, Oneof};

/// A value of any type.
#[derive(Clone, PartialEq, Message)]
pub struct AnyValue {
    #[prost(oneof = "any_value::Value", tags = "1, 2, 3, 4")]
    pub value: Option<any_value::Value>,
}

pub mod any_value {
    use super::Oneof;

    #[derive(Clone, PartialEq, Oneof)]
    pub enum Value {
        #[prost(string, tag = "1")]
        StringValue(String),
        #[prost(bool, tag = "2")]
        BoolValue(bool),
        #[prost(int64, tag = "3")]
        IntValue(i64),
        #[prost(double, tag = "4")]
        DoubleValue(f64),
    }
}

impl From<any_value::Value> for AnyValue {
    fn from(value: any_value::Value) -> Self {
        Self { value: Some(value) }
    }
}

impl From<String> for AnyValue {
    fn from(string: String) -> Self {
        any_value::Value::StringValue(string).into()
    }
}

impl From<&str> for AnyValue {
    fn from(string: &str) -> Self {
        string.to_owned().into()
    }
}

impl From<i64> for AnyValue {
    fn from(number: i64) -> Self {
        any_value::Value::IntValue(number).into()
    }
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

impl KeyValue {
    /// Creates an attribute. An empty key becomes `_`: it would invalidate the whole request.
    pub fn new(key: &str, value: impl Into<AnyValue>) -> Self {
        let key = if key.is_empty() { "_" } else { key };
        Self { key: key.to_owned(), value: Some(value.into()) }
    }
}

/// The scope of an instrumentation: a Meter, a logger or an ActivitySource.
#[derive(Clone, PartialEq, Message)]
pub struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
    #[prost(message, repeated, tag = "3")]
    pub attributes: Vec<KeyValue>,
}

impl InstrumentationScope {
    /// Creates a scope with a name alone.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }
}

/// The resource that telemetry describes: a process.
#[derive(Clone, PartialEq, Message)]
pub struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}
