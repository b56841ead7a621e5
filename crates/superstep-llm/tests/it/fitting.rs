use superstep_llm::fit::{Cut, fit, tokens_of};
use superstep_llm::{Answer, Message, Request, ToolCall};

fn call() -> (Message, Message) {
    let call = ToolCall {
        id: "c1".to_owned(),
        name: "read".to_owned(),
        args: serde_json::json!({}),
    };
    let result = Message::tool(&call, "x".repeat(300));
    let asked = Message::Assistant(Answer {
        tool_calls: vec![call],
        ..Answer::default()
    });
    (asked, result)
}

fn conversation() -> Request {
    let (asked, result) = call();
    let messages = vec![
        Message::system("Be brief."),
        Message::user("a".repeat(600)),
        asked,
        result,
        Message::assistant("b".repeat(300)),
        Message::user("And now?"),
    ];
    Request::new("chat", messages).tokens_max(50)
}

#[test]
fn what_fits_is_left_alone() {
    let mut request = conversation();
    let before = request.clone();
    assert_eq!(fit(&mut request, 4_096), []);
    assert_eq!(request, before);
}

#[test]
fn the_oldest_go_first_and_a_call_goes_with_its_result() {
    let mut request = conversation();
    let cuts = fit(&mut request, 200);
    assert_eq!(
        cuts,
        [
            Cut::Dropped {
                message: 1,
                bytes: 600
            },
            Cut::Dropped {
                message: 2,
                bytes: 0
            },
            Cut::Dropped {
                message: 3,
                bytes: 300
            },
        ]
    );
    let left: Vec<_> = request.messages.iter().map(Message::text).collect();
    assert_eq!(
        left,
        [
            "Be brief.".to_owned(),
            "b".repeat(300),
            "And now?".to_owned()
        ]
    );
}

#[test]
fn what_must_stay_loses_its_middle() {
    let text = "é".repeat(3_000);
    let mut request = Request::new("chat", vec![Message::user(text)]).tokens_max(50);
    let cuts = fit(&mut request, 500);
    assert!(
        matches!(
            cuts[..],
            [Cut::Shortened {
                message: 0,
                from: 6_000,
                ..
            }]
        ),
        "{cuts:?}"
    );
    assert!(request.messages[0].text().contains("bytes were left out"));
    assert!(request.messages.iter().map(tokens_of).sum::<u64>() + 50 <= 500);
}

#[test]
fn the_cut_is_the_same_every_time() {
    let cut = || {
        let mut request = conversation();
        let cuts = fit(&mut request, 120);
        (request, cuts)
    };
    assert_eq!(cut(), cut());
}
