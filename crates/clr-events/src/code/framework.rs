//! Code of the framework, as opposed to the user's.

use crate::code::symbolizer::Code;

/// Names of assemblies of the framework without a common prefix.
const ASSEMBLIES: [&str; 14] = [
    "System",
    "mscorlib",
    "netstandard",
    "WindowsBase",
    "PresentationCore",
    "PresentationFramework",
    "PresentationUI",
    "ReachFramework",
    "UIAutomationClient",
    "UIAutomationTypes",
    "UIAutomationProvider",
    "WindowsFormsIntegration",
    "Accessibility",
    "DirectWriteForwarder",
];

/// Prefixes of the names of assemblies and namespaces of the framework.
const PREFIXES: [&str; 2] = ["System.", "Microsoft."];

/// The class of methods that were made while the program ran.
const MADE_IN_MEMORY: &str = "dynamicClass";

/// Returns true if an assembly belongs to the framework: the class library, or other code of Microsoft's.
///
/// `path` is the path of its file, or empty. A file in the folder of a shared framework
/// (`shared/Microsoft.NETCore.App/9.0.1`) belongs to it, whatever its name; others are known by `name`.
///
/// ```
/// use clr_events::code::is_framework;
///
/// assert!(is_framework("System.Linq", ""));
/// assert!(is_framework("Odd", "/usr/share/dotnet/shared/Microsoft.AspNetCore.App/9.0.1/Odd.dll"));
/// assert!(!is_framework("Shop", "/srv/shop/Shop.dll"));
/// ```
pub fn is_framework(name: &str, path: &str) -> bool {
    has_prefix(name) || ASSEMBLIES.iter().any(|it| it.eq_ignore_ascii_case(name)) || is_shared_framework(path)
}

/// Returns true if an assembly with a file name, such as `Shop.dll`, is not the [framework's](is_framework).
/// An assembly without a name was made in memory: it is not the user's either.
pub fn is_user_assembly(file_name: &str, path: &str) -> bool {
    let name = file_name.strip_suffix(".dll").unwrap_or(file_name);
    !name.is_empty() && !is_framework(name, path)
}

fn has_prefix(name: &str) -> bool {
    let begins =
        |prefix: &str| name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    PREFIXES.into_iter().any(begins)
}

/// Returns true if a path leads into the folder of a shared framework.
fn is_shared_framework(path: &str) -> bool {
    let mut parts = path.split(['/', '\\']).peekable();
    while let Some(part) = parts.next() {
        if part == "shared" && parts.peek().is_some_and(|next| next.starts_with("Microsoft.")) {
            return true;
        }
    }
    false
}

impl Code<'_> {
    /// Returns true for the user's code: .NET methods of other assemblies than the
    /// [framework's](is_framework). Methods generated at run time, such as compiled regular expressions,
    /// belong to their callers. Methods of an unknown assembly are classified by namespace.
    pub fn is_user_code(&self) -> bool {
        match self {
            Self::Method(method) if method.namespace() == MADE_IN_MEMORY => false,
            Self::Method(method) => match method.module() {
                Some(module) => !is_framework(module.name(), module.path()),
                None => !has_prefix(method.namespace()),
            },
            Self::Symbol(symbol) => symbol.managed().is_some_and(|(module, _)| !is_framework(module, "")),
            Self::Unresolved(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assemblies_of_the_framework_are_known_by_folder_and_name() {
        for (name, path, expected) in [
            ("System.Private.CoreLib", "", true),
            ("system", "", true),
            ("mscorlib", "", true),
            ("WindowsBase", "", true),
            ("Microsoft.AspNetCore.Hosting", "/srv/app/Microsoft.AspNetCore.Hosting.dll", true),
            ("Systematic", "", false),
            ("Shop.System.Core", "", false),
            ("Odd", r"C:\dotnet\shared\Microsoft.WindowsDesktop.App\8.0.1\Odd.dll", true),
            ("Odd", "/srv/shared/Odd.dll", false),
            ("Odd", "/srv/shared/Microsoftish/Odd.dll", false),
            ("", "", false),
        ] {
            assert_eq!(is_framework(name, path), expected, "{name} {path}");
        }
    }
}
