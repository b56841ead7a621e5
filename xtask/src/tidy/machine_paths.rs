//! No file names a folder of somebody's machine, or the server that somebody's packages came from.

use super::assert_tidy;
use super::files::{self, File};

/// First folders of absolute paths that are different on every machine. Without slashes, so that this file is clean.
const FOLDERS: &[&str] = &["home", "root", "work", "Users"];

/// Parts of the addresses that package managers download from; each is written apart, so that this file is clean.
const HOSTS: &[&[&str]] = &[
    &["arti", "factory"],
    &["index.", "crates.io"],
    &["static.", "crates.io"],
    &["registry.", "npmjs.org"],
    &["registry.", "yarnpkg.com"],
    &["files.", "pythonhosted.org"],
    &["pypi.org", "/simple"],
    &["deb.", "debian.org"],
];

fn faults_of(file: &File) -> Vec<String> {
    let mut faults = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
            faults.push(format!(
                "{}:{}: a path of one machine, below /{folder}",
                file.path,
                number + 1
            ));
        }
        for host in HOSTS
            .iter()
            .map(|parts| parts.concat())
            .filter(|host| line.contains(host.as_str()))
        {
            faults.push(format!(
                "{}:{}: the package server `{host}`",
                file.path,
                number + 1
            ));
        }
    }
    faults
}

/// Whether an absolute path begins with the folder. `$HOME/work/x` and `docs/home/x` are not absolute.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(&format!("/{folder}/")).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~})>*".contains(c))
    })
}

/// Says where a picture of the program first shows a folder of the machine on which it was taken. `cargo xtask pictures` writes the
/// home of the person as `~`.
fn fault_of_picture(picture: &File) -> Option<String> {
    let shows = |line: &str| {
        // Each text of the screen is behind the end of its tag, where markup may have a relative path.
        let line = line.replace('>', " ");
        let mut folders = PICTURED.iter();
        folders.any(|folder| names_folder(&line, folder))
    };
    let mut wrong = (1..)
        .zip(picture.text.lines())
        .filter(|(_, line)| shows(line));
    let (number, line) = wrong.next()?;
    Some(format!(
        "{}:{number}: `{line}` shows a folder of one machine, and so do {} other lines; take it again with `cargo xtask pictures`",
        picture.path,
        wrong.count()
    ))
}

/// First folders of the absolute paths that a picture may show by accident. Its machine is often a container.
const PICTURED: &[&str] = &["tmp", "root", "home"];

#[test]
fn no_file_names_a_machine() {
    assert_tidy(&files::all().iter().flat_map(faults_of).collect::<Vec<_>>());
}

#[test]
fn no_picture_shows_a_folder_of_a_machine() {
    let is_picture =
        |file: &File| file.path.starts_with("docs/pictures/") && file.path.ends_with(".svg");
    let pictures = files::all().into_iter().filter(is_picture);
    let faults = pictures.filter_map(|picture| fault_of_picture(&picture));
    assert_tidy(&faults.collect::<Vec<_>>());
}

#[test]
fn a_folder_in_a_picture_is_found_and_one_of_the_person_is_not() {
    let picture = |shown: &str| {
        let text = format!("<svg>\n<text x=\"20.0\" fill=\"#d7dae0\">{shown}</text>\n</svg>\n");
        fault_of_picture(&File::new("a.svg", &text))
    };
    for folder in PICTURED {
        for before in ["", "settings: ", "sqlite:", "ARCHIE_HOME=", "in “"] {
            let fault = picture(&format!("{before}/{folder}/archie")).unwrap();
            assert!(fault.starts_with("a.svg:2: "), "{fault}");
        }
        let shown = format!("~/{folder}/archie ~/notes/{folder}/archie notes/{folder}/a");
        assert_eq!(picture(&shown), None);
    }
}

#[test]
fn a_path_and_a_package_server_are_found() {
    let text = FOLDERS
        .iter()
        .map(|folder| format!("see \"/{folder}/me/x\"\n"))
        .collect::<String>();
    assert_eq!(faults_of(&File::new("a.md", &text)).len(), FOLDERS.len());
    let text = HOSTS
        .iter()
        .map(|host| format!("https://{}\n", host.concat()))
        .collect::<String>();
    assert_eq!(faults_of(&File::new("a.md", &text)).len(), HOSTS.len());
}

#[test]
fn a_relative_path_is_fine() {
    for folder in FOLDERS {
        let text = format!(
            "docs/{folder}/x $HOME/{folder}/x ~/{folder}/x https://example.com/{folder}/x /{folder}"
        );
        assert!(faults_of(&File::new("a.md", &text)).is_empty(), "{text}");
    }
}
