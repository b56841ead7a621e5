//! Signs of fraud in an email, from its headers and a few words. No model takes part.
//!
//! Each sign has a weight. One alone is common in honest mail: a form's `Reply-To` differs, an invoice is urgent. From
//! [`THRESHOLD`] on, the assistant drafts no reply and shows the email with the reasons.

use super::domains::{domain_of, is_free_mail, likeness, registrable};
use super::email::{Email, address};

/// Signs of fraud in one email.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suspicion {
    /// Sum of the weights.
    pub score: u32,
    /// The signs, in words for a person.
    pub reasons: Vec<String>,
}

impl Suspicion {
    /// Returns whether the email is too suspicious for a draft.
    pub fn is_suspicious(&self) -> bool {
        self.score >= THRESHOLD
    }

    fn add(&mut self, weight: u32, reason: impl Into<String>) {
        self.score += weight;
        self.reasons.push(reason.into());
    }
}

/// Score from which an email is suspicious.
pub const THRESHOLD: u32 = 3;

/// Looks for signs of fraud in an email.
pub fn suspicion(email: &Email) -> Suspicion {
    let mut found = Suspicion::default();
    sender(email, &mut found);
    reply_to(email, &mut found);
    authentication(email, &mut found);
    words(email, &mut found);
    links(email, &mut found);
    attachments(email, &mut found);
    found
}

fn sender(email: &Email, found: &mut Suspicion) {
    let from = address(&email.from);
    let own = address(&email.account);
    let (domain, own) = (domain_of(&from), domain_of(&own));
    // Without brackets, the header is the address alone and has no name.
    let name = email.from.rsplit_once('<').map_or("", |(name, _)| name);
    let name = name.to_lowercase();
    let claimed: Vec<&str> = name
        .split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '(' | ')' | ','))
        .filter(|word| email.from.contains('<') && word.contains('@'))
        .collect();
    if let Some(claimed) = claimed
        .iter()
        .find(|claimed| registrable(domain_of(claimed)) != registrable(domain))
    {
        found.add(
            3,
            format!(
                "the sender's name is {}, and the address is {}",
                quoted(claimed),
                quoted(&from)
            ),
        );
    }
    let is_outside = registrable(domain) != registrable(own);
    let brand = BRANDS.iter().find(|(brand, owners)| {
        let label = registrable(domain).split('.').next().unwrap_or_default();
        has_word(&name, brand) && label != *brand && !owners.contains(&label)
    });
    if let Some((brand, _)) = brand {
        found.add(
            2,
            format!(
                "the sender calls itself `{brand}` and writes from {}",
                quoted(domain)
            ),
        );
    }
    if is_outside && AUTHORITIES.iter().any(|title| has_word(&name, title)) {
        found.add(
            1,
            format!(
                "the sender claims a position and writes from {}",
                quoted(domain)
            ),
        );
    }
    imitation(domain, own, "the sender's domain", SENDER_WEIGHT_MAX, found);
}

/// Adds a sign of at most this weight if a domain imitates the account's own or a well-known one.
fn imitation(domain: &str, own: &str, what: &str, most: u32, found: &mut Suspicion) {
    let known = BRANDS.iter().map(|(brand, _)| *brand);
    let own = registrable(own);
    let is_owned = |label: &str| {
        BRANDS
            .iter()
            .any(|(brand, owners)| *brand == label || owners.contains(&label))
    };
    let label = registrable(domain).split('.').next().unwrap_or_default();
    // The domain of a free mail provider is not the account's own, and honest providers have similar names.
    let own_label = own.split('.').next().filter(|_| !is_free_mail(own));
    if registrable(domain) == own || is_owned(label) {
        return;
    }
    let targets = own_label.into_iter().chain(known);
    let alike = targets.filter_map(|target| Some((likeness(label, target)?, target)));
    if let Some((weight, target)) = alike.max() {
        found.add(
            weight.min(most),
            format!("{what} {} looks like {}", quoted(domain), quoted(target)),
        );
    } else if domain.split('.').any(|label| label.starts_with("xn--")) {
        found.add(
            1,
            format!("{what} {} has letters of another alphabet", quoted(domain)),
        );
    }
}

fn reply_to(email: &Email, found: &mut Suspicion) {
    let (from, reply) = (address(&email.from), address(&email.reply_to));
    let (from, to) = (domain_of(&from), domain_of(&reply));
    if reply.is_empty() || registrable(from) == registrable(to) {
        return;
    }
    let weight = if is_free_mail(to) && !is_free_mail(from) {
        3
    } else {
        2
    };
    found.add(
        weight,
        format!(
            "answers go to {}, not to the sender's domain",
            quoted(&reply)
        ),
    );
}

