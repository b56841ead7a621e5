//! A timer of the system: printed, installed, removed. And the flags that choose mails.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::kit::{ACCOUNT, mail, mail_with, mbox, triage};
use crate::kit::Workdir;

/// A program called `systemctl` that writes down how it was called.
fn with_systemctl() -> Workdir {
    let workdir = Workdir::scripted(&json!([]));
    let bin = workdir.path("bin");
    fs::create_dir(&bin).unwrap();
    let log = workdir.path("systemctl.log");
    let script = format!("#!/bin/sh\necho \"$@\" >> '{}'\n", log.display());
    fs::write(bin.join("systemctl"), script).unwrap();
    fs::set_permissions(bin.join("systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(workdir.path("mbox"), mbox(&[])).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let config = workdir.path("config").display().to_string();
    workdir
        .with_environment("PATH", &path)
        .with_environment("XDG_CONFIG_HOME", &config)
}

fn units(workdir: &Workdir) -> Vec<String> {
    let Ok(entries) = fs::read_dir(workdir.path("config/systemd/user")) else {
        return Vec::new();
    };
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_timer_is_printed_and_nothing_is_written() {
    let workdir = with_systemctl();
    let ran = workdir.run(&["mail", "schedule", "./mbox"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let source = fs::canonicalize(workdir.path("mbox")).unwrap();
    for part in [
        "OnUnitActiveSec=10min".to_owned(),
        "Type=oneshot".to_owned(),
        format!("\"mail\" \"ingest\" \"{}\" \"--model\" ", source.display()),
        "WantedBy=timers.target".to_owned(),
    ] {
        assert!(ran.out().contains(&part), "{part}: {ran:?}");
    }
    for part in [
        "--install",
        "--remove",
        "systemctl --user disable --now archie-mail-",
    ] {
        assert!(ran.err().contains(part), "{part}: {ran:?}");
    }
    assert!(units(&workdir).is_empty());
    assert!(!workdir.path("systemctl.log").exists());
    let ran = workdir.run(
        &["mail", "schedule", "./mbox", "--crontab", "--every", "30m"],
        "",
    );
    assert!(
        ran.out().starts_with("*/30 * * * * umask 077; mkdir -p "),
        "{ran:?}"
    );
    assert!(ran.out().contains(" ARCHIE_HOME="), "{ran:?}");
    assert_eq!(ran.out().lines().count(), 1);
    assert!(ran.err().contains("crontab -e"), "{ran:?}");
}

#[test]
fn a_timer_is_installed_and_removed() {
    let workdir = with_systemctl();
    let ran = workdir.run(&["mail", "schedule", "./mbox", "--install"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let names = units(&workdir);
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(
        names[0].ends_with(".service") && names[1].ends_with(".timer"),
        "{names:?}"
    );
    // The command of the unit is one that this program understands.
    let service = fs::read_to_string(workdir.path("config/systemd/user").join(&names[0])).unwrap();
    let command = service
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart="))
        .unwrap();
    let words = shlex::split(command).unwrap();
    let args: Vec<_> = words[1..].iter().map(String::as_str).collect();
    let ran = workdir.run(&args, "");
    assert_eq!(
        (ran.code(), ran.out().as_str()),
        (Some(0), "no new mail\n"),
        "{ran:?}"
    );
    let ran = workdir.run(&["mail", "schedule", "./mbox", "--remove"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(units(&workdir).is_empty());
    let log = fs::read_to_string(workdir.path("systemctl.log")).unwrap();
    let timer = &names[1];
    assert_eq!(
        log,
        format!(
            "--user daemon-reload\n--user enable --now {timer}\n--user disable --now {timer}\n--user daemon-reload\n"
        )
    );
    let ran = workdir.run(&["mail", "schedule", "./mbox", "--remove"], "");
    assert_eq!(ran.code(), Some(1));
    assert!(ran.err().contains("there is no timer for"), "{ran:?}");
}

#[test]
fn an_interval_that_a_timer_cannot_keep_is_refused() {
    let workdir = with_systemctl();
    for (args, why) in [
        (&["--every", "90s"][..], "takes whole minutes"),
        (
            &["--every", "7m", "--crontab"][..],
            "minutes that divide an hour",
        ),
    ] {
        let ran = workdir.run(&[&["mail", "schedule", "./mbox"], args].concat(), "");
        assert_eq!(ran.code(), Some(1), "{ran:?}");
        assert!(ran.err().contains(why), "{ran:?}");
    }
}

#[test]
fn only_mails_to_an_address_are_read() {
    let other = mail_with(
        "2@x",
        "bob@example.com",
        "Two",
        "Words.",
        "Cc: Team <team@example.com>\n",
    );
    for (address, subjects) in [
        ("TEAM@example.com", &["Two"][..]),
        (ACCOUNT, &["One", "Two"][..]),
        ("nobody@example.com", &[][..]),
    ] {
        let workdir = Workdir::scripted(&json!([triage("ignore"), triage("ignore")]));
        let one = mail("1@x", "bob@example.com", "One", "Words.");
        fs::write(workdir.path("mbox"), mbox(&[one, other.clone()])).unwrap();
        let came = workdir.json(&["mail", "ingest", "./mbox", "--email", address, "--json"]);
        let came: Vec<_> = (came.as_array().unwrap().iter())
            .map(|mail| mail["subject"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(came, subjects, "{address}");
    }
}

#[test]
fn only_mails_of_the_last_minutes_are_read() {
    let workdir = Workdir::scripted(&json!([triage("ignore"), triage("ignore")]));
    let now = chrono::DateTime::from_timestamp(archie_agent::clock::seconds() as i64, 0).unwrap();
    let at = |minutes: i64, subject: &str| {
        let date = (now - chrono::TimeDelta::minutes(minutes)).to_rfc2822();
        let mail = mail(
            &format!("{minutes}@x"),
            "bob@example.com",
            subject,
            "Words.",
        );
        mail.replace("Mon, 6 Jan 2025 10:00:00 +0000", &date)
    };
    fs::write(workdir.path("mbox"), mbox(&[at(90, "Old"), at(20, "New")])).unwrap();
    let subjects = |minutes: &str| -> Vec<String> {
        let args = [
            "mail",
            "ingest",
            "./mbox",
            "--minutes-since",
            minutes,
            "--json",
        ];
        let came = workdir.json(&args);
        let came = came.as_array().unwrap().iter();
        came.map(|mail| mail["subject"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(subjects("10").is_empty());
    assert_eq!(subjects("60"), ["New"]);
    assert_eq!(subjects("120"), ["Old", "New"]);
    let ran = workdir.run(&["mail", "ingest", "./mbox", "--minutes-since", "soon"], "");
    assert_eq!(ran.code(), Some(2), "{ran:?}");
}
