use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Sum {
    #[state(append)]
    log: Vec<String>,
    #[state(reduce = add)]
    total: i64,
}

fn add(a: i64, b: i64) -> i64 {
    a + b
}

const PART: SendTo<i64> = SendTo::new("part");

async fn split(_: View<Sum>, _: NodeCx) -> Result<Command<Sum>, NodeError> {
    let update = SumUpdate::default().log("split");
    Ok((1..=3).fold(Command::update(update), |command, n| command.send(&PART, n)))
}

async fn part(n: i64, cx: NodeCx) -> Result<SumUpdate, NodeError> {
    let doubled: i64 = cx.step("double", || async { Ok(n * 2) }).await?;
    Ok(SumUpdate::default().total(doubled).log(format!("part {n}")))
}

async fn ask(_: View<Sum>, cx: NodeCx) -> Result<SumUpdate, NodeError> {
    let yes: bool = cx.interrupt(Interrupt::new("sure", "go on?")).await?;
    Ok(SumUpdate::default().log(format!("sure {yes}")))
}

fn graph() -> Graph<Sum> {
    Graph::builder("sum")
        .node("split", split)
        .map_node(&PART, part)
        .node("ask", ask)
        .edge(START, "split")
        .commands("split", &["part"])
        .edge("part", "ask")
        .edge("ask", END)
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_fan_out_pauses_and_goes_on_with_the_answer() {
    let runtime = Runtime::new(Memory::default());
    let thread = runtime.thread(&graph(), "t").unwrap();
    let paused = thread.start(SumUpdate::default()).await.unwrap();
    assert!(
        matches!(&paused.outcome, Outcome::Paused(asked) if asked.len() == 1),
        "{paused:?}"
    );
    let done = thread.answer_only(true).await.unwrap().unwrap();
    assert_eq!(done.outcome, Outcome::Finished);
    assert_eq!(
        done.state.log,
        ["split", "part 1", "part 2", "part 3", "sure true"]
    );
    assert_eq!(done.state.total, 12);
}
