// SPDX-License-Identifier: Apache-2.0

//! The echo service on tonic, on one thread. Messages stay bytes: the codec hands on the buffers
//! that came, so nothing is parsed. What tonic-build would write is written by hand here.
//!
//!     grpc-bench-tonic --addr 127.0.0.1:0 [--tls-cert PEM --tls-key PEM]
//!
//! Prints "ready PORT".

use bytes::{Buf, BufMut, Bytes};
use std::convert::Infallible;
use std::future::{ready, Future, Ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio_stream::{Stream, StreamExt};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, NamedService, ServerStreamingService, StreamingService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tonic::{Request, Response, Status, Streaming};

const N_ANSWERS: usize = 1000;

type BoxError = Box<dyn std::error::Error>;
type Messages = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;
type Answer<T> = Ready<Result<Response<T>, Status>>;

#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;
    fn encoder(&mut self) -> Raw {
        Raw
    }
    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

struct Echo;

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Answer<Bytes>;
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Chat;

impl StreamingService<Bytes> for Chat {
    type Response = Bytes;
    type ResponseStream = Streaming<Bytes>;
    type Future = Answer<Streaming<Bytes>>;
    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

struct Answers;

impl ServerStreamingService<Bytes> for Answers {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = Answer<Messages>;
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let message = request.into_inner();
        let all = tokio_stream::iter(0..N_ANSWERS).map(move |_| Ok(message.clone()));
        ready(Ok(Response::new(Box::pin(all))))
    }
}

#[derive(Clone)]
struct EchoService;

impl NamedService for EchoService {
    const NAME: &'static str = "pegboard.test.Echo";
}

type Reply = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

impl tower_service::Service<http::Request<Body>> for EchoService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Reply;
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
    fn call(&mut self, request: http::Request<Body>) -> Reply {
        match request.uri().path() {
            "/pegboard.test.Echo/Echo" => Box::pin(async { Ok(Grpc::new(Raw).unary(Echo, request).await) }),
            "/pegboard.test.Echo/Chat" => Box::pin(async { Ok(Grpc::new(Raw).streaming(Chat, request).await) }),
            "/pegboard.test.Echo/Stream" => {
                Box::pin(async { Ok(Grpc::new(Raw).server_streaming(Answers, request).await) })
            }
            _ => Box::pin(ready(Ok(Status::unimplemented("no such method").into_http()))),
        }
    }
}

fn option(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip_while(|a| a != name);
    arguments.next();
    arguments.next()
}

async fn serve() -> Result<(), BoxError> {
    let address = option("--addr").unwrap_or("127.0.0.1:0".into());
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut server = Server::builder();
    if let (Some(cert), Some(key)) = (option("--tls-cert"), option("--tls-key")) {
        let identity = Identity::from_pem(std::fs::read(cert)?, std::fs::read(key)?);
        server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
    }
    println!("ready {}", listener.local_addr()?.port());
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    server.add_service(EchoService).serve_with_incoming(incoming).await?;
    Ok(())
}

fn main() -> Result<(), BoxError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(serve())
}
