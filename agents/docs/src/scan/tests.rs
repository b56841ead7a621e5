//! Scans of small trees with known facts.

use std::fs;

use super::*;

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Tree) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tree = scan(folder.path(), &ScanOptions::default(), &Progress::default()).unwrap();
    (folder, tree)
}

fn kinds(tree: &Tree, path: &str) -> Vec<String> {
    let file = tree.file(path).unwrap();
    assert!(!file.is_partial, "{path} was not understood");
    let told = |symbol: &Symbol| match &symbol.owner {
        Some(owner) => format!("{:?} {}.{}", symbol.kind, owner, symbol.name),
        None => format!("{:?} {}", symbol.kind, symbol.name),
    };
    file.symbols.iter().map(told).collect()
}

#[test]
fn what_git_ignores_is_not_there_and_what_is_hidden_is() {
    let (_folder, tree) = tree(&[
        (".gitignore", "target/\n*.log\n"),
        (".github/ci.yml", "on: push\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("target/x.rs", "fn x() {}\n"),
        ("a.log", "x\n"),
    ]);
    let paths: Vec<_> = tree.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, [".github/ci.yml", ".gitignore", "src/main.rs"]);
    assert_eq!(
        tree.directories.iter().collect::<Vec<_>>(),
        [".github", "src"]
    );
    assert!(tree.has_path("./src/") && !tree.has_path("target/x.rs"));
}

#[test]
fn rust_is_read_with_its_grammar() {
    let (_folder, tree) = tree(&[(
        "src/main.rs",
        "use std::fmt;\npub struct Cart { items: Vec<u32> }\nimpl Cart { fn add(&mut self) {} }\ntrait Shop { fn sell(&self); }\nenum State { Open }\nconst N: u32 = 1;\nfn main() { unsafe { f() } let local = 1; }\n",
    )]);
    assert_eq!(
        kinds(&tree, "src/main.rs"),
        [
            "Type Cart",
            "Field Cart.items",
            "Method Cart.add",
            "Interface Shop",
            "Method Shop.sell",
            "Enum State",
            "Variant State.Open",
            "Value N",
            "Function main"
        ]
    );
    let file = tree.file("src/main.rs").unwrap();
    assert_eq!(file.imports, ["std::fmt"]);
    assert_eq!(
        file.marks,
        [CodeMark {
            what: "unsafe block",
            line: 7
        }]
    );
    assert!(file.is_entry && tree.mentions("local") && !tree.mentions("nowhere"));
}

#[test]
fn python_typescript_go_and_java_are_read_with_their_grammars() {
    let (_folder, tree) = tree(&[
        (
            "a.py",
            "import os, sys\nfrom .b import c\nLIMIT = 3\nclass Cart:\n    size = 0\n    def add(self):\n        x = 1\ndef run():\n    pass\nif __name__ == '__main__':\n    eval('1')\n",
        ),
        (
            "b.ts",
            "import { x } from './c';\nexport interface Shop { name: string; sell(): void }\nexport class Cart { items = 0; add() {} }\nexport const go = () => 1;\nconst LIMIT = 3;\nenum E { A }\ntype T = string;\nfunction f() { const inner = 1; }\n",
        ),
        (
            "c.go",
            "package main\nimport \"fmt\"\ntype Cart struct { Items int }\ntype Shop interface { Sell() }\nfunc (c *Cart) Add() {}\nfunc main() { fmt.Println() }\nconst N = 1\n",
        ),
        (
            "D.java",
            "import java.util.List;\npublic class D { private int items; void add() {} public static void main(String[] a) {} enum E { A } }\n",
        ),
    ]);
    assert_eq!(
        kinds(&tree, "a.py"),
        [
            "Value LIMIT",
            "Type Cart",
            "Field Cart.size",
            "Method Cart.add",
            "Function run"
        ]
    );
    assert_eq!(tree.file("a.py").unwrap().imports, ["os", "sys", ".b"]);
    assert!(tree.file("a.py").unwrap().is_entry);
    assert_eq!(
        kinds(&tree, "b.ts"),
        [
            "Interface Shop",
            "Field Shop.name",
            "Method Shop.sell",
            "Type Cart",
            "Field Cart.items",
            "Method Cart.add",
            "Function go",
            "Value LIMIT",
            "Enum E",
            "Alias T",
            "Function f"
        ]
    );
    assert_eq!(tree.file("b.ts").unwrap().imports, ["./c"]);
    assert_eq!(
        kinds(&tree, "c.go"),
        [
            "Type Cart",
            "Field Cart.Items",
            "Interface Shop",
            "Method Shop.Sell",
            "Method Cart.Add",
            "Function main",
            "Value N"
        ]
    );
    assert_eq!(tree.file("c.go").unwrap().imports, ["fmt"]);
    assert!(tree.file("c.go").unwrap().is_entry);
    assert_eq!(
        kinds(&tree, "D.java"),
        [
            "Type D",
            "Field D.items",
            "Method D.add",
            "Method D.main",
            "Enum D.E",
            "Variant E.A"
        ]
    );
    assert!(tree.file("D.java").unwrap().is_entry);
}

