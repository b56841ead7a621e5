//! Checks a submitted answer before it ends the run.
//!
//! A small model that does not know what to say tends to repeat what it was told: the tool's own words, the error message of
//! an earlier call, or the instruction. Such a text is refused with an explanation, so that it never replaces an answer.

/// Returns the trimmed answer, or why it is refused, as text for the planner. `failures` are the observations of failed calls.
pub(crate) fn check_answer<'a>(
    answer: &str,
    instruction: &str,
    mut failures: impl Iterator<Item = &'a str>,
) -> Result<String, String> {
    let said = words(answer);
    if said.is_empty() {
        return Err(format!(
            "not accepted: the answer is empty. {WHAT_TO_SUBMIT}"
        ));
    }
    if is_parroted(answer) {
        return Err(format!(
            "not accepted: these are the words of the tool and not an answer. {WHAT_TO_SUBMIT}"
        ));
    }
    if said == words(instruction) {
        return Err(format!(
            "not accepted: this is what was asked for and not an answer to it. {WHAT_TO_SUBMIT}"
        ));
    }
    let is_in = |failure: &str| {
        let told = words(failure);
        said.len() >= QUOTED_WORDS && told.windows(said.len()).any(|part| part == said)
    };
    if failures.any(is_in) {
        return Err(format!(
            "not accepted: this is the message of a call that failed and not an answer. {WHAT_TO_SUBMIT}"
        ));
    }
    Ok(answer.trim().to_owned())
}

/// Returns whether a text only talks about answering: it names an answer and has no word that our own texts do not have.
pub(crate) fn is_parroted(text: &str) -> bool {
    let said = words(text);
    said.iter().any(|word| ABOUT.contains(&word.as_str()))
        && said.iter().all(|word| {
            let word = word.as_str();
            ABOUT.contains(&word) || FILLERS.contains(&word)
        })
}

fn words(text: &str) -> Vec<String> {
    let letters = |c: char| c.is_alphanumeric();
    text.split(|c| !letters(c))
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// Words that talk about answering. No workbook holds an answer that consists of these and of [`FILLERS`] alone.
const ABOUT: &[&str] = &[
    "answer",
    "answers",
    "answersubmitter",
    "submitter",
    "submitted",
    "finish",
    "finished",
];

/// Other words of the prompts and of the tool's results. Numerals are not among them: `the answer is one` is an answer.
const FILLERS: &[&str] = &[
    "a",
    "above",
    "accepted",
    "all",
    "and",
    "asked",
    "been",
    "call",
    "completed",
    "correct",
    "done",
    "down",
    "ends",
    "final",
    "for",
    "given",
    "has",
    "have",
    "here",
    "if",
    "in",
    "is",
    "it",
    "itself",
    "last",
    "me",
    "my",
    "of",
    "ok",
    "once",
    "person",
    "please",
    "question",
    "recorded",
    "result",
    "sentence",
    "submit",
    "submits",
    "successfully",
    "take",
    "taken",
    "takes",
    "task",
    "text",
    "that",
    "the",
    "there",
    "this",
    "to",
    "tool",
    "user",
    "was",
    "with",
    "work",
    "you",
    "your",
];

/// An error message is recognised in an answer of at least this many words. Shorter answers may occur in one by chance.
const QUOTED_WORDS: usize = 3;

const WHAT_TO_SUBMIT: &str = "Look at the results above and submit the number, the name or the sentence that was asked for. If you do not know it yet, look it up first";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(answer: &str) -> Result<String, String> {
        let failed = "SQLite says: near \"2026\": syntax error";
        check_answer(answer, "How many rows are there?", [failed].into_iter())
    }

    #[test]
    fn what_only_talks_about_answering_is_not_an_answer() {
        for parroted in [
            "The answer to the question is taken down.",
            "the answer is taken down",
            "The answer itself.",
            "ok, the answer is accepted",
            "Finish: the answer in a sentence",
        ] {
            let why = check(parroted).expect_err(parroted);
            assert!(why.contains("the words of the tool"), "{why}");
        }
        for empty in ["", "  \n", "...", "\"\""] {
            assert!(check(empty).expect_err(empty).contains("is empty"));
        }
        assert!(check("how many rows are there").is_err());
        assert!(check("near \"2026\": syntax error").is_err());
    }

    #[test]
    fn short_and_plain_answers_are_accepted() {
        for answer in [
            "20",
            "0",
            "no",
            "Tea",
            "There is one.",
            "The answer is one.",
            "The answer is 42",
            "none of them",
            "There is no error.",
        ] {
            assert_eq!(check(answer), Ok(answer.to_owned()));
        }
        assert_eq!(check(" 20 \n"), Ok("20".to_owned()));
    }
}
