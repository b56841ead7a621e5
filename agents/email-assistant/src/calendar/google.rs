//! Google Calendar over its REST API.
//!
//! The assistant chooses the id of an event, so Google itself rejects a duplicate. The description contains the id too, for
//! servers that assign ids of their own.

use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;

use super::{Calendar, Event, NotMade};
use crate::google::{Google, GoogleError};

/// The primary calendar of an account.
#[derive(Debug)]
pub struct GoogleCalendar {
    google: Google,
}

impl GoogleCalendar {
    /// Creates a calendar over this connection.
    pub fn new(google: Google) -> Self {
        Self { google }
    }

    async fn between(&self, from: &str, to: &str) -> anyhow::Result<Vec<Json>> {
        let url = self.google.calendar("events");
        let query = [
            ("timeMin", from),
            ("timeMax", to),
            ("singleEvents", "true"),
            ("orderBy", "startTime"),
            ("maxResults", "250"),
        ];
        let said = self.google.read(&url, &query).await?;
        Ok(said["items"].as_array().cloned().unwrap_or_default())
    }

    async fn create_now(&self, event: &Event) -> Result<(), NotMade> {
        let attendees: Vec<_> = event
            .attendees
            .iter()
            .map(|who| json!({ "email": who }))
            .collect();
        let body = json!({
            "id": event.id,
            "summary": event.title,
            "description": mark(event),
            "start": { "dateTime": event.start, "timeZone": "UTC" },
            "end": { "dateTime": event.end, "timeZone": "UTC" },
            "attendees": attendees,
        });
        let url = self.google.calendar("events");
        let query = [("sendUpdates", "all")];
        let said = self
            .google
            .ask(Method::POST, &url, &query, Some(&body))
            .await;
        let said = said.map_err(|lost| match lost {
            GoogleError::NotAsked(why) => NotMade::Refused(why),
            GoogleError::Answer(why) => NotMade::Unknown(why),
        })?;
        match said.status {
            // An event with this id exists, and it is ours.
            StatusCode::CONFLICT => Ok(()),
            status if status.is_success() => Ok(()),
            status => Err(NotMade::Refused(anyhow::anyhow!(
                "Google said {status}: {}",
                said.why()
            ))),
        }
    }
}

impl Calendar for GoogleCalendar {
    fn on<'a>(&'a self, days: &'a [String]) -> BoxFuture<'a, anyhow::Result<Vec<Event>>> {
        Box::pin(async move {
            let mut events = Vec::new();
            for day in days {
                let found = self
                    .between(&format!("{day}T00:00:00Z"), &format!("{day}T23:59:59Z"))
                    .await?;
                events.extend(found.iter().map(read));
            }
            Ok(events)
        })
    }

    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>> {
        Box::pin(self.create_now(event))
    }

    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>> {
        Box::pin(async move {
            let found = self.between(&event.start, &event.end).await?;
            Ok(found.iter().any(|known| {
                let says = known["description"].as_str().unwrap_or_default();
                known["id"] == json!(event.id) || says.contains(&mark(event))
            }))
        })
    }
}

fn mark(event: &Event) -> String {
    format!("Made with archie ({}).", event.id)
}

fn read(event: &Json) -> Event {
    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
    let moment = |when: &Json| match when["dateTime"].as_str() {
        Some(moment) => super::moment(moment).unwrap_or_else(|| moment.to_owned()),
        None => text(&when["date"]),
    };
    let attendees = event["attendees"].as_array().into_iter().flatten();
    Event {
        id: text(&event["id"]),
        title: text(&event["summary"]),
        start: moment(&event["start"]),
        end: moment(&event["end"]),
        attendees: attendees.map(|who| text(&who["email"])).collect(),
        organizer: text(&event["organizer"]["email"]),
    }
}
