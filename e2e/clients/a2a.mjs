// npm @a2a-js/sdk for tests. Commands name an act, the address of an agent (ending with a slash) and the version:
//
//   {"act": "stream", "base": "http://…/", "version": "1.0", "text": "…", "data": {…}, "context": "…", "task": "…", "leave": 3}
//   {"act": "subscribe", "base": "…", "task": "…", "leave": 3}
//   {"act": "talk", …}   stream, and subscribe again while a person is needed, up to the end of the task
//   {"act": "send", …, "immediately": true}   {"act": "get", "task": "…"}   {"act": "cancel", "task": "…"}
//   {"act": "list", "context": "…", "status": 6}   {"act": "card"}   {…, "body": "{"}  sends this body instead
//
// Each event of a stream is an event "event", any other result "answer", an error of the client "refused" with its name,
// and the end of a stream "close". With leave the client hangs up after so many events.
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { sending } from './sending.mjs';

const clients = new Map();

// connect creates a client. For version 0.3 the client gets the agent card of 0.3.
function connect({ base, version = '1.0', headers, body }) {
  const key = JSON.stringify([base, version, headers, body]);
  if (!clients.has(key)) clients.set(key, make(base, version, headers, sending(body)));
  return clients.get(key);
}

async function make(base, version, headers, send) {
  const fetchImpl = (url, init) => send(url, { ...init, headers: { ...init?.headers, ...headers } });
  if (version === '1.0') {
    const factory = new ClientFactory({
      transports: [new JsonRpcTransportFactory({ fetchImpl })],
      cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
    });
    return factory.createFromUrl(base);
  }
  const legacyCompat = { enabled: true };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
  });
  const card = await fetchImpl(new URL('.well-known/agent-card.json', base));
  return factory.createFromAgentCard(await card.json());
}

function message({ text, data, context = '', task = '', immediately }) {
  const content = data ? { $case: 'data', value: data } : { $case: 'text', value: text };
  return {
    tenant: '',
    metadata: undefined,
    configuration: immediately === undefined ? undefined : { acceptedOutputModes: [], returnImmediately: immediately },
    message: {
      messageId: crypto.randomUUID(),
      role: 1,
      parts: [{ content, filename: '', mediaType: '' }],
      contextId: context,
      taskId: task,
      extensions: [],
      referenceTaskIds: [],
    },
  };
}

const inputRequired = 6;

// follow reports the events of a stream, and returns the last state and the task.
async function follow(stream, command, tell, seen = {}) {
  let left = command.leave ?? Infinity;
  for await (const { payload } of stream) {
    tell('event', { data: JSON.stringify({ kind: payload.$case, ...payload.value }) });
    seen.task = payload.value.taskId ?? payload.value.id;
    seen.state = payload.value.status?.state ?? seen.state;
    if (--left <= 0) break;
  }
  return seen;
}

async function talk(client, command, tell) {
  let seen = await follow(client.sendMessageStream(message(command)), command, tell);
  while (seen.state === inputRequired) {
    try {
      seen = await follow(client.resubscribeTask({ id: seen.task, tenant: '' }), command, tell, seen);
    } catch (error) {
      if (error.name !== 'UnsupportedOperationError') throw error; // the task has ended meanwhile
      const task = await client.getTask({ id: seen.task, tenant: '' });
      tell('event', { data: JSON.stringify({ kind: 'task', ...task }) });
      return;
    }
  }
}

const acts = {
  stream: async (client, c, tell) => {
    await follow(client.sendMessageStream(message(c)), c, tell);
    tell('close');
  },
  subscribe: async (client, c, tell) => {
    await follow(client.resubscribeTask({ id: c.task, tenant: '' }), c, tell);
    tell('close');
  },
  talk,
  send: (client, c) => client.sendMessage(message(c)),
  get: (client, c) => client.getTask({ id: c.task, tenant: '', historyLength: c.history }),
  cancel: (client, c) => client.cancelTask({ id: c.task, tenant: '' }),
  list: (client, c) =>
    client.listTasks({ tenant: '', contextId: c.context ?? '', status: c.status ?? 0, pageToken: c.page ?? '', pageSize: c.size }),
  card: (client) => client.agentCard,
};

export default async function (command, tell) {
  try {
    const answer = await acts[command.act](await connect(command), command, tell);
    if (answer) tell('answer', { data: JSON.stringify(answer) });
  } catch (error) {
    const cause = error.cause ?? error;
    tell('refused', { data: `${cause.name}: ${cause.message}`, code: cause.envelopeCode ?? 0 });
  }
}
