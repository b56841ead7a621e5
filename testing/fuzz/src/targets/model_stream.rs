//! What a model's server sends, from the first byte of the body to the end of the reply.
//!
//! The first byte chooses the provider and the second the status. The body is served over loopback, for the client has no
//! other way in, so this target is slower than the others.

use std::cell::RefCell;
use std::rc::Rc;

use futures_util::StreamExt;
use superstep_llm::{
    Address, Chunk, Message, Model, ModelError, ModelName, Provider, Remote, Reply, Request,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

pub(super) fn run(bytes: &[u8]) {
    thread_local! {
        static LAB: Lab = Lab::new();
    }
    let (provider, bytes) = super::choice(bytes);
    let (status, body) = super::choice(bytes);
    let provider = usize::from(provider) % PROVIDERS.len();
    let status = STATUSES[usize::from(status) % STATUSES.len()];
    LAB.with(|lab| lab.check(provider, status, body));
}

/// A server that answers with what it is told to, and a client for each provider.
struct Lab {
    runtime: Runtime,
    tasks: LocalSet,
    models: Vec<Remote>,
    answer: Rc<RefCell<Vec<u8>>>,
}

impl Lab {
    fn new() -> Self {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let tasks = LocalSet::new();
        let answer = Rc::new(RefCell::new(Vec::new()));
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let at = listener.local_addr().expect("an address");
        let said = answer.clone();
        tasks.spawn_local(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let said = said.clone();
                tokio::task::spawn_local(async move {
                    // The client may leave at any time.
                    let _ = serve(connection, &said).await;
                });
            }
        });
        let model = |provider: &Provider| {
            let address = Address {
                url: format!("http://{at}/v1"),
                key: None,
            };
            let _inside = runtime.enter();
            Remote::at(&ModelName::new(*provider, "m"), address).expect("a model")
        };
        let models = PROVIDERS.iter().map(model).collect();
        Self {
            runtime,
            tasks,
            models,
            answer,
        }
    }

    fn check(&self, provider: usize, status: u16, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        *self.answer.borrow_mut() = [head.as_bytes(), body].concat();
        let request = Request {
            messages: vec![Message::User {
                content: "hello".into(),
            }],
            tokens_max: Some(64),
            ..Request::default()
        };
        let asked = read(&self.models[provider], &request);
        let Ok(reply) = self.tasks.block_on(&self.runtime, asked) else {
            return;
        };
        assert_eq!(status, 200, "an error was taken for a reply");
        assert!(reply.text().len() <= body.len(), "the reply grew");
        let json = serde_json::to_string(&reply).expect("a reply is written");
        let again: Reply = serde_json::from_str(&json).expect("what was written is read");
        assert_eq!(again, reply, "it is another one when it is read again");
    }
}

/// Reads to the end: the pieces are the reply, and nothing follows it.
async fn read(model: &Remote, request: &Request) -> Result<Reply, ModelError> {
    let mut stream = model.stream(request).await?;
    let mut text = String::new();
    while let Some(chunk) = stream.next().await {
        match chunk? {
            Chunk::Text(piece) => text.push_str(&piece),
            Chunk::End(reply) => {
                assert_eq!(reply.text(), text, "the pieces are not the whole");
                assert!(stream.next().await.is_none(), "something follows the end");
                return Ok(*reply);
            }
            _ => {}
        }
    }
    Err(ModelError::Cut)
}

async fn serve(connection: TcpStream, answer: &RefCell<Vec<u8>>) -> std::io::Result<()> {
    // A client that leaves early would otherwise use up the ports.
    connection.set_zero_linger()?;
    connection.set_nodelay(true)?;
    let mut connection = BufReader::new(connection);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if connection.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(given) = line.strip_prefix("content-length:") {
                length = given.trim().parse().unwrap_or(0);
            }
            if line.is_empty() {
                break;
            }
        }
        let mut asked = vec![0; length];
        connection.read_exact(&mut asked).await?;
        let bytes = answer.borrow().clone();
        connection.get_mut().write_all(&bytes).await?;
    }
}

const PROVIDERS: [Provider; 5] = [
    Provider::OpenAi,
    Provider::OpenAiResponses,
    Provider::Anthropic,
    Provider::Gemini,
    Provider::Ollama,
];
/// Mostly the one that has a stream.
const STATUSES: [u16; 8] = [200, 200, 200, 200, 200, 400, 429, 500];
