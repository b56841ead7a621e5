//! Builds the requests of a turn: the notes, the interview so far and the current prompt, cut to fit the model's context.

use std::collections::BTreeMap;

use archie_agent::ModelProfile;
use archie_agent::printable::one_line;
use serde_json::{Value as Json, json};
use superstep::{NodeCx, NodeError};
use superstep_agent::{AgentEvent, failure};
use superstep_llm::{
    Block, FileSource, Finish, Message, Model, Reply, Request, ToolChoice, ToolSpec, fit,
};

use super::interview_end::{user_is_done, without_closing_words};
use super::passages::NotesView;
use super::prompts::Prompts;
use super::repeats::{whole_sentences, without_repeats};
use super::state::{AppState, NoteImage, NotesShown, PromptType, Role, Section, Turn};
use super::terms::beginning;
use super::tools::{messages_of, with_results};

/// What all requests of a turn share.
pub(super) struct Briefing<'a> {
    state: &'a AppState,
    prompts: &'a Prompts,
    said: &'a Turn,
    files: &'a BTreeMap<String, String>,
    notes: NotesView<'a>,
    context_size: Option<u64>,
    profile: ModelProfile,
}

/// A request of a turn, apart from what all of them share.
#[derive(Default)]
pub(super) struct Ask {
    /// The last message.
    pub(super) text: String,
    /// Messages behind it.
    pub(super) more: Vec<Message>,
    /// Tools that the model may request.
    pub(super) offered: Vec<ToolSpec>,
    /// Whether the model must answer without calls.
    pub(super) is_without_calls: bool,
    /// Token limit of the answer.
    pub(super) tokens_max: u32,
}

impl<'a> Briefing<'a> {
    /// `files` are the notes with the memory, see [`with_memory`](super::tools::with_memory).
    pub(super) async fn new(
        (state, files): (&'a AppState, &'a BTreeMap<String, String>),
        prompts: &'a Prompts,
        said: &'a Turn,
        (model, profile): (&dyn Model, ModelProfile),
    ) -> Result<Self, NodeError> {
        let context_size = model.context_size().await.map_err(failure)?;
        let query = state.analysis_history.first().unwrap_or(said);
        let notes = NotesView::new(files, &query.content, context_size);
        Ok(Self {
            state,
            prompts,
            said,
            files,
            notes,
            context_size,
            profile,
        })
    }

    /// Returns what the model sees of the notes, if they do not fit.
    pub(super) fn notes_shown(&self) -> Option<&NotesShown> {
        self.notes.shown.as_ref()
    }

    /// Returns whether the model must answer now: it has requested calls as often as it may in this turn.
    pub(super) fn is_last_round(&self) -> bool {
        let state = self.state;
        let turn = state.analysis_history.len() as u64;
        let rounds = state.tool_turns.iter().filter(|of| **of == turn).count();
        is_open(state) && rounds >= ROUNDS_MAX
    }

    /// Returns whether the whole result may be asked for in one answer. A model that was not measured may be a small or slow one
    /// if its context is small.
    pub(super) fn has_room_for_all(&self) -> bool {
        let has_room = self.context_size.is_none_or(|size| size > SMALL_CONTEXT);
        has_room && self.profile != ModelProfile::Small
    }

    /// Returns the token limit of an answer. A small context means a small model, and those tend to write until they are
    /// stopped.
    pub(super) fn answer_tokens(&self) -> u32 {
        answer_tokens(self.context_size)
    }

    /// Returns the token limit of a turn of the interview.
    pub(super) fn turn_tokens(&self) -> u32 {
        match self.has_room_for_all() {
            true => self.answer_tokens(),
            false => TURN_TOKENS,
        }
    }

    /// Returns the token limit of one section of the result, which its schema rarely reaches.
    pub(super) fn section_tokens(&self) -> u32 {
        let room = self
            .context_size
            .and_then(|size| u32::try_from(size / 4).ok());
        room.map_or(SECTION_TOKENS, |room| room.clamp(384, SECTION_TOKENS))
    }

    /// Returns the prompt of an interview turn, with passages of the notes that match it.
    pub(super) fn turn_text(&self, prompt: PromptType) -> String {
        let text = self.prompts.turn(prompt, &self.said.content);
        let topic = format!(
            "{} {}",
            self.said.content, self.state.current_analysis_query
        );
        self.with_passages(text, &topic)
    }

