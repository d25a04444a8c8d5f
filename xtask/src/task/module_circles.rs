//! Test of the modules of all crates: files do not use each other in circles, so that each can be read,
//! tested and changed without the files that use it.
//!
//! A file uses the files that define the names in its `use` declarations and paths, through any number of
//! re-exports. Re-exports, `mod` lines and code of tests are not uses. A file and the modules below it may
//! use each other: they are one module, and the file is its front. A circle that remains without the front is
//! a fault.

mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::task::workspace;
pub(super) use source::{Module, tokens, without_tests};

use source::Names;

/// Maximum number of re-exports between a name and its definition.
const MAX_REEXPORTS: usize = 16;

/// The files that each file uses, by the paths of their modules.
type Uses = BTreeMap<Names, BTreeSet<Names>>;

/// The modules of a crate that are files, by their paths.
#[derive(Default)]
struct Crate(BTreeMap<Names, Module>);

impl Crate {
    /// Reads the files of a crate's folder of sources, which are given by their paths in it, from its root.
    fn read(files: &BTreeMap<String, String>, root: &str) -> Self {
        let mut found = Self::default();
        let mut waiting = vec![(Names::new(), root.to_owned())];
        while let Some((path, file)) = waiting.pop() {
            let tokens = without_tests(&tokens(&files[&file]));
            let (folder, name) = file.rsplit_once('/').unwrap_or(("", &file));
            let folder = match name {
                "lib.rs" | "main.rs" | "mod.rs" => folder,
                _ => file.trim_end_matches(".rs"),
            };
            for child in tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";") {
                let child = child[1];
                let stem = if folder.is_empty() { child.to_owned() } else { format!("{folder}/{child}") };
                let places = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
                // Files outside the folder, by `#[path]`, are left out.
                if let Some(file) = places.into_iter().find(|place| files.contains_key(place)) {
                    waiting.push(([&*path, &[child.to_owned()]].concat(), file));
                }
            }
            found.0.insert(path, Module::read(&tokens));
        }
        found
    }

    /// Returns the file that a path in a file leads to; `None` if it is not in this crate.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Names> {
        let (first, mut rest) = path.split_first()?;
        let mut module = from.to_vec();
        match &**first {
            "crate" => module.clear(),
            "self" => {}
            "super" => {
                module.pop()?;
                while let Some(("super", after)) = rest.split_first().map(|(name, rest)| (&**name, rest)) {
                    module.pop()?;
                    rest = after;
                }
            }
            _ => return self.find(&module, path, depth),
        }
        if rest.is_empty() { Some(module) } else { self.find(&module, rest, depth).or(Some(module)) }
    }

    /// Returns the file that defines the end of a path that begins with a name of `module`.
    fn find(&self, module: &[String], path: &[String], depth: usize) -> Option<Names> {
        let Some((name, rest)) = path.split_first() else { return Some(module.to_vec()) };
        let child = [module, std::slice::from_ref(name)].concat();
        if self.0.contains_key(&child) {
            return self.find(&child, rest, depth).or(Some(child));
        }
        let names = self.0.get(module)?;
        if names.items.contains(name) {
            return Some(module.to_vec());
        }
        let depth = depth.checked_sub(1)?;
        if let Some(import) = names.imports.get(name) {
            return self.resolve(module, &[import, rest].concat(), depth);
        }
        names.globs.iter().find_map(|glob| {
            let target = self.resolve(module, glob, depth)?;
            self.find(&target, path, depth)
        })
    }

    fn uses(&self) -> Uses {
        let uses = |(module, names): (&Names, &Module)| {
            let files = names.paths.iter().filter_map(|path| self.resolve(module, path, MAX_REEXPORTS));
            (module.clone(), files.filter(|file| file != module).collect())
        };
        self.0.iter().map(uses).collect()
    }
}

/// Returns the files that a file reaches through others of `among`.
fn reached<'u>(uses: &'u Uses, among: &BTreeSet<&'u Names>, from: &'u Names) -> BTreeSet<&'u Names> {
    let (mut found, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(file) = waiting.pop() {
        let next = uses[file].iter().filter(|file| among.contains(file));
        waiting.extend(next.filter(|file| found.insert(*file)));
    }
    found
}

/// Returns the circles among some files, without the files that have all others of a circle below them.
fn circles<'u>(uses: &'u Uses, among: &BTreeSet<&'u Names>) -> Vec<Vec<&'u Names>> {
    let reached: BTreeMap<_, _> = among.iter().map(|file| (*file, reached(uses, among, file))).collect();
    let (mut found, mut rest) = (Vec::new(), among.clone());
    while let Some(first) = rest.pop_first() {
        let mut circle: BTreeSet<_> =
            reached[first].iter().copied().filter(|file| reached[*file].contains(first)).collect();
        rest.retain(|file| !circle.contains(file));
        if circle.iter().all(|file| file.starts_with(first)) {
            circle.remove(first);
            found.extend(circles(uses, &circle));
        } else {
            found.push(circle.into_iter().collect());
        }
    }
    found
}

