//! A library compiles with the Rust that its `rust-version` names, as far as that shows without that compiler.
//!
//! Three parts: clippy's `incompatible_msrv` finds functions of the standard library that are newer (denied in `Cargo.toml`),
//! this file finds syntax that is newer, and dependencies that say they need more. The proof is the step `minimum rust` of
//! `cargo xtask verify`, on a machine that has the toolchain.

use std::collections::BTreeSet;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::metadata::{Metadata, Package};

use super::assert_tidy;
use super::files::{self, File};

/// Macros of the standard library that came after the oldest minimum, and when. Clippy does not look at macros.
const NEW_MACROS: &[(&str, &str)] = &[
    ("cfg_select", "1.95"),
    ("assert_matches", "1.96"),
    ("debug_assert_matches", "1.96"),
];

/// Syntax after 1.88, the oldest minimum. A library with a higher one is held to this, too.
#[derive(Default)]
struct NewSyntax {
    found: Vec<(usize, String)>,
}

impl NewSyntax {
    fn of(text: &str) -> Vec<(usize, String)> {
        let mut syntax = Self::default();
        match syn::parse_file(text) {
            Ok(file) => syntax.visit_file(&file),
            Err(error) => {
                let line = error.span().start().line;
                syntax
                    .found
                    .push((line, format!("`syn` cannot read this: {error}")));
            }
        }
        syntax.found
    }

    fn add(&mut self, at: &impl Spanned, what: &str, since: &str) {
        let line = at.span().start().line;
        self.found
            .push((line, format!("{what} needs Rust {since}")));
    }
}

impl<'ast> Visit<'ast> for NewSyntax {
    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if let Some((_, guard)) = &arm.guard
            && has_let(guard)
        {
            self.add(guard.as_ref(), "`let` in the guard of a match arm", "1.95");
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_repeat(&mut self, repeat: &'ast syn::ExprRepeat) {
        if matches!(*repeat.len, syn::Expr::Infer(_)) {
            self.add(repeat, "`_` as the length of an array", "1.89");
        }
        visit::visit_expr_repeat(self, repeat);
    }

    fn visit_type_array(&mut self, array: &'ast syn::TypeArray) {
        if matches!(array.len, syn::Expr::Infer(_)) {
            self.add(array, "`_` as the length of an array", "1.89");
        }
        visit::visit_type_array(self, array);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if attribute.path().is_ident("repr")
            && let syn::Meta::List(list) = &attribute.meta
            && ["i128", "u128"].contains(&list.tokens.to_string().as_str())
        {
            self.add(attribute, "`repr` with 128 bits", "1.89");
        }
        visit::visit_attribute(self, attribute);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let name = call.path.segments.last().map(|last| last.ident.to_string());
        let name = name.unwrap_or_default();
        for (new, since) in NEW_MACROS {
            if name == *new {
                self.add(call, &format!("`{new}!`"), since);
            }
        }
        // Most macros take code. What a macro of its own syntax takes is not read.
        if name == "matches" {
            let guarded = |input: syn::parse::ParseStream<'_>| {
                input.parse::<syn::Expr>()?;
                input.parse::<syn::Token![,]>()?;
                syn::Pat::parse_multi_with_leading_vert(input)?;
                let guard = match input.parse::<Option<syn::Token![if]>>()? {
                    Some(_) => Some(input.parse::<syn::Expr>()?),
                    None => None,
                };
                input.parse::<Option<syn::Token![,]>>()?;
                Ok(guard)
            };
            if let Ok(Some(guard)) = call.parse_body_with(guarded)
                && has_let(&guard)
            {
                self.add(call, "`let` in the guard of `matches!`", "1.95");
            }
        } else if let Ok(statements) = call.parse_body_with(syn::Block::parse_within) {
            for statement in &statements {
                self.visit_stmt(statement);
            }
        }
        visit::visit_macro(self, call);
    }
}

