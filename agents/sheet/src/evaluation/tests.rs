use std::collections::BTreeSet;

use super::*;
use crate::book::mirror::Mirror;
use crate::book::read;

/// Answers a question with the result of its reference query, which goes through the workbook and SQLite.
fn answered(task: &Task) -> String {
    let book = read(&task.workbook().unwrap()).unwrap();
    let mut mirror = Mirror::of(&book).unwrap();
    let found = mirror.select(task.reference).unwrap();
    let cells: Vec<_> = found.rows.into_iter().flatten().flatten().collect();
    format!("It is {}.", cells.join(", "))
}

#[test]
fn there_are_thirty_tasks_on_ten_workbooks() {
    let tasks = tasks();
    assert_eq!(tasks.len(), 30);
    let ids: BTreeSet<_> = tasks.iter().map(|task| task.id).collect();
    assert_eq!(ids.len(), 30, "every name is unique");
    let books: BTreeSet<_> = tasks.iter().map(|task| task.workbook().unwrap()).collect();
    assert_eq!(books.len(), 10, "every workbook is always the same");
    let questions = tasks.iter().filter(|task| task.is_question()).count();
    assert_eq!(questions, 20);
}

#[test]
fn the_expected_answers_agree_with_another_computation() {
    for task in tasks().iter().filter(|task| task.is_question()) {
        let answer = answered(task);
        let score = task.score(&answer, None).unwrap();
        assert!(score.is_right, "{}: {answer} {}", task.id, score.why);
    }
}

#[test]
fn a_wrong_an_empty_and_an_evasive_answer_score_nothing() {
    for task in tasks() {
        for answer in ["", "I do not know.", "It is -12345.67, or Zoe."] {
            let score = task.score(answer, None).unwrap();
            assert!(!score.is_right, "{}: {answer:?}", task.id);
            assert!(!score.why.is_empty());
        }
    }
}

#[test]
fn naming_everything_is_not_an_answer() {
    let tasks = tasks();
    let best = tasks.iter().find(|task| task.id == "staff-best").unwrap();
    let everybody = "Ada, Ben, Cleo, Dan, Eva, Finn, Gus, Hana, Ivo, Jana, Kai, Lea";
    assert!(!best.score(everybody, None).unwrap().is_right);
}

#[test]
fn a_plain_prompt_holds_every_sheet_and_the_instruction() {
    let tasks = tasks();
    let prompt = |id: &str| {
        let task = tasks.iter().find(|task| task.id == id);
        task.unwrap().plain_prompt()
    };
    let budget = prompt("budget-total");
    assert!(budget.contains("Sheet \"Plan\":\n```csv\nItem,Amount\nRent,"));
    assert!(budget.contains("Sheet \"Actual\":"));
    assert!(budget.contains("By how much is the sum of Actual above the sum of Plan?"));
    assert!(prompt("visits-busy").contains("\n2026-01-01,"));
    let invoices = prompt("invoices-total");
    assert!(
        invoices.contains(",\"1.") || invoices.contains(",\"2."),
        "an amount with a comma is quoted: {invoices}"
    );
}
