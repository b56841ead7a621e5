//! The real program with a real Python in its sandbox, killed with `kill -9` at moments spread over its whole life.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use archie_sheet::book::{Content, read};

use super::acceptance::{SHEET, replies, with_sales};
use super::kit::{place, sales};
use crate::kit::Workdir;

/// What stands in the sheet that was made.
fn counts(workdir: &Workdir) -> Vec<Option<Content>> {
    let saved = read(&fs::read(workdir.path("out/workbook_new.xlsx")).unwrap()).unwrap();
    let counts = saved.sheet("Counts").unwrap();
    let places = (1..=6).flat_map(|row| [format!("A{row}"), format!("B{row}")]);
    places.map(|cell| counts.content(place(&cell))).collect()
}

/// How often the model was asked.
fn asked(workdir: &Workdir) -> usize {
    workdir.asked("planner_node") + workdir.asked("informer_node")
}

/// Whoever comes next goes on with what was begun, or begins.
fn go_on(workdir: &Workdir) {
    let threads = workdir.json(&["threads", "--json"]);
    let ran = match threads[0]["thread"].as_str() {
        Some(thread) => workdir.run(&["resume", thread], "y\n"),
        None => workdir.run(&SHEET, "y\n"),
    };
    assert_eq!(ran.code(), Some(0), "{ran:?}");
}

/// Programs that were started for this folder and still run.
fn left_running(folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(&folder))
        .collect()
}

#[test]
fn kill_9_at_any_moment_and_the_workbook_comes_out_the_same() {
    let lived = || {
        let (workdir, begun) = (with_sales(&replies()), Instant::now());
        let ran = workdir.run(&SHEET, "y\n");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        (workdir, begun.elapsed())
    };
    // The first one is slower: nothing of Python is in memory yet.
    lived();
    let (calm, whole) = lived();
    let (expected, calls) = (counts(&calm), asked(&calm));
    assert_eq!(calls, 5);
    let mut killed = 0;
    for moment in 1..=MOMENTS {
        let workdir = with_sales(&replies());
        let after = whole.mul_f64(f64::from(moment) / f64::from(MOMENTS + 1));
        killed += u32::from(workdir.run_and_kill(&SHEET, "y\n", after));
        go_on(&workdir);
        assert_eq!(counts(&workdir), expected, "killed after {after:?}");
        let again = asked(&workdir) - calls;
        assert!(again <= 1, "killed after {after:?}: {again} calls again");
        assert_eq!(fs::read(workdir.path("sales.xlsx")).unwrap(), sales());
        // What ran in the sandbox dies with its program, if not in the same instant.
        let late = Instant::now() + Duration::from_secs(5);
        while !left_running(&workdir.path("")).is_empty() {
            assert!(
                Instant::now() < late,
                "{:?}",
                left_running(&workdir.path(""))
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    eprintln!("{killed} of {MOMENTS} programs killed with kill -9 in {whole:?}");
    assert!(killed > MOMENTS / 4, "{killed}");
}

/// How many programs.
const MOMENTS: u32 = 16;
