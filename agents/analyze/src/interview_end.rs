//! Recognizes that the person ends the interview.

/// Returns whether the person approves the solution: the message contains "solution approved" as whole words in any case, or is
/// nothing but "done". "Not done" and "what must be done" continue the interview, and so does "solution approved" after a
/// negation.
pub fn user_is_done(said: &str) -> bool {
    let words: Vec<String> = said
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_uppercase)
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words == ["DONE"] {
        return true;
    }
    let approved = words
        .windows(2)
        .position(|pair| pair == ["SOLUTION", "APPROVED"]);
    approved.is_some_and(|at| {
        !words[..at]
            .iter()
            .rev()
            .take(3)
            .any(|word| NEGATIONS.contains(word))
    })
}

/// Words that, within three words before "solution approved", negate it: "this is not a solution approved by us".
const NEGATIONS: [&str; 6] = ["NOT", "NO", "NEVER", "ISN'T", "DON'T", "NOR"];

#[cfg(test)]
mod tests {
    use super::user_is_done;

    #[test]
    fn a6_approval_is_whole_words_and_done_is_the_whole_message() {
        for yes in [
            "SOLUTION APPROVED",
            "ok, solution approved!",
            "DONE",
            "done.",
            " Done! ",
        ] {
            assert!(user_is_done(yes), "{yes}");
        }
        for no in [
            "",
            "what must be done",
            "abandoned",
            "not done yet",
            "not done",
            "resolution approved",
            "solution approvedly",
            "this is not a solution approved by us",
            "is it done?",
        ] {
            assert!(!user_is_done(no), "{no}");
        }
    }
}
