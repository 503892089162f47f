// A remote control for npm ws, npm eventsource and fetch, so that tests in Go
// can speak to a server through independent clients.
//
// Commands come as JSON lines on standard input and name a socket:
//
//   {"do": "open", "socket": "1", "url": "ws://…", "headers": {…}}
//   {"do": "open", "socket": "1", "url": "ws://…", "leave": 3}   hang up the moment the third message has come
//   {"do": "text", "socket": "1", "data": "…"}     a text message
//   {"do": "raw", "socket": "1", "data": "base64"}  the same, unchecked: any bytes
//   {"do": "binary", "socket": "1", "data": "base64"}
//   {"do": "close", "socket": "1", "code": 1000, "reason": "…"}
//   {"do": "terminate", "socket": "1"}              hang up without goodbye
//   {"do": "listen", "socket": "1", "url": "http://…"}   an EventSource; it can leave, too
//   {"do": "listen", "socket": "1", "url": "http://…", "body": "…"}   the same with a POST
//   {"do": "deafen", "socket": "1"}                 ends an EventSource
//   {"do": "forget", "socket": "1"}                 ends a socket of any kind that its test no longer uses
//   {"do": "fetch", "socket": "1", "url": "http://…", "method": "POST", "body": "…"}
//   {"do": "use", "socket": "1", "module": "aisdk", …}   a client of clients/; its file lists the further fields
//   {"do": "openai", …}                             see openai.mjs
//
// Everything that happens to a socket is a JSON line on standard output:
//
//   {"socket": "1", "event": "upgrade", "data": "session"}  if the server named one
//   {"socket": "1", "event": "open"}
//   {"socket": "1", "event": "message", "data": "…", "binary": false}
//   {"socket": "1", "event": "refused", "code": 403, "data": "body"}   instead of open
//   {"socket": "1", "event": "error", "data": "…"}
//   {"socket": "1", "event": "close", "code": 1000, "data": "reason"}  the last one
//   {"socket": "1", "event": "message", "data": "…", "id": "…"}    of an EventSource
//   {"socket": "1", "event": "answer", "code": 200, "data": "body"}  to a fetch
//
// The end of standard input ends the program.
import { createInterface } from 'node:readline';
import { EventSource } from 'eventsource';
import { WebSocket } from 'ws';

const sockets = new Map();

const tell = (socket, event, more) => process.stdout.write(JSON.stringify({ socket, event, ...more }) + '\n');

function open({ socket, url, headers, leave }) {
  const ws = new WebSocket(url, { headers });
  let left = leave ?? Infinity;
  sockets.set(socket, ws);
  ws.on('upgrade', ({ headers }) => headers['parley-session'] && tell(socket, 'upgrade', { data: headers['parley-session'] }));
  ws.on('open', () => tell(socket, 'open'));
  ws.on('message', (data, binary) => {
    if (left-- <= 0) return; // it has hung up; all messages before that were reported
    tell(socket, 'message', { data: data.toString(), binary });
    if (left === 0) ws.terminate();
  });
  ws.on('error', (error) => tell(socket, 'error', { data: error.message }));
  ws.on('close', (code, reason) => tell(socket, 'close', { code, data: reason.toString() }));
  ws.on('unexpected-response', (_, response) => {
    response.setEncoding('utf8');
    let data = '';
    response.on('data', (piece) => (data += piece));
    response.on('end', () => tell(socket, 'refused', { code: response.statusCode, data }));
  });
}

// listen reports the events of an EventSource. When its connection is lost, it
// reconnects by itself, with the id of its last message.
function listen({ socket, url, leave, body }) {
  const post = (to, init) =>
    fetch(to, { ...init, method: 'POST', body, headers: { ...init.headers, 'Content-Type': 'application/json' } });
  const source = new EventSource(url, body ? { fetch: post } : undefined);
  let left = leave ?? Infinity;
  sockets.set(socket, source);
  source.onopen = () => tell(socket, 'open');
  source.onmessage = (m) => {
    if (left-- <= 0) return;
    tell(socket, 'message', { data: m.data, id: m.lastEventId });
    if (left > 0) return;
    source.close();
    tell(socket, 'close');
  };
  source.onerror = (e) => tell(socket, 'error', { data: String(e.message), code: e.code ?? 0 });
}

async function ask({ socket, url, method, body }) {
  const headers = body ? { 'Content-Type': 'application/json' } : {};
  const response = await fetch(url, { method, body: body || undefined, headers });
  tell(socket, 'answer', { code: response.status, data: await response.text() });
}

// use runs a command of a client in clients/. The module is loaded when it is first needed.
async function use(command) {
  try {
    const { default: client } = await import(`./clients/${command.module}.mjs`);
    await client(command, (event, more) => tell(command.socket, event, more));
  } catch (error) {
    tell(command.socket, 'error', { data: `${error.name}: ${error.message}`, code: error.statusCode ?? error.status ?? 0 });
  }
}

const commands = {
  open,
  use,
  listen,
  deafen: (c) => sockets.get(c.socket).close(),
  fetch: (c) => ask(c).catch((error) => tell(c.socket, 'error', { data: String(error) })),
  openai: (c) => import('./openai.mjs').then((m) => m.openai(c, tell, sockets)),
  text: (c) => sockets.get(c.socket).send(c.data),
  raw: (c) => sockets.get(c.socket).send(Buffer.from(c.data, 'base64'), { binary: false }),
  binary: (c) => sockets.get(c.socket).send(Buffer.from(c.data, 'base64'), { binary: true }),
  close: (c) => sockets.get(c.socket).close(c.code, c.reason),
  terminate: (c) => sockets.get(c.socket).terminate(),
  forget: ({ socket }) => {
    const s = sockets.get(socket);
    sockets.delete(socket);
    if (s instanceof WebSocket) s.terminate();
    else s?.close();
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  commands[command.do](command);
}
process.exit(0);
