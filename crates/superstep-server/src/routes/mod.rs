//! The routes, a file for each resource. Handlers parse, call and convert; what a run means is decided in [`crate::start`].

mod assistants;
mod budgets;
mod crons;
mod deliveries;
mod drawing;
mod files;
mod inspection;
mod keys;
mod openapi;
mod paging;
mod ready;
mod runs;
mod state;
mod storage;
mod store;
mod system;
pub(crate) mod table;
mod threads;

use axum::Router;

use crate::App;

/// Returns all routes apart from those that stream.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .merge(assistants::routes())
        .merge(threads::routes())
        .merge(state::routes())
        .merge(storage::routes())
        .merge(runs::routes())
        .merge(crons::routes())
        .merge(deliveries::routes())
        .merge(store::routes())
        .merge(files::routes())
        .merge(inspection::routes())
        .merge(budgets::routes())
        .merge(keys::routes())
        .merge(ready::routes())
        .merge(system::routes())
}
