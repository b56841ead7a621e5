//! `register`: tells Restate where the workers are.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::{AnyError, Args};

pub(crate) async fn register(args: &Args) -> Result<(), AnyError> {
    let body = serde_json::json!({ "uri": args.worker, "force": true });
    let request = Request::post(format!("{}/deployments", args.admin))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body.to_string())))?;
    let client = Client::builder(TokioExecutor::new()).build_http();
    let response = client.request(request).await?;
    let status = response.status();
    let answer = response.into_body().collect().await?.to_bytes();
    if !status.is_success() {
        return Err(format!("{status}: {}", String::from_utf8_lossy(&answer)).into());
    }
    println!("registered");
    Ok(())
}
