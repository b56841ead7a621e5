//! The routes, a file for each resource. Handlers parse, call and convert; what a run means is decided in [`crate::start`].

mod assistants;
mod crons;
mod drawing;
mod files;
mod openapi;
mod paging;
mod runs;
mod state;
mod store;
mod system;
mod threads;

use axum::Router;

use crate::App;

/// Returns all routes apart from those that stream.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .merge(assistants::routes())
        .merge(threads::routes())
        .merge(state::routes())
        .merge(runs::routes())
        .merge(crons::routes())
        .merge(store::routes())
        .merge(files::routes())
        .merge(system::routes())
}
