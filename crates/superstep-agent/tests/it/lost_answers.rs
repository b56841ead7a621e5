//! The receiver does it and its answer is lost, or it never arrives: one effect or a question, never two.

use std::sync::Arc;

use superstep::Memory;
use superstep_conformance::Prng;

use crate::mortal::Fate;
use crate::world::{Line, Loss, Mutant, World, finish, process};

const TRIALS: u64 = 300;

/// One trial: a tool, and what is lost of its first deliveries. Gives the effects and the questions.
async fn trial(seed: u64, mutant: Option<Mutant>) -> (&'static str, usize, u32) {
    let world = World {
        store: Arc::new(Memory::default()),
        receiver: Arc::default(),
        asked: Arc::default(),
        mutant,
    };
    let mut entropy = Prng::new(seed);
    let tool = ["pay", "post", "send"][(seed % 3) as usize];
    let lost: Vec<_> = (0..entropy.below(5))
        .map(|_| match entropy.below(2) {
            0 => Loss::Request,
            _ => Loss::Answer,
        })
        .collect();
    let fate = Fate::never();
    let mut line = Line::new(&world, &fate);
    line.losses = Arc::new(move |sent| {
        let loss = lost.get(usize::try_from(sent).unwrap());
        loss.copied().unwrap_or(Loss::Nothing)
    });
    let thread = process(&world, &fate, &line, &[tool]);
    let (_, asked) = finish(&world, &thread).await;
    (tool, world.receiver.count(tool), asked)
}

#[tokio::test]
async fn there_is_one_effect_and_where_nobody_knows_a_question() {
    let mut questions = 0;
    for seed in 0..TRIALS {
        let (tool, effects, asked) = trial(seed, None).await;
        assert_eq!(effects, 1, "seed {seed}: `{tool}`");
        questions += asked;
    }
    eprintln!("{TRIALS} trials, {questions} questions");
    assert!(questions > 0);
}

#[tokio::test]
async fn the_trials_have_teeth() {
    for mutant in [Mutant::RandomKey, Mutant::BlindLookup] {
        let mut doubled = 0;
        for seed in 0..60 {
            let (_, effects, _) = trial(seed, Some(mutant)).await;
            doubled += u32::from(effects > 1);
        }
        assert!(doubled > 0, "{mutant:?} was not noticed");
    }
}

#[tokio::test]
async fn what_was_refused_for_certain_the_model_is_told_and_nobody_is_asked() {
    for tool in ["put", "pay", "post", "send"] {
        let world = World {
            store: Arc::new(Memory::default()),
            receiver: Arc::default(),
            asked: Arc::default(),
            mutant: None,
        };
        let fate = Fate::never();
        let mut line = Line::new(&world, &fate);
        line.losses = Arc::new(|_| Loss::Refused);
        let thread = process(&world, &fate, &line, &[tool]);
        let (state, asked) = finish(&world, &thread).await;
        assert_eq!(state.answer(), "done: the receiver said no");
        assert_eq!((world.receiver.count(tool), asked), (0, 0));
    }
}
