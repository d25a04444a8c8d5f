//! Methods as C# names them.

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::csharp::accessor::{accessor, conversion, operator};
use crate::csharp::generated_name::GeneratedName;
use crate::csharp::type_parser::{TypeName, TypeParser, last_dot, without_namespace};
use crate::csharp::{Body, CSharpName, Detail, RuntimeName};

/// The depth of lambdas and local functions in each other that is followed.
const MAX_DEPTH: u32 = 8;

/// Type parameters that are made up for a method or type.
const MAX_PARAMETERS: usize = 64;

pub(super) fn csharp(method: &RuntimeName<'_>, detail: Detail) -> Option<CSharpName> {
    if method.name.is_empty() {
        return None;
    }
    let mut parser = TypeParser::new(method.namespace, detail);
    let of_type = if method.namespace.is_empty() { None } else { Some(parser.declaring_type()?) };
    // Arrays have methods: `Get` of `System.Int32[,]`.
    let mut array = String::new();
    parser.push_array_ranks(&mut array)?;
    parser.is_at_end().then_some(())?;
    if let Some(of_type) = &of_type {
        parser.type_arguments.clone_from(&of_type.arguments);
    }
    let signature = Signature::read(&mut parser, method.signature)?;
    let mut writer = Writer { parser, detail, returns: &signature.returns };
    let mut text = String::new();
    let mut body = Body::Whole;
    let namespace_len = of_type.as_ref().map_or(0, TypeName::namespace_len);
    match of_type {
        None => writer.push_source_name(&mut text, method.name)?,
        Some(of_type) => {
            let name = GeneratedName::parse(method.name);
            let is_whole = array.is_empty();
            match (name, of_type.generated()) {
                (None, Some(GeneratedName::StateMachine { kind, .. }))
                    if is_whole && method.name == "MoveNext" =>
                {
                    writer.push_state_machine(&mut text, of_type)?;
                    let is_iterator = kind.starts_with("c__Iterator") || signature.returns == "bool";
                    body = if is_iterator { Body::Iterator } else { Body::Async };
                    let word = if is_iterator { "iterator" } else { "async" };
                    let mark = match detail {
                        Detail::Short => format!(" [{word}]"),
                        Detail::Qualified => format!(" [{word} {kind}]"),
                    };
                    writer.parser.push(&mut text, &mark)?;
                    return Some(CSharpName { text, namespace_len, body });
                }
                (Some(GeneratedName::Lambda { .. } | GeneratedName::LocalFunction { .. }), _) if is_whole => {
                    writer.push_generated(&mut text, of_type, method.name)?;
                }
                _ => {
                    writer.parser.push_type_name(&mut text, &of_type, true)?;
                    writer.parser.push(&mut text, &array)?;
                    writer.parser.push(&mut text, ".")?;
                    if method.namespace == DYNAMIC {
                        writer.parser.push(&mut text, method.name)?;
                    } else {
                        writer.push_source_name(&mut text, method.name)?;
                    }
                }
            }
        }
    }
    let mut parser = writer.parser;
    if !parser.method_arguments.is_empty() {
        let arguments = core::mem::take(&mut parser.method_arguments);
        parser.push_list_of(&mut text, &mut arguments.iter())?;
    }
    parser.push(&mut text, &signature.parameters)?;
    Some(CSharpName { text, namespace_len, body })
}

/// The method that a state machine type was compiled from.
pub(super) fn state_machine_method(namespace: &str, detail: Detail) -> Option<String> {
    let mut parser = TypeParser::new(namespace, detail);
    let of_type = parser.declaring_type()?;
    if !matches!(of_type.generated(), Some(GeneratedName::StateMachine { .. })) || !parser.is_at_end() {
        return None;
    }
    let mut text = String::new();
    Writer { parser, detail, returns: "" }.push_state_machine(&mut text, of_type)?;
    Some(text)
}

/// The type to which the runtime assigns dynamic methods. The program chooses their names freely.
const DYNAMIC: &str = "dynamicClass";

