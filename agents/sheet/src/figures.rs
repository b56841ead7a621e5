//! Reads figures out of text.

/// Returns all numbers in a text, read both the English and the German way where they differ.
pub(crate) fn figures_in(text: &str) -> Vec<f64> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '-');
    let pieces = text.split(|c| !is_part(c));
    pieces
        .flat_map(readings)
        .map(|figure| figure.value)
        .collect()
}

/// Returns the first figure of an answer that none of these texts states, as the answer writes it. A rounded figure and a
/// percentage are stated by what they are made from. Dates, times and names with digits are not figures.
pub(crate) fn unstated<'a, 't>(
    answer: &'a str,
    texts: impl Iterator<Item = &'t str>,
) -> Option<&'a str> {
    let known: Vec<f64> = texts.flat_map(figures_in).collect();
    let is_stated = |figure: &Figure| {
        let scale = 10_f64.powi(figure.decimals);
        let rounded = |value: f64| (value * scale).round() / scale;
        known.iter().any(|known| {
            [*known, known.abs(), known * 100.0]
                .iter()
                .any(|known| (rounded(*known) - figure.value).abs() < 1e-9)
        })
    };
    let tokens = answer.split_whitespace().map(|token| {
        token.trim_matches(|c: char| !c.is_ascii_digit() && !c.is_alphabetic() && c != '-')
    });
    let is_figure = |token: &&str| {
        token.contains(|c: char| c.is_ascii_digit())
            && !token.contains(char::is_alphabetic)
            && !token.trim_start_matches('-').contains(['-', '/', ':'])
    };
    tokens
        .filter(is_figure)
        .find(|token| !readings(token).iter().any(is_stated))
}

/// A number as it was written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Figure {
    value: f64,
    /// Digits behind the decimal separator.
    decimals: i32,
}

/// Reads a number the English and the German way.
fn readings(piece: &str) -> Vec<Figure> {
    let piece = piece.trim_end_matches(['.', ',', '-']);
    let english = piece.replace(',', "");
    let german = piece.replace('.', "").replace(',', ".");
    let read = |text: String| {
        let decimals = text.split('.').nth(1).map_or(0, str::len);
        Some(Figure {
            value: text.parse().ok()?,
            decimals: i32::try_from(decimals).ok()?,
        })
    };
    [english, german].into_iter().filter_map(read).collect()
}

#[test]
fn a_figure_is_stated_rounded_or_in_another_notation_and_otherwise_is_not() {
    let found = |answer| {
        unstated(
            answer,
            ["| SUM |\n| 22095.010000000002 |", "0.453"].into_iter(),
        )
    };
    for stated in [
        "22,095.01",
        "22.095,01 EUR",
        "About 22,095.",
        "45.3 %",
        "Quarter Q3 of 2026-01-31: 22095.0",
        "Rent",
    ] {
        assert_eq!(found(stated), None, "{stated}");
    }
    assert_eq!(found("20 units"), Some("20"));
    assert_eq!(found("It is 22,095.02."), Some("22,095.02"));
}
