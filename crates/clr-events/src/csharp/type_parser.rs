//! Types as the runtime writes them, read and written as C#.

use alloc::string::String;
use alloc::vec::Vec;

use crate::csharp::Detail;
use crate::csharp::keyword::{keyword, primitive, unsigned};

/// The depth of types in types that is followed.
const MAX_DEPTH: u32 = 24;

/// Maximum bytes written for a name. Type arguments count wherever they are copied to.
const MAX_LENGTH: usize = 4096;

/// A reader of types. It writes each part of the text at most once and bounds its output, so its time is
/// linear.
pub(super) struct TypeParser<'t> {
    rest: &'t str,
    detail: Detail,
    left: usize,
    /// The arguments of the method's type: `!0` and so on.
    pub(super) type_arguments: Vec<String>,
    /// The arguments of the method: `!!0` and so on.
    pub(super) method_arguments: Vec<String>,
}

/// The name of a type, from the outermost to the innermost, and its arguments in C#.
pub(super) struct TypeName<'t> {
    pub(super) parts: Vec<TypePart<'t>>,
    pub(super) arguments: Vec<String>,
}

/// A type's name without its number of parameters.
#[derive(Clone, Copy)]
pub(super) struct TypePart<'t> {
    pub(super) name: &'t str,
    pub(super) arity: usize,
}

impl<'t> TypeParser<'t> {
    pub(super) fn new(text: &'t str, detail: Detail) -> Self {
        Self {
            rest: text,
            detail,
            left: MAX_LENGTH,
            type_arguments: Vec::new(),
            method_arguments: Vec::new(),
        }
    }

    /// Goes on with another text.
    pub(super) fn continue_with(&mut self, text: &'t str) {
        self.rest = text;
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Appends to a name; `None` once it is too long.
    pub(super) fn push(&mut self, out: &mut String, text: &str) -> Option<()> {
        self.left = self.left.checked_sub(text.len())?;
        out.push_str(text);
        Some(())
    }

    /// Reads a type and appends it.
    pub(super) fn push_type(&mut self, out: &mut String) -> Option<()> {
        self.push_nested(out, MAX_DEPTH, self.detail == Detail::Qualified)
    }

    /// Reads a type and appends it with its namespace.
    pub(super) fn push_type_with_namespace(&mut self, out: &mut String) -> Option<()> {
        self.push_nested(out, MAX_DEPTH, true)
    }

    /// Reads types up to a closing parenthesis, and appends them.
    pub(super) fn push_parameters(&mut self, out: &mut String) -> Option<()> {
        self.push_list(out, ")", MAX_DEPTH)
    }

    /// Reads types, and appends them with commas between.
    fn push_list(&mut self, out: &mut String, end: &str, depth: u32) -> Option<()> {
        if self.eat(end) {
            return Some(());
        }
        loop {
            self.push_nested(out, depth, self.detail == Detail::Qualified)?;
            if self.eat(end) {
                return Some(());
            }
            self.eat(",").then_some(())?;
            // A list of parameters is written both ways.
            self.eat(" ");
            self.push(out, ", ")?;
        }
    }

    fn push_nested(&mut self, out: &mut String, depth: u32, with_namespace: bool) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        while self.eat("required_modifier ") || self.eat("optional_modifier ") {
            self.push_nested(&mut String::new(), depth, with_namespace)?;
            self.eat(" ").then_some(())?;
        }
        let start = out.len();
        self.push_element(out, depth, with_namespace)?;
        loop {
            self.push_array_ranks(out)?;
            if self.eat("*") {
                self.push(out, "*")?;
            } else if self.eat("&") {
                self.left = self.left.checked_sub(4)?;
                out.insert_str(start, "ref ");
                return Some(());
            } else if !self.eat(" pinned") {
                return Some(());
            }
        }
    }

    /// Reads the brackets of arrays of arrays and appends them: C# writes the outermost first, the runtime
    /// last.
    pub(super) fn push_array_ranks(&mut self, out: &mut String) -> Option<()> {
        let start = out.len();
        while let Some(rank) = self.array_rank() {
            self.left = self.left.checked_sub(rank.saturating_add(1))?;
            let commas = ",".repeat(rank.saturating_sub(1));
            out.insert_str(start, &["[", &commas, "]"].concat());
        }
        Some(())
    }

