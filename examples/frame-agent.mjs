// A complete agent for Parley in a page: docs/remote-agents.md says how to use it.
//
//   node examples/frame-agent.mjs tcp://127.0.0.1:9100
//
// It says back what it is told, word by word. "use TOOL" has it use a tool, if it
// may, and "send TEXT" has it ask a person first. Node alone is needed.
import fs from 'node:fs';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const address = process.argv[2] ?? '';
const [, scheme, rest] = address.match(/^(tcp|unix):\/\/(.+)$/) ?? [];
if (!rest) {
  console.error('usage: frame-agent.mjs tcp://host:port | unix:///path');
  process.exit(2);
}

// Parley makes one connection, and the messages of all people come over it.
const server = net.createServer((socket) => {
  let buffer = Buffer.alloc(0);
  let config = {};
  const running = new Map(); // by the id of the message: how to stop it, and whom a decision is for
  const began = Date.now();

  const send = (type, id, payload) => {
    const body = Buffer.from(JSON.stringify({ type, id, payload }));
    const size = Buffer.alloc(4);
    size.writeUInt32BE(body.length);
    socket.write(Buffer.concat([size, body]));
  };
  const beat = () => send('heartbeat', '', { status: 'running', uptime_secs: Math.floor((Date.now() - began) / 1000) });
  const timer = setInterval(beat, 10_000);
  beat();

  // answer says something to a message, and at last a chunk that is done.
  const answer = async (id, { content }) => {
    const stop = new AbortController();
    const task = { stop: () => stop.abort(), decided: null };
    const decision = new Promise((resolve) => (task.decided = resolve));
    running.set(id, task);
    const cancelled = new Promise((_, reject) => stop.signal.addEventListener('abort', () => reject(stop.signal.reason)));
    cancelled.catch(() => {}); // it is awaited below, or of no interest
    try {
      const [, verb, what = ''] = content.match(/^(\S*) ?(.*)$/s);
      let text = `You said: ${content}`;
      if (verb === 'use') {
        const allowed = config.tool_allowlist ?? [];
        if (allowed.length === 0 || allowed.includes(what)) {
          send('tool_executed', id, { tool_name: what, duration_ms: 1, result: 'looked' });
          text = `I used ${what}.`;
        } else {
          send('tool_blocked', id, { tool_name: what, reason: `tool "${what}" not in allow-list`, continues: true });
          text = `I may not use ${what}.`;
        }
      } else if (verb === 'send') {
        send('approval_required', id, { tool_name: 'send', arguments: JSON.stringify({ text: what }), risk_class: 'external_writes', continues: true });
        const type = await Promise.race([decision, cancelled]);
        text = 'I did not send it.';
        if (type === 'connector_action_resume') {
          send('tool_executed', id, { tool_name: 'send', duration_ms: 1 });
          text = 'I sent it.';
        }
      }
      const token = (config.canary_tokens ?? []).find((word) => text.includes(word));
      if (token) return send('session_halt', id, { reason: 'canary_leak', token });
      for (const word of text.split(/(?<= )/)) {
        await sleep(20, undefined, { signal: stop.signal }); // a model takes its time
        send('chunk', id, { content: word, done: false });
      }
      send('chunk', id, { content: '', done: true });
    } catch (error) {
      if (!stop.signal.aborted) send('error', id, { code: 'failed', message: String(error) });
    } finally {
      running.delete(id);
    }
  };

  const hear = ({ type, id, payload }) => {
    switch (type) {
      case 'ping': return send('pong', id, {});
      case 'config_update':
        config = payload;
        return send('config_ack', id, { applied: true });
      case 'message': return void answer(id, payload);
      case 'cancel': return running.get(id)?.stop();
      case 'connector_action_resume':
      case 'connector_action_denied': return running.get(id)?.decided(type);
    }
  };

  socket.on('data', (data) => {
    buffer = Buffer.concat([buffer, data]);
    while (buffer.length >= 4 && buffer.length >= 4 + buffer.readUInt32BE(0)) {
      const end = 4 + buffer.readUInt32BE(0);
      hear(JSON.parse(buffer.subarray(4, end)));
      buffer = buffer.subarray(end);
    }
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    clearInterval(timer);
    for (const { stop } of running.values()) stop();
  });
});

if (scheme === 'unix') fs.rmSync(rest, { force: true }); // what an earlier one left
const where = scheme === 'unix' ? { path: rest } : { host: rest.slice(0, rest.lastIndexOf(':')), port: Number(rest.slice(rest.lastIndexOf(':') + 1)) };
server.listen(where, () => {
  const at = server.address();
  console.log(`listening on ${scheme === 'unix' ? address : `tcp://${at.address}:${at.port}`}`);
});
