#!/usr/bin/env node
// A small, complete client of the AgentLoop WebSocket protocol.
//
//   bin/parley serve &                                 # a server, on 127.0.0.1:8080
//   (cd e2e && npm ci)                                 # once: npm ws
//   node examples/agentloop-client.mjs                 # talk to it
//   node examples/agentloop-client.mjs --say "write hello to note.txt" --answer explain,yes
//
//   --url URL          the server; default ws://127.0.0.1:8080/
//   --session ID       go on with a session
//   --items local_shell   have shell commands shown as local_shell_call items
//   --token TOKEN      for servers that want one; also PARLEY_TOKEN
//   --say TEXT         say this and leave when it is answered; may be given several times
//   --answer A,B,…     answers to approval requests, in order: yes, no-exit, no-continue,
//                      always, explain. Without it they are asked for on the terminal,
//                      or, if --say is given, answered with no-continue.
//   --deny TEXT        goes with a no; --why TEXT goes with any answer
//   --context          at the end, ask how full the context is
//   --compact          before that, have it compacted
//   --json             print the messages as they are, one per line
//
// It ends with 0 if everything that was said was answered, with 1 if something
// failed, and with 2 if the server cannot be reached.
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

const { values: options } = parseArgs({
  options: {
    url: { type: 'string', default: 'ws://127.0.0.1:8080/' },
    session: { type: 'string' },
    items: { type: 'string' },
    token: { type: 'string', default: process.env.PARLEY_TOKEN },
    say: { type: 'string', multiple: true },
    answer: { type: 'string' },
    deny: { type: 'string' },
    why: { type: 'string' },
    context: { type: 'boolean', default: false },
    compact: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
});

// From the repository, or from wherever this file was copied to.
async function loadWebSocket() {
  try {
    return createRequire(new URL('../e2e/package.json', import.meta.url))('ws').WebSocket;
  } catch {
    return (await import('ws')).WebSocket;
  }
}

// ---- What is shown -------------------------------------------------------

// A Transcript prints items. Assistant messages come in pieces that share an id:
// the first piece with anything to see in it gets a prefix, and a message that
// was shown ends with a line break before anything else is printed.
class Transcript {
  #open = null; // the id of the message that is being printed
  #texts = new Map(); // by id

  piece({ id, content }) {
    const text = textOf(content);
    const before = this.#texts.get(id) ?? '';
    this.#texts.set(id, before + text);
    if (this.#open !== id) {
      if (!(before + text).trim()) return; // nothing to see yet
      this.end();
      print('assistant: ');
      this.#open = id;
      print(before.trim() ? text : before + text);
      return;
    }
    print(text);
  }

  line(text) {
    this.end();
    print(text + '\n');
  }

  end() {
    if (this.#open !== null) print('\n');
    this.#open = null;
  }

  forget() {
    this.end();
    this.#texts.clear();
  }
}

const textOf = (content) => (Array.isArray(content) ? content.map((c) => c.text ?? c).join('') : content ?? '');
const print = (text) => options.json || process.stdout.write(text);

const outputOf = (item) => {
  try {
    const { output, metadata } = JSON.parse(item.output);
    const exit = metadata.exit_code ?? metadata.error ?? '';
    return `${output.trimEnd()}${exit === '' ? '' : ` (${exit})`}`;
  } catch {
    return item.output;
  }
};

// ---- The client ----------------------------------------------------------

class Client {
  transcript = new Transcript();
  session = options.session;
  answers = options.answer?.split(',').filter(Boolean) ?? [];
  pending = null; // the approval request that waits for an answer
  suppressed = []; // items that are not to be seen before it has one
  asking = null; // what was said and has no ending yet
  seen = new Set(); // ids of messages of the run that is going on
  last = null; // the id of the last message that everybody is sent
  failed = false;
  leaving = false;
  attempts = 0;
  waiters = new Map(); // of replies, by type

  constructor(WebSocket, lines) {
    this.WebSocket = WebSocket;
    this.lines = lines;
  }

  // -- The connection: made again when it is lost, a little later every time.

  connect() {
    const url = new URL(options.url);
    if (this.session) url.searchParams.set('session', this.session);
    if (this.session && this.last) url.searchParams.set('after', this.last);
    if (options.items) url.searchParams.set('items', options.items);
    const headers = options.token ? { authorization: `Bearer ${options.token}` } : {};
    const ws = new this.WebSocket(url, { headers });
    this.ws = ws;
    ws.on('upgrade', (response) => (this.session = response.headers['parley-session'] ?? this.session));
    ws.on('open', () => this.opened());
    ws.on('message', (data) => this.receive(data.toString()));
    ws.on('error', () => {}); // close follows
    ws.on('unexpected-response', (_, response) => {
      // A session that was never opened cannot be gone on with: nothing was said.
      if (response.statusCode === 404 && this.session && !options.session) this.session = undefined;
      else if (response.statusCode === 410) this.last = null; // too long ago: only what still goes on is shown
      else if (response.statusCode < 500 && response.statusCode !== 429) this.leave(2, `${options.url} refused with ${response.statusCode}`);
      response.resume();
      ws.terminate();
    });
    ws.on('close', () => this.closed());
  }

  opened() {
    const again = this.attempts > 0 || this.asking;
    this.attempts = 0;
    if (again && this.asking) {
      // The same id: if it was received before, this has no effect. Whether it
      // is still being answered the server says behind it.
      this.send(this.asking.message);
      if (!this.last) this.send({ type: 'get_session' }); // else the rest of it comes
    }
    this.begun?.();
  }

  closed() {
    if (this.leaving) return;
    this.pending = null; // it is shown again if it still waits
    const wait = Math.min(100 * 2 ** this.attempts++, 5000);
    if (this.attempts > 8) {
      this.leave(2, `No server answers at ${options.url}. Start one with: parley serve`);
      return;
    }
    setTimeout(() => this.connect(), wait);
  }

  send(message) {
    const whole = { id: message.id ?? randomUUID(), ...message };
    if (this.ws.readyState === this.WebSocket.OPEN) this.ws.send(JSON.stringify(whole));
    return whole;
  }

  // -- What the server sends.

  receive(data) {
    const message = JSON.parse(data);
    if (options.json) process.stdout.write(data + '\n');
    const handler = this.handlers[message.type];
    if (!handler) return; // a type this client does not know
    // After a reconnection the run is shown from its start, under the same ids.
    const asks = message.type === 'approval_request' || message.type === 'question';
    if (this.seen.has(message.id) && !asks) return;
    this.seen.add(message.id);
    if (['loading_state', 'response_item', 'agent_finished'].includes(message.type)) this.last = message.id;
    handler.call(this, message.payload, message.id);
    this.waiters.get(message.type)?.(message.payload);
  }

  handlers = {
    loading_state({ loading }) {
      if (this.asking) this.asking.loading = loading;
      if (loading) return;
      this.transcript.forget();
      this.seen.clear();
      // After an error this is the end; else agent_finished comes.
      if (this.asking?.error) this.finish();
    },

    response_item(item) {
      const shell = item.type === 'local_shell_call' || item.type === 'local_shell_call_output';
      if (this.pending && shell) {
        this.suppressed.push(item);
        return;
      }
      this.show(item);
    },

    approval_request(request, id) {
      if (this.pending?.id === id) return;
      this.pending = { id, request };
      this.transcript.line(`approve? ${request.command.join(' ')}`);
      if (request.arguments) this.transcript.line(`  exactly: ${request.arguments}`);
      if (request.why) this.transcript.line(`  because ${request.why}`);
      this.review();
    },

    approval_closed({ decision }) {
      this.transcript.line(`(settled elsewhere: ${decision})`);
      this.settle();
    },

    question({ questionId, questions }) {
      for (const q of questions) this.transcript.line(`question: ${q.question} ${(q.options ?? []).map((o) => o.label).join(' / ')}`);
      const answer = (text) => this.send({ type: 'question_response', payload: { questionId, answers: questions.map(() => [text]) } });
      if (options.say) answer(questions[0]?.options?.[0]?.label ?? 'I do not know');
      else this.lines.ask('answer', answer);
    },

    agent_finished({ responseId }) {
      this.response = responseId;
      this.finish();
    },

    context_info({ tokenCount, maxTokens, usagePercent, transcriptLength }) {
      this.context = `context: ${tokenCount} of ${maxTokens} tokens (${usagePercent}%), ${transcriptLength} messages`;
    },

    context_compacted({ oldTokenCount, newTokenCount, reductionPercent }) {
      this.transcript.line(`context compacted: ${oldTokenCount} -> ${newTokenCount} tokens (-${reductionPercent}%)`);
    },

    error({ message, details }) {
      this.transcript.line(`error: ${message}${details ? ` (${details.error})` : ''}`);
      this.failed = true;
      if (!this.asking) return;
      this.asking.error = true;
      // What was not accepted has no loading_state.
      if (!this.asking.loading && message === 'Failed to process user input') this.finish();
    },

    session({ status }) {
      if (this.asking && !this.asking.loading && status === 'idle') {
        this.transcript.line('(it was answered while the connection was lost)');
        this.finish();
      }
    },
  };

  show(item) {
    switch (item.type) {
      case 'message':
        if (item.role === 'assistant') this.transcript.piece(item);
        else this.transcript.line(`${item.role}: ${textOf(item.content)}`);
        break;
      case 'reasoning':
        this.transcript.line(`thinking: ${textOf(item.content)} (${item.duration_ms} ms)`);
        break;
      case 'function_call':
        this.transcript.line(`call: ${item.name} ${item.arguments}`);
        break;
      case 'local_shell_call':
        this.transcript.line(`$ ${item.action.command.join(' ')}`);
        break;
      case 'function_call_output':
      case 'local_shell_call_output':
        this.transcript.line(`output: ${outputOf(item)}`);
        break;
    }
  }

  // -- Approvals.

  review() {
    if (this.answers.length > 0) this.answer(this.answers.shift());
    else if (options.say) this.answer('no-continue');
    else this.lines.ask('yes, no-exit, no-continue, always or explain', (text) => this.answer(text));
  }

  answer(review) {
    const { id } = this.pending ?? {};
    if (!id) return; // it was settled elsewhere meanwhile
    this.transcript.line(`answer: ${review}`);
    const payload = { review, requestId: id, customDenyMessage: null };
    if (review.startsWith('no') && options.deny) payload.customDenyMessage = options.deny;
    if (options.why) payload.explanation = options.why;
    if (review === 'explain') this.pending = null; // it will be asked again
    else this.settle();
    this.send({ type: 'approval_response', payload });
  }

  settle() {
    this.pending = null;
    const items = this.suppressed;
    this.suppressed = [];
    for (const item of items) this.handlers.response_item.call(this, item);
  }

  // -- What the user says.

  say(text) {
    const message = {
      id: randomUUID(),
      type: 'user_input',
      payload: { input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text }] }], previousResponseId: this.response },
    };
    return new Promise((resolve) => {
      this.asking = { message, resolve, loading: false, error: false };
      this.send(message);
    });
  }

  finish() {
    const { resolve } = this.asking ?? {};
    this.asking = null;
    this.pending = null;
    this.transcript.forget();
    resolve?.();
  }

  // reply waits for a message of one of these types.
  reply(...types) {
    return new Promise((resolve) => {
      for (const type of types) this.waiters.set(type, resolve);
    });
  }

  leave(code, reason) {
    if (this.leaving) return;
    this.leaving = true;
    if (reason) process.stderr.write(reason + '\n');
    this.ws.once('close', () => process.exit(code));
    this.ws.close(1000);
    setTimeout(() => process.exit(code), 2000).unref();
    if (this.ws.readyState === this.WebSocket.CLOSED) process.exit(code);
  }
}

