//! Tests with a folder full of hostile entries, and next to it the secret that they try to reach.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags};

use super::*;

const SECRET: &str = "the key of the house";

/// A person's folder, with a secret outside of it.
struct Lab(tempfile::TempDir);

impl Lab {
    fn new() -> Self {
        let lab = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(lab.path("folder/sub")).unwrap();
        fs::create_dir(lab.path("outside")).unwrap();
        fs::write(lab.path("outside/file"), SECRET).unwrap();
        fs::write(lab.path("folder/sub/file"), "inside").unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn folder(&self) -> UserFolder {
        UserFolder::open(&self.path("folder")).unwrap()
    }

    fn link(&self, target: &str, name: &str) {
        symlink(target, self.path("folder").join(name)).unwrap();
    }

    /// Asserts that nothing outside the folder changed.
    fn assert_outside_is_untouched(&self) {
        let names: Vec<_> = fs::read_dir(self.path("outside"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["file"]);
        assert_eq!(
            fs::read_to_string(self.path("outside/file")).unwrap(),
            SECRET
        );
    }
}

fn path(text: &str) -> RelativePath {
    RelativePath::parse(text).unwrap()
}

fn pipe(path: &Path) {
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, path, FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_name_that_leads_elsewhere_is_not_a_path() {
    for bad in [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        "a/",
        "./a",
        "a/./b",
        "a\0b",
    ] {
        assert!(RelativePath::parse(bad).is_err(), "{bad:?}");
        assert!(FileName::new(bad).is_err(), "{bad:?}");
    }
    assert!(FileName::new("a/b").is_err());
    for good in [
        "a",
        "a/b",
        "..a",
        "a b",
        "-x",
        "\u{2024}\u{2024}",
        "~",
        "C:\\x",
    ] {
        assert!(RelativePath::parse(good).is_ok(), "{good:?}");
    }
    assert_eq!(path("a/\u{1b}[2J\n").to_string(), "a/\\u{1b}[2J\\n");
    assert_eq!(path("a/b\n").as_line(), None);
}

#[test]
fn a_link_is_refused_in_every_place() {
    let lab = Lab::new();
    lab.link("../outside/file", "link");
    lab.link("sub/file", "inner");
    lab.link("../outside", "parent");
    lab.link("sub", "inner-parent");
    lab.link("nowhere", "dangling");
    lab.link("/proc/self/environ", "environ");
    lab.link("/proc/self/root", "root");
    lab.link("/dev/zero", "zero");
    let folder = lab.folder();
    for refused in [
        "link",
        "inner",
        "dangling",
        "environ",
        "zero",
        "parent/file",
        "inner-parent/file",
        "root/etc/passwd",
    ] {
        let error = folder.read(&path(refused), 1_000).unwrap_err();
        assert!(
            error.to_string().contains("is a symbolic link"),
            "{refused}: {error}"
        );
    }
    for refused in ["parent/new", "inner-parent/new", "root/tmp/new"] {
        let error = folder.write(&path(refused), b"x", Access::Shared);
        assert!(error.is_err(), "{refused}");
        assert!(
            folder
                .create_folder(&path(refused), Access::Shared)
                .is_err(),
            "{refused}"
        );
    }
    assert_eq!(folder.read(&path("sub/file"), 1_000).unwrap(), b"inside");
    lab.assert_outside_is_untouched();
}

#[test]
fn a_write_replaces_a_link_and_does_not_follow_it() {
    let lab = Lab::new();
    lab.link("../outside/file", "page.md");
    lab.link("../outside/new", "dangling.md");
    let folder = lab.folder();
    for name in ["page.md", "dangling.md"] {
        folder.write(&path(name), b"ours", Access::Shared).unwrap();
        assert_eq!(folder.kind(&path(name)).unwrap(), Some(EntryKind::File));
        assert_eq!(folder.read(&path(name), 10).unwrap(), b"ours");
    }
    assert!(
        !folder
            .write_new(&path("page.md"), b"x", Access::Shared)
            .unwrap()
    );
    assert!(folder.write(&path("sub"), b"x", Access::Shared).is_err());
    assert_eq!(
        folder.entries(10).unwrap().entries.len(),
        3,
        "nothing is left over"
    );
    lab.assert_outside_is_untouched();
}

#[test]
fn a_file_is_whole_and_for_whom_it_is_meant() {
    let lab = Lab::new();
    let folder = lab.folder();
    assert!(
        folder
            .write_new(&path("new"), b"1", Access::Private)
            .unwrap()
    );
    assert!(
        !folder
            .write_new(&path("new"), b"2", Access::Private)
            .unwrap()
    );
    assert_eq!(folder.read(&path("new"), 10).unwrap(), b"1");
    let mode = fs::metadata(lab.path("folder/new")).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert!(!folder.rename_new(&path("new"), &path("sub/file")).unwrap());
    assert!(folder.rename_new(&path("new"), &path("sub/moved")).unwrap());
    assert_eq!(folder.kind(&path("new")).unwrap(), None);
    let named = lab.path("folder/named");
    write_named_file(&named, b"x", Access::Private).unwrap();
    symlink("named", lab.path("folder/pointer")).unwrap();
    let error = write_named_file(&lab.path("folder/pointer"), b"y", Access::Private);
    assert!(error.unwrap_err().to_string().contains("symbolic link"));
    assert_eq!(
        read_named_file(&lab.path("folder/pointer"), 9).unwrap(),
        b"x"
    );
}

#[test]
fn pipes_sockets_devices_and_the_kernel_are_refused_at_once() {
    let lab = Lab::new();
    let begun = Instant::now();
    pipe(&lab.path("folder/pipe"));
    let _socket = std::os::unix::net::UnixListener::bind(lab.path("folder/socket")).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    let zero = rustix::fs::makedev(1, 5);
    let device = lab.path("folder/device");
    match rustix::fs::mknodat(CWD, &device, FileType::CharacterDevice, mode, zero) {
        Ok(()) => {}
        Err(errno) => eprintln!("NOT TESTED: no device can be made here: {errno}"),
    }
    let folder = lab.folder();
    let listed = folder.entries(100).unwrap().entries;
    for entry in listed
        .iter()
        .filter(|entry| entry.kind != EntryKind::Folder)
    {
        let error = folder.read(&entry.name.clone().into(), 1_000).unwrap_err();
        assert!(matches!(error, FolderError::NotAFile { .. }), "{error}");
        let named = lab.path("folder").join(entry.name.as_os_str());
        assert!(read_named_file(&named, 1_000).is_err());
        assert!(write_named_file(&named, b"x", Access::Shared).is_err());
    }
    for kernel in ["/proc/self", "/sys"] {
        let error = UserFolder::open(Path::new(kernel)).unwrap_err();
        assert!(matches!(error, FolderError::Kernel { .. }), "{error}");
    }
    assert!(read_named_file(Path::new("/dev/zero"), 1_000).is_err());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn what_is_too_large_is_said_and_not_read() {
    let lab = Lab::new();
    let folder = lab.folder();
    folder.write_hole(&path("hole"), 1 << 40).unwrap();
    let error = folder.read(&path("hole"), 8 << 20).unwrap_err();
    assert!(
        error.to_string().ends_with("is larger than 8 MiB"),
        "{error}"
    );
    for number in 0..20 {
        folder
            .write_scratch(&path(&format!("sub/{number}")), b"")
            .unwrap();
    }
    let cut = folder.folder(&path("sub")).unwrap().entries(10).unwrap();
    assert!(cut.is_cut && cut.entries.len() == 10);
    let mut allowance = Allowance::new(FolderLimits {
        file_bytes_max: 10,
        total_bytes_max: 15,
        ..FolderLimits::default()
    });
    assert_eq!(allowance.take_file(11), Err("larger than 10 bytes".into()));
    assert_eq!(allowance.take_file(10), Ok(()));
    assert_eq!(
        allowance.take_file(6),
        Err("more than 15 bytes in all".into())
    );
}

#[test]
fn names_of_any_kind_and_length_are_read() {
    let lab = Lab::new();
    let folder = lab.folder();
    let long = "n".repeat(255);
    for name in [long.as_str(), "a\nb", "\u{1b}]52;c;x\u{7}", "\u{202e}gpj"] {
        folder.write(&path(name), b"x", Access::Shared).unwrap();
        assert_eq!(folder.read(&path(name), 10).unwrap(), b"x");
    }
    assert!(
        folder
            .write(&path(&"n".repeat(256)), b"x", Access::Shared)
            .is_err()
    );
    assert_eq!(folder.entries(100).unwrap().entries.len(), 5);
}

/// Starts a second process that atomically swaps two names [`SWAPS`] times, and calls `attempt` in this one until it exits.
/// Returns the number of attempts.
fn while_swapped(one: &Path, other: &Path, mut attempt: impl FnMut()) -> u64 {
    let mut swapper = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", SWAPPER])
        .env(SWAPPED.0, one)
        .env(SWAPPED.1, other)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut attempts = 0;
    while swapper.try_wait().unwrap().is_none() {
        attempt();
        attempts += 1;
    }
    let ended = swapper.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    // The process also exits with success if it finds no test of that name.
    let has_swapped = said.contains(&swapped_line());
    assert!(ended.status.success() && has_swapped, "{said}");
    attempts
}

/// Swaps the names given in the environment, as the second process of the tests below; without them, swaps two files of its
/// own.
#[test]
fn swap_two_names() {
    let lab = Lab::new();
    let own = ["folder/sub/file", "outside/file"].map(|name| lab.path(name));
    let given = [SWAPPED.0, SWAPPED.1].map(std::env::var_os);
    let [one, other] = match given {
        [Some(one), Some(other)] => [one.into(), other.into()],
        _ => own,
    };
    for _ in 0..SWAPS {
        rustix::fs::renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
        // Lets the other process see both states even on a single core.
        std::thread::yield_now();
    }
    // An even number of swaps has restored everything.
    lab.assert_outside_is_untouched();
    eprintln!("{}", swapped_line());
}

fn swapped_line() -> String {
    format!("swapped {SWAPS} times")
}

const SWAPPER: &str = "user_folder::tests::swap_two_names";
/// Environment variables with the names that the second process swaps.
const SWAPPED: (&str, &str) = ("ARCHIE_TEST_SWAP_ONE", "ARCHIE_TEST_SWAP_OTHER");
const SWAPS: usize = 10_000;

#[test]
fn a_folder_that_is_swapped_for_a_link_leads_nowhere() {
    let lab = Lab::new();
    lab.link("../outside", "trap");
    let folder = lab.folder();
    let (one, other) = (lab.path("folder/sub"), lab.path("folder/trap"));
    let (mut read, mut refused, mut written) = (0, 0, 0);
    let attempts = while_swapped(&one, &other, || {
        match folder.read(&path("sub/file"), 100) {
            Ok(bytes) => {
                assert_eq!(bytes, b"inside");
                read += 1;
            }
            Err(_) => refused += 1,
        }
        // A write waits for the disk, so do fewer of them.
        let is_written = (read + refused) % 50 == 1;
        let page = path("sub/page.md");
        if is_written && folder.write(&page, b"x", Access::Shared).is_ok() {
            written += 1;
        }
        // The listing either fails or shows the folder, never the target of the link.
        if let Ok(sub) = folder.folder(&path("sub")) {
            assert!(sub.entries(10).unwrap().entries.len() <= 3);
        }
    });
    eprintln!(
        "{SWAPS} swaps, {attempts} attempts: {read} read, {written} written, {refused} refused"
    );
    // The attempts did overlap with the swaps.
    assert!(attempts > 0 && read > 0 && refused > 0);
    // An even number of swaps has restored everything.
    assert_eq!(folder.read(&path("sub/file"), 100).unwrap(), b"inside");
    lab.assert_outside_is_untouched();
}

#[test]
fn a_file_that_is_swapped_for_a_link_or_a_pipe_is_not_read() {
    for trap in ["link", "pipe"] {
        let lab = Lab::new();
        let bait = lab.path("folder/trap");
        match trap {
            "link" => symlink("../outside/file", &bait).unwrap(),
            _ => pipe(&bait),
        }
        let folder = lab.folder();
        let (mut read, mut refused) = (0, 0);
        while_swapped(&lab.path("folder/sub/file"), &bait, || {
            match folder.read(&path("sub/file"), 100) {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    read += 1;
                }
                Err(_) => refused += 1,
            }
        });
        eprintln!("{trap}: {SWAPS} swaps: {read} read, {refused} refused");
        assert!(read > 0 && refused > 0, "{trap}");
        assert_eq!(folder.read(&path("sub/file"), 100).unwrap(), b"inside");
        lab.assert_outside_is_untouched();
    }
}
