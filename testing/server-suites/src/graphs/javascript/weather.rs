//! `weather`: a router and a subgraph that stops before its second node.

use std::sync::Arc;

use superstep::error::BuildError;
use superstep::graph::Definition;
use superstep::prelude::*;
use superstep_agent::ChatMessage;

use crate::graphs::chat::ai;

#[derive(Clone, Debug, Default, State)]
struct Router {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    route: Option<String>,
}

#[derive(Clone, Debug, Default, State)]
struct Weather {
    #[state(messages)]
    messages: Vec<ChatMessage>,
    city: Option<String>,
}

pub(super) fn graph() -> Result<Arc<Definition>, BuildError> {
    let graph = Graph::builder("weather")
        .node("router_node", |_: View<Router>, _: NodeCx| async {
            Ok::<_, NodeError>(RouterUpdate::default().route("weather".to_owned()))
        })
        .node("normal_llm_node", |_: View<Router>, _: NodeCx| async {
            Ok::<_, NodeError>(RouterUpdate::default().messages(ai("Hello")))
        })
        .subgraph(
            "weather_graph",
            weather()?,
            |router: &Router| WeatherUpdate::default().messages_all(router.messages.clone()),
            |_: &Router, weather: &Weather| {
                RouterUpdate::default().messages_all(weather.messages.clone())
            },
        )
        .edge(START, "router_node")
        .route("router_node", &["weather_graph", "normal_llm_node"], next)
        .edge("weather_graph", END)
        .edge("normal_llm_node", END)
        .inputs(["messages", "route"])
        .build()?;
    Ok(graph.definition().clone())
}

fn next(router: &Router) -> &'static str {
    match router.route.as_deref() {
        Some("weather") => "weather_graph",
        _ => "normal_llm_node",
    }
}

fn weather() -> Result<Graph<Weather>, BuildError> {
    Graph::builder("weather_graph")
        .node("model_node", |_: View<Weather>, _: NodeCx| async {
            Ok::<_, NodeError>(WeatherUpdate::default().city("San Francisco".to_owned()))
        })
        .node("weather_node", forecast)
        .edge(START, "model_node")
        .edge("model_node", "weather_node")
        .edge("weather_node", END)
        .pause_before("weather_node")
        .inputs(["messages", "city"])
        .build()
}

async fn forecast(weather: View<Weather>, _: NodeCx) -> Result<WeatherUpdate, NodeError> {
    let city = weather.city.as_deref().unwrap_or_default();
    Ok(WeatherUpdate::default().messages(ai(format!("It's sunny in {city}!"))))
}