    /// Reads the brackets of an array and returns its rank.
    fn array_rank(&mut self) -> Option<usize> {
        let (dimensions, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        let is_array = dimensions.bytes().all(|byte| matches!(byte, b',' | b'*' | b'.' | b'0'..=b'9' | b'?'));
        if !is_array {
            return None;
        }
        self.rest = rest;
        dimensions.matches(',').count().checked_add(1)
    }

    /// Reads the element type of arrays, pointers and references.
    fn push_element(&mut self, out: &mut String, depth: u32, with_namespace: bool) -> Option<()> {
        if self.eat("fnptr ") || self.eat("method ") {
            return self.push_function_pointer(out, depth);
        }
        if self.eat("...") {
            return self.push(out, "__arglist");
        }
        if self.eat("!") {
            let is_methods = self.eat("!");
            let index = self.number()?;
            let arguments = if is_methods { &self.method_arguments } else { &self.type_arguments };
            let argument = arguments.get(index)?.as_str();
            self.left = self.left.checked_sub(argument.len())?;
            out.push_str(argument);
            return Some(());
        }
        if self.eat("pMT: ") {
            // The address of a type that only the running program knows.
            self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
            self.push(out, "?")?;
            return if self.eat("<") { self.push_arguments(out, depth) } else { Some(()) };
        }
        let is_class = ["class ", "value class ", "valuetype "].iter().any(|kind| self.eat(kind));
        let is_native = self.eat("native ");
        let is_unsigned = self.eat("unsigned ");
        if !is_class {
            let (word, rest) = self.rest.split_at_checked(self.name_end()?)?;
            let word = match (is_native, is_unsigned) {
                (false, false) => primitive(word),
                (true, false) => match word {
                    "int" => Some("nint"),
                    "uint" => Some("nuint"),
                    _ => None,
                },
                (_, true) => unsigned(word),
            };
            if let Some(word) = word {
                self.rest = rest;
                return self.push(out, word);
            }
        }
        if is_unsigned {
            return None;
        }
        self.push_name(out, depth, with_namespace)
    }

    /// Reads arguments, after the opening bracket, and appends them in angle brackets.
    fn push_arguments(&mut self, out: &mut String, depth: u32) -> Option<()> {
        self.push(out, "<")?;
        self.push_list(out, ">", depth)?;
        self.push(out, ">")
    }

    /// `fnptr void(int32,class System.String)`: `delegate*<int, string, void>`.
    fn push_function_pointer(&mut self, out: &mut String, depth: u32) -> Option<()> {
        self.eat("instance ");
        let conventions =
            [("cdecl", "Cdecl"), ("stdcall", "Stdcall"), ("thiscall", "Thiscall"), ("fastcall", "Fastcall")];
        self.push(out, "delegate*")?;
        if self.eat("unmanaged ") {
            self.push(out, " unmanaged")?;
            if let Some((_, convention)) = conventions.iter().find(|(word, _)| self.eat(word)) {
                self.push(out, "[")?;
                self.push(out, convention)?;
                self.push(out, "]")?;
                self.eat(" ");
            }
        }
        let mut returns = String::new();
        self.push_nested(&mut returns, depth, self.detail == Detail::Qualified)?;
        self.rest = self.rest.trim_start_matches(' ');
        self.eat("(").then_some(())?;
        self.push(out, "<")?;
        let before = out.len();
        self.push_list(out, ")", depth)?;
        if out.len() > before {
            self.push(out, ", ")?;
        }
        self.push(out, &returns)?;
        self.push(out, ">")
    }

    /// Reads a class's name and its arguments.
    fn push_name(&mut self, out: &mut String, depth: u32, with_namespace: bool) -> Option<()> {
        let name = self.type_name_within(depth)?;
        if let ([part], [argument]) = (&*name.parts, &*name.arguments)
            && part.name == "System.Nullable"
        {
            self.push(out, argument)?;
            return self.push(out, "?");
        }
        if let ([part], []) = (&*name.parts, &*name.arguments)
            && part.arity == 0
            && let Some(keyword) = keyword(part.name)
        {
            return self.push(out, keyword);
        }
        self.push_type_name(out, &name, with_namespace)
    }

    /// Reads the name of a type.
    pub(super) fn type_name(&mut self) -> Option<TypeName<'t>> {
        self.type_name_within(MAX_DEPTH)
    }

