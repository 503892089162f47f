// npm @modelcontextprotocol/sdk for tests. Commands name an act:
//
//   {"act": "open", "url": "http://…/mcp", "elicits": true, "headers": {…}}   connects and lists tools; the event is "open"
//   {"act": "call", "name": "…", "arguments": {…}}   progress is an event "progress", the end "result" or "refused"
//   {…, "body": "{"}       sends this body instead
//   {…, "tokens": true}    tells the ids of the messages of its stream: an event "token" each
//   {"act": "resume", "token": "…"}   resumes a stream after a message; the event is "resumed" or "refused"
//   {"act": "send", "message": {…}}   sends a message of any kind; the event is "sent" or "refused"
//   {"act": "abort"}       cancels the call
//   {"act": "answer", "action": "accept", "content": {…}}   answers the next elicitation
//   {"act": "cut"}         loses all connections; the client reconnects by itself
//   {"act": "leave"}       loses all connections and does not reconnect
//   {"act": "terminate"}   ends the session of the protocol
//
// An elicitation is an event "elicit"; one that the server withdraws is an event "unasked".
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { sending } from './sending.mjs';

const clients = new Map();

async function open({ socket, url, elicits, headers }, tell) {
  const c = { asked: [], answers: [], cuts: new Set() };
  c.client = new Client({ name: 'parley-e2e', version: '1' }, { capabilities: elicits ? { elicitation: {} } : {} });
  if (elicits) {
    c.client.setRequestHandler(ElicitRequestSchema, ({ params }, { signal }) => {
      tell('elicit', { data: JSON.stringify(params) });
      return new Promise((resolve, reject) => {
        const asked = { resolve };
        c.asked.push(asked);
        signal.addEventListener('abort', () => {
          c.asked = c.asked.filter((a) => a !== asked);
          tell('unasked');
          reject(new Error('taken back'));
        });
        settle(c);
      });
    });
  }
  const cuttable = async (to, init) => {
    const cut = new AbortController();
    c.cuts.add(cut);
    init.signal?.addEventListener('abort', () => cut.abort());
    return sending(c.body)(to, { ...init, signal: cut.signal });
  };
  c.transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: cuttable,
    requestInit: { headers },
    reconnectionOptions: { initialReconnectionDelay: 10, maxReconnectionDelay: 50, reconnectionDelayGrowFactor: 1, maxRetries: 100 },
  });
  await c.client.connect(c.transport);
  clients.set(socket, c);
  const { tools } = await c.client.listTools();
  tell('open', { data: tools.map((t) => t.name).join(' ') });
}

// settle gives answers to elicitations, in order.
function settle(c) {
  while (c.asked.length > 0 && c.answers.length > 0) c.asked.shift().resolve(c.answers.shift());
}

async function call(c, { name, arguments: given, body, tokens }, tell) {
  c.aborts = new AbortController();
  c.body = body;
  const result = await c.client.callTool({ name, arguments: given }, undefined, {
    onprogress: (p) => tell('progress', { data: JSON.stringify(p) }),
    signal: c.aborts.signal,
    resetTimeoutOnProgress: true,
    onresumptiontoken: tokens ? (token) => tell('token', { data: token }) : undefined,
  });
  tell('result', { data: JSON.stringify(result) });
}

const acts = {
  call,
  resume: async (c, { token }, tell) => {
    await c.transport.resumeStream(token);
    tell('resumed');
  },
  send: async (c, { message }, tell) => {
    await c.transport.send(message);
    tell('sent');
  },
  abort: (c) => c.aborts.abort('enough'),
  answer: (c, { action, content }) => {
    c.answers.push({ action, content });
    settle(c);
  },
  cut: (c) => {
    for (const cut of c.cuts) cut.abort();
    c.cuts.clear();
  },
  leave: async (c, _, tell) => {
    await c.client.close();
    acts.cut(c);
    tell('left');
  },
  terminate: async (c, _, tell) => {
    await c.transport.terminateSession();
    tell('left');
  },
};

export default async function (command, tell) {
  try {
    if (command.act === 'open') await open(command, tell);
    else await acts[command.act](clients.get(command.socket), command, tell);
  } catch (error) {
    tell('refused', { data: `${error.constructor.name}: ${error.message}`, code: Number(error.code) || 0 });
  }
}