/// Counts failed checks of the sender. A sender may forge these headers, so that a passed check proves nothing; a failed one
/// that is forged only hurts its author.
fn authentication(email: &Email, found: &mut Suspicion) {
    let header = |name: &str| email.headers.get(name).map(|value| value.to_lowercase());
    let results = header("authentication-results").unwrap_or_default();
    let spf = header("received-spf").unwrap_or_default();
    let has_failed = |check: &str| results.contains(&format!("{check}=fail"));
    // A mailing list changes the mails that it passes on, which breaks their signatures. Anyone can claim to be one, so a
    // failed DMARC check, which the owner of the sender's domain asked for, keeps its weight.
    let is_list = email.headers.contains_key("list-id");
    let (weight, check) = match () {
        () if has_failed("dmarc") => (3, "DMARC"),
        () if has_failed("spf") || spf.starts_with("fail") => (2, "SPF"),
        () if has_failed("dkim") => (2, "DKIM"),
        () if results.contains("spf=softfail") || spf.starts_with("softfail") => (1, "SPF"),
        () => return,
    };
    let weight = if is_list && check != "DMARC" {
        1
    } else {
        weight
    };
    found.add(weight, format!("the check of the sender failed ({check})"));
}

fn words(email: &Email, found: &mut Suspicion) {
    let body = email.body.chars().take(BODY_CHARS);
    let text: String = email
        .subject
        .chars()
        .chain(" ".chars())
        .chain(body)
        .collect();
    let text = text.to_lowercase().replace('’', "'");
    let first = |words: &'static [&'static str]| words.iter().find(|word| text.contains(**word));
    let urgent = first(URGENCY);
    if let Some(word) = urgent {
        found.add(1, format!("it presses for time (`{word}`)"));
    }
    match (first(LURES), first(PAYMENTS)) {
        (Some(word), _) => found.add(2, format!("it asks for what fraud asks for (`{word}`)")),
        (None, Some(word)) if urgent.is_some() => {
            found.add(1, format!("it presses for a payment (`{word}`)"));
        }
        _ => {}
    }
    if let Some(word) = first(SECRECY) {
        found.add(1, format!("it asks for secrecy (`{word}`)"));
    }
}

fn links(email: &Email, found: &mut Suspicion) {
    let own = address(&email.account);
    let own = domain_of(&own);
    let mut hosts: Vec<String> = Vec::new();
    for (at, scheme) in email.body.match_indices("://").take(LINKS_MAX) {
        let rest = &email.body[at + scheme.len()..];
        let end = rest.find(|c: char| {
            c.is_whitespace() || matches!(c, '/' | '?' | '#' | ')' | '>' | '"' | ']')
        });
        let host = rest[..end.unwrap_or(rest.len())].to_lowercase();
        // What stands before `@` is a user's name, not the host.
        let host = host.rsplit('@').next().unwrap_or_default();
        let host = host
            .split(':')
            .next()
            .unwrap_or_default()
            .trim_end_matches(['.', ',']);
        if !host.is_empty() && !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }
    for host in &hosts {
        if host.parse::<std::net::Ipv4Addr>().is_ok() {
            found.add(
                LINK_WEIGHT_MAX,
                format!("a link goes to a bare address ({})", quoted(host)),
            );
            return;
        }
        let before = found.score;
        imitation(host, own, "a link's domain", LINK_WEIGHT_MAX, found);
        if found.score > before {
            return;
        }
    }
}

fn attachments(email: &Email, found: &mut Suspicion) {
    let runs = |name: &&String| {
        let extension = name
            .rsplit_once('.')
            .map(|(_, extension)| extension.to_lowercase());
        extension.is_some_and(|extension| PROGRAMS.contains(&extension.as_str()))
    };
    if let Some(name) = email.attachments.iter().find(runs) {
        found.add(
            2,
            format!("the attachment {} is a program or a page", quoted(name)),
        );
    }
}

/// Quotes words of a stranger for a person: on one line, short, and without a character that ends the quotation.
fn quoted(text: &str) -> String {
    let plain = text.trim().chars().filter(|c| !c.is_control() && *c != '`');
    format!("`{}`", plain.take(QUOTED_CHARS).collect::<String>())
}