// ---- The terminal --------------------------------------------------------

// Lines hands each line to whoever asks for one, else to the conversation.
class Lines {
  #asked = null;
  #said = [];
  #listener = null;

  start() {
    const input = createInterface({ input: process.stdin });
    input.on('line', (line) => {
      const to = this.#asked ?? this.#listener;
      this.#asked = null;
      if (to === this.#listener) this.#listener = null;
      if (to) to(line);
      else this.#said.push(line);
    });
    input.on('close', () => this.#listener?.(null));
  }

  ask(what, answer) {
    process.stdout.write(`[${what}] `);
    this.#asked = (line) => answer(line.trim());
  }

  next() {
    if (this.#said.length > 0) return Promise.resolve(this.#said.shift());
    process.stdout.write('> ');
    return new Promise((resolve) => (this.#listener = resolve));
  }
}

const lines = new Lines();
const client = new Client(await loadWebSocket(), lines);
const begun = new Promise((resolve) => (client.begun = resolve));
client.connect();
await begun;
if (options.say) {
  for (const text of options.say) {
    client.transcript.line(`you: ${text}`);
    await client.say(text);
  }
} else {
  lines.start();
  for (let line = await lines.next(); line !== null; line = await lines.next()) {
    if (line.trim()) await client.say(line);
  }
}
if (options.compact) {
  const done = client.reply('context_compacted', 'error');
  client.send({ type: 'manual_compact' });
  await done;
}
if (options.context) {
  const told = client.reply('context_info');
  client.send({ type: 'get_context_info' });
  await told;
  client.transcript.line(client.context);
}
client.leave(client.failed ? 1 : 0);