    /// Returns the example of a claim in the prompts: a line of the notes, because a small model repeats its examples, and then
    /// it repeats something true.
    pub(super) fn example(&self) -> Json {
        let lines = self.files.iter().flat_map(|(file, text)| {
            let numbered = (1..).zip(text.lines());
            numbered.map(move |(at, line)| (file, at, line.trim()))
        });
        let mut sentences = lines.filter(|(_, _, line)| is_sentence(line));
        match sentences.next() {
            Some((file, at, line)) => {
                let quote = beginning(line, EXAMPLE_CHARS);
                json!({ "claim": quote, "file": file, "line": at, "quote": quote })
            }
            None => json!({ "claim": "", "file": "", "line": 0, "quote": "" }),
        }
    }

    /// Returns the names that a claim can cite.
    pub(super) fn source_names(&self) -> Vec<String> {
        with_results(self.files, self.state).into_keys().collect()
    }

    /// Returns the prompt of one section of the result, with passages of the notes that match what the person said.
    pub(super) fn section_text(&self, section: Section, wrong: Option<&str>) -> String {
        let example = self.example().to_string();
        let mut text = self.prompts.heading(section, SECTION_CLAIMS, &example);
        if let Some(wrong) = wrong {
            text.push_str(&format!(
                "\n\nYour last answer could not be used: {wrong}. Answer again with only the JSON object."
            ));
        }
        let mut topic = self.state.current_analysis_query.clone();
        for turn in &self.state.analysis_history {
            if turn.role == Role::User {
                topic.push(' ');
                topic.push_str(&turn.content);
            }
        }
        self.with_passages(text, &topic)
    }

    /// Returns what a reply says: without words that end an interview, without what the agent said in an earlier turn, and
    /// without a sentence that was cut off.
    pub(super) fn spoken(&self, reply: &Reply) -> String {
        let mut text = without_closing_words(&reply.text());
        if reply.finish == Finish::Length {
            text = whole_sentences(&text).to_owned();
        }
        let turns = self.state.analysis_history.iter();
        let earlier = turns.filter(|turn| turn.role == Role::Agent);
        without_repeats(&text, earlier.map(|turn| turn.content.as_str()))
    }

    fn with_passages(&self, text: String, topic: &str) -> String {
        let passages = self.notes.for_turn(topic);
        match passages.is_empty() {
            true => text,
            false => format!("{}\n\n{text}", self.prompts.passages(&passages)),
        }
    }

    /// Returns a request, cut to fit. Tells the person what was cut.
    pub(super) fn request(
        &self,
        prompt: PromptType,
        ask: Ask,
        cx: &NodeCx,
    ) -> Result<Request, NodeError> {
        let state = self.state;
        let has_tools = !ask.offered.is_empty() || !state.tool_messages.is_empty();
        let system = self.prompts.system(&self.notes.text, has_tools);
        let mut messages = vec![Message::system(system)];
        let history = &state.analysis_history;
        let is_open = is_open(state);
        let turns_before = history.len() - usize::from(is_open);
        for (at, turn) in history[..turns_before].iter().enumerate() {
            messages.push(shown(turn));
            messages.extend(messages_of(state, at + 1));
        }
        messages.push(Message::user(ask.text));
        if is_open {
            messages.extend(messages_of(state, history.len()));
        }
        messages.extend(ask.more);
        attach_images(&mut messages, &state.inputs.images);
        let mut request = Request::new(prompt.word(), messages);
        request.tokens_max = Some(ask.tokens_max);
        request.tools = ask.offered;
        if ask.is_without_calls && !request.tools.is_empty() {
            request.tool_choice = ToolChoice::None;
        }
        if let Some(size) = self.context_size {
            let cuts = fit::fit(&mut request, size);
            if !cuts.is_empty() {
                let cuts: Vec<_> = cuts.iter().map(ToString::to_string).collect();
                let told = format!("cut to fit the model: {}", cuts.join(", "));
                cx.emit_live(AgentEvent::progress(told))?;
            }
        }
        Ok(request)
    }
}

