//! A TCP proxy that adds a fixed delay each way and limits nothing else.
//!
//! `delay-proxy LISTEN HOST PORT DELAY_MS...` listens on a port of the address LISTEN for each delay,
//! prints the ports as one JSON line, and forwards to HOST:PORT until its standard input ends.
//!
//! Each direction of a connection has a thread that reads chunks and notes when they came, and one
//! that writes each chunk when it is due. Bytes are moved in chunks and never looked at, so the cost
//! is that of the system calls. Threads that wait cost nothing.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 256 * 1024;
/// Bytes on their way in one direction: a receiver that stops reading stops the sender here. At
/// 100 ms it lets 640 MB/s through.
const ON_THE_WAY_BYTES_MAX: usize = 64 << 20;
const STACK_BYTES: usize = 128 * 1024;

#[derive(Default)]
struct Way {
    chunks: VecDeque<(Instant, Vec<u8>)>,
    bytes: usize,
    /// The sender has ended; what is on its way still arrives.
    ended: bool,
    /// The receiver is gone; nothing arrives any more.
    broken: bool,
}

struct Line {
    way: Mutex<Way>,
    changed: Condvar,
    delay: Duration,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.len() < 4 {
        eprintln!("usage: delay-proxy LISTEN HOST PORT DELAY_MS...");
        std::process::exit(2);
    }
    let target = format!("{}:{}", arguments[1], arguments[2]);
    let mut ports = Vec::new();
    for text in &arguments[3..] {
        let delay_ms: f64 = text.parse().expect("a delay in milliseconds");
        let listener = TcpListener::bind((arguments[0].as_str(), 0)).expect("a free port");
        ports.push(
            listener
                .local_addr()
                .expect("its address")
                .port()
                .to_string(),
        );
        let target = target.clone();
        thread::spawn(move || {
            accept(
                listener,
                &target,
                Duration::from_secs_f64(delay_ms / 1000.0),
            )
        });
    }
    println!("[{}]", ports.join(", "));
    let mut rest = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut rest);
}

fn accept(listener: TcpListener, target: &str, delay: Duration) {
    for client in listener.incoming().flatten() {
        let target = target.to_string();
        start(move || {
            if let Ok(server) = TcpStream::connect(&target) {
                let _ = join(client, server, delay);
            }
        });
    }
}

/// Forward both ways until both have ended.
fn join(client: TcpStream, server: TcpStream, delay: Duration) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    forward(client.try_clone()?, server.try_clone()?, delay);
    forward(server, client, delay);
    Ok(())
}

fn forward(from: TcpStream, to: TcpStream, delay: Duration) {
    let line = Arc::new(Line {
        way: Mutex::new(Way::default()),
        changed: Condvar::new(),
        delay,
    });
    let other = Arc::clone(&line);
    start(move || receive(from, &line));
    start(move || deliver(to, &other));
}

fn receive(mut from: TcpStream, line: &Line) {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let count = from.read(&mut buffer).unwrap_or(0);
        let due = Instant::now() + line.delay;
        let mut way = line.way.lock().unwrap();
        way.ended = count == 0;
        if count > 0 {
            way.chunks.push_back((due, buffer[..count].to_vec()));
            way.bytes += count;
        }
        line.changed.notify_all();
        while way.bytes >= ON_THE_WAY_BYTES_MAX && !way.broken {
            way = line.changed.wait(way).unwrap();
        }
        if way.ended || way.broken {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Read);
}

fn deliver(mut to: TcpStream, line: &Line) {
    loop {
        let mut way = line.way.lock().unwrap();
        while way.chunks.is_empty() && !way.ended {
            way = line.changed.wait(way).unwrap();
        }
        let Some((due, chunk)) = way.chunks.pop_front() else {
            break;
        };
        drop(way);
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let written = to.write_all(&chunk);
        let mut way = line.way.lock().unwrap();
        way.bytes -= chunk.len();
        way.broken = written.is_err();
        line.changed.notify_all();
        if way.broken {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn start(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(run)
        .expect("a thread");
}
