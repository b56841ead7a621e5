//! `docs` on real projects: this one, and three that everybody knows, from their package archives. Every fact is held against a count
//! that was made in another way.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use archie_docs::scan::{Progress, ScanOptions, scan};
use serde_json::{Value as Json, json};

use super::kit::scores;
use crate::kit::Workdir;

const AGENTS: [&str; 7] = [
    "file-structure",
    "dependency-analyzer",
    "architecture-analyzer",
    "flow-analyzer",
    "schema-analyzer",
    "pattern-analyzer",
    "security-analyzer",
];

/// Every agent writes the same: something that holds anywhere, and something that holds nowhere.
fn script(times: usize) -> Json {
    let mut replies = Vec::new();
    for agent in AGENTS.iter().cycle().take(AGENTS.len() * times) {
        replies.push(json!({ "at": format!("{agent}-InitialAnalysis"), "text": "It is in good order. It begins in `src/no_such_file.rs`. See `NoSuchThing`." }));
        replies.push(json!({ "at": format!("{agent}-EvaluateClarity"), "json": scores(100) }));
    }
    replies.into()
}

fn run(command: &mut Command) -> String {
    let done = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    String::from_utf8(done.stdout).unwrap()
}

/// The files of a tree as git counts them.
fn files_by_git(root: &Path) -> BTreeSet<String> {
    let told = run(Command::new("git").arg("-C").arg(root).args([
        "-c",
        "core.quotepath=off",
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
    ]));
    let there = |path: &&str| root.join(path).symlink_metadata().is_ok();
    told.lines().filter(there).map(str::to_owned).collect()
}

struct Documented {
    workdir: Workdir,
    root: PathBuf,
    told: Json,
}

impl Documented {
    /// Documents a tree with all agents; the pages go elsewhere, so that the tree stays as it is.
    fn new(root: &Path) -> Self {
        let workdir = Workdir::scripted(&script(2));
        let ran = workdir.run(
            &[
                "docs",
                root.to_str().unwrap(),
                "--output",
                "pages",
                "--json",
                "--clarity-threshold",
                "40",
            ],
            "",
        );
        assert_eq!(ran.code(), Some(0), "{}", ran.err());
        Self {
            told: serde_json::from_str(&ran.out()).unwrap(),
            workdir,
            root: root.to_owned(),
        }
    }

    fn data(&self, agent: &str) -> &Json {
        let results = self.told["results"].as_array().unwrap();
        let result = results.iter().find(|result| result["agentName"] == agent);
        &result.unwrap()["data"]
    }

    fn check_counts(&self) {
        let files = files_by_git(&self.root);
        let folders: BTreeSet<&str> = files
            .iter()
            .flat_map(|path| path.match_indices('/').map(|(at, _)| &path[..at]))
            .collect();
        let data = self.data("file-structure");
        assert_eq!(data["fileCount"], files.len());
        assert_eq!(data["directoryCount"], folders.len());
    }

