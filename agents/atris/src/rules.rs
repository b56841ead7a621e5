//! Rules for questions to Audius whose intent is clear from their words, without a model.

use super::question::quoted;
use super::stemming::tokens;

/// Intent of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intent {
    /// Kind of the question, such as `trending_tracks`.
    pub(super) query_type: &'static str,
    /// Kind of thing that the question is about, such as `track`.
    pub(super) entity_type: &'static str,
    /// Names of the calls that may answer the question, the most likely first.
    pub(super) categories: Vec<&'static str>,
    /// Name to search for first. Absent if the question needs no search.
    pub(super) entity_name: Option<String>,
    /// Id of the call that returns details of the found thing.
    pub(super) secondary: Option<&'static str>,
}

impl Intent {
    fn new(
        query_type: &'static str,
        entity_type: &'static str,
        categories: &[&'static str],
    ) -> Self {
        Self {
            query_type,
            entity_type,
            categories: categories.to_vec(),
            entity_name: None,
            secondary: None,
        }
    }
}

/// Returns the intent of a question if a rule matches its words.
pub(super) fn known(query: &str) -> Option<Intent> {
    if let Some(intent) = about_somebody(query) {
        return Some(intent);
    }
    let said = tokens(query);
    let has = |words: &[&str]| said.iter().any(|word| words.contains(&word.as_str()));
    let rule = RULES
        .iter()
        .find(|rule| rule.groups.iter().all(|group| has(group)))?;
    Some(Intent::new(
        rule.query_type,
        rule.entity_type,
        rule.categories,
    ))
}

/// Matches questions such as `How many followers does RAC have?`
fn about_somebody(query: &str) -> Option<Intent> {
    let query = query.trim().trim_end_matches(['?', '.', '!']);
    let lower = query.to_ascii_lowercase();
    let (_, after) = lower.split_once("how many ")?;
    let counted = after.split_whitespace().next()?;
    let (kind, search, secondary) = match counted {
        "followers" | "tracks" | "playlists" | "songs" | "people" => {
            ("user", "Search Users", "get_user")
        }
        "plays" | "favorites" | "reposts" | "comments" | "likes" => {
            ("track", "Search Tracks", "get_track")
        }
        _ => return None,
    };
    let name = between(
        query,
        &lower,
        &["does ", "do ", "has ", "did "],
        &[" have", " get", " got", " follow"],
    )?;
    let articles = [
        "the track ",
        "the song ",
        "track ",
        "song ",
        "the artist ",
        "artist ",
        "the user ",
        "user ",
    ];
    let bare = articles.iter().find_map(|article| {
        name.to_ascii_lowercase()
            .starts_with(article)
            .then(|| &name[article.len()..])
    });
    let name = bare
        .unwrap_or(&name)
        .trim()
        .trim_matches(['"', '“', '”', '\''])
        .to_owned();
    Some(Intent {
        entity_name: (!name.is_empty()).then_some(name),
        secondary: Some(secondary),
        ..Intent::new("entity_count", kind, &[search])
    })
}

/// Returns the part between the first of the words `before` and one of the words `behind`, or up to the end.
fn between(query: &str, lower: &str, before: &[&str], behind: &[&str]) -> Option<String> {
    // `lower` has the same length in bytes, because only ASCII letters were lowered.
    let (begin, word) = before
        .iter()
        .filter_map(|word| Some((lower.find(&format!(" {word}"))? + 1, *word)))
        .min()?;
    let begin = begin + word.len();
    let end = behind
        .iter()
        .filter_map(|word| lower[begin..].rfind(word))
        .min();
    Some(query[begin..end.map_or(query.len(), |end| begin + end)].to_owned())
}

/// Returns the text that a person searches for, without the words around it.
pub(super) fn searched(query: &str) -> Option<String> {
    if let Some(text) = quoted(query).into_iter().next() {
        return Some(text);
    }
    let query = query.trim().trim_end_matches(['?', '.', '!']);
    let lower = query.to_ascii_lowercase();
    // Words that introduce a name take precedence over prepositions.
    let markers = [
        [" named ", " called ", " titled ", " about "].as_slice(),
        &[" with ", " for ", " by "],
    ];
    let after = markers.iter().find_map(|markers| {
        let found = markers
            .iter()
            .filter_map(|marker| Some((lower.find(marker)?, *marker)));
        found.min()
    });
    let rest = match after {
        Some((at, marker)) => &query[at + marker.len()..],
        None => {
            let plain = query
                .split_whitespace()
                .skip_while(|word| NOISE.contains(&word.to_ascii_lowercase().as_str()));
            return Some(plain.collect::<Vec<_>>().join(" ")).filter(|rest| !rest.is_empty());
        }
    };
    let words = rest
        .split_whitespace()
        .skip_while(|word| NOISE.contains(&word.to_ascii_lowercase().as_str()));
    Some(words.collect::<Vec<_>>().join(" ")).filter(|rest| !rest.is_empty())
}

struct Rule {
    query_type: &'static str,
    entity_type: &'static str,
    /// At least one word of each group must occur in the question.
    groups: &'static [&'static [&'static str]],
    categories: &'static [&'static str],
}

const fn rule(
    query_type: &'static str,
    entity_type: &'static str,
    groups: &'static [&'static [&'static str]],
    categories: &'static [&'static str],
) -> Rule {
    Rule {
        query_type,
        entity_type,
        groups,
        categories,
    }
}

const TREND: &[&str] = &["trending", "popular", "top", "hot", "hottest", "charts"];
const TRACK: &[&str] = &["track", "tracks", "song", "songs"];
const USER: &[&str] = &[
    "user",
    "users",
    "artist",
    "artists",
    "musician",
    "musicians",
];
const LIST: &[&str] = &["playlist", "playlists", "album", "albums"];
const SEARCH: &[&str] = &["search", "find", "look", "looking"];
const NOISE: &[&str] = &[
    "search",
    "find",
    "look",
    "looking",
    "for",
    "me",
    "a",
    "an",
    "the",
    "any",
    "some",
    "track",
    "tracks",
    "song",
    "songs",
    "user",
    "users",
    "artist",
    "artists",
    "playlist",
    "playlists",
    "album",
    "albums",
    "please",
    "named",
    "called",
    "on",
    "audius",
    "show",
];

/// The first rule that matches wins.
const RULES: &[Rule] = &[
    rule(
        "underground_tracks",
        "track",
        &[&["underground"]],
        &["Get Underground Trending Tracks"],
    ),
    rule(
        "trending_playlists",
        "playlist",
        &[TREND, LIST],
        &["Get Trending Playlists"],
    ),
    rule(
        "unfavorite_track",
        "track",
        &[&["unfavorite", "unlike"]],
        &["Unfavorite Track"],
    ),
    rule(
        "track_favorites",
        "track",
        &[
            &["who", "users", "list"],
            &["favorited", "favorites", "liked"],
            &["track", "song"],
        ],
        &["Get Track Favorites"],
    ),
    rule(
        "track_reposts",
        "track",
        &[
            &["who", "users", "list", "reposts"],
            &["reposted", "reposts"],
            &["track", "song"],
        ],
        &["Get Track Reposts"],
    ),
    rule(
        "favorite_track",
        "track",
        &[&["favorite", "like"], &["track", "song"]],
        &["Favorite Track"],
    ),
    rule(
        "track_comments",
        "comment",
        &[&["comment", "comments"]],
        &["Get Track Comments"],
    ),
    rule(
        "track_remixes",
        "track",
        &[&["remix", "remixes"]],
        &["Get Track Remixes"],
    ),
    rule("tips", "tip", &[&["tip", "tips"]], &["Get Tips"]),
    rule(
        "search_playlists",
        "playlist",
        &[SEARCH, LIST],
        &["Search Playlists"],
    ),
    rule("search_users", "user", &[SEARCH, USER], &["Search Users"]),
    rule(
        "search_tracks",
        "track",
        &[SEARCH, TRACK],
        &["Search Tracks"],
    ),
    rule(
        "playlist_tracks",
        "track",
        &[TRACK, LIST],
        &["Get Playlist Tracks"],
    ),
    rule(
        "user_followers",
        "user",
        &[&["followers"]],
        &["Get User Followers"],
    ),
    rule(
        "user_following",
        "user",
        &[&["following", "follows"]],
        &["Get User Following"],
    ),
    rule(
        "user_supporters",
        "user",
        &[&["supporters"]],
        &["Get User Supporters"],
    ),
    rule(
        "related_users",
        "user",
        &[&["related", "similar"], USER],
        &["Get Related Users"],
    ),
    rule(
        "user_favorites",
        "track",
        &[&["favorites"], USER],
        &["Get User Favorites"],
    ),
    rule(
        "user_reposts",
        "track",
        &[&["reposts"], USER],
        &["Get User Reposts"],
    ),
    rule("user_tracks", "track", &[TRACK, USER], &["Get User Tracks"]),
    rule(
        "trending_tracks",
        "track",
        &[TREND],
        &["Get Trending Tracks", "Get Underground Trending Tracks"],
    ),
    rule(
        "user_by_handle",
        "user",
        &[&["handle"]],
        &["Get User by Handle"],
    ),
    rule(
        "get_playlist",
        "playlist",
        &[&["playlist", "album"]],
        &["Get Playlist"],
    ),
    rule("get_user", "user", &[&["user", "artist"]], &["Get User"]),
    rule("get_track", "track", &[&["track", "song"]], &["Get Track"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_plain_needs_no_model() {
        let wanted = [
            (
                "What are the trending tracks on Audius?",
                "Get Trending Tracks",
            ),
            ("top 5 songs this month", "Get Trending Tracks"),
            (
                "trending underground tracks",
                "Get Underground Trending Tracks",
            ),
            ("which playlists are hot", "Get Trending Playlists"),
            ("Show track", "Get Track"),
            ("search for tracks about summer", "Search Tracks"),
            ("find the artist RAC", "Search Users"),
            ("tracks of user nlGNe", "Get User Tracks"),
            ("who favorited the track D7KyD", "Get Track Favorites"),
            ("favorite track D7KyD", "Favorite Track"),
            ("newest tips", "Get Tips"),
        ];
        for (query, call) in wanted {
            assert_eq!(known(query).unwrap().categories[0], call, "{query}");
        }
        assert_eq!(known("what is the weather"), None);
    }

    #[test]
    fn a_name_is_found_in_a_question_about_somebody() {
        for (query, kind, name) in [
            ("How many followers does RAC have?", "user", "RAC"),
            (
                "how many plays does the track \"Blue Sky\" have",
                "track",
                "Blue Sky",
            ),
            (
                "How many tracks has Zoë Johnston got?",
                "user",
                "Zoë Johnston",
            ),
        ] {
            let intent = known(query).unwrap();
            assert_eq!(
                (intent.entity_type, intent.entity_name.as_deref()),
                (kind, Some(name)),
                "{query}"
            );
        }
    }

    #[test]
    fn what_is_searched_for_is_found_among_the_words_around_it() {
        for (query, wanted) in [
            ("search for tracks about summer rain", "summer rain"),
            ("find the artist RAC", "RAC"),
            ("find songs called \"Blue Sky\"", "Blue Sky"),
            ("search playlists for study beats", "study beats"),
        ] {
            assert_eq!(searched(query).as_deref(), Some(wanted), "{query}");
        }
    }
}
