//! The gate in a terminal: the text that it shows to a person, and how it reads their answer.

use serde_json::Value as Json;

use super::workflow::approve_iteration::{Approval, GateChoice};

/// Describes a gate interrupt as text.
pub(super) fn gate(request: &Json) -> String {
    let list = |name: &str| request[name].as_array().cloned().unwrap_or_default();
    let trend: Vec<String> = list("scores").iter().map(Json::to_string).collect();
    let mut told = format!(
        "{}: refine again ({} of {})? Scores {}, {} is enough.\nSpent {} calls, {}. Another round: about {} calls, {} tokens, {}.\n",
        request["agent"].as_str().unwrap_or_default(),
        request["iteration"],
        request["maxIterations"],
        trend.join(" → "),
        request["threshold"],
        request["spent"]["calls"],
        request["spent"]["cost"].as_str().unwrap_or_default(),
        request["estimate"]["calls"],
        request["estimate"]["tokens"],
        request["estimate"]["cost"].as_str().unwrap_or_default(),
    );
    for (at, question) in list("questions").iter().enumerate() {
        told.push_str(&format!(
            "  {}. {}\n",
            at + 1,
            question.as_str().unwrap_or_default()
        ));
    }
    told.truncate(told.trim_end().len());
    told
}

/// Parses a person's answer to a gate: a command word or JSON.
pub(super) fn approval(line: &str) -> Result<Approval, String> {
    let line = line.trim();
    if line.starts_with('{') {
        return serde_json::from_str(line)
            .map_err(|error| format!("that is not an answer: {error}"));
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let plain = |go| Approval {
        go,
        add: Vec::new(),
        delete: Vec::new(),
    };
    match word.to_lowercase().as_str() {
        "accept" | "a" | "y" | "yes" => Ok(plain(GateChoice::Accept)),
        "skip" | "s" | "n" | "no" => Ok(plain(GateChoice::Skip)),
        "add" if !rest.trim().is_empty() => Ok(Approval {
            add: vec![rest.trim().to_owned()],
            ..plain(GateChoice::Accept)
        }),
        "delete" => {
            let numbers = rest.split([' ', ',']).filter(|number| !number.is_empty());
            let numbers: Result<Vec<u32>, _> = numbers.map(str::parse).collect();
            match numbers {
                Ok(delete) if !delete.is_empty() => Ok(Approval {
                    delete,
                    ..plain(GateChoice::Accept)
                }),
                _ => Err("say which: delete 1 3".to_owned()),
            }
        }
        _ => Err(
            "say accept, skip, add QUESTION, delete NUMBERS, or JSON with several of them"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_at_a_gate_is_read_as_it_is_meant() {
        assert_eq!(approval("y").unwrap().go, GateChoice::Accept);
        assert_eq!(approval("skip").unwrap().go, GateChoice::Skip);
        assert_eq!(
            approval("add What of errors?").unwrap().add,
            ["What of errors?"]
        );
        assert_eq!(approval("delete 1, 3").unwrap().delete, [1, 3]);
        let both = approval("{\"type\": \"accept\", \"add\": [\"a?\"], \"delete\": [2]}").unwrap();
        assert_eq!((both.add.len(), both.delete.as_slice()), (1, &[2][..]));
        assert!(approval("perhaps").is_err() && approval("delete x").is_err());
    }
}
