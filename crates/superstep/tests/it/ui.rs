//! The mistakes that are made most, and what the compiler says to them.

#[test]
fn likely_mistakes_are_told_in_words_of_our_domain() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
