//! The values of a record.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The members of a JSON object in their order.
#[derive(Debug, Clone, Default, PartialEq)]
#[allow(clippy::exhaustive_structs, reason = "made by writers, which add members")]
pub struct LogValues(pub Vec<(String, serde_json::Value)>);

impl LogValues {
    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<&serde_json::Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The message made of the template and the arguments: only records without a formatted message need it.
    pub(super) fn formatted(&self) -> String {
        let Some(template) = self.get("{OriginalFormat}").and_then(serde_json::Value::as_str) else {
            return String::new();
        };
        let mut message = template.to_owned();
        for (key, value) in &self.0 {
            message = message.replace(&format!("{{{key}}}"), &value_text(value));
        }
        message
    }
}

/// The text of a value without the quotes of JSON.
pub fn value_text(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

impl Serialize for LogValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for LogValues {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LogValuesVisitor;

        impl<'de> Visitor<'de> for LogValuesVisitor {
            type Value = LogValues;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LogValues, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(LogValues(pairs))
            }
        }

        deserializer.deserialize_map(LogValuesVisitor)
    }
}
