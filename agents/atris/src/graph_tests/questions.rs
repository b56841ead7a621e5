//! Plain questions to small APIs, without a model: the call, its parameters, and what is asked.

use serde_json::{Value as Json, json};
use superstep::Outcome;
use superstep_llm::Script;

use super::lab::Lab;
use crate::Extraction;
use crate::evaluation::questions;

async fn lab() -> Lab {
    let script = Script::parse("test", r#"{"replies": []}"#).unwrap();
    Lab::new(Extraction::Rules, script).await
}

async fn request(lab: &Lab, thread: &str) -> (String, Json) {
    let open = lab.question(thread).await;
    (
        open.interrupt.kind.clone(),
        open.interrupt.request.decode().unwrap(),
    )
}

#[tokio::test]
async fn a_status_of_an_order_is_read_from_the_order_and_not_from_the_inventory() {
    let lab = lab().await;
    lab.ask("t", "@shelter what is the status of order 7?")
        .await;
    assert_eq!(lab.wire.lines(), ["GET /orders/7"]);
}

#[tokio::test]
async fn an_order_of_a_pet_waits_for_approval_with_its_number() {
    let lab = lab().await;
    lab.ask("t", "@shelter order 2 of pet 198772").await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "approval", "{request}");
    let args = &request["action_request"]["args"];
    assert_eq!(args["method"], "POST");
    assert_eq!(args["body"], json!({ "petId": 198772, "quantity": 2 }));
    assert_eq!(lab.wire.writes(), 0);
}

#[tokio::test]
async fn a_new_dog_has_its_name_and_its_species_from_the_question() {
    let lab = lab().await;
    lab.ask("t", "@shelter add a new dog called Rex").await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "approval", "{request}");
    let body = &request["action_request"]["args"]["body"];
    assert_eq!(*body, json!({ "name": "Rex", "species": "dog" }));
    assert_eq!(lab.wire.writes(), 0);
}

#[tokio::test]
async fn a_booking_takes_patient_doctor_and_day_from_the_question() {
    let lab = lab().await;
    lab.ask(
        "t",
        "@clinic book patient 5 with doctor 1 on 3 December 2026",
    )
    .await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "approval", "{request}");
    let body = &request["action_request"]["args"]["body"];
    assert_eq!(
        *body,
        json!({ "patientId": 5, "doctorId": 1, "date": "2026-12-03" })
    );
    assert_eq!(lab.wire.writes(), 0);
}

#[tokio::test]
async fn cardiologists_are_doctors_of_a_specialty() {
    let lab = lab().await;
    lab.ask("t", "@clinic list the cardiologists").await;
    assert_eq!(lab.wire.lines(), ["GET /doctors?specialty=cardiology"]);
}

#[tokio::test]
async fn an_issue_by_its_number_asks_only_for_the_repository() {
    let lab = lab().await;
    lab.ask("t", "@forge show issue 1347").await;
    for (name, value) in [("owner", "octo"), ("repo", "hello-world")] {
        let (kind, request) = request(&lab, "t").await;
        assert_eq!(
            (kind.as_str(), &request["parameter"]),
            ("missing_value", &json!(name))
        );
        lab.reply("t", json!(value)).await;
    }
    assert_eq!(
        lab.wire.lines(),
        ["GET /repos/octo/hello-world/issues/1347"]
    );
}

#[tokio::test]
async fn who_contributed_lists_contributors() {
    let lab = lab().await;
    lab.ask("t", "@forge who contributed to octo/hello-world?")
        .await;
    assert_eq!(
        lab.wire.lines(),
        ["GET /repos/octo/hello-world/contributors"]
    );
}

#[tokio::test]
async fn an_issue_is_created_with_the_quoted_title_and_not_looked_up() {
    let lab = lab().await;
    let query = "@forge create an issue \"Printer on fire\" in octo/hello-world";
    lab.ask("t", query).await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "approval", "{request}");
    let args = &request["action_request"]["args"];
    assert_eq!(
        (args["method"].as_str(), &args["body"]),
        (Some("POST"), &json!({ "title": "Printer on fire" }))
    );
    assert_eq!(lab.wire.writes(), 0);
}

