//! Dependencies between the parts of a project, from imports resolved to files of the tree.

use std::collections::{BTreeMap, BTreeSet};

use super::{Language, SourceFile, Tree};

/// The parts of a project, and which part uses which.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parts {
    /// What the parts are: `packages`, `folders` or `files`.
    pub of: &'static str,
    /// Number of source files of each part, by its name (packages) or path.
    pub files: BTreeMap<String, u64>,
    /// Number of files in the first part that import from the second part.
    pub uses: BTreeMap<(String, String), u64>,
}

/// Divides a project into parts: its packages if there are at least two, else its folders if there are at least three, else its
/// files. Tests do not count.
pub fn parts(tree: &Tree) -> Parts {
    let sources: Vec<&SourceFile> = tree
        .files
        .iter()
        .filter(|file| file.language.is_some_and(Language::is_parsed) && !file.is_test())
        .collect();
    let packages = tree
        .packages
        .iter()
        .filter(|package| !package.name.is_empty())
        .count();
    let folders: BTreeSet<&str> = sources.iter().map(|file| file.folder()).collect();
    let of = match (packages, folders.len()) {
        (2.., _) => "packages",
        (_, 3..) => "folders",
        _ => "files",
    };
    let name_of = |file: &SourceFile| match of {
        "packages" => tree
            .package_of(&file.path)
            .map_or_else(|| ".".to_owned(), |package| package.name.clone()),
        "folders" => match file.folder() {
            "" => ".".to_owned(),
            folder => folder.to_owned(),
        },
        _ => file.path.clone(),
    };
    let mut parts = Parts {
        of,
        ..Parts::default()
    };
    for file in &sources {
        let from = name_of(file);
        *parts.files.entry(from.clone()).or_default() += 1;
        let used: BTreeSet<String> = file
            .imports
            .iter()
            .filter_map(|import| import_target(tree, file, import))
            .map(name_of)
            .filter(|to| *to != from)
            .collect();
        for to in used {
            *parts.uses.entry((from.clone(), to)).or_default() += 1;
        }
    }
    parts
}

/// Resolves an import to a file of the tree. `None` if it refers to something else.
pub(crate) fn import_target<'a>(
    tree: &'a Tree,
    from: &SourceFile,
    import: &str,
) -> Option<&'a SourceFile> {
    match from.language? {
        Language::Rust => rust(tree, from, import),
        Language::Python => python(tree, from, import),
        Language::TypeScript | Language::JavaScript => script(tree, from, import),
        Language::Go => go(tree, import),
        Language::Java => {
            let path = import.trim_end_matches(".*").replace('.', "/");
            let end = format!("/{path}.java");
            tree.files.iter().find(|file| file.path.ends_with(&end))
        }
        _ => None,
    }
}

fn rust<'a>(tree: &'a Tree, from: &SourceFile, import: &str) -> Option<&'a SourceFile> {
    let mut segments = import.split("::").map(|segment| segment.trim());
    let first = segments.next()?;
    if first == "crate" {
        let root = from
            .path
            .split_once("src/")
            .map(|(before, _)| format!("{before}src"))?;
        let segment = segments.next()?.trim_matches(['{', '}', ' ']);
        let segment = segment.split([',', ' ']).next()?;
        return first_of(
            tree,
            &[
                format!("{root}/{segment}.rs"),
                format!("{root}/{segment}/mod.rs"),
            ],
        );
    }
    let package = tree.packages.iter().find(|package| {
        package.manager == "cargo"
            && !package.name.is_empty()
            && package.name.replace('-', "_") == first
    })?;
    let below = |path: &str| match package.folder() {
        "" => path.to_owned(),
        folder => format!("{folder}/{path}"),
    };
    first_of(tree, &[below("src/lib.rs"), below("src/main.rs")])
}

fn python<'a>(tree: &'a Tree, from: &SourceFile, import: &str) -> Option<&'a SourceFile> {
    let dots = import.chars().take_while(|c| *c == '.').count();
    let path = import[dots..].replace('.', "/");
    if dots > 0 {
        let mut folder = from.folder();
        for _ in 1..dots {
            folder = folder.rsplit_once('/').map_or("", |(above, _)| above);
        }
        let base = [folder, path.as_str()]
            .iter()
            .filter(|part| !part.is_empty())
            .copied()
            .collect::<Vec<_>>()
            .join("/");
        return first_of(tree, &[format!("{base}.py"), format!("{base}/__init__.py")]);
    }
    let roots = ["", "src/", "lib/"];
    let tries: Vec<String> = roots
        .iter()
        .flat_map(|root| {
            [
                format!("{root}{path}.py"),
                format!("{root}{path}/__init__.py"),
            ]
        })
        .collect();
    first_of(tree, &tries)
}

fn script<'a>(tree: &'a Tree, from: &SourceFile, import: &str) -> Option<&'a SourceFile> {
    if !import.starts_with('.') {
        let package = tree
            .packages
            .iter()
            .find(|package| package.manager == "npm" && package.name == import)?;
        let folder = package.folder().to_owned();
        return tree
            .files
            .iter()
            .find(|file| file.path.starts_with(&folder) && file.language == from.language);
    }
    let mut path: Vec<&str> = from
        .folder()
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    for part in import.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(path.pop()?),
            part => path.push(part),
        }
    }
    let base = path.join("/");
    let bare = base
        .trim_end_matches(".js")
        .trim_end_matches(".mjs")
        .to_owned();
    let mut tries = vec![base.clone()];
    for ending in ["ts", "tsx", "js", "jsx", "mjs", "cjs", "mts"] {
        tries.push(format!("{bare}.{ending}"));
        tries.push(format!("{base}/index.{ending}"));
    }
    first_of(tree, &tries)
}

fn go<'a>(tree: &'a Tree, import: &str) -> Option<&'a SourceFile> {
    let module = tree.packages.iter().find(|package| {
        package.manager == "go"
            && import
                .strip_prefix(&package.name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })?;
    let rest = import.strip_prefix(&module.name)?.trim_start_matches('/');
    let folder = [module.folder(), rest]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join("/");
    tree.files
        .iter()
        .find(|file| file.folder() == folder && file.language == Some(Language::Go))
}

fn first_of<'a>(tree: &'a Tree, paths: &[String]) -> Option<&'a SourceFile> {
    paths.iter().find_map(|path| tree.file(path))
}
