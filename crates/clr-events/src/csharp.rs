//! Names of methods and types as C# writes them.
//!
//! The runtime writes ``System.Collections.Generic.Dictionary`2+Entry[System.Int32,System.__Canon]`` for a
//! type and `instance void  (!0,class System.String)` for a signature. The parameters of a shared generic
//! method have the types of its type's instantiation. The type arguments of a generic method itself are not
//! recorded, so its parameters are `T`, or `T1` and so on, as many as the signature uses.
//!
//! Compilers make methods of their own for `async` methods, iterators, lambdas and local functions; these are
//! shown below the method that they were written in. The forms follow Visual Studio's call stack, and .NET's
//! stack traces for constructors (`Type..ctor`).
//!
//! # Source
//! Types are written by dotnet/runtime's `typestring.cpp`, signatures by `prettyprintsig.cpp`;
//! compiler-generated names follow Roslyn's `GeneratedNameKind.cs` and Mono's `mcs`.

mod accessor;
mod generated_name;
mod keyword;
mod method;
mod state_machine;
mod type_parser;

use alloc::string::String;

pub use state_machine::StateMachine;
use type_parser::TypeParser;

/// A method as the runtime names it.
///
/// ```
/// use clr_events::csharp::{Detail, RuntimeName};
///
/// let method = RuntimeName {
///     namespace: "System.Collections.Generic.List`1[System.Int32]",
///     name: "AddRange",
///     signature: "instance void  (class System.Collections.Generic.IEnumerable`1<!0>)",
/// };
/// let name = method.csharp(Detail::Short).expect("a C# name");
/// assert_eq!(name.text, "System.Collections.Generic.List<int>.AddRange(IEnumerable<int>)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "made by those who ask")]
pub struct RuntimeName<'a> {
    /// Namespace and type.
    pub namespace: &'a str,
    /// The method's own name.
    pub name: &'a str,
    /// The signature, return type first; or where that is not known, the parameters.
    pub signature: &'a str,
}

/// The amount of detail in a C# name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "either")]
pub enum Detail {
    /// Types of parameters and type arguments without their namespaces. Different methods may have the same
    /// name.
    Short,
    /// All types with their namespaces, and the marks by which compilers distinguish methods of the same
    /// name.
    Qualified,
}

/// The C# name of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CSharpName {
    /// Type, method and parameters: `System.String.Concat(string, string)`. The body of an `async` method is
    /// `Type.Method [async]`, that of an iterator `Type.Method [iterator]`.
    pub text: String,
    /// The bytes of the text that are the namespace and the dot after it.
    pub namespace_len: usize,
    /// The compiler's part in the method.
    pub body: Body,
}

/// The part that a compiler had in a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Body {
    /// None, or a lambda or local function.
    #[default]
    Whole,
    /// `MoveNext` of an `async` method's state machine.
    Async,
    /// `MoveNext` of an iterator.
    Iterator,
}

impl RuntimeName<'_> {
    /// Returns the C# name; `None` if a runtime does not write such strings, or if they are more than 4 KB
    /// long or 24 types deep.
    ///
    /// Linear in the length of the strings.
    pub fn csharp(&self, detail: Detail) -> Option<CSharpName> {
        method::csharp(self, detail)
    }

    /// Returns the C# name with [`Detail::Short`], or else the type and the method as the runtime names them.
    ///
    /// ```
    /// use clr_events::csharp::RuntimeName;
    ///
    /// let method = RuntimeName { namespace: "Shop.Cart", name: "Pay", signature: "instance void  (int32)" };
    /// let name = method.display_name();
    /// assert_eq!((&*name.text, name.short()), ("Shop.Cart.Pay(int)", "Cart.Pay(int)"));
    /// ```
    pub fn display_name(&self) -> CSharpName {
        self.csharp(Detail::Short).unwrap_or_else(|| CSharpName {
            text: [self.namespace, ".", self.name].concat(),
            namespace_len: 0,
            body: Body::Whole,
        })
    }
}

impl CSharpName {
    /// Returns the name without its namespace.
    pub fn short(&self) -> &str {
        self.text.get(self.namespace_len..).unwrap_or(&self.text)
    }
}

/// Returns the C# name of a type as the runtime writes it in events; `None` if the runtime does not write
/// such a name. The type has its namespace; its type arguments do not.
///
/// ```
/// use clr_events::csharp::type_name;
///
/// let name = "System.Collections.Generic.KeyValuePair`2[System.String,System.Int32][]";
/// assert_eq!(type_name(name).as_deref(), Some("System.Collections.Generic.KeyValuePair<string, int>[]"));
/// assert_eq!(type_name("System.Byte[]").as_deref(), Some("byte[]"));
/// ```
pub fn type_name(runtime: &str) -> Option<String> {
    let mut parser = TypeParser::new(runtime, Detail::Short);
    let mut text = String::new();
    parser.push_type_with_namespace(&mut text)?;
    parser.is_at_end().then_some(text)
}

/// Returns the C# [name of a type](type_name), or else the name as the runtime writes it.
pub fn type_display_name(runtime: &str) -> String {
    type_name(runtime).unwrap_or_else(|| String::from(runtime))
}

/// Returns the `async` method, lambda or local function that a state machine, the type of a `MoveNext`,
/// belongs to; `None` for all other types.
///
/// ```
/// use clr_events::csharp::async_method;
///
/// assert_eq!(async_method("Shop.Cart+<PayAsync>d__7").as_deref(), Some("Shop.Cart.PayAsync"));
/// assert_eq!(async_method("Shop.Cart"), None);
/// ```
pub fn async_method(state_machine: &str) -> Option<String> {
    method::state_machine_method(state_machine, Detail::Short)
}

#[cfg(test)]
mod tests;
