//! The parameters of an address that are about TLS and passwords.

use std::borrow::Cow;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;

use crate::{ClientFiles, Roots, SslMode, TlsError, TlsOptions, Trust};

/// Parameters of an address about TLS and passwords, spelled as libpq spells them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsParameters {
    /// How much a connection has to prove: `disable` to `verify-full`.
    pub sslmode: Option<String>,
    /// PEM file with the certificates of authorities, or `system`.
    pub sslrootcert: Option<String>,
    /// PEM file with the certificate of the client.
    pub sslcert: Option<String>,
    /// PEM file with the key of that certificate.
    pub sslkey: Option<String>,
    /// File with a password.
    pub passfile: Option<String>,
}

impl TlsParameters {
    /// Takes the parameters out of the query of a URL, and returns what remains of it.
    pub fn take_from_url(url: &str) -> Result<(String, Self), TlsError> {
        let mut parameters = Self::default();
        let Some((front, query)) = url.split_once('?') else {
            return Ok((url.to_owned(), parameters));
        };
        // Some libraries take what is in front of the `@` for a password, others for a host and its parameters.
        if !front.contains('@') && query.contains('@') {
            let mut pairs = query.split(['?', '&']);
            return match pairs.any(|pair| parameters.field(&split_pair(pair).0).is_some()) {
                true => Err(TlsError::Ambiguous),
                false => Ok((url.to_owned(), parameters)),
            };
        }
        let mut rest = front.to_owned();
        let mut separator = '?';
        for pair in query.split('&') {
            let (name, value) = split_pair(pair);
            let Some(field) = parameters.field(&name) else {
                rest.push(separator);
                rest.push_str(pair);
                separator = '&';
                continue;
            };
            let value = percent_decode_str(value).decode_utf8();
            let value = value.map_err(|_| TlsError::Undecodable {
                name: name.into_owned(),
            })?;
            *field = Some(value.into_owned());
        }
        Ok((rest, parameters))
    }

    /// Sets a parameter. Returns whether there is one of this name.
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        match self.field(name) {
            Some(field) => {
                *field = Some(value.to_owned());
                true
            }
            None => false,
        }
    }

    fn field(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "sslmode" => Some(&mut self.sslmode),
            "sslrootcert" => Some(&mut self.sslrootcert),
            "sslcert" => Some(&mut self.sslcert),
            "sslkey" => Some(&mut self.sslkey),
            "passfile" => Some(&mut self.passfile),
            _ => None,
        }
    }

    /// Returns the first parameter about TLS that is set.
    pub fn first_of_tls(&self) -> Option<&'static str> {
        let all = [
            ("sslmode", &self.sslmode),
            ("sslrootcert", &self.sslrootcert),
            ("sslcert", &self.sslcert),
            ("sslkey", &self.sslkey),
        ];
        all.into_iter()
            .find(|(_, value)| value.is_some())
            .map(|(name, _)| name)
    }

    /// Returns the mode, if one is given. As in libpq, `sslrootcert=system` implies `verify-full`.
    pub fn mode(&self) -> Result<Option<SslMode>, TlsError> {
        match (&self.sslmode, self.sslrootcert.as_deref()) {
            (Some(mode), _) => Ok(Some(mode.parse()?)),
            (None, Some(SYSTEM)) => Ok(Some(SslMode::VerifyFull)),
            (None, _) => Ok(None),
        }
    }

    /// Returns the options for a mode; `None` if it never encrypts.
    ///
    /// As in libpq, a root certificate is also checked in the modes that do not demand it: `require` with one is `verify-ca`.
    pub fn options(&self, mode: SslMode) -> Result<Option<TlsOptions>, TlsError> {
        let trust = match (mode, self.sslrootcert.as_deref()) {
            (SslMode::Disable, _) => return Ok(None),
            (SslMode::VerifyFull, None | Some(SYSTEM)) => Trust::Name(Roots::System),
            (SslMode::VerifyFull, Some(file)) => Trust::Name(Roots::File(file.into())),
            (_, Some(SYSTEM)) => return Err(TlsError::WeakSystemRoots { mode }),
            (_, Some(file)) => Trust::Chain(Roots::File(file.into())),
            (SslMode::VerifyCa, None) => return Err(TlsError::NoRoots { mode }),
            (SslMode::Allow | SslMode::Prefer | SslMode::Require, None) => Trust::Anyone,
        };
        let identity = match (&self.sslcert, &self.sslkey) {
            (Some(certificate), Some(key)) => Some(ClientFiles {
                certificate: PathBuf::from(certificate),
                key: PathBuf::from(key),
            }),
            (None, None) => None,
            _ => return Err(TlsError::HalfIdentity),
        };
        Ok(Some(TlsOptions { trust, identity }))
    }

    /// Returns the options for an address whose scheme demands TLS, such as `https` or `rediss`. Default: `verify-full`.
    pub fn required(&self) -> Result<TlsOptions, TlsError> {
        let mode = self.mode()?.unwrap_or(SslMode::VerifyFull);
        match self.options(mode)? {
            Some(options) if mode.is_required() => Ok(options),
            _ => Err(TlsError::Contradiction { mode }),
        }
    }

    /// Fails if parameters of TLS are set. For an address whose scheme does not encrypt: ignoring them would send in clear text
    /// what was meant to be secret.
    pub fn refused(&self) -> Result<(), TlsError> {
        match self.first_of_tls() {
            Some(name) => Err(TlsError::Unencrypted { name }),
            None => Ok(()),
        }
    }
}