impl<'t> TypeParser<'t> {
    /// Reads the type of a method. A type that is not instantiated has the parameters `T`, or `T1` and so on.
    fn declaring_type(&mut self) -> Option<TypeName<'t>> {
        let mut name = self.type_name()?;
        let arity = name.parts.iter().map(|part| part.arity).fold(0, usize::saturating_add);
        if name.arguments.is_empty() {
            name.arguments = parameters(arity)?;
        } else if arity != name.arguments.len() && arity != 0 {
            return None;
        }
        Some(name)
    }
}

impl<'t> TypeName<'t> {
    /// The innermost type, if a compiler made it.
    fn generated(&self) -> Option<GeneratedName<'t>> {
        GeneratedName::parse(self.parts.last()?.name)
    }

    fn namespace_len(&self) -> usize {
        let name = self.parts.first().map_or("", |part| part.name);
        // Escaped characters are written shorter.
        if name.contains('\\') { 0 } else { name.len().saturating_sub(without_namespace(name).len()) }
    }

    /// Takes away the innermost type; its arguments are prepended to `arguments`.
    fn pop(&mut self, arguments: &mut Vec<String>) -> Option<()> {
        let part = self.parts.pop()?;
        let own = self.arguments.split_off(self.arguments.len().checked_sub(part.arity)?);
        arguments.splice(..0, own);
        Some(())
    }
}

/// The parts of a signature in C#.
struct Signature {
    returns: String,
    /// In parentheses.
    parameters: String,
}

impl Signature {
    fn read<'t>(parser: &mut TypeParser<'t>, signature: &'t str) -> Option<Self> {
        let mut read = Self { returns: String::new(), parameters: String::new() };
        if signature.is_empty() {
            return Some(read);
        }
        parser.continue_with(signature);
        parser.eat("instance ");
        let is_generic = parser.eat("generic ");
        for convention in CONVENTIONS {
            parser.eat(convention);
        }
        let count = count_method_parameters(signature).max(usize::from(is_generic));
        parser.method_arguments = parameters(count)?;
        // Perf maps have the return type elsewhere.
        if !signature.starts_with('(') {
            parser.push_type(&mut read.returns)?;
        }
        while parser.eat(" ") {}
        if parser.is_at_end() {
            return Some(read);
        }
        parser.eat("(").then_some(())?;
        parser.push(&mut read.parameters, "(")?;
        parser.push_parameters(&mut read.parameters)?;
        parser.push(&mut read.parameters, ")")?;
        parser.is_at_end().then_some(read)
    }
}

const CONVENTIONS: [&str; 6] = [
    "unmanaged cdecl ",
    "unmanaged stdcall ",
    "unmanaged thiscall ",
    "unmanaged fastcall ",
    "native vararg ",
    "vararg ",
];

/// Returns one more than the highest `!!0` of a signature.
fn count_method_parameters(signature: &str) -> usize {
    let number = |text: &str| {
        let digits = text.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse::<usize>().ok()?.checked_add(1)
    };
    signature.split("!!").skip(1).filter_map(number).max().unwrap_or(0)
}

/// Names for type parameters.
fn parameters(count: usize) -> Option<Vec<String>> {
    match count {
        1 => Some(vec![String::from("T")]),
        _ if count <= MAX_PARAMETERS => Some((1..=count).map(|number| format!("T{number}")).collect()),
        _ => None,
    }
}

/// Writes the names of methods.
struct Writer<'t, 's> {
    parser: TypeParser<'t>,
    detail: Detail,
    returns: &'s str,
}

impl Writer<'_, '_> {
    /// The method of a state machine: `Program+<Round>d__7` is `Program.Round`.
    fn push_state_machine(&mut self, out: &mut String, mut of_type: TypeName<'_>) -> Option<()> {
        let Some(GeneratedName::StateMachine { of, .. }) = of_type.generated() else { return None };
        let mut arguments = Vec::new();
        of_type.pop(&mut arguments)?;
        self.push_in_closure(out, of_type, of, arguments)
    }

    /// A lambda or local function, below the method that it is of.
    fn push_generated(&mut self, out: &mut String, of_type: TypeName<'_>, name: &str) -> Option<()> {
        self.push_in_closure(out, of_type, name, Vec::new())
    }

