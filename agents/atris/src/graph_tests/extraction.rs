//! Who reads the question: rules, a model that the rules check, or both.

use serde_json::{Value as Json, json};
use superstep_llm::Script;

use super::lab::Lab;
use crate::Extraction;

/// Asks a question with a scripted model.
async fn extracted(extraction: Extraction, replies: Json, query: &str) -> Lab {
    let replies = json!({ "replies": replies });
    let script = Script::parse("test", &replies.to_string()).unwrap();
    let lab = Lab::new(extraction, script).await;
    lab.ask("t", query).await;
    lab
}

#[tokio::test]
async fn a_model_extracts_category_call_and_parameters() {
    let replies = json!([
        { "at": "extract_category_node", "json": { "choice": "Doctors" } },
        { "at": "select_api_node", "json": { "choice": "listSlots" } },
        { "at": "extract_params_node", "json": { "doctorId": "3", "date": "" } }
    ]);
    let query = "@clinic could somebody see doctor 3 sometime";
    let asked = extracted(Extraction::Model, replies, query).await;
    assert_eq!(asked.wire.lines(), ["GET /doctors/3/slots"]);
    asked.script.finish().unwrap();
}

#[tokio::test]
async fn a_value_that_is_neither_said_nor_allowed_is_refused_and_an_allowed_one_is_taken() {
    let replies = json!([
        { "at": "extract_category_node", "json": { "choice": "Doctors" } },
        { "at": "select_api_node", "json": { "choice": "listDoctors" } },
        { "at": "extract_params_node", "json": { "specialty": "cardiology" } }
    ]);
    let query = "@clinic who looks after hearts among the doctors";
    let asked = extracted(Extraction::Model, replies, query).await;
    assert_eq!(asked.wire.lines(), ["GET /doctors?specialty=cardiology"]);
    let replies = json!([
        { "at": "extract_category_node", "json": { "choice": "Patients" } },
        { "at": "select_api_node", "json": { "choice": "getPatient" } },
        { "at": "extract_params_node", "json": { "patientId": "42" } }
    ]);
    let query = "@clinic show me the patient of this morning please";
    let asked = extracted(Extraction::Model, replies, query).await;
    let open = asked.open("t").await;
    assert_eq!(open[0].interrupt.kind, "missing_value");
    assert!(asked.wire.lines().is_empty());
    let stored = asked.state("t").await.extraction();
    assert_eq!(
        stored,
        Some(Extraction::Model),
        "whichever process resumes it"
    );
    let wrote = asked.wrote("t", "extract_params_node").await;
    assert!(
        wrote["messages"].to_string().contains("`42`"),
        "it says which value was refused: {wrote}"
    );
}

#[tokio::test]
async fn each_model_call_of_a_node_counts_against_the_budget() {
    let replies = json!({ "replies": [
        { "at": "extract_category_node", "json": { "choice": "clinic" } }
    ] });
    let script = Script::parse("test", &replies.to_string()).unwrap();
    let lab = Lab::with_calls_max(Extraction::Model, script, Some(1)).await;
    lab.ask("t", "show invoice 9001").await;
    let open = lab.question("t").await;
    assert_eq!(
        open.interrupt.kind, "budget",
        "the call for the category comes after the one for the API"
    );
    lab.script.finish().unwrap();
}

#[tokio::test]
async fn a_model_cannot_choose_a_write_that_the_question_does_not_ask_for() {
    let replies = json!([
        { "at": "extract_category_node", "json": { "choice": "Appointments" } },
        { "at": "select_api_node", "json": { "choice": "cancelAppointment" } },
        { "at": "select_api_node", "json": { "choice": "cancelAppointment" } },
        { "at": "extract_params_node", "json": { "appointmentId": "314" } }
    ]);
    let query = "@clinic what is appointment 314 about";
    let asked = extracted(Extraction::Model, replies, query).await;
    assert_eq!(asked.wire.lines(), ["GET /appointments/314"]);
    let open = asked.open("t").await;
    assert!(open.is_empty(), "{open:?}");
}

#[tokio::test]
async fn rules_alone_ask_no_model() {
    let query = "@clinic who looks after hearts among the doctors of patient 5";
    let asked = extracted(Extraction::Rules, json!([]), query).await;
    asked.script.finish().unwrap();
    assert_eq!(asked.wire.writes(), 0);
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_choice_to_the_person_and_is_not_paid_twice() {
    let replies = json!([
        { "at": "extract_category_node", "text": "pets or users" },
        { "at": "extract_category_node", "text": "who knows" },
        { "at": "select_api_node", "text": "I think it is a pet" },
        { "at": "select_api_node", "text": "really" }
    ]);
    let asked = extracted(Extraction::Model, replies, "@shelter delete 12").await;
    let open = asked.open("t").await;
    assert_eq!(open[0].interrupt.kind, "which_call");
    asked.script.finish().unwrap();
    asked.reply("t", json!("deletePet")).await;
    let open = asked.open("t").await;
    assert_eq!(open[0].interrupt.kind, "approval");
    assert_eq!(asked.wire.writes(), 0);
}
