//! The content of messages: a text, or blocks. Clients name blocks in the words of several providers; the stored form has texts and
//! files.

use serde_json::{Value as Json, json};

/// Reads the content of a message. The error names what cannot be read.
pub(super) fn read(content: &Json) -> Result<Json, String> {
    match content {
        Json::Null => Ok("".into()),
        Json::String(_) => Ok(content.clone()),
        Json::Array(blocks) => {
            let mut read = Vec::with_capacity(blocks.len());
            for block in blocks {
                read.extend(read_block(block)?);
            }
            match read.is_empty() {
                true => Ok("".into()),
                false => Ok(Json::Array(read)),
            }
        }
        Json::Object(_) => Ok(Json::Array(read_block(content)?.into_iter().collect())),
        Json::Bool(_) | Json::Number(_) => {
            Err(format!("`{content}` is not the content of a message"))
        }
    }
}

/// Reads a block; `None` for one that says nothing besides the message's other fields.
fn read_block(block: &Json) -> Result<Option<Json>, String> {
    if let Json::String(text) = block {
        return Ok(Some(text_block(text)));
    }
    let kind = block.get("type").and_then(Json::as_str).unwrap_or_default();
    match kind {
        "text" | "input_text" | "output_text" | "text-plain" => {
            let text = block.get("text").and_then(Json::as_str);
            Ok(Some(text_block(text.ok_or("a text block has no `text`")?)))
        }
        "image_url" => {
            let image = block.get("image_url").unwrap_or(&Json::Null);
            let url = image.as_str().or_else(|| image.get("url")?.as_str());
            let url = url.ok_or("an `image_url` block has no `url`")?;
            Ok(Some(from_url(url, "image/jpeg")))
        }
        "image" | "file" | "audio" | "video" | "input_audio" => {
            let file = read_file(block, kind);
            let file =
                file.ok_or_else(|| format!("a block of type `{kind}` has no data and no URL"))?;
            Ok(Some(file))
        }
        // Tool calls are in a field of the message; thoughts are for the provider that made them.
        "tool_use" | "tool_call" | "tool_call_chunk" | "thinking" | "redacted_thinking"
        | "reasoning" => Ok(None),
        _ => Err(format!(
            "a block of type `{kind}` cannot be part of a message here"
        )),
    }
}

fn text_block(text: &str) -> Json {
    json!({ "type": "text", "text": text })
}

fn file_block(mime_type: &str, source: Json) -> Json {
    json!({ "type": "file", "mime_type": mime_type, "source": source })
}

/// Returns the file behind an address, or inside of it.
fn from_url(url: &str, default_type: &str) -> Json {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','));
    if let Some((head, data)) = inline
        && let Some(mime_type) = head.strip_suffix(";base64")
    {
        let mime_type = mime_type
            .split(';')
            .next()
            .filter(|found| !found.is_empty());
        return file_block(mime_type.unwrap_or(default_type), json!({ "base64": data }));
    }
    let mime_type = type_by_name(url).unwrap_or(default_type);
    file_block(mime_type, json!({ "url": url }))
}

/// Reads a file in the form of LangChain (two of them), Anthropic, OpenAI, Agent Chat UI, or our own.
fn read_file(block: &Json, kind: &str) -> Option<Json> {
    let text = |of: &Json, names: &[&str]| {
        let found = names.iter().find_map(|name| of.get(name)?.as_str());
        found.map(str::to_owned)
    };
    let inner = ["source", "file", "input_audio"];
    let inner = inner
        .iter()
        .find_map(|name| block.get(name).filter(|found| found.is_object()));
    let default_type = match kind {
        "image" => "image/jpeg",
        "audio" | "input_audio" => "audio/wav",
        "video" => "video/mp4",
        _ => "application/octet-stream",
    };
    let places = [Some(block), inner];
    let places = || places.iter().flatten();
    let mime_type = places().find_map(|of| text(of, &["mime_type", "mimeType", "media_type"]));
    let mime_type = mime_type.as_deref().unwrap_or(default_type);
    let data = places().find_map(|of| text(of, &["base64", "data", "file_data"]));
    if let Some(data) = data {
        return Some(match data.starts_with("data:") {
            true => from_url(&data, mime_type),
            false => file_block(mime_type, json!({ "base64": data })),
        });
    }
    let url = places().find_map(|of| text(of, &["url"]))?;
    Some(match url.starts_with("data:") {
        true => from_url(&url, mime_type),
        false => file_block(mime_type, json!({ "url": url })),
    })
}

fn type_by_name(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        "pdf" => Some("application/pdf"),
        _ => None,
    }
}

/// Converts stored content into the form that clients read.
pub(super) fn show(content: &Json) -> Json {
    match content {
        Json::Null => "".into(),
        Json::Array(blocks) => blocks.iter().map(show_block).collect(),
        other => other.clone(),
    }
}

fn show_block(block: &Json) -> Json {
    if block["type"] != "file" {
        return block.clone();
    }
    let mime_type = block["mime_type"].as_str().unwrap_or_default();
    let source = &block["source"];
    let (url, data) = (source["url"].as_str(), source["base64"].as_str());
    match (url, data, mime_type.starts_with("image/")) {
        (Some(url), _, true) => json!({ "type": "image_url", "image_url": { "url": url } }),
        (None, Some(data), true) => {
            let url = format!("data:{mime_type};base64,{data}");
            json!({ "type": "image_url", "image_url": { "url": url } })
        }
        (Some(url), _, false) => {
            json!({ "type": "file", "source_type": "url", "mime_type": mime_type, "url": url })
        }
        (None, Some(data), false) => {
            json!({ "type": "file", "source_type": "base64", "mime_type": mime_type, "data": data })
        }
        (None, None, _) => block.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_every_provider_are_stored_alike() {
        let png =
            json!({ "type": "file", "mime_type": "image/png", "source": { "base64": "AAAA" } });
        for sent in [
            json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }),
            json!({ "type": "image_url", "image_url": "data:image/png;base64,AAAA" }),
            json!({ "type": "image", "source_type": "base64", "mime_type": "image/png", "data": "AAAA" }),
            json!({ "type": "image", "mimeType": "image/png", "data": "AAAA", "metadata": {} }),
            json!({ "type": "image", "base64": "AAAA", "mime_type": "image/png" }),
            json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }),
            json!({ "type": "file", "file": { "file_data": "data:image/png;base64,AAAA" } }),
            png.clone(),
        ] {
            assert_eq!(read(&json!([sent])).unwrap(), json!([png]), "{sent}");
        }
        assert!(read(&json!([{ "type": "hologram" }])).is_err());
    }

    #[test]
    fn an_image_is_shown_as_a_url_and_read_back() {
        let stored = json!([
            { "type": "text", "text": "look" },
            { "type": "file", "mime_type": "image/png", "source": { "base64": "AAAA" } },
            { "type": "file", "mime_type": "application/pdf", "source": { "url": "https://a/b.pdf" } },
        ]);
        assert_eq!(read(&show(&stored)).unwrap(), stored);
    }
}