/// Adds the images among the notes to the first message of the person: not every server takes them in a system message.
fn attach_images(messages: &mut [Message], images: &BTreeMap<String, NoteImage>) {
    let first = messages.iter_mut().find_map(|message| match message {
        Message::User { content } => Some(content),
        _ => None,
    });
    let Some(content) = first else {
        return;
    };
    for (name, image) in images {
        content.blocks.push(Block::Text {
            text: format!("=== {name} (an image)"),
        });
        content.blocks.push(Block::File {
            mime_type: image.mime_type.clone(),
            source: FileSource::Base64(image.base64.clone()),
        });
    }
}

/// Returns a turn as the model reads it, without words that end an interview: it would repeat them.
fn shown(turn: &Turn) -> Message {
    match turn.role {
        Role::User if user_is_done(&turn.content) => Message::user(AGREED),
        Role::User => Message::user(&turn.content),
        Role::Agent => {
            let said = without_closing_words(&turn.content);
            match said.is_empty() {
                true => Message::assistant(NO_QUESTION),
                false => Message::assistant(said),
            }
        }
    }
}

/// Returns the notice about notes that do not fit the model's context.
pub(super) fn notice(shown: &NotesShown) -> String {
    let named = shown.partly.iter().take(NAMES_SHOWN);
    let mut names: Vec<String> = named
        .map(|note| {
            format!(
                "{} ({} of {} lines)",
                one_line(&note.name),
                note.shown,
                note.lines
            )
        })
        .collect();
    if let Some(more @ 1..) = shown.partly.len().checked_sub(NAMES_SHOWN) {
        names.push(format!("and {more} more"));
    }
    format!(
        "the notes do not fit the model's context of {} tokens; it sees parts of {}, and for each question the passages that match it best",
        shown.context_size,
        names.join(", ")
    )
}

/// Returns whether the person's turn is in the history already, because the model requested calls before it answered.
pub(super) fn is_open(state: &AppState) -> bool {
    state.tool_turns.last() == Some(&(state.analysis_history.len() as u64))
}

/// Returns whether a line of a note is a sentence that can be an example of a claim.
fn is_sentence(line: &str) -> bool {
    let has_words = line.split_whitespace().nth(EXAMPLE_WORDS_MIN - 1).is_some();
    has_words && line.starts_with(char::is_alphabetic)
}

fn answer_tokens(context_size: Option<u64>) -> u32 {
    let room = context_size.and_then(|size| u32::try_from(size / 16).ok());
    room.map_or(ANSWER_TOKENS, |room| room.clamp(512, ANSWER_TOKENS))
}

const ANSWER_TOKENS: u32 = 4_000;
const SECTION_TOKENS: u32 = 1_024;
/// Token limit of an interview turn of a model with a small context: 120 words, and some more.
const TURN_TOKENS: u32 = 320;
const EXAMPLE_WORDS_MIN: usize = 4;
const EXAMPLE_CHARS: usize = 100;
/// Number of claims that a section is asked for at most.
pub(super) const SECTION_CLAIMS: usize = 6;
/// Up to this context, the result is asked for section by section from the beginning.
const SMALL_CONTEXT: u64 = 32_768;
/// Stands for the person's approval in what the model reads.
const AGREED: &str = "I agree with this.";
/// Stands for a turn in which the model only repeated words that end an interview.
const NO_QUESTION: &str = "I have no further question about this.";
const NAMES_SHOWN: usize = 20;
/// How often the model may request calls before it answers.
const ROUNDS_MAX: usize = 8;

#[test]
fn images_go_with_the_first_message_of_the_person() {
    let mut messages = [
        Message::system("Notes."),
        Message::user("One"),
        Message::user("Two"),
    ];
    let image = NoteImage {
        mime_type: "image/png".to_owned(),
        base64: "iVBO".to_owned(),
    };
    attach_images(
        &mut messages,
        &BTreeMap::from([("plan.png".to_owned(), image)]),
    );
    assert_eq!(messages[1].text(), "One\n=== plan.png (an image)");
    let file = Block::File {
        mime_type: "image/png".to_owned(),
        source: FileSource::Base64("iVBO".to_owned()),
    };
    assert_eq!(messages[1].content().blocks.last(), Some(&file));
    assert_eq!(messages[2], Message::user("Two"));
}

#[test]
fn every_answer_has_a_limit_that_follows_from_the_context() {
    let limits = [None, Some(2_048), Some(16_384), Some(1 << 20)].map(answer_tokens);
    assert_eq!(limits, [4_000, 512, 1_024, 4_000]);
}
