use superstep_llm::{Cost, ModelName, Price, Prices, Provider, Usage};

fn name(text: &str) -> ModelName {
    text.parse().unwrap()
}

#[test]
fn a_name_is_a_provider_and_a_name() {
    let model = name("ollama:qwen3:8b");
    assert_eq!(model.provider(), Provider::Ollama);
    assert_eq!(model.name(), "qwen3:8b");
    assert_eq!(model.to_string(), "ollama:qwen3:8b");
    let wrong = "gpt-4o".parse::<ModelName>().unwrap_err().to_string();
    assert!(wrong.contains("`gpt-4o` is not a model"), "{wrong}");
    assert!(wrong.contains("openai_responses"), "{wrong}");
    assert!("openai:".parse::<ModelName>().is_err());
}

#[test]
fn a_bare_name_of_a_known_family_gets_its_provider() {
    for (typed, full) in [
        ("gpt-4o", "openai:gpt-4o"),
        ("o3-mini", "openai:o3-mini"),
        (
            "claude-sonnet-4-20250514",
            "anthropic:claude-sonnet-4-20250514",
        ),
        ("gemini-2.5-pro", "gemini:gemini-2.5-pro"),
        ("ollama:gpt-oss:20b", "ollama:gpt-oss:20b"),
        ("openai:claude-like", "openai:claude-like"),
    ] {
        assert_eq!(ModelName::from_typed(typed).unwrap().to_string(), full);
    }
    // A tag behind a colon is Ollama's, whose names anybody may use.
    for unknown in ["qwen3", "gpt-oss:20b", "llama", ""] {
        let wrong = ModelName::from_typed(unknown).unwrap_err().to_string();
        assert!(wrong.contains("write PROVIDER:NAME"), "{wrong}");
    }
}

#[test]
fn a_price_that_nobody_knows_is_unknown_and_not_nought() {
    let usage = Usage {
        input_tokens: 1_000,
        output_tokens: 100,
        cached_tokens: 400,
    };
    let prices = Prices::known();
    let cost = prices.cost(&name("openai:gpt-4.1-mini"), Some(&usage));
    assert_eq!(cost, Cost::NanoDollars(600 * 400 + 400 * 100 + 100 * 1_600));
    assert_eq!(cost.to_string(), "$0.000440");
    assert_eq!(
        prices
            .cost(&name("ollama:qwen3:8b"), Some(&usage))
            .to_string(),
        "unknown"
    );
    assert_eq!(
        prices.cost(&name("openai:gpt-4.1-mini"), None),
        Cost::Unknown
    );
    assert_eq!(cost.plus(Cost::Unknown), Cost::Unknown);
}

#[test]
fn a_dated_name_has_the_price_of_the_plain_one() {
    let prices = Prices::known();
    let dated = prices.price(&name("openai_responses:gpt-4.1-2025-04-14"));
    assert_eq!(dated, prices.price(&name("openai:gpt-4.1")));
    assert!(dated.is_some());
    let dated = prices.price(&name("anthropic:claude-sonnet-4-20250514"));
    assert_eq!(dated, prices.price(&name("anthropic:claude-sonnet-4")));
    assert!(dated.is_some());
}

#[test]
fn a_price_of_ones_own_counts() {
    let local = name("ollama:qwen3:8b");
    let price = Price {
        input: 1,
        cached: 1,
        output: 2,
    };
    let prices = Prices::known().with(&local, price);
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cached_tokens: 0,
    };
    assert_eq!(prices.cost(&local, Some(&usage)), Cost::NanoDollars(20));
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_model_on_a_server_needs_the_feature_remote() {
    let name: ModelName = "openai:gpt-4.1-mini".parse().unwrap();
    let refused = superstep_llm::open(&name).unwrap_err();
    assert_eq!(refused.code(), "model-not-built-in");
    assert!(!refused.is_retryable());
}
