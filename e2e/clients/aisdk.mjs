// npm ai for tests. Commands name an act:
//
//   {"act": "send", "api": "http://…", "chat": "…", "messages": […], "trigger": "…", "headers": {…}, "leave": 3}
//   {"act": "resume", "api": "http://…", "chat": "…", "headers": {…}, "leave": 3}
//
// are DefaultChatTransport and readUIMessageStream. Each chunk is an event "chunk", the message at the end "message",
// 204 is "nothing", the end "close". With leave the client hangs up after so many chunks; "body" replaces the body.
//
//   {"act": "open", "api": "http://…", "chat": "…", "messages": […], "body": {"tools": […]}}
//   {"act": "say", "text": "…"} {"act": "answer", "id": "…", "approved": true, "reason": "…"} {"act": "output", "id": "…",
//   "output": …} {"act": "regenerate"} {"act": "resumeStream"}
//
// are a Chat, as useChat uses it, which sends answers by itself. When it is ready or has an error, it reports its
// messages in an event "ready".
//
//   {"act": "check", "events": […]}
//
// checks a list of chunks with the schema and the reader, and reports the errors in "checked".
import {
  AbstractChat,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  readUIMessageStream,
  uiMessageChunkSchema,
} from 'ai';
import { sending } from './sending.mjs';

class State {
  #status = 'ready';
  error;
  snapshot = (m) => structuredClone(m);
  constructor(messages, changed) {
    this.messages = messages;
    this.changed = changed;
  }
  get status() {
    return this.#status;
  }
  set status(status) {
    this.#status = status;
    if (status === 'ready' || status === 'error') queueMicrotask(this.changed);
  }
  pushMessage = (m) => (this.messages = [...this.messages, this.snapshot(m)]);
  popMessage = () => (this.messages = this.messages.slice(0, -1));
  replaceMessage = (i, m) => (this.messages = this.messages.toSpliced(i, 1, this.snapshot(m)));
}

class Chat extends AbstractChat {}

const chats = new Map();

function open({ socket, api, chat, messages = [], headers, body }, tell) {
  const state = new State(messages, () =>
    tell('ready', {
      data: JSON.stringify({ status: state.status, error: state.error?.message, messages: state.messages }),
      code: state.error?.statusCode ?? 0,
    }),
  );
  chats.set(
    socket,
    new Chat({
      id: chat,
      state,
      transport: new DefaultChatTransport({ api, headers, body }),
      sendAutomaticallyWhen: (m) =>
        lastAssistantMessageIsCompleteWithApprovalResponses(m) || lastAssistantMessageIsCompleteWithToolCalls(m),
    }),
  );
  tell('open');
}

async function read(stream, { messages = [], leave = Infinity }, tell, hangUp) {
  const last = messages.at(-1);
  const counted = stream.pipeThrough(
    new TransformStream({
      transform(chunk, controller) {
        if (leave-- <= 0) return;
        tell('chunk', { data: JSON.stringify(chunk) });
        controller.enqueue(chunk);
        if (leave === 0) hangUp.abort();
      },
    }),
  );
  let message;
  const continued = last?.role === 'assistant' ? structuredClone(last) : undefined;
  for await (const m of readUIMessageStream({ stream: counted, message: continued, onError: () => {} })) message = m;
  if (message) tell('message', { data: JSON.stringify(message) });
  tell('close');
}

async function transport(command, tell) {
  const { act, api, chat, headers, messages, body, trigger = 'submit-message' } = command;
  const hangUp = new AbortController();
  const t = new DefaultChatTransport({ api, headers, fetch: sending(body) });
  const abortSignal = hangUp.signal;
  const stream =
    act === 'send'
      ? await t.sendMessages({ chatId: chat, messages, trigger, abortSignal })
      : await t.reconnectToStream({ chatId: chat, abortSignal });
  if (!stream) return tell('nothing');
  await read(stream, command, tell, hangUp);
}

async function check({ events }, tell) {
  const wrong = [];
  for (const value of events) {
    const { success, error } = await uiMessageChunkSchema().validate(value);
    if (!success) wrong.push(`${JSON.stringify(value)}: ${error}`);
  }
  const onError = (error) => {
    const expected = events.some((e) => e.type === 'error' && e.errorText === error.message);
    if (!expected) wrong.push(String(error));
  };
  for await (const _ of readUIMessageStream({ stream: ReadableStream.from(events), onError }));
  tell('checked', { data: wrong.join('\n') });
}

const acts = {
  check,
  send: transport,
  resume: transport,
  open,
  say: ({ socket, text }) => void chats.get(socket).sendMessage({ text }),
  answer: ({ socket, id, approved, reason }) => void chats.get(socket).addToolApprovalResponse({ id, approved, reason }),
  output: ({ socket, id, output }) => void chats.get(socket).addToolOutput({ toolCallId: id, output }),
  regenerate: ({ socket }) => void chats.get(socket).regenerate(),
  resumeStream: ({ socket }) => void chats.get(socket).resumeStream(),
};

export default (command, tell) => acts[command.act](command, tell);
