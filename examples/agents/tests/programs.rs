//! Every example runs, by its script, and prints what it promises.

use std::process::Command;

macro_rules! prints {
    ($($program:ident: $expected:expr;)*) => {
        $(
            #[test]
            fn $program() {
                let run = Command::new(env!(concat!("CARGO_BIN_EXE_", stringify!($program)))).output();
                let run = run.expect("the program starts");
                let printed = String::from_utf8_lossy(&run.stdout);
                assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
                for part in $expected {
                    assert!(printed.contains(part), "no {part:?} in:\n{printed}");
                }
            }
        )*
    };
}

prints! {
    tools: [r#""name":"fahrenheit","content":"70.7""#, "It is 70.7 degrees Fahrenheit in Bern.", "604 tokens\n"];
    research: [
        "- Blue light is scattered towards us from all over the sky.\n",
        "Finished: The sky is blue because blue light is scattered most.",
    ];
    approve_before_send: [
        "2 open\n",
        r#"sending to ada@example.org: "We meet at nine.""#,
        r#"sending to bob@example.org: "We meet at nine. Bring cake.""#,
        "Finished: Ada and Bob know.",
    ];
}
