//! Settings of webhooks: private hosts, and the secrets that sign deliveries.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use superstep_server::{ServerBuilder, WebhookSecret};

use crate::cli::args::ServeArgs;

/// Adds the settings of webhooks to a server.
pub(super) fn configure(
    mut server: ServerBuilder,
    args: &ServeArgs,
) -> anyhow::Result<ServerBuilder> {
    for host in &args.webhook_host {
        server = server.allow_webhook_host(host.clone());
    }
    if args.webhook_https {
        server = server.require_https_webhooks();
    }
    if let Some(file) = &args.webhook_secret_file {
        for secret in read_secrets(file)? {
            server = server.webhook_secret(secret);
        }
    }
    Ok(server)
}

/// Reads secrets, one in each line. Empty lines and those that begin with `#` are skipped.
fn read_secrets(file: &Path) -> anyhow::Result<Vec<WebhookSecret>> {
    let text = fs::read_to_string(file);
    let text = text.with_context(|| format!("cannot read `{}`", file.display()))?;
    let mut secrets = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let secret = line.parse();
        secrets
            .push(secret.with_context(|| format!("line {} of `{}`", number + 1, file.display()))?);
    }
    if secrets.is_empty() {
        bail!("`{}` has no webhook secret", file.display());
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_secret_in_each_line_and_a_bad_one_is_named_but_not_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secrets");
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        fs::write(&file, format!("# of 2026\n{secret}\n\n{secret}\r\n")).unwrap();
        assert_eq!(read_secrets(&file).unwrap().len(), 2);
        fs::write(&file, format!("{secret}\nhunter2\n")).unwrap();
        let error = format!("{:#}", read_secrets(&file).unwrap_err());
        assert!(
            error.contains("line 2 of") && !error.contains("hunter2"),
            "{error}"
        );
        fs::write(&file, "\n").unwrap();
        assert!(read_secrets(&file).is_err());
    }
}
