//! Every program of the migration guide runs and prints what the guide says.

use std::fs;
use std::path::Path;
use std::process::Command;

macro_rules! prints {
    ($($program:ident: $expected:expr;)*) => {
        $(
            #[test]
            fn $program() {
                let mut run = Command::new(env!(concat!("CARGO_BIN_EXE_", stringify!($program))));
                // Some write files where they run, and continue what they find there.
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(stringify!($program));
                let _ = fs::remove_dir_all(&folder);
                fs::create_dir_all(&folder).expect("a folder for the program");
                let run = run.current_dir(folder).output();
                let run = run.expect("the program starts");
                let printed = String::from_utf8_lossy(&run.stdout).into_owned();
                assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
                for line in $expected {
                    assert!(printed.lines().any(|printed| printed == line), "no line {line:?} in:\n{printed}");
                }
            }
        )*
    };
}

prints! {
    checkpointer: [
        r#"first process: "Refund 40?""#,
        r#"second process: Refund { amount: 40, receipt: "paid 40" }"#,
        "checkpoints: 3",
    ];
    first_graph: ["A text about cats, version 3 (published)"];
    react_approval: [
        r#"asks: {"amount":40,"order":"A-7"}"#,
        "Refunded 40 euros for A-7",
        "You get 40 euros back.",
    ];
    plan_and_execute: [
        "find the winner: The winner is the player in lane 4.",
        "find the home town of the player in lane 4: The home town is Turku.",
        "The winner comes from Turku.",
    ];
    supervisor: [
        "120 in spring and 80 in summer.",
        "The sum is 200.",
        "200 kettles were sold in the two seasons.",
    ];
    swarm: [
        "flights: Hotel and flight are booked.",
        "hotels: Your hotel in Oslo has breakfast.",
    ];
    mcp_agent: [
        r#"tools: ["weather__forecast", "weather__to_fahrenheit"]"#,
        "tool: Tomorrow in Oslo: rain, 11 degrees",
        "tool: 51.8",
        "ai: It rains in Oslo tomorrow, at 52 degrees Fahrenheit.",
    ];
    map_reduce: [
        r#"["A joke about lazy-cats", "A joke about hungry-cats", "A joke about angry-cats"]"#,
        "A joke about hungry-cats, for children",
    ];
    memory: [
        r#"ann: Which food can I eat? -> I know: "I cannot eat nuts.""#,
        r#"bob: Which food can I eat? -> I know: "nothing""#,
    ];
    time_travel: [
        "A joke about cats",
        "A joke about dogs",
        r#"5 Update Joke { topic: "dogs", joke: "" }"#,
    ];
    streaming: [
        r#"custom: {"searched":50}"#,
        r#"token: "Cats " by answer"#,
        r#"{"id":"3-5","outcome":"finished","type":"stopped"}"#,
    ];
    structured: [
        r#"Some(Ticket { title: "Printer is on fire", priority: High, seats: 3 })"#,
    ];
    retry: [
        "charged at attempt 3",
        "queued for a person, charge failed: bank is away, attempt 3",
    ];
    migration: ["old thread: Dear Kim", "new thread: Dear Kim Larsen"];
    functional: [
        r#"asks: {"question":"Any correction?","text":"Cats sleep a lot."}"#,
        "Published: Cats sleep 15 hours a day.",
    ];
    subgraphs: [r#"Report { topic: "Cats", report: "Cats sleep all day (4 words)" }"#];
}