    /// Every path that the pages name is there, and every other name stands somewhere in the tree.
    fn check_names(&self) {
        let files = files_by_git(&self.root);
        let mut all = String::new();
        for path in &files {
            all.push_str(path);
            all.push('\n');
            if let Ok(bytes) = fs::read(self.root.join(path)) {
                all.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
        let mut names = 0;
        for agent in AGENTS {
            let page =
                fs::read_to_string(self.workdir.path("pages").join(format!("{agent}.md"))).unwrap();
            let plain: String = page.split("```").step_by(2).collect();
            for line in plain.lines() {
                for name in line.split('`').skip(1).step_by(2) {
                    names += 1;
                    let path = name.split(':').next().unwrap();
                    let is_there = self.root.join(path).symlink_metadata().is_ok();
                    let last = name.rsplit(['.', ':']).next().unwrap();
                    let words = name.split(" = ").next().unwrap();
                    let is_named = [name, last, words].iter().any(|name| all.contains(*name));
                    assert!(
                        is_there || is_named || name == "index.html",
                        "{agent}.md names `{name}`"
                    );
                }
            }
            assert!(
                !page.contains("no_such_file") && !page.contains("NoSuchThing"),
                "{page}"
            );
            assert!(page.contains("It is in good order."), "{page}");
        }
        assert!(names > 20, "{names}");
    }

    /// The same again asks nothing; a changed manifest asks one agent.
    fn check_again(&self, manifest: &str, change: impl FnOnce(&str) -> String) {
        let calls = || {
            let ledger = fs::read_to_string(self.workdir.path("ledger")).unwrap();
            ledger.lines().count()
        };
        let before = calls();
        let args = [
            "docs",
            self.root.to_str().unwrap(),
            "--output",
            "pages",
            "--clarity-threshold",
            "40",
        ];
        let ran = self.workdir.run(&args, "");
        assert!(ran.out().contains("nothing has changed"), "{ran:?}");
        assert_eq!(calls(), before);
        let path = self.root.join(manifest);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, change(&text)).unwrap();
        let ran = self.workdir.run(&args, "");
        fs::write(&path, text).unwrap();
        assert_eq!(ran.code(), Some(0), "{}", ran.err());
        assert_eq!(calls() - before, 2, "{}", ran.out());
        assert!(
            ran.out()
                .contains("dependency-analyzer: its facts have changed"),
            "{}",
            ran.out()
        );
    }

    fn dependencies(&self) -> BTreeSet<String> {
        let rows = self.data("dependency-analyzer")["dependencies"]
            .as_array()
            .unwrap();
        rows.iter()
            .map(|row| row["name"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// A folder that outlives the test, for what was fetched once.
fn cache(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("trees")
        .join(name)
}

/// Fetches once; several tests may want the same at the same time.
fn fetched(name: &str, fetch: impl FnOnce(&Path)) -> PathBuf {
    let folder = cache(name);
    if !folder.join("tree").exists() {
        let fresh = tempfile::tempdir().unwrap();
        fetch(fresh.path());
        run(Command::new("git")
            .arg("init")
            .arg("-q")
            .arg(fresh.path().join("tree")));
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        // Whoever was first has the same.
        if fs::rename(fresh.path(), &folder).is_ok() {
            let _ = fresh.keep();
        } else {
            run(Command::new("cp").arg("-a").arg(fresh.path()).arg(&folder));
        }
    }
    // Each test works on a copy, which it may change.
    let copy = tempfile::tempdir().unwrap().keep();
    run(Command::new("cp")
        .arg("-a")
        .arg(folder.join("tree"))
        .arg(&copy));
    copy.join("tree")
}

#[test]
fn this_repository_is_described_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap();
    let documented = Documented::new(&root);
    documented.check_counts();
    documented.check_names();
    let metadata = run(Command::new(env!("CARGO")).current_dir(&root).args([
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
    ]));
    let metadata: Json = serde_json::from_str(&metadata).unwrap();
    let ours: BTreeMap<&str, u64> = documented.data("dependency-analyzer")["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| {
            (
                package["manifest"].as_str().unwrap(),
                package["dependencies"].as_u64().unwrap(),
            )
        })
        .collect();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 10);
    for package in packages {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let manifest = manifest.strip_prefix(&root).unwrap().to_str().unwrap();
        let names: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["name"].as_str().unwrap())
            .collect();
        assert_eq!(ours[manifest], names.len() as u64, "{manifest}");
    }
}

#[test]
fn a_crate_is_described_as_it_is() {
    let root = fetched("serde_json-1.0.140", |folder| {
        let project = folder.join("project");
        fs::create_dir_all(project.join("src")).unwrap();
        fs::write(project.join("src/lib.rs"), "").unwrap();
        fs::write(project.join("Cargo.toml"), "[package]\nname = \"x\"\nversion = \"0.1.0\"\n[dependencies]\nserde_json = \"=1.0.140\"\n[workspace]\n").unwrap();
        run(Command::new(env!("CARGO")).current_dir(&project).args([
            "vendor",
            "--versioned-dirs",
            "vendor",
        ]));
        fs::rename(
            project.join("vendor/serde_json-1.0.140"),
            folder.join("tree"),
        )
        .unwrap();
    });
    let documented = Documented::new(&root);
    documented.check_counts();
    documented.check_names();
    let metadata = run(Command::new(env!("CARGO"))
        .current_dir(&root)
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--manifest-path",
        ])
        .arg(root.join("Cargo.toml")));
    let metadata: Json = serde_json::from_str(&metadata).unwrap();
    let names: BTreeSet<String> = metadata["packages"][0]["dependencies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(documented.dependencies(), names);
    let entries = documented.data("flow-analyzer")["entries"].to_string();
    assert!(entries.contains("src/lib.rs"), "{entries}");
    documented.check_again("Cargo.toml", |text| {
        text.replace(
            "[dependencies.ryu]",
            "[dependencies.nothing]\nversion = \"1\"\n\n[dependencies.ryu]",
        )
    });
}

