//! The checklist of the brief, line by line.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use superstep::Outcome;
use superstep_llm::Script;

use super::lab::{Lab, fields};
use super::server::{self, Server, ServerReply};

const TRENDING: &str = "What are the trending tracks on Audius?";

async fn asked(query: &str) -> (Lab, Server) {
    let server = Server::start(server::audius);
    let lab = Lab::new(&[&server]).await;
    assert_eq!(lab.ask("t", query).await, Outcome::Finished);
    (lab, server)
}

#[tokio::test]
async fn d1_at_the_start_the_model_and_the_question_are_set_and_all_else_is_null_or_empty() {
    let lab = Lab::empty();
    let thread = lab.thread("t");
    let start = json!({ "llm": "none", "query": "@nobody x" });
    thread.start_or_recover(start).await.unwrap();
    let first = thread.history(superstep::Seq(0), 1).await.unwrap()[0].seq;
    let state = thread.state(Some(first)).await.unwrap().unwrap();
    let values: Json = state.values.decode().unwrap();
    let names = [
        "apis",
        "bestApi",
        "categories",
        "complexity",
        "entity",
        "entityName",
        "entityType",
        "error",
        "errorHistory",
        "formattedResponse",
        "initialState",
        "isEntityQuery",
        "llm",
        "messageHistory",
        "messages",
        "parameters",
        "query",
        "queryType",
        "response",
        "secondaryApi",
        "secondaryResponse",
        "selectedHost",
    ];
    assert_eq!(fields(&values), names);
    for (name, value) in values.as_object().unwrap() {
        let wanted = match name.as_str() {
            "llm" => json!("none"),
            "query" => json!("@nobody x"),
            "errorHistory" | "messageHistory" => json!([]),
            _ => Json::Null,
        };
        assert_eq!(*value, wanted, "{name}");
    }
}

#[tokio::test]
async fn d2_the_six_nodes_run_in_their_order() {
    let (lab, _) = asked(TRENDING).await;
    let nodes: Vec<_> = lab
        .written("t")
        .await
        .into_iter()
        .map(|(node, _)| node)
        .collect();
    assert_eq!(
        nodes,
        [
            "extract_category_node",
            "get_apis_node",
            "select_api_node",
            "extract_params_node",
            "execute_request_node",
            "reset_state_node"
        ]
    );
}

#[tokio::test]
async fn d3_the_trending_question_is_known_by_its_words() {
    let (lab, _) = asked(TRENDING).await;
    let wrote = lab.wrote("t", "extract_category_node").await;
    assert_eq!(
        wrote,
        json!({
            "queryType": "trending_tracks", "entityType": "track", "isEntityQuery": false, "complexity": "simple",
            "categories": ["Get Trending Tracks", "Get Underground Trending Tracks"],
        })
    );
}

#[tokio::test]
async fn d4_a_call_is_told_under_the_names_of_the_brief() {
    let (lab, _) = asked(TRENDING).await;
    let wrote = lab.wrote("t", "get_apis_node").await;
    assert_eq!(fields(&wrote), ["apis"]);
    let first = &wrote["apis"][0];
    assert_eq!(
        fields(first),
        [
            "api_description",
            "api_name",
            "api_url",
            "category_name",
            "id",
            "method",
            "optional_parameters",
            "required_parameters",
            "tool_name"
        ]
    );
    let told = [
        "id",
        "category_name",
        "tool_name",
        "api_name",
        "api_description",
        "method",
        "api_url",
    ]
    .map(|name| first[name].as_str().unwrap());
    assert_eq!(
        told,
        [
            "trending_tracks",
            "Tracks",
            "Get Trending Tracks",
            "Get Trending Tracks",
            "Gets the top trending tracks on Audius",
            "GET",
            "/v1/tracks/trending"
        ]
    );
    assert_eq!(first["required_parameters"], json!([]));
    let optional = |name: &str| {
        let list = first["optional_parameters"].as_array().unwrap();
        list.iter()
            .find(|parameter| parameter["name"] == name)
            .unwrap()
            .clone()
    };
    let time = optional("time");
    assert_eq!(
        (&time["description"], &time["type"], &time["default"]),
        (&json!("time range"), &json!("string"), &json!("week"))
    );
    assert_eq!(
        optional("genre"),
        json!({ "name": "genre", "description": "genre to filter", "type": "string", "default": null })
    );
}

