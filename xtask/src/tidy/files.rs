//! The files of the repository: what git tracks, and what it would if it were asked to.

use harness::workspace::{self, root};

/// A file, by its path from the root of the workspace.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it belongs to something that is shipped, rather than to this helper.
    pub(super) fn is_of_a_crate(&self) -> bool {
        ["agents/", "apps/", "crates/"]
            .iter()
            .any(|folder| self.path.starts_with(folder))
    }

    /// The folder of its package, such as `crates/superstep-core`, and its path from there.
    pub(super) fn split_package(&self) -> Option<(&str, &str)> {
        let folders_of_packages = ["bench/", "examples/", "testing/"];
        let mut folders = folders_of_packages.iter();
        let is_below = self.is_of_a_crate() || folders.any(|folder| self.path.starts_with(folder));
        let folders = if is_below { 2 } else { 1 };
        let end = self.path.match_indices('/').nth(folders - 1)?.0;
        Some((&self.path[..end], &self.path[end + 1..]))
    }
}

/// All of them. A file that is deleted but not yet committed as such is left out.
pub(super) fn all() -> Vec<File> {
    let paths = workspace::files().expect("the tidy rules read the list of files from git");
    let read = |path: &str| std::fs::read(root().join(path)).ok();
    paths
        .into_iter()
        .filter_map(|path| Some(File::new(&path, &String::from_utf8_lossy(&read(&path)?))))
        .collect()
}

#[test]
fn the_package_of_a_file_is_found() {
    let split = |path: &str| {
        File::new(path, "")
            .split_package()
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    };
    assert_eq!(
        split("crates/superstep/src/lib.rs"),
        Some(("crates/superstep".into(), "src/lib.rs".into()))
    );
    assert_eq!(
        split("xtask/src/main.rs"),
        Some(("xtask".into(), "src/main.rs".into()))
    );
    assert_eq!(
        split("bench/floor/src/main.rs"),
        Some(("bench/floor".into(), "src/main.rs".into()))
    );
    assert_eq!(split("README.md"), None);
}

#[test]
fn this_file_is_among_the_files() {
    assert!(
        all()
            .iter()
            .any(|file| file.path == "xtask/src/tidy/files.rs")
    );
}
