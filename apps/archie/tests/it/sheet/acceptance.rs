//! The acceptance of `sheet`, with the real program, a real sandbox and a script.

use std::fs;

use archie_sheet::book::{Content, read};
use serde_json::{Value as Json, json};

use super::kit::{place, python, sales, workbook};
use crate::kit::Workdir;

const WRONG: &str = "print(table('Sales').groupby('product').size())";
const COUNT: &str = "counts = table('Sales').groupby('Product').size()
ws = workbook.create_sheet('Counts')
ws.append(['Product', 'Count'])
for name, count in counts.items():
    ws.append([name, int(count)])";

fn code(code: &str) -> Json {
    json!({ "at": "planner_node", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": code } }] })
}

pub(crate) fn replies() -> Json {
    json!([
        { "at": "planner_node", "tool_calls": [{ "name": "Informer", "args": { "question": "Which products are there?" } }] },
        { "at": "informer_node", "json": { "action": "select", "sql": "SELECT DISTINCT \"Product\" FROM \"Sales\"" } },
        { "at": "planner_node", "expect": "| Tea |", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": WRONG } }] },
        { "at": "planner_node", "expect": "KeyError: 'product'", "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": COUNT } }] },
        { "at": "planner_node", "expect": "changed: Counts!A1:B5 added (10 cells)", "text": "Finish: There are four products." }
    ])
}

/// A workbook of sales, and a script.
pub(crate) fn with_sales(replies: &Json) -> Workdir {
    workdir(replies)
}

fn workdir(replies: &Json) -> Workdir {
    let workdir = Workdir::scripted(replies)
        .with_environment("ARCHIE_PYTHON", &python().display().to_string());
    fs::write(workdir.path("sales.xlsx"), sales()).unwrap();
    workdir
}

pub(super) const SHEET: [&str; 9] = [
    "sheet",
    "sales.xlsx",
    "--instruction",
    "Count each Product in a new sheet",
    "--with-informer",
    "--max-steps",
    "10",
    "--output-dir",
    "out",
];

