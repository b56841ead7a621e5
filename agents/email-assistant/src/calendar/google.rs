//! Google Calendar over its REST API.
//!
//! The assistant chooses the id of an event, so Google itself rejects a duplicate. The description contains the id too, for
//! servers that assign ids of their own.

use reqwest::{Method, StatusCode};
use serde_json::{Value as Json, json};
use superstep::checkpoint::BoxFuture;

use super::{Calendar, DAY, Event, MeetingZone, NotMade};
use crate::email::address;
use crate::google::{Google, GoogleError};

/// The calendars of an account: its own, and those that others share with it.
#[derive(Debug)]
pub struct GoogleCalendar {
    account: String,
    google: Google,
}

impl GoogleCalendar {
    /// Creates the calendar of this account over this connection.
    pub fn new(account: &str, google: Google) -> Self {
        Self {
            account: address(account),
            google,
        }
    }

    /// Returns the calendar to create an event in. Google takes the owner of the calendar for the organizer, and nothing else.
    fn calendar_of<'a>(&self, event: &'a Event) -> &'a str {
        match event.organizer.is_empty() || address(&event.organizer) == self.account {
            true => PRIMARY,
            false => &event.organizer,
        }
    }

    async fn between(&self, calendar: &str, from: &str, to: &str) -> anyhow::Result<Vec<Json>> {
        let url = self.google.events(calendar)?;
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
            "start": time(&event.start, &event.timezone),
            "end": time(&event.end, &event.timezone),
            "attendees": attendees,
        });
        let calendar = self.calendar_of(event);
        let url = self.google.events(calendar).map_err(NotMade::Refused)?;
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
            status @ (StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) if calendar != PRIMARY => {
                Err(NotMade::Refused(anyhow::anyhow!(
                    "Google said {status}: {account} may not make events in the calendar of {calendar}; leave `organizer_email` \
                     empty, or let {calendar} share the calendar",
                    account = self.account
                )))
            }
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
            let mut events: Vec<Event> = Vec::new();
            for day in days {
                // In UTC, a day of a zone begins up to a day earlier or ends up to a day later.
                let from = format!("{}T00:00:00Z", shifted(day, -1));
                let to = format!("{}T23:59:59Z", shifted(day, 1));
                let found = self.between(PRIMARY, &from, &to).await?;
                for event in found.iter().map(read) {
                    // An event may be on two of the days.
                    if event.is_on(day) && !events.contains(&event) {
                        events.push(event);
                    }
                }
            }
            Ok(events)
        })
    }

    fn create<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, Result<(), NotMade>> {
        Box::pin(self.create_now(event))
    }

    fn find<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, anyhow::Result<bool>> {
        Box::pin(async move {
            let calendar = self.calendar_of(event);
            let found = self.between(calendar, &event.start, &event.end).await?;
            Ok(found.iter().any(|known| {
                let says = known["description"].as_str().unwrap_or_default();
                known["id"] == json!(event.id) || says.contains(&mark(event))
            }))
        })
    }
}

/// Returns the day that is this many days after another one. Returns a text that is not a day as it is.
fn shifted(day: &str, days: i64) -> String {
    let date = chrono::NaiveDate::parse_from_str(day, DAY).ok();
    let date = date.and_then(|date| date.checked_add_signed(chrono::TimeDelta::days(days)));
    date.map_or_else(|| day.to_owned(), |date| date.format(DAY).to_string())
}

/// Returns a time in the form of Google: what clocks in the zone show, with the offset and the name of the zone.
fn time(utc: &str, zone: &str) -> Json {
    let zone = MeetingZone::find(zone).ok().filter(|zone| !zone.is_utc());
    let local = zone.and_then(|zone| Some((zone.local(utc)?, zone)));
    match local {
        Some(((time, offset), zone)) => {
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            let time = time.format("%Y-%m-%dT%H:%M:%S");
            let time = format!("{time}{sign}{:02}:{:02}", minutes / 60, minutes % 60);
            json!({ "dateTime": time, "timeZone": zone.name() })
        }
        None => json!({ "dateTime": utc, "timeZone": "UTC" }),
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
        timezone: match text(&event["start"]["timeZone"]) {
            zone if MeetingZone::find(&zone).is_ok_and(|zone| !zone.is_utc()) => zone,
            _ => String::new(),
        },
    }
}

/// The account's own calendar.
const PRIMARY: &str = "primary";

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Creates an event at a server that answers with this status, and returns the request line, the body and the result.
    async fn created(event: &Event, status: &str) -> (String, Json, Result<(), NotMade>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let google = Google::with_token(&url, "token").unwrap();
        let calendar = GoogleCalendar::new("Alice <alice@example.com>", google);
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            loop {
                stream.read_buf(&mut request).await.unwrap();
                let text = String::from_utf8(request.clone()).unwrap();
                let body = text.split_once("\r\n\r\n").map(|(_, body)| body);
                if let Some(body) = body.and_then(|body| serde_json::from_str(body).ok()) {
                    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    return (text.lines().next().unwrap().to_owned(), body);
                }
            }
        };
        let ((line, body), made) = tokio::join!(serve, calendar.create(event));
        (line, body, made)
    }

    fn event() -> Event {
        Event {
            id: "abc1".to_owned(),
            title: "Sync".to_owned(),
            start: "2025-07-10T08:00:00Z".to_owned(),
            end: "2025-07-10T08:30:00Z".to_owned(),
            attendees: vec!["bob@example.com".to_owned()],
            organizer: "alice@example.com".to_owned(),
            timezone: "Europe/Berlin".to_owned(),
        }
    }

    #[test]
    fn days_are_shifted_over_the_ends_of_months() {
        assert_eq!(shifted("2025-03-01", -1), "2025-02-28");
        assert_eq!(shifted("2024-12-31", 1), "2025-01-01");
    }

    #[tokio::test]
    async fn google_gets_the_local_time_the_offset_and_the_zone() {
        let (line, body, made) = created(&event(), "200 OK").await;
        made.unwrap();
        assert!(line.contains("/calendars/primary/events?"), "{line}");
        assert_eq!(
            body["start"],
            json!({ "dateTime": "2025-07-10T10:00:00+02:00", "timeZone": "Europe/Berlin" })
        );
        assert_eq!(body["end"]["dateTime"], "2025-07-10T10:30:00+02:00");
        let read = read(&json!({ "start": body["start"], "end": body["end"] }));
        assert_eq!(
            (read.start, read.timezone),
            (event().start, event().timezone)
        );
    }

    #[tokio::test]
    async fn an_event_of_another_organizer_is_made_in_their_calendar_or_refused() {
        let event = Event {
            organizer: "carol/x@example.com".to_owned(),
            ..event()
        };
        let (line, _, made) = created(&event, "200 OK").await;
        made.unwrap();
        assert!(
            line.contains("/calendars/carol%2Fx@example.com/events?"),
            "{line}"
        );
        let (_, _, made) = created(&event, "404 Not Found").await;
        let why = made.unwrap_err().to_string();
        assert!(
            why.contains("alice@example.com may not make events in the calendar of carol/x@example.com; leave `organizer_email` empty"),
            "{why}"
        );
    }
}
