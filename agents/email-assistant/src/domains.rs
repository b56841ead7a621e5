//! Domains of email addresses, and domains that look like others.

/// Returns the domain of an address, without a trailing dot.
pub(super) fn domain_of(address: &str) -> &str {
    let domain = address.rsplit_once('@').map_or("", |(_, domain)| domain);
    domain.trim_end_matches(['.', '>', ')', ','])
}

/// Returns the part of a domain that its owner registered: the last two labels, or three below a suffix such as `co.uk`.
pub(super) fn registrable(domain: &str) -> &str {
    let labels: Vec<&str> = domain.rsplit('.').take(3).collect();
    let wanted = match labels.as_slice() {
        [top, second, ..] if top.len() == 2 && SECOND_LEVEL.contains(second) => 3,
        _ => 2,
    };
    let length: usize = labels
        .iter()
        .take(wanted)
        .map(|label| label.len() + 1)
        .sum();
    domain
        .len()
        .checked_sub(length.saturating_sub(1))
        .map_or(domain, |begin| &domain[begin..])
}

/// Returns whether anyone can have an address in this domain.
pub(super) fn is_free_mail(domain: &str) -> bool {
    let label = registrable(domain).split('.').next().unwrap_or_default();
    FREE_MAIL.contains(&label)
}

/// Returns how much a label imitates another one: 3 if they look the same or differ by one letter, 2 if the label contains the
/// other as a part, `None` if it does neither. A label does not imitate itself.
pub(super) fn likeness(label: &str, target: &str) -> Option<u32> {
    if label == target || target.chars().count() < TARGET_CHARS_MIN {
        return None;
    }
    let (shape, wanted) = (shape(label), shape(target));
    if shape == wanted || is_one_edit_away(&shape, &wanted) {
        return Some(3);
    }
    let mut parts = shape.split(['-', '_']);
    parts.any(|part| part == wanted).then_some(2)
}

/// Returns what a label looks like: lower case, with letters and digits that look alike replaced by one of them.
fn shape(label: &str) -> String {
    let label = label.to_lowercase();
    let alike = label.chars().map(|c| match c {
        '0' | 'о' | 'ο' | 'ö' | 'ó' | 'ò' | 'ô' => 'o',
        '1' | 'ӏ' | 'ı' | 'l' | '|' => 'l',
        '3' | 'е' | 'ё' | 'é' | 'è' | 'ê' | 'ë' => 'e',
        '5' | 'ѕ' => 's',
        'а' | 'α' | 'ä' | 'á' | 'à' | 'â' | 'ā' => 'a',
        'р' | 'ρ' => 'p',
        'с' | 'ç' => 'c',
        'х' => 'x',
        'у' | 'γ' => 'y',
        'і' | 'í' | 'ì' | 'î' | 'ï' | '!' => 'i',
        'ј' => 'j',
        'ԁ' => 'd',
        'ɡ' => 'g',
        'ν' => 'v',
        'ü' | 'ú' | 'ù' | 'û' => 'u',
        'ñ' => 'n',
        c => c,
    });
    alike
        .collect::<String>()
        .replace("rn", "m")
        .replace("vv", "w")
}

/// Returns whether two texts differ by one letter that is changed, added, left out, or swapped with the next one.
fn is_one_edit_away(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same_head = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same_head..], &other[same_head..]);
    let same_tail = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    let (one, other) = (
        &one[..one.len() - same_tail],
        &other[..other.len() - same_tail],
    );
    match (one, other) {
        ([a, b], [c, d]) => a == d && b == c,
        (one, other) => one.len() <= 1 && other.len() <= 1 && one.len() + other.len() > 0,
    }
}

/// Labels below which registries of countries sell domains.
const SECOND_LEVEL: [&str; 8] = ["co", "com", "org", "net", "ac", "gov", "gouv", "edu"];

const FREE_MAIL: [&str; 16] = [
    "gmail",
    "googlemail",
    "outlook",
    "hotmail",
    "live",
    "yahoo",
    "icloud",
    "gmx",
    "web",
    "proton",
    "protonmail",
    "aol",
    "mail",
    "orange",
    "free",
    "laposte",
];

/// Shorter names look like too many others.
const TARGET_CHARS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_registered_is_the_end_of_a_domain() {
        for (domain, wanted) in [
            ("mail.parcelo.example", "parcelo.example"),
            ("parcelo.example", "parcelo.example"),
            ("a.b.amazon.co.uk", "amazon.co.uk"),
            ("localhost", "localhost"),
            ("", ""),
        ] {
            assert_eq!(registrable(domain), wanted);
        }
        assert_eq!(domain_of("bob@desk.example"), "desk.example");
        assert!(is_free_mail("gmx.de") && !is_free_mail("parcelo.example"));
    }

    #[test]
    fn one_letter_apart_looks_alike_and_two_do_not() {
        for (label, wanted) in [
            ("parcelo", None),
            ("parcello", Some(3)),
            ("parclo", Some(3)),
            ("paecelo", Some(3)),
            ("pracelo", Some(3)),
            ("parcel0", Some(3)),
            ("parcelo-mail", Some(2)),
            ("parcels-mail", None),
            ("marcelino", None),
        ] {
            assert_eq!(likeness(label, "parcelo"), wanted, "{label}");
        }
        assert_eq!(
            likeness("epay", "ebay"),
            None,
            "short names look like too many"
        );
    }
}