#[tokio::test]
async fn calls_that_are_close_are_shown_and_the_person_chooses() {
    let lab = lab().await;
    lab.ask("t", "@shelter delete 12").await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "which_call");
    let words = request["question"].as_str().unwrap();
    assert!(
        words.contains("DELETE /pets/12") && words.contains("DELETE /users/12"),
        "{words}"
    );
    lab.reply("t", json!("deletePet")).await;
    assert_eq!(lab.question("t").await.interrupt.kind, "approval");
    assert_eq!(lab.wire.writes(), 0);
}

#[tokio::test]
async fn a_person_who_means_none_of_the_calls_ends_the_question() {
    let lab = lab().await;
    lab.ask("t", "@shelter delete 12").await;
    assert_eq!(lab.reply("t", json!("none")).await, Outcome::Finished);
    assert!(lab.answer("t").await.starts_with("That did not work:"));
    assert!(lab.wire.lines().is_empty());
}

#[tokio::test]
async fn a_missing_value_is_asked_for_with_its_choices() {
    let lab = lab().await;
    lab.ask("t", "@shelter record a vaccination of pet 5").await;
    lab.reply("t", json!("2026-03-14")).await;
    let (kind, request) = request(&lab, "t").await;
    let words = request["question"].as_str().unwrap();
    assert_eq!(kind, "missing_value");
    assert!(
        words.contains("One of: rabies, distemper, parvovirus"),
        "{words}"
    );
}

#[tokio::test]
async fn without_a_name_the_api_that_fits_is_asked() {
    let lab = lab().await;
    lab.ask("t", "which doctors are radiologists?").await;
    assert_eq!(lab.wire.lines(), ["GET /doctors?specialty=radiology"]);
    // The question keeps the API, so the answer says where it comes from.
    let state = lab.state("t").await;
    assert_eq!(
        state.message_history[0].content,
        "@clinic which doctors are radiologists?"
    );
    lab.ask("u", "What are the trending tracks on Audius?")
        .await;
    assert_eq!(lab.wire.lines()[1], "GET /v1/tracks/trending?time=week");
}

#[tokio::test]
async fn an_api_that_is_not_clear_is_asked_for() {
    let lab = lab().await;
    lab.ask("t", "show invoice 9001").await;
    let (kind, request) = request(&lab, "t").await;
    assert_eq!(kind, "which_api", "{request}");
    let words = request["question"].as_str().unwrap();
    assert!(
        words.contains("clinic: GET /invoices/9001") && words.contains("works: GET /invoices/9001"),
        "{words}"
    );
    lab.reply("t", json!("clinic")).await;
    assert_eq!(lab.wire.lines(), ["GET /invoices/9001"]);
}

#[tokio::test]
async fn a_call_can_be_named_in_place_of_the_choice() {
    let lab = lab().await;
    lab.ask("t", "@shelter/getPetById order 7").await;
    assert_eq!(lab.wire.lines(), ["GET /pets/7"]);
    lab.ask("u", "@shelter/nonsense order 7").await;
    assert!(
        lab.answer("u").await.contains("has no call `nonsense`"),
        "{}",
        lab.answer("u").await
    );
}

#[tokio::test]
async fn no_question_of_the_evaluation_writes_without_approval() {
    let lab = lab().await;
    let mut approvals = 0;
    for (at, question) in questions().unwrap().iter().enumerate() {
        let thread = format!("t{at}");
        let query = format!("@{} {}", question.api, question.question);
        lab.ask(&thread, &query).await;
        let open = lab.open(&thread).await;
        approvals += open
            .iter()
            .filter(|open| open.interrupt.kind == "approval")
            .count();
    }
    assert_eq!(lab.wire.writes(), 0);
    assert!(approvals > 20, "{approvals} writes waited for approval");
}
