// npm @ag-ui/client for tests. Commands name an act:
//
//   {"act": "open", "url": "http://…", "thread": "…", "headers": {…}}     an HttpAgent; "body" replaces every body
//   {"act": "run", "text": "…", "resume": […], "tools": […], "context": […], "runId": "…", "leave": 3}
//   {"act": "result", "call": "…", "content": "…"}                        of a tool of the page, for the next run
//
// Each event of a run is an event "event". When the run is over, "ready" has the messages of the agent, its interrupts
// and the pending tool calls. With leave the client hangs up after so many events. A warning of the client is an event
// "warning".
//
//   {"act": "check", "events": […]}
//
// checks a list of events with the schemas and the verifier, and reports the errors in "checked".
import { HttpAgent, verifyEvents } from '@ag-ui/client';
import { EventSchemas } from '@ag-ui/core/schemas';
import { randomUUID } from 'node:crypto';
import { from, lastValueFrom, toArray } from 'rxjs';
import { sending } from './sending.mjs';

const agents = new Map();

// The client writes to the console, but standard output carries the protocol of the test.
const warned = new Set();
for (const level of ['log', 'info', 'debug']) console[level] = () => {};
console.warn = (...words) => {
  if (String(words[0]).startsWith('[ag-ui]')) warned.forEach((tell) => tell('warning', { data: words.join(' ') }));
};
console.error = () => {}; // the error is also thrown

function open({ socket, url, thread, headers, body }, tell) {
  agents.set(socket, new HttpAgent({ url, threadId: thread, headers, fetch: sending(body) }));
  tell('open');
}

async function run({ socket, text, resume, tools, context, runId, leave = Infinity }, tell) {
  const agent = agents.get(socket);
  if (text !== undefined) agent.addMessage({ id: randomUUID(), role: 'user', content: text });
  let pending = [];
  warned.add(tell);
  try {
    await agent.runAgent(
      { runId, resume, tools, context },
      {
        onEvent: ({ event }) => {
          if (leave-- <= 0) return;
          tell('event', { data: JSON.stringify(event) });
          if (leave === 0) agent.abortRun();
        },
        onRunFinishedEvent: (finished) => {
          pending = finished.pendingToolCallIds ?? [];
        },
      },
    );
  } finally {
    warned.delete(tell);
  }
  tell('ready', { data: JSON.stringify({ messages: agent.messages, interrupts: agent.pendingInterrupts, pending }) });
}

function result({ socket, call, content }, tell) {
  agents.get(socket).addMessage({ id: randomUUID(), role: 'tool', toolCallId: call, content });
  tell('open');
}

// unknown lists the fields of an event that its schema does not have.
function unknown(event) {
  const schema = EventSchemas.options.find((o) => o.shape.type.value === event.type);
  return Object.keys(event).filter((key) => !schema || !(key in schema.shape));
}

async function check({ events }, tell) {
  const wrong = [];
  for (const event of events) {
    const { success, error } = EventSchemas.safeParse(event);
    if (!success) wrong.push(`${JSON.stringify(event)}: ${error.message}`);
    for (const key of unknown(event)) wrong.push(`${event.type} has no field ${key}`);
  }
  await lastValueFrom(from(events).pipe(verifyEvents(false), toArray())).catch((error) => wrong.push(String(error)));
  tell('checked', { data: wrong.join('\n') });
}

const acts = { open, run, result, check };

export default (command, tell) => acts[command.act](command, tell);