#[test]
fn a_python_project_is_described_as_it_is() {
    let root = fetched("flask-3.0.3", |folder| {
        run(Command::new("python3").current_dir(folder).args([
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            ":all:",
            "--no-cache-dir",
            "flask==3.0.3",
            "-d",
            ".",
        ]));
        run(Command::new("tar")
            .current_dir(folder)
            .args(["-xzf", "flask-3.0.3.tar.gz"]));
        fs::rename(folder.join("flask-3.0.3"), folder.join("tree")).unwrap();
    });
    let documented = Documented::new(&root);
    documented.check_counts();
    documented.check_names();
    // What the archive's own metadata says that it needs, made by other tools.
    let metadata = fs::read_to_string(root.join("PKG-INFO")).unwrap();
    let needed = metadata
        .lines()
        .filter_map(|line| line.strip_prefix("Requires-Dist: "));
    let ours: BTreeSet<String> = documented
        .dependencies()
        .iter()
        .map(|name| name.to_lowercase())
        .collect();
    let mut checked = 0;
    for line in needed {
        let name: String = line
            .chars()
            .take_while(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
            .collect();
        assert!(ours.contains(&name.to_lowercase()), "{name}: {ours:?}");
        checked += 1;
    }
    assert!(checked >= 5, "{metadata}");
    let entries = documented.data("flow-analyzer")["entries"].to_string();
    assert!(entries.contains("flask = flask.cli:main"), "{entries}");
    documented.check_again("pyproject.toml", |text| {
        text.replace("\"click>=", "\"nothing>=1\",\n    \"click>=")
    });
}

#[test]
fn a_typescript_project_is_described_as_it_is() {
    let root = fetched("rxjs-7.8.1", |folder| {
        run(Command::new("npm")
            .current_dir(folder)
            .args(["pack", "--silent", "rxjs@7.8.1"]));
        run(Command::new("tar")
            .current_dir(folder)
            .args(["-xzf", "rxjs-7.8.1.tgz"]));
        fs::rename(folder.join("package"), folder.join("tree")).unwrap();
    });
    let documented = Documented::new(&root);
    documented.check_counts();
    documented.check_names();
    let manifest: Json =
        serde_json::from_str(&fs::read_to_string(root.join("package.json")).unwrap()).unwrap();
    let names: BTreeSet<String> = [
        "dependencies",
        "devDependencies",
        "peerDependencies",
        "optionalDependencies",
    ]
    .iter()
    .flat_map(|kind| manifest[*kind].as_object().into_iter().flatten())
    .map(|(name, _)| name.clone())
    .collect();
    assert!(names.len() > 20);
    assert_eq!(documented.dependencies(), names);
    documented.check_again("package.json", |text| {
        text.replacen("\"tslib\"", "\"nothing\": \"1\",\n    \"tslib\"", 1)
    });
}

#[test]
fn fifty_thousand_files_are_scanned_in_ten_seconds_and_progress_is_shown() {
    let workdir = Workdir::scripted(&json!([]));
    let root = workdir.path("large");
    for folder in 0..500 {
        let path = root.join(format!("part{}/sub{folder}", folder % 20));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            let (ending, text) = match file % 4 {
                0 => (
                    "rs",
                    format!(
                        "pub struct Thing{file} {{ pub field: u32 }}\nimpl Thing{file} {{ pub fn work(&self) -> u32 {{ self.field }} }}\n"
                    ),
                ),
                1 => (
                    "py",
                    format!(
                        "import os\nclass Thing{file}:\n    def work(self):\n        return os.getcwd()\n"
                    ),
                ),
                2 => (
                    "ts",
                    format!(
                        "import {{ a }} from './f0';\nexport class Thing{file} {{ work(): number {{ return 1; }} }}\n"
                    ),
                ),
                _ => (
                    "go",
                    format!("package part\nfunc Work{file}() int {{ return {file} }}\n"),
                ),
            };
            fs::write(path.join(format!("f{file}.{ending}")), text).unwrap();
        }
    }
    let since = Instant::now();
    let tree = scan(&root, &ScanOptions::default(), &Progress::default()).unwrap();
    let took = since.elapsed();
    eprintln!("{} files in {took:?}", tree.files.len());
    assert_eq!((tree.files.len(), tree.directories.len()), (50_000, 520));
    assert!(took.as_secs() < 10, "{took:?}");
    let ran = workdir.run(
        &["docs", "large", "--check", "--agents", "file-structure"],
        "",
    );
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.err().contains("files scanned"), "{ran:?}");
    assert!(
        ran.out().contains("50000 files in 520 directories"),
        "{ran:?}"
    );
}
