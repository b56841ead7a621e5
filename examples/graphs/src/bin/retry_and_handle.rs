//! Failures: a node is retried, and an error handler writes in its place when the attempts are used up.
//!
//! Run it: `cargo run -p example-graphs --bin retry_and_handle`

use std::time::Duration;

use superstep::RetryPolicy;
use superstep::prelude::*;

#[derive(Clone, Debug, Default, State)]
struct Weather {
    city: String,
    report: String,
}

/// Works at the third attempt for Oslo, and never for Atlantis.
async fn look_up(weather: View<Weather>, cx: NodeCx) -> Result<WeatherUpdate, NodeError> {
    println!("  attempt {} for {}", cx.attempt(), weather.city);
    match (weather.city.as_str(), cx.attempt()) {
        ("Oslo", 3..) => Ok(WeatherUpdate::default().report("snow")),
        ("Oslo", _) => Err(NodeError::retryable("the service is busy")),
        // Retrying does not help here.
        (city, _) => Err(NodeError::fatal(format!("there is no city {city}"))),
    }
}

/// Runs when `look_up` has failed permanently, and writes in its place.
async fn apologize(failed: Failed<Weather>, _cx: NodeCx) -> Result<WeatherUpdate, NodeError> {
    let report = format!("unknown ({})", failed.failure.message);
    Ok(WeatherUpdate::default().report(report))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = Graph::builder("weather")
        .node("look_up", look_up)
        .retry(
            "look_up",
            RetryPolicy::attempts(3).every(Duration::from_millis(100)),
        )
        .on_error("look_up", &[END], apologize)
        .edge(START, "look_up")
        .edge("look_up", END)
        .build()?;
    let runtime = Runtime::new(Memory::default());
    for city in ["Oslo", "Atlantis"] {
        let thread = runtime.thread(&graph, city)?;
        let stopped = thread.start(WeatherUpdate::default().city(city)).await?;
        println!("{city}: {}", stopped.state.report);
    }
    Ok(())
}