    fn type_name_within(&mut self, depth: u32) -> Option<TypeName<'t>> {
        // The assembly of the type.
        if let Some(rest) = self.rest.strip_prefix('[') {
            self.rest = rest.split_once(']')?.1;
        }
        let (name, rest) = self.rest.split_at_checked(self.name_end()?)?;
        self.rest = rest;
        let mut parts = Vec::new();
        for part in split_nested(name) {
            let (name, arity) = match part.rsplit_once('`') {
                Some((name, digits)) => (name, digits.parse::<u16>().ok()?.into()),
                None => (part, 0),
            };
            if name.is_empty() {
                return None;
            }
            parts.push(TypePart { name, arity });
        }
        let arguments = if self.eat("<") {
            self.arguments(">", depth)?
        } else if self.rest.starts_with('[') && parts.iter().any(|part| part.arity > 0) && !self.is_at_array()
        {
            self.eat("[");
            self.arguments("]", depth)?
        } else {
            Vec::new()
        };
        Some(TypeName { parts, arguments })
    }

    fn is_at_array(&self) -> bool {
        ["[]", "[,", "[*"].iter().any(|array| self.rest.starts_with(array))
    }

    fn arguments(&mut self, end: &str, depth: u32) -> Option<Vec<String>> {
        let mut arguments = Vec::new();
        loop {
            let mut argument = String::new();
            // With an assembly: `[System.String, System.Private.CoreLib]`.
            let has_assembly = end == "]" && self.eat("[");
            self.push_nested(&mut argument, depth, self.detail == Detail::Qualified)?;
            if has_assembly {
                self.rest = self.rest.split_once(']')?.1;
            }
            arguments.push(argument);
            if self.eat(end) {
                return Some(arguments);
            }
            self.eat(",").then_some(())?;
        }
    }

    /// Appends a type's name, each part with its arguments.
    pub(super) fn push_type_name(
        &mut self,
        out: &mut String,
        name: &TypeName<'_>,
        with_namespace: bool,
    ) -> Option<()> {
        let places = name.parts.iter().map(|part| part.arity).fold(0, usize::saturating_add);
        let mut arguments = name.arguments.iter();
        let last = name.parts.len().saturating_sub(1);
        for (index, part) in name.parts.iter().enumerate() {
            if index > 0 {
                self.push(out, ".")?;
            }
            let shown = if index == 0 && !with_namespace { without_namespace(part.name) } else { part.name };
            self.push_unescaped(out, shown)?;
            // Signatures name a nested type without its enclosing types, but with their type arguments.
            let count = if places == name.arguments.len() {
                part.arity
            } else if index == last {
                name.arguments.len()
            } else {
                0
            };
            if count > 0 {
                self.push_list_of(out, &mut arguments.by_ref().take(count))?;
            } else if name.arguments.is_empty() && part.arity > 0 {
                self.push(out, "<")?;
                self.push(out, &",".repeat(part.arity.saturating_sub(1)))?;
                self.push(out, ">")?;
            }
        }
        Some(())
    }

    /// Appends arguments in angle brackets.
    pub(super) fn push_list_of(
        &mut self,
        out: &mut String,
        arguments: &mut dyn Iterator<Item = &String>,
    ) -> Option<()> {
        for (index, argument) in arguments.enumerate() {
            self.push(out, if index == 0 { "<" } else { ", " })?;
            self.push(out, argument)?;
        }
        self.push(out, ">")
    }

    /// Appends a name without the backslashes before special characters.
    fn push_unescaped(&mut self, out: &mut String, name: &str) -> Option<()> {
        for (index, part) in name.split('\\').enumerate() {
            // Two of them denote one.
            if index > 0 && part.is_empty() {
                self.push(out, "\\")?;
            }
            self.push(out, part)?;
        }
        Some(())
    }

    /// The bytes up to the end of a name; `None` if a bracket of it stays open. Compilers begin names with
    /// `<`; elsewhere that begins arguments.
    fn name_end(&self) -> Option<usize> {
        let mut depth = 0_u32;
        let mut may_begin = true;
        let mut is_escaped = false;
        for (at, c) in self.rest.char_indices() {
            if core::mem::take(&mut is_escaped) {
                may_begin = false;
                continue;
            }
            match c {
                '\\' => is_escaped = true,
                '<' if may_begin || depth > 0 => depth = depth.saturating_add(1),
                '>' if depth > 0 => depth = depth.saturating_sub(1),
                _ if depth > 0 => {}
                '<' | '>' | ',' | '(' | ')' | '[' | ']' | '&' | '*' | ' ' | '!' => return Some(at),
                _ => {}
            }
            may_begin = matches!(c, '.' | '+' | '/') || (c == '<' && depth > 0);
        }
        (depth == 0).then_some(self.rest.len())
    }

    fn number(&mut self) -> Option<usize> {
        let end = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        let (digits, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        digits.parse().ok()
    }
}

/// The parts of a nested type's name.
fn split_nested(name: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    let mut is_escaped = false;
    name.split(move |c: char| {
        if core::mem::take(&mut is_escaped) {
            return false;
        }
        match c {
            '\\' => is_escaped = true,
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            '+' | '/' => return depth == 0,
            _ => {}
        }
        false
    })
}

/// A name after its last dot outside brackets.
pub(super) fn without_namespace(name: &str) -> &str {
    last_dot(name).and_then(|at| name.split_at_checked(at)?.1.strip_prefix('.')).unwrap_or(name)
}

/// The last dot of a name outside of angle brackets.
pub(super) fn last_dot(name: &str) -> Option<usize> {
    let mut depth = 0_u32;
    let mut dot = None;
    for (at, c) in name.char_indices() {
        match c {
            '<' => depth = depth.saturating_add(1),
            '>' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => dot = Some(at),
            _ => {}
        }
    }
    dot
}