#[tokio::test]
async fn d5_the_best_call_is_one_of_them_and_has_its_parameters() {
    let (lab, server) = asked(TRENDING).await;
    let apis = lab.wrote("t", "get_apis_node").await["apis"].clone();
    let best = lab.wrote("t", "select_api_node").await;
    assert_eq!(fields(&best), ["bestApi"]);
    assert!(apis.as_array().unwrap().contains(&best["bestApi"]));
    let wrote = lab.wrote("t", "extract_params_node").await;
    assert_eq!(
        wrote,
        json!({ "parameters": { "time": "week", "genre": null, "limit": 10 } })
    );
    // What is null is not sent, and what the call does not take neither.
    assert_eq!(server.lines(), ["GET /v1/tracks/trending?time=week"]);
}

#[tokio::test]
async fn d5_what_the_question_says_is_taken_from_it() {
    let (lab, server) = asked("top 3 tracks of the month, genre=Electronic").await;
    let wrote = lab.wrote("t", "extract_params_node").await;
    assert_eq!(
        wrote,
        json!({ "parameters": { "time": "month", "genre": "Electronic", "limit": 3 } })
    );
    let mut sent: Vec<_> = server.lines()[0]
        .split(['?', '&'])
        .map(str::to_owned)
        .collect();
    sent.sort_unstable();
    assert_eq!(
        sent,
        ["GET /v1/tracks/trending", "genre=Electronic", "time=month"]
    );
    assert!(
        lab.answer("t")
            .await
            .starts_with("Here are the top 3 trending tracks:\n")
    );
}

#[tokio::test]
async fn d6_tracks_have_the_names_of_the_brief_and_the_answer_its_form() {
    let (lab, _) = asked(TRENDING).await;
    let wrote = lab.wrote("t", "execute_request_node").await;
    let data = wrote["response"]["data"].as_array().unwrap();
    assert_eq!(data.len(), 10);
    assert_eq!(
        fields(&data[0]),
        [
            "artwork",
            "commentCount",
            "description",
            "duration",
            "favoriteCount",
            "genre",
            "id",
            "isDownloadable",
            "mood",
            "permalink",
            "playCount",
            "rank",
            "releaseDate",
            "remixOf",
            "repostCount",
            "tags",
            "title",
            "type",
            "user"
        ]
    );
    assert_eq!(fields(&data[0]["user"]), ["handle", "id", "name"]);
    assert_eq!(
        (&data[0]["rank"], &data[1]["rank"], &data[0]["tags"]),
        (&json!(1), &json!(2), &json!(["electronic", "dance"]))
    );
    let answer = wrote["formattedResponse"].as_str().unwrap();
    assert!(
        answer.starts_with("Here are the top 10 trending tracks:\n1. \"Example Track\" by Example Artist (1,234 plays)\n2. \"Track 2\" by Artist 2 (18,234 plays)\n"),
        "{answer}"
    );
    assert_eq!(lab.answer("t").await, answer, "it is in the history, too");
}