/// Returns the circles of a crate: for each file the files of the circle that it uses.
fn circles_of(files: &BTreeMap<String, String>, root: &str) -> Vec<Vec<String>> {
    let uses = Crate::read(files, root).uses();
    let circles = circles(&uses, &uses.keys().collect());
    let describe = |circle: &Vec<&Names>| {
        let files = circle.iter().map(|file| {
            let others = uses[*file].iter().filter(|file| circle.contains(file)).map(|file| file.join("::"));
            format!("{} → {}", file.join("::"), others.collect::<Vec<_>>().join(", "))
        });
        files.collect()
    };
    circles.iter().map(describe).collect()
}

/// Adds the source files below a folder, by their paths in it.
pub(super) fn visit(folder: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{below}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            visit(&path, &format!("{name}/"), found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn modules_do_not_use_each_other_in_circles() {
    let mut found = Vec::new();
    let crates = fs::read_dir(workspace::root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    for folder in crates.chain([workspace::root().join("xtask")]) {
        let name = folder.file_name().unwrap().to_string_lossy();
        let mut files = BTreeMap::new();
        visit(&folder.join("src"), "", &mut files);
        for root in ["lib.rs", "main.rs"].into_iter().filter(|root| files.contains_key(*root)) {
            let circles = circles_of(&files, root).into_iter();
            found.extend(circles.map(|circle| format!("{name}: {}", circle.join("; "))));
        }
    }
    let none: [&str; 0] = [];
    assert_eq!(found, none, "move what both sides of a circle use to a file below them");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the circles of a crate with these files; each begins with `lib.rs`.
    fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        circles_of(&files.collect(), "lib.rs")
    }

    #[test]
    fn finds_circles_of_uses_and_paths() {
        let lib = ("lib.rs", "mod a; mod b; mod c;");
        let c = ("c.rs", "use crate::a::{self, A as B};");
        let a = ("a.rs", "use crate::b::{c::D, B}; pub struct A;");
        let found = circles(&[lib, a, ("b.rs", "pub struct B; fn f(_: &'static super::a::A) {}"), c]);
        assert_eq!(found, [["a → b", "b → a"]]);
        assert!(circles(&[lib, a, ("b.rs", "pub struct B;"), c]).is_empty());
        // Modules in a file are part of it.
        let inline = "pub struct B; pub mod c { pub use super::super::a::A; fn f(_: super::super::a::A) {} }";
        assert_eq!(circles(&[lib, a, ("b.rs", inline), c]).len(), 1);
    }

    #[test]
    fn follows_reexports_to_the_definition_and_does_not_count_them() {
        let a = ("a.rs", "use crate::b::B; pub struct A;");
        for lib in ["pub mod a; mod b; pub use a::A;", "pub mod a; mod b; pub use a::*;"] {
            let found = circles(&[("lib.rs", lib), a, ("b.rs", "use crate::A; pub struct B;")]);
            assert_eq!(found, [["a → b", "b → a"]], "{lib}");
        }
        let lib = ("lib.rs", "mod a; mod b;");
        assert!(circles(&[lib, a, ("b.rs", "pub(crate) use crate::a::A; pub struct B;")]).is_empty());
    }

    #[test]
    fn a_file_and_the_modules_below_it_may_use_each_other() {
        let lib = ("lib.rs", "mod a; mod c;");
        let a = ("a.rs", "mod b; mod d; use b::B; pub struct A;");
        let d = ("a/d.rs", "pub struct D;");
        let b = ("a/b.rs", "use super::{A, d::D}; use crate::c::C; pub struct B;");
        assert!(circles(&[lib, a, b, d, ("c.rs", "pub struct C;")]).is_empty());
        let found = circles(&[lib, a, b, d, ("c.rs", "use crate::a::A; pub struct C;")]);
        assert_eq!(found, [["a → a::b", "a::b → a, c", "c → a"]]);
        // Without the file, the modules below it are in a circle.
        let d = ("a/d.rs", "use super::b::B; pub struct D;");
        assert_eq!(circles(&[lib, a, b, d, ("c.rs", "")]), [["a::b → a::d", "a::d → a::b"]]);
    }

    #[test]
    fn tests_comments_and_strings_are_not_code() {
        let a = ("a.rs", "use crate::b::B; pub struct A;");
        let b = "pub struct B; // crate::a::A
            /* crate::a::A */ const C: &str = \"\\\"crate::a::A\"; const D: &str = r#\"\" crate::a::A\"#;
            #[cfg(test)] use crate::a::{A}; const E: [char; 2] = ['\"', '\\''];
            #[cfg(all(test, unix))] mod tests { fn f(_: crate::a::A) {} }";
        assert!(circles(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", b)]).is_empty());
        let b = format!("{b} fn f(_: crate::a::A) {{}}");
        assert_eq!(circles(&[("lib.rs", "mod a; mod b;"), a, ("b.rs", &b)]).len(), 1);
    }
}
