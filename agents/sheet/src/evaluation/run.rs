//! Runs the agent on the tasks, or asks a model with a plain prompt, and scores both the same way.

use archie_agent::{Agent, AgentDeps, private_file, state_of};
use serde::Serialize;
use serde_json::json;
use superstep::checkpoint::Metadata;
use superstep::{AnyThread, Memory, Outcome, Runtime};
use superstep_llm::{Message, Model, Request};

use super::Task;
use crate::changes::Verdict;
use crate::sandbox::{Kind, Limits};
use crate::service::{self, AnalysisRequest};
use crate::snapshots::SnapshotStore;
use crate::state::{Actions, GraphState, Stopped};
use crate::{CHANGE_SET_NODE, output};

/// What a run came to, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScoredTask {
    /// Name of the task.
    pub id: &'static str,
    /// Whether the task is a question. The others change the workbook.
    pub is_question: bool,
    /// Whether the run came to the expected result.
    pub is_right: bool,
    /// What is wrong; empty if nothing is.
    pub why: String,
    /// The answer; empty if there is none.
    pub answer: String,
    /// Whether the run ended with an answer, a change or a picture: it did not fail, and did not reach the step limit.
    pub has_result: bool,
    /// Whether the run altered the input: the file, or the copy that the agent keeps of it. Must not happen.
    pub is_input_changed: bool,
}

/// Result of an evaluation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Evaluation {
    /// The tasks, in their order.
    pub tasks: Vec<ScoredTask>,
}

impl Evaluation {
    /// Returns the tasks that went wrong.
    pub fn wrong(&self) -> impl Iterator<Item = &ScoredTask> {
        self.tasks.iter().filter(|task| !task.is_right)
    }

    /// Returns the number of runs that altered their input.
    pub fn inputs_changed(&self) -> usize {
        let changed = self.tasks.iter().filter(|task| task.is_input_changed);
        changed.count()
    }
}

/// Runs the agent on the tasks, with the defaults of `archie sheet`, and scores what it comes to. Accepts every change set.
/// Tells `progress` how many tasks are done.
///
/// Stores workbooks in `deps.data_folder`; use a temporary one. The sandbox must be ready: see
/// [`make_ready`](crate::make_ready).
pub async fn evaluate(
    deps: &AgentDeps,
    model: &str,
    tasks: &[Task],
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let agent = crate::agent(deps)?;
    let host = EvaluationHost {
        agent: &agent,
        runtime: Runtime::new(Memory::default()),
        snapshots: SnapshotStore::under(&deps.data_folder),
        deps,
        model,
    };
    agent.register(&host.runtime);
    let mut evaluation = Evaluation::default();
    for task in tasks {
        evaluation.tasks.push(host.run(task).await?);
        progress(evaluation.tasks.len());
    }
    Ok(evaluation)
}

/// Asks the model the questions with one plain prompt each, which holds the sheets as CSV, and scores the text of the replies.
/// Tells `progress` how many tasks are done.
///
/// A chat window only writes text, so the tasks that change the workbook count as wrong, and the model is not asked. Compare the
/// questions: there both sides can be right.
pub async fn evaluate_plain(
    model: &dyn Model,
    tasks: &[Task],
    mut progress: impl FnMut(usize),
) -> anyhow::Result<Evaluation> {
    let mut evaluation = Evaluation::default();
    for task in tasks {
        let mut scored = ScoredTask {
            id: task.id,
            is_question: task.is_question(),
            is_right: false,
            why: "a plain prompt cannot change a workbook".to_owned(),
            answer: String::new(),
            has_result: false,
            is_input_changed: false,
        };
        if scored.is_question {
            let prompt = Message::user(task.plain_prompt());
            let request = Request::new("plain", vec![prompt]).tokens_max(PLAIN_TOKENS);
            scored.answer = model.reply(&request).await?.text();
            let score = task.score(&scored.answer, None)?;
            (scored.is_right, scored.why) = (score.is_right, score.why);
            scored.has_result = !scored.answer.is_empty();
        }
        evaluation.tasks.push(scored);
        progress(evaluation.tasks.len());
    }
    Ok(evaluation)
}

impl Task {
    /// Returns what a person would type into a chat window: the sheets as CSV, and the instruction.
    pub fn plain_prompt(&self) -> String {
        let mut prompt = "This is a workbook, each sheet as CSV.\n".to_owned();
        for sheet in &self.sheets {
            let csv = sheet.csv();
            prompt.push_str(&format!("\nSheet \"{}\":\n```csv\n{csv}```\n", sheet.name));
        }
        prompt.push_str(&format!(
            "\n{}\nReply only with the answer.",
            self.instruction
        ));
        prompt
    }
}