#[tokio::test]
async fn d7_after_the_reset_four_fields_are_left_and_everything_else_is_really_null() {
    let (lab, server) = asked(TRENDING).await;
    let values = lab.values("t").await;
    let left: Vec<_> = values
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, _)| name.as_str())
        .collect();
    let mut left = left;
    left.sort_unstable();
    assert_eq!(
        left,
        ["errorHistory", "llm", "messageHistory", "selectedHost"]
    );
    assert_eq!(values["selectedHost"], server.host());
    assert_eq!(values["messageHistory"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn d7_a_second_question_sees_nothing_of_the_first() {
    let (lab, _) = asked(TRENDING).await;
    assert_eq!(
        lab.ask("t", "How many followers does RAC have?").await,
        Outcome::Finished
    );
    let written = lab.written("t").await;
    let second = &written[6..];
    assert_eq!(second.len(), 6);
    let told = Json::Array(second.iter().map(|(_, update)| update.clone()).collect()).to_string();
    assert!(!told.contains("trending"), "{told}");
    let state = lab.state("t").await;
    assert_eq!(
        state.message_history.len(),
        4,
        "histories grow by what was added and do not double"
    );
}

#[tokio::test]
async fn d8_nodes_write_only_their_own_fields() {
    let (lab, _) = asked(TRENDING).await;
    let wanted: [(&str, &[&str]); 5] = [
        (
            "extract_category_node",
            &[
                "categories",
                "complexity",
                "entityType",
                "isEntityQuery",
                "queryType",
            ],
        ),
        ("get_apis_node", &["apis"]),
        ("select_api_node", &["bestApi"]),
        ("extract_params_node", &["parameters"]),
        (
            "execute_request_node",
            &[
                "formattedResponse",
                "messageHistory",
                "response",
                "selectedHost",
            ],
        ),
    ];
    for (node, names) in wanted {
        assert_eq!(fields(&lab.wrote("t", node).await), names, "{node}");
    }
}

#[tokio::test]
async fn d8_a_transition_without_what_it_needs_is_an_error_and_not_a_guess() {
    let lab = Lab::empty();
    let thread = lab.thread("t");
    thread
        .start_or_recover(json!({ "llm": "none" }))
        .await
        .unwrap();
    for (node, update) in [
        ("get_apis_node", json!({ "query": "x", "apis": [] })),
        ("select_api_node", json!({ "query": "x" })),
        ("extract_params_node", json!({ "query": "x" })),
    ] {
        // As if this node had ended without having done its work.
        thread.update_as(node, update).await.unwrap();
        thread.recover_or_resume().await.unwrap();
        assert!(
            lab.answer("t").await.starts_with("That did not work:"),
            "{node}"
        );
        assert_eq!(lab.values("t").await["error"], Json::Null, "{node}");
    }
    assert_eq!(lab.state("t").await.error_history.len(), 3);
}

#[tokio::test]
async fn d8_what_does_not_fit_the_state_is_refused_at_the_node() {
    let (lab, _) = asked(TRENDING).await;
    let thread = lab.thread("t");
    for (update, why) in [
        (
            json!({ "bestApi": lab.wrote("t", "select_api_node").await["bestApi"] }),
            "one of `apis`",
        ),
        (json!({ "categories": [] }), "at least one"),
        (json!({ "nonsense": 1 }), "nonsense"),
        (json!({ "complexity": 7 }), "string"),
    ] {
        let refused = thread
            .update_as("extract_category_node", update.clone())
            .await
            .unwrap_err();
        let refused = format!("{:#}", anyhow::Error::from(refused));
        assert!(refused.contains(why), "{update}: {refused}");
    }
}

#[tokio::test]
async fn d8_parameters_are_checked_before_the_call() {
    let (lab, server) = asked(TRENDING).await;
    let before = server.got().len();
    let thread = lab.thread("t");
    let apis = lab.wrote("t", "get_apis_node").await["apis"].clone();
    // Somebody forks and writes what no question could have said.
    thread
        .update_as(
            "get_apis_node",
            json!({ "query": "trending tracks", "queryType": "trending_tracks", "apis": apis }),
        )
        .await
        .unwrap();
    thread
        .update_as("select_api_node", json!({ "bestApi": apis[0] }))
        .await
        .unwrap();
    thread
        .update_as(
            "extract_params_node",
            json!({ "parameters": { "time": "century" } }),
        )
        .await
        .unwrap();
    thread.recover_or_resume().await.unwrap();
    assert_eq!(server.got().len(), before, "nothing was sent");
    assert!(
        lab.answer("t").await.contains("`time` must be one of"),
        "{}",
        lab.answer("t").await
    );
}

#[tokio::test]
async fn d8_a_bad_answer_of_the_server_is_an_error_and_the_next_question_is_clean() {
    let (lab, _) = asked("newest tips").await;
    let state = lab.state("t").await;
    assert_eq!(state.error_history.len(), 1);
    assert_eq!(
        (state.error.as_deref(), state.error_history[0].node.as_str()),
        (None, "execute_request_node")
    );
    assert_eq!(
        lab.answer("t").await,
        "That did not work: the server answered 500: out of order."
    );
    let wrote = lab.wrote("t", "execute_request_node").await;
    assert_eq!(wrote["error"], "the server answered 500: out of order");
    lab.ask("t", TRENDING).await;
    assert!(lab.answer("t").await.starts_with("Here are the top 10"));
    assert_eq!(lab.state("t").await.error_history.len(), 1);
}

#[tokio::test]
async fn d9_the_sixth_equal_error_comes_with_a_warning() {
    let (lab, _) = asked("newest tips").await;
    for _ in 0..4 {
        lab.ask("t", "newest tips").await;
    }
    assert!(!lab.answer("t").await.contains("Warning"));
    lab.ask("t", "newest tips").await;
    assert!(
        lab.answer("t")
            .await
            .ends_with("Warning: the same error has come 6 times on this thread."),
        "{}",
        lab.answer("t").await
    );
    let state = lab.state("t").await;
    let counted = state.error_frequency();
    assert_eq!((counted.len(), counted[0].1), (1, 6));
}

#[tokio::test]
async fn d9_the_full_state_can_be_looked_at_after_every_node() {
    let (lab, _) = asked(TRENDING).await;
    let thread = lab.thread("t");
    let mut seen = Vec::new();
    for past in thread.history(superstep::Seq(0), 100).await.unwrap() {
        let values: Json = thread
            .state(Some(past.seq))
            .await
            .unwrap()
            .unwrap()
            .values
            .decode()
            .unwrap();
        seen.push(
            ["queryType", "apis", "bestApi", "parameters", "response"]
                .map(|name| !values[name].is_null()),
        );
    }
    seen.dedup();
    let [t, f] = [true, false];
    assert_eq!(
        seen,
        [
            [f, f, f, f, f],
            [t, f, f, f, f],
            [t, t, f, f, f],
            [t, t, t, f, f],
            [t, t, t, t, f],
            [t, t, t, t, t],
            [f, f, f, f, f]
        ]
    );
}

#[tokio::test]
async fn a_missing_parameter_is_asked_for_and_nothing_else_is() {
    let server = Server::start(server::audius);
    let lab = Lab::new(&[&server]).await;
    assert!(matches!(
        lab.ask("t", "Show track").await,
        Outcome::Paused(_)
    ));
    let open = lab.question("t").await;
    let request: Json = open.interrupt.request.decode().unwrap();
    assert_eq!(
        (
            open.interrupt.kind.as_str(),
            open.interrupt.node.to_string().as_str()
        ),
        ("missing_value", "extract_params_node")
    );
    assert_eq!(request["parameter"], "track_id");
    assert!(server.got().is_empty());
    assert_eq!(lab.reply("t", json!("D7KyD")).await, Outcome::Finished);
    assert_eq!(server.lines(), ["GET /v1/tracks/D7KyD"]);
    assert!(
        lab.answer("t")
            .await
            .starts_with("Get Track: \"Track 1\" by Artist 1")
    );
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_asked_for_again() {
    let server = Server::start(server::audius);
    let lab = Lab::new(&[&server]).await;
    lab.ask("t", "Show track").await;
    assert!(matches!(
        lab.reply("t", json!("..")).await,
        Outcome::Paused(_)
    ));
    let request: Json = lab.question("t").await.interrupt.request.decode().unwrap();
    assert!(
        request["question"]
            .as_str()
            .unwrap()
            .contains("must not be `..`"),
        "{request}"
    );
    assert_eq!(lab.reply("t", json!("D7KyD")).await, Outcome::Finished);
    assert_eq!(server.lines(), ["GET /v1/tracks/D7KyD"]);
}

#[tokio::test]
async fn an_answer_never_pays_for_the_model_again_and_a_value_it_made_up_is_not_taken() {
    let server = Server::start(server::audius);
    let replies =
        json!({ "replies": [{ "at": "extract_params_node", "json": { "track_id": "MADE-UP" } }] });
    let script = Arc::new(Script::parse("test", &replies.to_string()).unwrap());
    let lab = Lab::new(&[&server]).await.with_model(script.clone());
    lab.ask("t", "please show me that one track I liked so much")
        .await;
    assert_eq!(lab.question("t").await.interrupt.kind, "missing_value");
    lab.reply("t", json!("D7KyD")).await;
    assert_eq!(server.lines(), ["GET /v1/tracks/D7KyD"]);
    script.finish().unwrap();
}

#[tokio::test]
async fn somebody_is_found_by_name_and_then_looked_at() {
    let (lab, server) = asked("How many followers does RAC have?").await;
    assert_eq!(
        server.lines(),
        ["GET /v1/users/search?query=RAC", "GET /v1/users/u1"]
    );
    assert_eq!(lab.answer("t").await, "RAC has 4,321 followers.");
    let wrote = lab.wrote("t", "execute_request_node").await;
    assert_eq!(
        (
            &wrote["entity"]["id"],
            &wrote["secondaryResponse"]["data"]["follower_count"]
        ),
        (&json!("u1"), &json!(4_321))
    );
    assert_eq!(
        lab.wrote("t", "extract_category_node").await["entityName"],
        "RAC"
    );
    assert_eq!(
        lab.wrote("t", "select_api_node").await["secondaryApi"]["id"],
        "get_user"
    );
}

#[tokio::test]
async fn a_host_that_is_down_is_passed_over_and_the_good_one_is_remembered() {
    let down = Server::start(|_| ServerReply::Json(503, json!({})));
    let good = Server::start(server::audius);
    let lab = Lab::new(&[&down, &good]).await;
    lab.ask("t", TRENDING).await;
    assert_eq!(lab.values("t").await["selectedHost"], good.host());
    lab.ask("t", TRENDING).await;
    assert_eq!(
        (down.got().len(), good.got().len()),
        (1, 2),
        "the second question goes straight to the good one"
    );
}

#[tokio::test]
async fn a_host_that_is_not_there_is_passed_over() {
    let gone = Server::start(|_| ServerReply::HangUp);
    let good = Server::start(server::audius);
    let lab = Lab::new(&[&gone, &good]).await;
    assert_eq!(lab.ask("t", TRENDING).await, Outcome::Finished);
    assert_eq!(lab.values("t").await["selectedHost"], good.host());
    let lab = Lab::new(&[&gone]).await;
    lab.ask("t", TRENDING).await;
    assert!(lab.answer("t").await.starts_with("That did not work:"));
}

#[tokio::test]
async fn without_a_model_a_question_that_no_rule_knows_is_answered_by_its_words() {
    let (lab, _) = asked("@audius gibberish frobnicate").await;
    assert!(
        lab.answer("t").await.contains("goes with that question"),
        "{}",
        lab.answer("t").await
    );
    let (lab, _) = asked("@nobody trending tracks").await;
    assert!(
        lab.answer("t").await.contains("there is no API `nobody`"),
        "{}",
        lab.answer("t").await
    );
}