/// Whether an expression is a `let`, or a chain with one. A `let` deeper inside, such as in a block, is an ordinary one.
fn has_let(expr: &syn::Expr) -> bool {
    match expr {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn faults_of(file: &File) -> Vec<String> {
    let is_library = file
        .split_package()
        .is_some_and(|(package, path)| package.starts_with("crates/") && path.starts_with("src/"));
    if !file.is_rust() || !is_library {
        return Vec::new();
    }
    let found = NewSyntax::of(&file.text).into_iter();
    found
        .map(|(line, what)| format!("{}:{line}: {what}", file.path))
        .collect()
}

/// Dependencies of libraries that say they need a newer Rust than the library does.
fn dependency_faults(metadata: &Metadata) -> Vec<String> {
    let mut faults = Vec::new();
    for library in metadata.libraries() {
        let Some(minimum) = library.rust_version.as_deref() else {
            faults.push(format!("{} has no `rust-version`", library.name));
            continue;
        };
        for dependency in built_from(metadata, library) {
            if let Some(needed) = dependency.rust_version.as_deref()
                && numbers(needed) > numbers(minimum)
            {
                faults.push(format!(
                    "{} says Rust {minimum}, but {} {} needs {needed}: take an older one (`cargo update -p {} --precise …`), or say {needed}",
                    library.name, dependency.name, dependency.version, dependency.name
                ));
            }
        }
    }
    faults
}

/// Everything that is compiled for a package, with all features of the workspace on and for every platform.
fn built_from<'a>(metadata: &'a Metadata, package: &'a Package) -> Vec<&'a Package> {
    let mut ids: BTreeSet<&str> = BTreeSet::new();
    let mut waiting = vec![package];
    let mut packages = Vec::new();
    while let Some(package) = waiting.pop() {
        for id in package.linked.iter().chain(&package.build_linked) {
            let mut all = metadata.packages.iter();
            if ids.insert(id)
                && let Some(dependency) = all.find(|package| package.id == *id)
            {
                waiting.push(dependency);
                packages.push(dependency);
            }
        }
    }
    packages
}

/// `1.88` and `1.88.0` are the same.
fn numbers(version: &str) -> [u32; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    std::array::from_fn(|_| parts.next().unwrap_or(0))
}

#[test]
fn libraries_use_no_syntax_after_their_minimum() {
    assert_tidy(&files::all().iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn dependencies_of_libraries_need_no_newer_rust() {
    assert_tidy(&dependency_faults(&Metadata::read().unwrap()));
}

#[test]
fn new_syntax_is_found() {
    for new in [
        "fn f() { match x { Some(y) if let Ok(z) = y => z, _ => 0 } }",
        "fn f() { match x { Some(y) if y > 1 && let Ok(z) = g(y) => z, _ => 0 } }",
        "fn f() { matches!(x, Some(y) if let Ok(z) = y) }",
        "fn f() { select! { match x { y if let Some(z) = y => z } } }",
        "fn f() { let x = [0; _]; }",
        "fn f() { let x: [u8; _] = y; }",
        "#[repr(u128)] enum E { A }",
        "std::cfg_select! { unix => {} }",
        "fn f() { assert_matches!(x, Some(_)); }",
        "fn f( {",
    ] {
        assert_eq!(NewSyntax::of(new).len(), 1, "{new}");
    }
    for old in [
        "fn f() { match x { Some(y) if matches!(y, Ok(_)) => y, _ => 0 } }",
        "fn f() { match x { y if { if let Some(_) = y { true } else { false } } => y } }",
        "fn f() { if let Some(y) = x && let Ok(z) = y { [0; 3]; } }",
        "fn f() { let _ = async || {}; }",
        "#[repr(u8)] enum E { A }",
    ] {
        assert_eq!(NewSyntax::of(old), [], "{old}");
    }
    let new = "fn f() {\n    let x = [0; _];\n}\n";
    assert_eq!(
        faults_of(&File::new("crates/a/src/b.rs", new)),
        ["crates/a/src/b.rs:2: `_` as the length of an array needs Rust 1.89"]
    );
    assert!(faults_of(&File::new("crates/a/tests/b.rs", new)).is_empty());
}

#[test]
fn a_dependency_that_needs_more_is_found_also_behind_a_build_script() {
    let package = |name: &str, needs: &str, linked: &[&str], build: &[&str]| Package {
        id: name.to_owned(),
        name: name.to_owned(),
        member: name == "a",
        manifest: format!("/x/crates/{name}/Cargo.toml"),
        rust_version: Some(needs.to_owned()),
        linked: linked.iter().map(|id| (*id).to_owned()).collect(),
        build_linked: build.iter().map(|id| (*id).to_owned()).collect(),
        ..Package::default()
    };
    let metadata = Metadata {
        packages: vec![
            package("a", "1.88", &["b"], &[]),
            package("b", "1.88.0", &[], &["c"]),
            package("c", "1.100", &[], &[]),
        ],
    };
    let faults = dependency_faults(&metadata);
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("c  needs 1.100"), "{faults:?}");
}