/// The agent, with threads in memory.
struct EvaluationHost<'a> {
    agent: &'a Agent,
    runtime: Runtime,
    snapshots: SnapshotStore,
    deps: &'a AgentDeps,
    model: &'a str,
}

impl EvaluationHost<'_> {
    async fn run(&self, task: &Task) -> anyhow::Result<ScoredTask> {
        let bytes = task.workbook()?;
        let inputs = self.deps.data_folder.join("inputs");
        let file = inputs.join(format!("{}.xlsx", task.id));
        private_file::write(&file, &bytes)?;
        let metadata = Metadata::default();
        let thread = self.agent.thread(&self.runtime, task.id, metadata)?;
        let opened = service::open(&file, &self.snapshots, thread.id())?;
        let order = self.order(task);
        let stopped = service::run_analysis(&*thread, &order, &opened).await?;
        let outcome = accept_changes(&*thread, stopped.outcome).await?;
        let state: GraphState = state_of(&*thread).await?;
        let (is_right, why) = match failure(&outcome) {
            Some(failure) => (false, failure),
            None => self.score(task, &*thread, &state),
        };
        let kept = self.snapshots.book(thread.id(), &opened.handle.hash);
        let is_kept = kept.is_ok_and(|kept| kept == bytes);
        let has_ended = outcome == Outcome::Finished
            && !matches!(state.stopped, Some(Stopped::StepLimit | Stopped::Budget));
        Ok(ScoredTask {
            id: task.id,
            is_question: task.is_question(),
            is_right,
            why,
            has_result: has_ended && output::has_result(&self.snapshots, thread.id(), &state)?,
            is_input_changed: !is_kept || private_file::read(&file)? != bytes,
            answer: state.answer,
        })
    }

    /// Returns the request that `archie sheet` makes without options.
    fn order(&self, task: &Task) -> AnalysisRequest {
        AnalysisRequest {
            instruction: task.instruction.to_owned(),
            context: String::new(),
            // Not written: the result is scored in memory.
            output_dir: "out".to_owned(),
            model: self.model.to_owned(),
            actions: Actions::default(),
            informer: None,
            max_steps: STEPS_MAX,
            sandbox: Kind::Bubblewrap,
            limits: Limits::default(),
            recipe: None,
        }
    }

    /// Returns whether the run is right, and what is wrong. A result that cannot be read is wrong, and the other tasks go on.
    fn score(&self, task: &Task, thread: &dyn AnyThread, state: &GraphState) -> (bool, String) {
        let result = match output::result(&self.snapshots, thread.id(), state) {
            Ok(result) => result,
            Err(error) => return (false, error.to_string()),
        };
        match task.score(&state.answer, Some(&result)) {
            Ok(score) => (score.is_right, score.why),
            Err(error) => (false, error.to_string()),
        }
    }
}

/// Accepts the change set if the run waits for a verdict, and returns how the run ended. Leaves every other question open: a
/// person would have to decide.
async fn accept_changes(thread: &dyn AnyThread, mut outcome: Outcome) -> anyhow::Result<Outcome> {
    while matches!(outcome, Outcome::Paused(_)) {
        let open = thread.interrupts().await?;
        let of_changes = open
            .into_iter()
            .filter(|open| open.interrupt.node == CHANGE_SET_NODE);
        let verdict = json!(Verdict::accept());
        let answers: Vec<_> = of_changes
            .map(|open| (open.interrupt.id, verdict.clone()))
            .collect();
        if answers.is_empty() {
            break;
        }
        let Some(stopped) = thread.answer_as("evaluation", answers).await? else {
            break;
        };
        outcome = stopped.outcome;
    }
    Ok(outcome)
}

/// Returns why a run did not come to its end; `None` if it did.
fn failure(outcome: &Outcome) -> Option<String> {
    Some(match outcome {
        Outcome::Finished => return None,
        Outcome::Failed(failures) => match failures.first() {
            Some(failure) => format!("the run failed: {}", failure.message),
            None => "the run failed".to_owned(),
        },
        Outcome::Paused(_) => "the run waits for a person".to_owned(),
        _ => "the run did not end".to_owned(),
    })
}

/// Default of `archie sheet`.
const STEPS_MAX: u32 = 10;
/// Ample for an answer, and ends the reply of a model that would not stop.
const PLAIN_TOKENS: u32 = 1_000;