/// A script whose process dies when the third step is planned, and what to type.
pub(crate) fn killed_in_a_plan() -> (Workdir, [&'static str; 9]) {
    let mut all = replies();
    let deadly = json!({ "at": "planner_node", "expect": "KeyError: 'product'", "kill": true });
    all.as_array_mut().unwrap().insert(3, deadly);
    (workdir(&all), SHEET)
}

#[test]
fn the_acceptance_goes_to_its_end_and_its_recipe_is_played_again_without_a_model() {
    let workdir = workdir(&replies());
    let before = fs::read(workdir.path("sales.xlsx")).unwrap();
    let ran = workdir.run(&SHEET, "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let out = ran.out();
    for line in [
        "step 1 planner → informer",
        "informer: SELECT DISTINCT \"Product\" FROM \"Sales\"",
        "step 2 planner → tool PythonInterpreter",
        "KeyError: 'product'",
        "step 3 planner → tool PythonInterpreter",
        "Counts!B4: empty → 2 (step 3, line 5)",
        "Changes: new sheet Counts (10 cells): Counts!A1:B5 added (10 cells); unchanged: Sales.",
        "Accept? [y/n/e]",
        "Finish → out/changes.txt, out/code.py, out/report.md, out/workbook_new.xlsx",
    ] {
        assert!(out.contains(line), "{line:?} is not in {out}");
    }
    assert_eq!(
        fs::read(workdir.path("sales.xlsx")).unwrap(),
        before,
        "the input is as it was"
    );
    let asked = (
        workdir.asked("planner_node"),
        workdir.asked("informer_node"),
    );
    assert_eq!(asked, (4, 1));
    let feb = workbook(&[(
        "Sales",
        &[
            &["Product", "Amount"],
            &["Tea", "1"],
            &["Juice", "4"],
            &["Tea", "4"],
            &["Tea", "2"],
        ],
    )]);
    fs::write(workdir.path("sales_feb.xlsx"), feb).unwrap();
    let ran = workdir.run(
        &[
            "sheet",
            "replay",
            "out/code.py",
            "--on",
            "sales_feb.xlsx",
            "--output-dir",
            "feb",
            "--yes",
        ],
        "",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("0 model calls"), "{ran:?}");
    assert_eq!(
        (
            workdir.asked("planner_node"),
            workdir.asked("informer_node")
        ),
        asked
    );
    let counts = read(&fs::read(workdir.path("feb/workbook_new.xlsx")).unwrap()).unwrap();
    let counts = counts.sheet("Counts").unwrap();
    assert_eq!(
        counts.content(place("A1")),
        Some(Content::Text("Product".to_owned()))
    );
    assert_eq!(counts.content(place("B3")), Some(Content::Number(3.0)));
    let report = fs::read_to_string(workdir.path("feb/report.md")).unwrap();
    assert!(
        report.contains(
            "\"Count\" in \"Counts\" comes to the number of rows of \"Sales\": holds (4 and 4)"
        ),
        "{report}"
    );
}

#[test]
fn a_recipe_on_a_file_of_another_shape_stops_and_asks() {
    let workdir = workdir(&replies());
    workdir.run(&SHEET, "y\n");
    let other = workbook(&[("Sales", &[&["Article", "Amount"], &["Tea", "1"]])]);
    fs::write(workdir.path("other.xlsx"), other).unwrap();
    let replay = [
        "sheet",
        "replay",
        "out/code.py",
        "--on",
        "other.xlsx",
        "--output-dir",
        "other",
    ];
    let ran = workdir.run(&replay, "n\n");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.out()
            .contains("the columns of \"Sales\" differ: missing [\"Product\"], new [\"Article\"]"),
        "{ran:?}"
    );
    let ran = workdir.run(&replay, "");
    assert_eq!(ran.code(), Some(3), "nobody answered: {ran:?}");
    // Played all the same it fails in its code, and says so.
    let ran = workdir.run(&replay, "y\n");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(ran.out().contains("a step of the recipe failed"), "{ran:?}");
}

#[test]
fn a_rejected_run_saves_no_workbook_and_gives_no_recipe() {
    let workdir = workdir(&replies());
    let ran = workdir.run(&SHEET, "n\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("nothing was saved"), "{ran:?}");
    assert!(!workdir.path("out/workbook_new.xlsx").exists());
    let ran = workdir.run(
        &["sheet", "replay", "out/code.py", "--on", "sales.xlsx"],
        "",
    );
    assert_eq!(ran.code(), Some(1));
    assert!(ran.err().contains("were not accepted"), "{ran:?}");
}

#[test]
fn the_change_set_is_answered_in_the_inbox_with_json() {
    let workdir = workdir(&replies());
    let ran = workdir.run(&SHEET, "");
    assert_eq!(ran.code(), Some(3), "{ran:?}");
    let edit = json!({ "type": "edit", "reject": ["Counts!A5:B5"], "set": [{ "cell": "Counts!B4", "value": 22 }] }).to_string();
    let ran = workdir.run(&["inbox", &workdir.items()[0], &edit], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let ran = workdir.run(&["resume", &workdir.thread()], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let saved = read(&fs::read(workdir.path("out/workbook_new.xlsx")).unwrap()).unwrap();
    let counts = saved.sheet("Counts").unwrap();
    assert_eq!(counts.content(place("B4")), Some(Content::Number(22.0)));
    assert_eq!(counts.content(place("A5")), None);
}

#[test]
fn a_planner_that_only_says_that_it_made_a_sheet_fills_a_form_and_the_sheet_is_there() {
    let form = json!({ "sheet": "Counts", "sql": "SELECT \"Product\", COUNT(*) AS n FROM \"Sales\" GROUP BY 1 ORDER BY 1" });
    let wrong = json!({ "sheet": "Counts", "sql": "SELECT \"product \" FROM \"Sales\"" });
    let workdir = workdir(&json!([
        { "at": "planner_node", "text": "Finish: the sheet is there" },
        { "at": "planner_node", "expect": ["nothing was changed yet", "Write the name of the new sheet"], "json": wrong },
        // A query that fails leads to the form again.
        { "at": "planner_node", "expect": ["there is no \"product \" in the workbook", "Write the name of the new sheet"], "json": form },
        { "at": "planner_node", "expect": "changed: Counts!A1:B5 added (10 cells)", "text": "Finish: the sheet is there" }
    ]));
    let ran = workdir.run(
        &[
            "sheet",
            "sales.xlsx",
            "--instruction",
            "Count each Product in a new sheet",
        ],
        "y\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let made = read(&fs::read(workdir.path("out/workbook_new.xlsx")).unwrap()).unwrap();
    let counts = made.sheet("Counts").unwrap();
    assert_eq!(
        counts.content(place("A4")),
        Some(Content::Text("Tea".to_owned()))
    );
    assert_eq!(counts.content(place("B4")), Some(Content::Number(2.0)));
}

#[test]
fn rows_of_a_query_and_tables_become_new_sheets_and_no_rows_are_an_error() {
    let both = "new_sheet('A', select('SELECT \"row\", \"Product\" FROM \"Sales\" WHERE \"Product\" = \\'Tea\\''))\nnew_sheet('B', table('Sales').groupby('Product').size().reset_index(name='n'))";
    let none =
        "new_sheet('C', select('SELECT \"row\" FROM \"Sales\" WHERE \"Product\" = \\'Wine\\''))";
    let workdir = workdir(&json!([
        code(both),
        { "at": "planner_node", "expect": ["changed: A!A1:B3 added (6 cells)", "B!A1:B5 added (10 cells)"],
          "tool_calls": [{ "name": "PythonInterpreter", "args": { "code": none } }] },
        { "at": "planner_node", "expect": "there are no rows for the new sheet", "text": "Finish: done" }
    ]));
    let ran = workdir.run(
        &["sheet", "sales.xlsx", "--instruction", "Add two sheets"],
        "y\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
}

#[test]
fn figures_that_sqlite_cannot_hold_stop_no_query() {
    let code_of_both = "workbook['Sales']['B2'] = 1e300\nworkbook['Sales']['B3'] = 2**70\nprint(select('SELECT \"Amount\" FROM \"Sales\" ORDER BY \"row\"')[:2])";
    let workdir = workdir(&json!([
        code(code_of_both),
        { "at": "planner_node", "expect": "[[1e+300], ['1180591620717411303424']]", "text": "Finish: done" }
    ]));
    let ran = workdir.run(&["sheet", "sales.xlsx", "--instruction", "Set B2"], "n\n");
    assert!(ran.code().is_some(), "{ran:?}");
    assert!(!ran.err().contains("has no reply"), "{ran:?}");
}

#[test]
fn a_shell_and_a_socket_are_refused_and_told_to_the_planner() {
    let attempts = "import os, socket\nfor attempt in (lambda: os.system('id'), lambda: socket.socket()):\n    try:\n        attempt()\n        print('ESCAPED')\n    except PermissionError as error:\n        print(error)";
    let workdir = workdir(&json!([
        code(attempts),
        { "at": "planner_node", "expect": ["running a program is not allowed in the sandbox", "the network is not allowed in the sandbox"], "text": "Finish: both were refused" }
    ]));
    let ran = workdir.run(&["sheet", "sales.xlsx", "--instruction", "escape"], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    let report = fs::read_to_string(workdir.path("out/report.md")).unwrap();
    assert!(
        report.contains("running a program is not allowed") && !report.contains("\nESCAPED"),
        "{report}"
    );
}

#[test]
fn a_planner_that_never_finishes_is_stopped_and_the_partial_workbook_is_saved() {
    let mut endless = vec![code(COUNT)];
    endless.extend((0..2).map(|_| code("print('again')")));
    let workdir = workdir(&Json::Array(endless));
    let ran = workdir.run(
        &[
            "sheet",
            "sales.xlsx",
            "--instruction",
            "count",
            "--max-steps",
            "3",
        ],
        "y\n",
    );
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert!(ran.out().contains("stopped: step limit"), "{ran:?}");
    assert_eq!(
        read(&fs::read(workdir.path("out/workbook_new.xlsx")).unwrap())
            .unwrap()
            .sheets
            .len(),
        2
    );
}

#[test]
fn the_workbook_can_be_had_as_of_any_step() {
    let workdir = workdir(&json!([
        code(COUNT),
        code("workbook['Counts']['D1'] = 'later'"),
        { "at": "planner_node", "text": "Done" }
    ]));
    workdir.run(
        &["sheet", "sales.xlsx", "--instruction", "count", "--yes"],
        "",
    );
    let id = workdir.thread();
    let at = |step: &str| {
        let ran = workdir.run(&["sheet", "at", &id, step, "--output", "then.xlsx"], "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        read(&fs::read(workdir.path("then.xlsx")).unwrap()).unwrap()
    };
    assert_eq!(at("0"), read(&sales()).unwrap());
    assert_eq!(at("1").sheet("Counts").unwrap().content(place("D1")), None);
    assert_eq!(
        at("2").sheet("Counts").unwrap().content(place("D1")),
        Some(Content::Text("later".to_owned()))
    );
    let ran = workdir.run(&["sheet", "at", &id, "9", "--output", "then.xlsx"], "");
    assert!(ran.err().contains("there is no step 9"), "{ran:?}");
}

#[test]
fn workbooks_go_where_their_thread_goes() {
    let one_step = json!([code(COUNT), { "at": "planner_node", "text": "Done" }]);
    let here = workdir(&one_step);
    here.run(
        &["sheet", "sales.xlsx", "--instruction", "count", "--yes"],
        "",
    );
    let original = here.thread();
    let copy = here.json(&["fork", &original, "--json"])["thread"].clone();
    let copy = copy.as_str().unwrap();
    let has_counts = |workdir: &Workdir, thread: &str| {
        let at = ["sheet", "at", thread, "1", "--output", "then.xlsx"];
        let ran = workdir.run(&at, "");
        assert_eq!(ran.code(), Some(0), "{ran:?}");
        let book = read(&fs::read(workdir.path("then.xlsx")).unwrap()).unwrap();
        assert!(book.sheet("Counts").is_some());
    };

    let exported = here.path("thread").display().to_string();
    let ran = here.run(&["export", &original, &exported], "");
    assert!(
        ran.out().contains("thread.files; take both along"),
        "{ran:?}"
    );
    let there = workdir(&json!([]));
    let ran = there.run(&["import", &exported], "");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    has_counts(&there, &original);

    let ran = here.run(&["backup", "everything"], "");
    assert!(ran.out().contains("everything.files"), "{ran:?}");
    let saved = here.path("everything.files/sheets").join(&original);
    assert!(saved.is_dir(), "{ran:?}");

    let kept = here.path("home/sheets").join(&original);
    assert!(kept.is_dir());
    here.run(&["delete", &original, "--yes"], "");
    assert!(!kept.exists(), "what is deleted is gone for good");
    has_counts(&here, copy);
}

#[test]
fn killed_in_a_model_call_it_does_not_run_code_again() {
    let mut with_death = replies();
    // Before the last answer, when two pieces of code have been run.
    with_death
        .as_array_mut()
        .unwrap()
        .insert(4, json!({ "at": "planner_node", "kill": true }));
    let workdir = workdir(&with_death);
    let ran = workdir.run(&SHEET, "");
    assert_eq!(ran.code(), None, "{ran:?}");
    let kept = || -> Vec<_> {
        let folder = workdir.path("home/sheets").join(workdir.thread());
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| {
                (
                    file.file_name(),
                    file.metadata().unwrap().modified().unwrap(),
                )
            })
            .collect();
        files.sort();
        files
    };
    let before = kept();
    let ran = workdir.run(&["resume", &workdir.thread()], "y\n");
    assert_eq!(ran.code(), Some(0), "{ran:?}");
    assert_eq!(kept(), before, "no code was run again");
    assert_eq!(workdir.asked("planner_node"), 5, "one call more");
    assert!(workdir.path("out/workbook_new.xlsx").exists());
}

#[test]
fn without_a_python_it_says_what_is_missing_and_runs_nothing() {
    let workdir = Workdir::scripted(&json!([code("print(1)")]))
        .with_environment("ARCHIE_PYTHON", "/nonexistent/python");
    fs::write(workdir.path("sales.xlsx"), sales()).unwrap();
    let ran = workdir.run(&["sheet", "sales.xlsx", "--instruction", "count"], "");
    assert_eq!(ran.code(), Some(1), "{ran:?}");
    assert!(
        ran.err().contains("pip install pandas openpyxl") && ran.err().contains("archie resume"),
        "{ran:?}"
    );
    let ran = workdir.run(&["doctor"], "");
    assert!(
        ran.out()
            .contains("!!  sandbox: `archie sheet` cannot run code"),
        "{ran:?}"
    );
}

#[test]
fn the_trace_tells_of_steps_and_code() {
    let workdir = workdir(&replies());
    workdir.run(&SHEET, "y\n");
    let trace = workdir.run(&["trace", &workdir.thread()], "").out();
    for word in [
        "planner_node",
        "informer_node",
        "execute_tool SheetSelector",
        "tool_node",
        "execute_tool PythonInterpreter",
        "chat script.json",
        "change_set_node",
    ] {
        assert!(trace.contains(word), "{word} is not in {trace}");
    }
}
