use serde_json::json;

use super::*;

#[test]
fn the_page_is_what_the_results_give() {
    let files = files().unwrap();
    for (path, wanted) in &files {
        let found = fs::read_to_string(root().join(path)).unwrap_or_default();
        assert!(
            found == *wanted,
            "{path} is not what {RESULTS} gives: run `cargo xtask bench page`"
        );
    }
    for entry in fs::read_dir(root().join(PLOTS)).unwrap() {
        let name = entry.unwrap().file_name();
        let path = format!("{PLOTS}/{}", name.to_string_lossy());
        assert!(files.contains_key(&path), "{path} is no plot of this page");
    }
}

#[test]
fn the_page_opens_with_results_and_lists_missed_goals_apart() {
    let row = |against: &str, met: bool| {
        json!({
            "work": "chain, sqlite", "unit": "supersteps/s", "ours": 700.0, "against": against, "theirs": 1000.0,
            "ratio": 0.7, "goal": "ratio at least 0.8", "met": met,
        })
    };
    let rows = [row("floor", false), row("LangGraph Python", true)];
    let measured = json!([{ "side": "LangGraph Python", "work": "chain", "store": "sqlite" }]);
    let bench = json!({ "bench": "chain", "rows": rows, "measured": measured });
    let page = page(&json!({ "benches": [bench] }));
    let parts: Vec<&str> = page.split("\n## ").collect();
    let peer = "| chain, sqlite | supersteps/s | 700 | LangGraph Python | 1,000 | 0.70 |";
    assert!(parts[1].starts_with("Results") && parts[1].contains(peer));
    assert!(!parts[1].contains("floor |"));
    let missed = parts.iter().find(|part| part.starts_with("Missed goals"));
    let missed = missed.copied().unwrap_or_default();
    assert!(missed.contains("1 of 2 goals are missed."));
    assert!(missed.contains(
        "- chain, sqlite: 700 supersteps/s, floor 1,000, ratio 0.70; goal: ratio at least 0.8"
    ));
}

#[test]
fn a_contest_becomes_a_table_and_a_group_of_bars() {
    let measured = |side: &str, median: f64| {
        json!({
            "work": "chain", "store": "sqlite", "side": side, "figure": "supersteps/s",
            "median": median, "min": median - 1.0, "max": median + 1.0, "rounds": 5,
        })
    };
    let bench = json!({ "bench": "chain", "measured": [measured("Superstep", 5_000.0), measured("floor, one row", 6_000.0)] });
    let table = contests(&bench)[0].table();
    assert!(table.contains("### chain, SQLite"));
    assert!(table.contains("\n| Superstep | 5,000 | 4,999 to 5,001 |\n"));
    let groups = plot(&bench).unwrap().groups;
    assert_eq!(groups[0].bars[1].kind, Kind::Floor);
}
