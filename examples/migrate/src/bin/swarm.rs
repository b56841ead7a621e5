//! Two agents that hand a conversation to each other.

use example_migrate::{call, say, script};
use serde_json::json;
use superstep::prelude::*;
use superstep_agent::{Agent, AgentState, Swarm, ToolError, active_agent, tool};

/// Books a hotel.
#[tool(keyed)]
async fn book_hotel(city: String) -> Result<String, ToolError> {
    Ok(format!("Booked a hotel in {city}"))
}

/// Books a flight.
#[tool(keyed)]
async fn book_flight(city: String) -> Result<String, ToolError> {
    Ok(format!("Booked a flight to {city}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let hotels = Agent::builder(script(
        "hotels",
        [
            call("book_hotel", json!({ "city": "Oslo" })),
            call("transfer_to_flights", json!({})),
            say("Your hotel in Oslo has breakfast."),
        ],
    ));
    let flights = Agent::builder(script(
        "flights",
        [
            call("book_flight", json!({ "city": "Oslo" })),
            say("Hotel and flight are booked."),
            call("transfer_to_hotels", json!({})),
        ],
    ));
    let hotels = hotels.system("You book hotels.").tools([book_hotel()]);
    let flights = flights.system("You book flights.").tools([book_flight()]);
    let swarm = Swarm::builder()
        .agent("hotels", hotels.handoff("flights", "For flights."))
        .agent("flights", flights.handoff("hotels", "For hotels."))
        .build()?;
    let thread = Runtime::new(Memory::default()).thread(&swarm, "trip")?;
    for question in [
        "A hotel and a flight to Oslo, please.",
        "Does the hotel have breakfast?",
    ] {
        let messages = thread
            .start(AgentState::ask(question))
            .await?
            .state
            .messages;
        let agent = active_agent(&messages).unwrap_or("nobody").to_owned();
        println!("{agent}: {}", messages[messages.len() - 1].message.text());
    }
    Ok(())
}