    fn push_in_closure(
        &mut self,
        out: &mut String,
        mut of_type: TypeName<'_>,
        name: &str,
        mut arguments: Vec<String>,
    ) -> Option<()> {
        let mut closure = ("", "");
        // mcs puts lambdas without variables into the type at hand.
        if let (Some(GeneratedName::Lambda { of: "", .. }), Some(GeneratedName::StateMachine { of, .. })) =
            (GeneratedName::parse(name), of_type.generated())
        {
            closure.0 = of;
            of_type.pop(&mut arguments)?;
        }
        while let Some(GeneratedName::Closure { of, ordinal }) = of_type.generated() {
            if closure == ("", "") {
                closure = (of, ordinal);
            }
            of_type.pop(&mut arguments)?;
        }
        if !of_type.parts.is_empty() {
            self.parser.push_type_name(out, &of_type, true)?;
            self.parser.push(out, ".")?;
        }
        self.push_part(out, name, closure, &arguments, MAX_DEPTH)
    }

    /// A method, and the part of the method that a name denotes.
    fn push_part(
        &mut self,
        out: &mut String,
        name: &str,
        closure: (&str, &str),
        arguments: &[String],
        depth: u32,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match GeneratedName::parse(name) {
            Some(GeneratedName::Lambda { of, ordinal }) => {
                let of = if of.is_empty() { closure.0 } else { of };
                self.push_part(out, of, ("", ""), arguments, depth)?;
                self.parser.push(out, ".AnonymousMethod__")?;
                // `3_0` of a closure: the method's number, and the closure's number within the method.
                let method = closure.1.split('_').next().unwrap_or_default();
                if !method.is_empty() && !ordinal.contains('_') {
                    self.parser.push(out, method)?;
                    self.parser.push(out, "_")?;
                }
                self.parser.push(out, ordinal)
            }
            Some(GeneratedName::LocalFunction { of, name, ordinal }) => {
                self.push_part(out, of, ("", ""), arguments, depth)?;
                self.parser.push(out, ".")?;
                self.parser.push(out, name)?;
                if self.detail == Detail::Qualified {
                    self.parser.push(out, "|")?;
                    self.parser.push(out, ordinal)?;
                }
                Some(())
            }
            _ if name.is_empty() => None,
            _ => {
                self.push_source_name(out, name)?;
                if arguments.is_empty() {
                    return Some(());
                }
                self.parser.push_list_of(out, &mut arguments.iter())
            }
        }
    }

    /// The name of a method in a source file: accessors and operators, after the interface that the method
    /// implements.
    fn push_source_name(&mut self, out: &mut String, name: &str) -> Option<()> {
        let split = last_dot(name).filter(|dot| *dot > 0).and_then(|dot| name.split_at_checked(dot));
        let member = match split {
            None => name,
            Some((interface, member)) => {
                self.push_interface(out, interface)?;
                self.parser.push(out, ".")?;
                member.strip_prefix('.')?
            }
        };
        if let Some((property, kind)) = accessor(member) {
            self.parser.push(out, property)?;
            self.parser.push(out, ".")?;
            self.parser.push(out, kind)
        } else if let Some(conversion) = conversion(member) {
            self.parser.push(out, conversion)?;
            self.parser.push(out, " ")?;
            let returns = self.returns;
            self.parser.push(out, returns)
        } else if let Some((is_checked, symbol)) = operator(member) {
            self.parser.push(out, if is_checked { "operator checked " } else { "operator " })?;
            self.parser.push(out, symbol)
        } else {
            self.parser.push(out, member)
        }
    }

    /// An interface as compilers write it before the name of a member: `System.IEquatable<System.Int32>`.
    fn push_interface(&mut self, out: &mut String, interface: &str) -> Option<()> {
        let mut parser = TypeParser::new(interface, self.detail);
        let mut text = String::new();
        let is_type = parser.push_type(&mut text).is_some() && parser.is_at_end();
        self.parser.push(out, if is_type { &text } else { interface })
    }
}