#[test]
fn manifests_of_six_managers_are_read() {
    let (_folder, tree) = tree(&[
        (
            "Cargo.toml",
            "[package]\nname = \"shop\"\nversion = \"0.1.0\"\n[dependencies]\nserde = { version = \"1\", optional = true }\ncore = { path = \"core\" }\n[dev-dependencies]\ntempfile = \"3\"\n[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n",
        ),
        ("src/lib.rs", ""),
        ("core/Cargo.toml", "[package]\nname = \"core\"\n"),
        (
            "py/pyproject.toml",
            "[project]\nname = \"pyshop\"\ndependencies = [\"requests[socks]>=2; python_version > '3'\"]\n[project.scripts]\nshop = \"shop:main\"\n",
        ),
        (
            "js/package.json",
            "{\"name\":\"jshop\",\"main\":\"./index.js\",\"dependencies\":{\"left\":\"^1\"},\"devDependencies\":{\"jest\":\"*\"}}",
        ),
        (
            "go/go.mod",
            "module example.org/shop\nrequire (\n\tgolang.org/x/text v0.3.0\n\tx.org/y v1.0.0 // indirect\n)\n",
        ),
        (
            "mvn/pom.xml",
            "<project><artifactId>jshop</artifactId><dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4</version><scope>test</scope></dependency></dependencies></project>",
        ),
        (
            "gr/build.gradle",
            "dependencies {\n  implementation 'a.b:c:1.0'\n}\n",
        ),
    ]);
    assert_eq!(tree.project, "shop");
    let all: Vec<String> = tree
        .packages
        .iter()
        .flat_map(|package| {
            let told = |d: &Dependency| {
                format!(
                    "{} {} {} {}{}",
                    package.name,
                    d.name,
                    d.requirement,
                    d.kind.word(),
                    if d.is_local { " local" } else { "" }
                )
            };
            package.dependencies.iter().map(told).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        all,
        [
            "shop core  normal local",
            "shop libc 0.2 normal",
            "shop serde 1 optional",
            "shop tempfile 3 dev",
            "example.org/shop golang.org/x/text v0.3.0 normal",
            "example.org/shop x.org/y v1.0.0 optional",
            " a.b:c 1.0 normal",
            "jshop jest * dev",
            "jshop left ^1 normal",
            "jshop junit:junit 4 dev",
            "pyshop requests >=2 normal"
        ]
    );
    let entries: Vec<_> = tree
        .packages
        .iter()
        .flat_map(|p| p.entries.clone())
        .collect();
    assert_eq!(entries, ["src/lib.rs", "js/index.js", "shop = shop:main"]);
}

/// Returns the CPU time of this thread, which other programs do not affect.
fn processor_time() -> std::time::Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = text.split_whitespace().next().unwrap().parse().unwrap();
    std::time::Duration::from_nanos(nanos)
}

/// Returns the shortest of three parse times.
fn parsed_in(text: &str) -> std::time::Duration {
    let once = || {
        let begun = processor_time();
        let mut parser = tree_sitter::Parser::new();
        let mut words = HashSet::new();
        let found = super::parse::source(&mut parser, Language::Rust, "a.rs", text, &mut words);
        assert!(found.is_some());
        processor_time() - begun
    };
    (0..3).map(|_| once()).min().unwrap()
}

