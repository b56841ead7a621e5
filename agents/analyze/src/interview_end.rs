//! Recognizes that the person ends the interview, and removes the words for it from what a model says: a small model repeats
//! what it has read, and only a person can end an interview.

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

/// Returns what a model said without sentences that are nothing but an approval. A question such as "Approved?" stays.
pub(super) fn without_closing_words(said: &str) -> String {
    let mut is_changed = false;
    let mut lines: Vec<String> = Vec::new();
    for line in said.lines() {
        let sentences = line.split_inclusive(['.', '!', '?']);
        let kept: String = sentences
            .filter(|sentence| {
                let is_dropped = is_closing(sentence);
                is_changed |= is_dropped;
                !is_dropped
            })
            .collect();
        // What is left of emphasis around the sentence.
        let is_empty = is_changed && !kept.contains(char::is_alphanumeric);
        lines.push(match is_empty {
            true => String::new(),
            false => kept.trim_end().to_owned(),
        });
    }
    match is_changed {
        true => lines.join("\n").trim().to_owned(),
        false => said.trim().to_owned(),
    }
}

/// Returns whether a sentence says nothing but that something is approved or done.
pub(super) fn is_closing(sentence: &str) -> bool {
    if sentence.trim_end().ends_with('?') {
        return false;
    }
    let words = sentence
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_uppercase);
    let words: Vec<String> = words.collect();
    let has_end = words
        .iter()
        .any(|word| ["APPROVED", "DONE"].contains(&word.as_str()));
    let fillers = [
        "THE", "SOLUTION", "IS", "APPROVED", "DONE", "AGENT", "ANSWER", "AND", "OR",
    ];
    has_end && words.iter().all(|word| fillers.contains(&word.as_str()))
}

/// Returns whether a turn ends in a question: its last line of prose has a question mark. A list of choices may follow.
pub(super) fn ends_in_question(said: &str) -> bool {
    let is_item = |line: &&str| {
        let line = line.trim_start();
        line.starts_with(['-', '*', '•']) && !line.starts_with("**")
            || line.starts_with(|c: char| c.is_ascii_digit())
    };
    let mut lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.clone().find(|line| !is_item(line));
    let last = last.or_else(|| lines.next()).unwrap_or_default();
    last.contains(['?', '？', '؟'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parroted_approval_is_removed_and_the_rest_stays() {
        for closing in [
            "Solution APPROVED.",
            "SOLUTION APPROVED",
            "**Solution approved!**",
            "DONE",
            "Agent: Solution APPROVED.",
            "The solution is approved. Done.",
            "SOLUTION APPROVED or DONE",
        ] {
            assert_eq!(without_closing_words(closing), "", "{closing}");
        }
        assert_eq!(
            without_closing_words("One queue is enough.\nSolution APPROVED."),
            "One queue is enough."
        );
        for whole in [
            "I propose one queue. Approved?",
            "What must be done?",
            "The vendor was approved by Mara in May.",
            "- a\n  - b  \nWhich?",
        ] {
            assert_eq!(without_closing_words(whole), whole, "{whole}");
        }
    }

    #[test]
    fn a_turn_ends_in_a_question_or_in_its_choices() {
        for yes in [
            "Kafka needs people. Who runs it?",
            "Which one?\n- Kafka\n- SQS\n",
            "**Who runs it?**",
            "誰が運用しますか？",
        ] {
            assert!(ends_in_question(yes), "{yes}");
        }
        for no in [
            "",
            "I see nothing that needs Kafka.",
            "Why? Because.\n\nSo be it.",
        ] {
            assert!(!ends_in_question(no), "{no}");
        }
    }

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