/// Splits a parameter into its name, decoded as libraries decode it, and its value as it is written.
fn split_pair(pair: &str) -> (Cow<'_, str>, &str) {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (percent_decode_str(name).decode_utf8_lossy(), value)
}

const SYSTEM: &str = "system";

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(url: &str) -> (String, TlsParameters) {
        TlsParameters::take_from_url(url).unwrap()
    }

    fn options(query: &str) -> Result<Option<TlsOptions>, TlsError> {
        let (_, parameters) = taken(&format!("postgres://h/d?{query}"));
        let mode = parameters.mode()?.unwrap_or(SslMode::Prefer);
        parameters.options(mode)
    }

    fn trust(query: &str) -> Trust {
        options(query).unwrap().unwrap().trust
    }

    #[test]
    fn parameters_are_taken_out_of_a_url_and_the_rest_stays() {
        let (rest, parameters) =
            taken("postgres://u@h/d?sslmode=require&application_name=a&sslrootcert=%2Fetc%2Fa%20b");
        assert_eq!(rest, "postgres://u@h/d?application_name=a");
        assert_eq!(parameters.sslmode.as_deref(), Some("require"));
        assert_eq!(parameters.sslrootcert.as_deref(), Some("/etc/a b"));
        let (rest, parameters) = taken("rediss://:p%3Fss@h:1/0?passfile=f@1");
        assert_eq!(rest, "rediss://:p%3Fss@h:1/0");
        assert_eq!(parameters.passfile.as_deref(), Some("f@1"));
        let (rest, parameters) = taken("postgres://h/d?ssl%6Dode=require");
        assert_eq!(rest, "postgres://h/d");
        assert_eq!(parameters.sslmode.as_deref(), Some("require"));
        assert_eq!(taken("http://h").0, "http://h");
        assert!(TlsParameters::take_from_url("http://h?sslkey=%ff").is_err());
    }

    #[test]
    fn a_parameter_that_could_be_part_of_a_password_is_refused() {
        for url in [
            "postgres://db/d?sslmode=verify-full&sslrootcert=/etc/ca@2025.pem",
            "postgres://db/d?application_name=a@b&ssl%6Dode=require",
            "rediss://:p?ss@h:1/0?passfile=f",
        ] {
            let refused = TlsParameters::take_from_url(url).unwrap_err();
            assert!(matches!(refused, TlsError::Ambiguous), "{url}: {refused}");
        }
        for url in ["redis://:p?ss@h:1/0", "postgres://h/d?application_name=a@b"] {
            let (rest, parameters) = taken(url);
            assert_eq!((rest.as_str(), parameters), (url, TlsParameters::default()));
        }
    }

    #[test]
    fn modes_mean_what_they_mean_to_libpq() {
        let file = || Roots::File("a".into());
        assert_eq!(options("sslmode=disable&sslrootcert=a").unwrap(), None);
        assert_eq!(trust("sslmode=allow"), Trust::Anyone);
        assert_eq!(trust("sslmode=prefer"), Trust::Anyone);
        assert_eq!(trust("sslmode=require"), Trust::Anyone);
        assert_eq!(trust("sslmode=require&sslrootcert=a"), Trust::Chain(file()));
        assert_eq!(
            trust("sslmode=verify-ca&sslrootcert=a"),
            Trust::Chain(file())
        );
        assert_eq!(
            trust("sslmode=verify-full&sslrootcert=a"),
            Trust::Name(file())
        );
        assert_eq!(trust("sslmode=verify-full"), Trust::Name(Roots::System));
        assert_eq!(trust("sslrootcert=system"), Trust::Name(Roots::System));
        for (wrong, why) in [
            ("sslmode=verify-ca", "needs the certificate"),
            ("sslmode=require&sslrootcert=system", "verify-full"),
            ("sslmode=verify_full", "not an sslmode"),
            ("sslcert=a", "both"),
        ] {
            let error = options(wrong).unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_scheme_that_encrypts_checks_names_unless_told_otherwise_and_the_other_takes_no_certificates()
     {
        let required = |query: &str| taken(&format!("rediss://h{query}")).1.required();
        assert_eq!(required("").unwrap(), TlsOptions::default());
        assert_eq!(required("?sslmode=require").unwrap().trust, Trust::Anyone);
        for weak in ["disable", "allow", "prefer"] {
            assert!(required(&format!("?sslmode={weak}")).is_err(), "{weak}");
        }
        assert!(taken("redis://h?passfile=f").1.refused().is_ok());
        let refused = taken("redis://h?sslrootcert=a").1.refused().unwrap_err();
        assert!(refused.to_string().contains("sslrootcert"), "{refused}");
    }
}
