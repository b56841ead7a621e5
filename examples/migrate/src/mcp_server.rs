//! A tiny MCP server over stdio, with two tools.
//!
//! Written out, because the workspace has the client side of the protocol only: one JSON-RPC message per line.

use std::io::{self, BufRead, Write};

use serde_json::{Value as Json, json};

/// Serves until the client closes the pipe.
pub fn serve() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let request: Json = serde_json::from_str(&line?)?;
        // A notification has no id, and gets no answer.
        let Some(id) = request.get("id") else {
            continue;
        };
        let mut answer = json!({ "jsonrpc": "2.0", "id": id });
        match respond(&request["method"], &request["params"]) {
            Some(result) => answer["result"] = result,
            None => answer["error"] = json!({ "code": -32601, "message": "Method not found" }),
        }
        let mut out = io::stdout().lock();
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn respond(method: &Json, params: &Json) -> Option<Json> {
    match method.as_str()? {
        "initialize" => Some(json!({
            "protocolVersion": params["protocolVersion"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "weather", "version": "1.0.0" },
        })),
        "ping" => Some(json!({})),
        "tools/list" => Some(json!({
            "tools": [
                tool("forecast", "The weather of tomorrow in a city.", "city", "string"),
                tool("to_fahrenheit", "Convert degrees.", "celsius", "number"),
            ],
        })),
        "tools/call" => {
            let text = called(params["name"].as_str()?, &params["arguments"])?;
            Some(json!({ "content": [{ "type": "text", "text": text }] }))
        }
        _ => None,
    }
}

fn tool(name: &str, description: &str, argument: &str, of: &str) -> Json {
    let schema = json!({
        "type": "object",
        "properties": { argument: { "type": of } },
        "required": [argument],
    });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

fn called(name: &str, args: &Json) -> Option<String> {
    match name {
        "forecast" => {
            let city = args["city"].as_str()?;
            Some(format!("Tomorrow in {city}: rain, 11 degrees"))
        }
        "to_fahrenheit" => Some((args["celsius"].as_f64()? * 9.0 / 5.0 + 32.0).to_string()),
        _ => None,
    }
}