/// Returns whether a text has a word or a phrase, not as part of another word.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// Names that fraud likes to use, with the first labels of further domains that belong to them.
const BRANDS: [(&str, &[&str]); 20] = [
    ("paypal", &[]),
    ("amazon", &["amazonaws", "amazonses"]),
    (
        "microsoft",
        &[
            "office",
            "office365",
            "outlook",
            "live",
            "microsoftonline",
            "sharepointonline",
        ],
    ),
    ("apple", &["icloud"]),
    ("google", &["gmail", "googlemail", "youtube"]),
    ("netflix", &[]),
    ("dhl", &["dpdhl"]),
    ("fedex", &[]),
    ("dropbox", &["dropboxmail"]),
    ("docusign", &[]),
    ("linkedin", &[]),
    ("facebook", &["facebookmail", "meta"]),
    ("instagram", &[]),
    ("ebay", &[]),
    ("sparkasse", &[]),
    ("commerzbank", &[]),
    ("postbank", &[]),
    ("chronopost", &[]),
    ("laposte", &[]),
    ("boursorama", &["boursobank"]),
];

const AUTHORITIES: [&str; 16] = [
    "ceo",
    "cfo",
    "chief executive",
    "managing director",
    "it support",
    "it-support",
    "helpdesk",
    "help desk",
    "payroll",
    "hr department",
    "geschäftsführer",
    "geschäftsführung",
    "vorstand",
    "pdg",
    "directeur général",
    "service informatique",
];

/// Words that press for time, in English, German and French.
const URGENCY: &[&str] = &[
    "urgent",
    "immediately",
    "asap",
    "right away",
    "within 24 hours",
    "within 48 hours",
    "final notice",
    "last warning",
    "act now",
    "before midnight",
    "dringend",
    "sofort",
    "unverzüglich",
    "umgehend",
    "letzte warnung",
    "letzte mahnung",
    "innerhalb von 24",
    "innerhalb von 48",
    "immédiatement",
    "dans les 24",
    "sous 24",
    "dans les 48",
    "sous 48",
    "sans délai",
    "au plus vite",
    "dernier avertissement",
];

const LURES: &[&str] = &[
    "gift card",
    "gift-card",
    "itunes card",
    "steam card",
    "bitcoin",
    "verify your account",
    "verify your identity",
    "verify your password",
    "confirm your account",
    "confirm your password",
    "confirm your identity",
    "account will be suspended",
    "account has been suspended",
    "account has been limited",
    "account is locked",
    "mailbox is full",
    "our bank details have changed",
    "new bank details",
    "you have won",
    "inheritance",
    "geschenkkarte",
    "gutscheinkarte",
    "guthabenkarte",
    "konto wurde gesperrt",
    "konto wird gesperrt",
    "konto gesperrt",
    "konto wurde eingeschränkt",
    "bestätigen sie ihr konto",
    "bestätigen sie ihre identität",
    "bestätigen sie ihre daten",
    "passwort bestätigen",
    "neue bankverbindung",
    "sie haben gewonnen",
    "carte cadeau",
    "cartes cadeau",
    "carte-cadeau",
    "compte a été suspendu",
    "compte sera suspendu",
    "compte suspendu",
    "compte sera bloqué",
    "confirmez votre identité",
    "confirmez votre mot de passe",
    "vérifiez votre compte",
    "vérifier votre compte",
    "nouveau rib",
    "nouvelles coordonnées bancaires",
    "vous avez gagné",
];

const PAYMENTS: &[&str] = &[
    "wire transfer",
    "transfer the",
    "payment",
    "invoice",
    "überweis",
    "zahlung",
    "rechnung",
    "virement",
    "paiement",
    "facture",
];

const SECRECY: &[&str] = &[
    "between us",
    "tell nobody",
    "don't tell",
    "do not tell",
    "do not call",
    "don't call",
    "unter uns",
    "sag niemandem",
    "nicht anrufen",
    "entre nous",
    "n'en parlez à personne",
    "ne m'appelez pas",
];

const PROGRAMS: [&str; 16] = [
    "exe", "scr", "js", "vbs", "bat", "cmd", "iso", "img", "lnk", "hta", "html", "htm", "jar",
    "ps1", "msi", "com",
];

/// An imitation in the sender's address is enough to be suspicious.
const SENDER_WEIGHT_MAX: u32 = THRESHOLD;
/// A link alone is not: honest mail links to all kinds of domains.
const LINK_WEIGHT_MAX: u32 = 2;
/// How much of the body is searched for words, in characters.
const BODY_CHARS: usize = 4_000;
const LINKS_MAX: usize = 200;
const QUOTED_CHARS: usize = 80;

#[cfg(test)]
mod tests;