#[test]
fn nested_code_takes_time_in_proportion() {
    for nested in [
        "mod a{",
        "fn a(){ const X: u32 = 1; ",
        "impl A { fn a() {",
        "struct A<T>{ a: A<",
    ] {
        let took = [8_000, 16_000, 32_000].map(|times| parsed_in(&nested.repeat(times)));
        eprintln!("{nested:?}: {took:?}");
        // The text is four times as long: linear time gives a factor of 4, quadratic 16, and cubic 64, which an earlier version
        // had.
        let times = took[2].as_secs_f64() / took[0].as_secs_f64();
        assert!(times < 10.0, "{nested:?}: {took:?}");
    }
}

#[test]
fn a_name_with_newlines_is_one_line() {
    let (_folder, tree) = tree(&[(
        "Cargo.toml",
        "[package]\nname = \"shop\\n\\u001b[2Jtouch x\\n\"\nversion = \"0.1.0\"\n",
    )]);
    assert_eq!(tree.project, "shop [2Jtouch x");
}

#[test]
fn what_git_keeps_is_not_of_the_tree_at_any_depth() {
    let (_folder, tree) = tree(&[
        ("a.rs", ""),
        (".git/config", "token"),
        ("sub/.git/config", "token"),
        ("sub/lib/.git", "gitdir: elsewhere"),
        ("sub/lib/b.rs", ""),
    ]);
    let paths: Vec<&str> = tree.files.iter().map(|file| &*file.path).collect();
    assert_eq!(paths, ["a.rs", "sub/lib/b.rs"]);
}

#[test]
fn rules_of_git_count_where_git_would_count_them() {
    let (_folder, tree) = tree(&[
        (".gitignore", "*.log\n/out/\n!keep.log\nsub/deep/*\n"),
        (".git/info/exclude", "*.tmp\n"),
        ("a.rs", ""),
        ("a.log", ""),
        ("a.tmp", ""),
        ("keep.log", ""),
        ("out/b.rs", ""),
        ("sub/out/b.rs", ""),
        ("sub/deep/c.rs", ""),
        ("sub/.gitignore", "!a.log\nown\n"),
        ("sub/a.log", ""),
        ("sub/own/d.rs", ""),
        ("vendor/.git/HEAD", ""),
        ("vendor/b.log", ""),
    ]);
    let paths: Vec<&str> = tree.files.iter().map(|file| &*file.path).collect();
    assert_eq!(
        paths,
        [
            ".gitignore",
            "a.rs",
            "keep.log",
            "sub/.gitignore",
            "sub/a.log",
            "sub/out/b.rs",
            "vendor/b.log",
        ]
    );
}

#[test]
fn the_outline_of_a_hostile_file_stays_small() {
    let long = format!("/// {}\npub fn one() {{}}\n", "x".repeat(100_000));
    let one = outline(Language::Rust, "a.rs", &long).unwrap();
    assert!(one.items[0].signature.len() < 300, "a long comment is cut");
    assert!(one.items[0].signature.ends_with("pub fn one()"));

    let header = format!(
        "trait T {{\n    fn head({}\n    );\n}}\n",
        "\n        a: u8,".repeat(1_000)
    );
    let header = outline(Language::Rust, "a.rs", &header).unwrap();
    let head = header.items.iter().find(|item| item.name == "head");
    let head = &head.unwrap().signature;
    assert!(
        head.contains("more lines") && head.lines().count() < 40,
        "{head}"
    );

    let many = "const A: u8 = 1; pub fn f() {} ".repeat(5_000);
    let many = outline(Language::Rust, "a.rs", &many).unwrap();
    assert_eq!(many.items.len(), 2_000);
    assert_eq!(many.items[1].signature, "pub fn f()");

    let above = format!("{}pub fn f() {{}}\n", "#[inline]\n".repeat(200));
    let above = outline(Language::Rust, "a.rs", &format!("/// Far.\n{above}")).unwrap();
    assert_eq!(above.items[0].signature, "pub fn f()");
}
