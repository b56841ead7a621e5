//! Resolves the names of a text against the definitions of the tree.
//!
//! That every word of `Message::new` occurs somewhere in the code says nothing. A path holds if it is defined here, with its
//! owner, or if the code uses exactly this path; a name of the standard library holds if the code uses it.

use super::super::scan::{Arity, SourceFile, Symbol, SymbolKind, Tree};
use super::standard::{is_inherited, is_standard};

/// What the tree says about a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The tree supports it.
    Held,
    /// The tree neither supports nor contradicts it: a member that may come from a dependency, a derive or a base class.
    Unknown,
    /// The tree does not support it.
    Missed,
}

/// Resolves a name or a path, called with this many arguments if that is known.
pub(super) fn resolve(tree: &Tree, name: &str, args: Option<u32>) -> Verdict {
    if is_of_project(tree, name) {
        return Verdict::Held;
    }
    let mut parts: Vec<&str> = name
        .split(['.', ':', '#'])
        .filter(|part| !part.is_empty())
        .collect();
    while parts.len() > 1 && RELATIVE.contains(&parts[0]) {
        parts.remove(0);
    }
    let last = parts.len().saturating_sub(1);
    if last == 0 {
        return parts
            .first()
            .map_or(Verdict::Held, |name| single(tree, name, args));
    }
    let pairs = parts.windows(2).enumerate();
    let verdicts = pairs.map(|(at, pair)| {
        let args = args.filter(|_| at + 1 == last);
        member(tree, pair[0], pair[1], args)
    });
    verdicts.max().unwrap_or(Verdict::Held)
}

/// Returns whether a name is that of a dependency, a package, a language or a path.
fn is_of_project(tree: &Tree, name: &str) -> bool {
    tree.has_dependency(name)
        || tree.packages.iter().any(|package| package.name == name)
        || tree.has_path(name)
        || tree
            .languages()
            .into_keys()
            .any(|language| language.word() == name)
}

fn single(tree: &Tree, name: &str, args: Option<u32>) -> Verdict {
    let defined = tree.defined(name);
    if !defined.is_empty() {
        return called(&defined, args);
    }
    let under = name.replace('-', "_");
    let is_there = tree.mentions(name)
        || tree.mentions(&under)
        || tree.has_dependency(&under)
        || tree
            .packages
            .iter()
            .any(|package| package.name.replace('-', "_") == under);
    match is_there {
        true => Verdict::Held,
        false => Verdict::Missed,
    }
}

/// Resolves `owner::name` or `owner.name`.
fn member(tree: &Tree, owner: &str, name: &str, args: Option<u32>) -> Verdict {
    let defined = tree.defined(name);
    let own: Vec<_> = defined
        .iter()
        .filter(|(file, symbol)| is_owner(tree, owner, file, symbol))
        .copied()
        .collect();
    if !own.is_empty() {
        return called(&own, args);
    }
    if tree.uses(owner, name) || is_module(tree, owner, name) {
        return Verdict::Held;
    }
    let is_type = |symbol: &Symbol| {
        matches!(
            symbol.kind,
            SymbolKind::Type | SymbolKind::Enum | SymbolKind::Interface
        )
    };
    let owners = tree.defined(owner);
    if owners.iter().any(|(_, symbol)| is_type(symbol)) {
        // A trait or a base class of the project may give it what it does not define itself.
        let may_inherit = is_inherited(name) || is_member_of_interface(tree, &defined);
        return match may_inherit {
            true => Verdict::Unknown,
            false => Verdict::Missed,
        };
    }
    let mut languages = tree.languages().into_keys();
    if languages.any(|language| is_standard(language, owner)) {
        return match tree.mentions(owner) {
            true => Verdict::Held,
            false => Verdict::Missed,
        };
    }
    // A variable, or a type of a dependency, whose members are not in this tree.
    let is_foreign = tree.has_dependency(owner)
        || tree.has_dependency(&owner.replace('_', "-"))
        || tree.mentions(owner) && tree.mentions(name);
    match is_foreign {
        true => Verdict::Unknown,
        false => Verdict::Missed,
    }
}

/// Returns whether a definition belongs to a type, or to a module or package, of this name.
fn is_owner(tree: &Tree, owner: &str, file: &SourceFile, symbol: &Symbol) -> bool {
    if symbol.owner.as_deref() == Some(owner) {
        return true;
    }
    // Modules are files and folders; what a module re-exports is below it.
    symbol.owner.is_none() && is_inside(tree, owner, file)
}

/// Returns whether a file is, or is inside of, a module or package of this name.
fn is_inside(tree: &Tree, module: &str, file: &SourceFile) -> bool {
    let stem = file.name().split('.').next();
    let mut folders = file.folder().split('/');
    let package = || {
        tree.package_of(&file.path)
            .map(|package| package.name.replace('-', "_"))
    };
    stem == Some(module)
        || folders.any(|folder| folder == module)
        || package().is_some_and(|package| package == module)
}

/// Returns whether `owner` has a module `name`: a file or folder below it.
fn is_module(tree: &Tree, owner: &str, name: &str) -> bool {
    tree.files.iter().any(|file| {
        let stem = file.name().split('.').next();
        let is_named = stem == Some(name) || file.folder().split('/').any(|folder| folder == name);
        is_named && is_inside(tree, owner, file)
    })
}

/// Returns whether one of these definitions is a member of an interface or a trait, or of a class that others may extend.
fn is_member_of_interface(tree: &Tree, defined: &[(&SourceFile, &Symbol)]) -> bool {
    let owners = defined
        .iter()
        .filter_map(|(_, symbol)| symbol.owner.as_deref());
    let is_shared = |owner: &str| {
        tree.defined(owner).iter().any(|(file, symbol)| {
            let is_class = symbol.kind == SymbolKind::Type && !file.path.ends_with(".rs");
            symbol.kind == SymbolKind::Interface || is_class
        })
    };
    let mut owners = owners;
    owners.any(is_shared)
}

/// Returns whether one of these definitions takes this many arguments.
fn called(defined: &[(&SourceFile, &Symbol)], args: Option<u32>) -> Verdict {
    let Some(args) = args else {
        return Verdict::Held;
    };
    let takes = |(_, symbol): &(&SourceFile, &Symbol)| {
        symbol.arity.is_none_or(|arity: Arity| arity.takes(args))
    };
    match defined.iter().any(takes) {
        true => Verdict::Held,
        false => Verdict::Missed,
    }
}

/// Words before a path that say where it begins.
const RELATIVE: &[&str] = &["crate", "self", "Self", "super", "this", "cls"];
