// An editor of the Agent Client Protocol for tests, written with the official SDK. It starts the command in its
// arguments. Commands come as JSON lines on standard input:
//
//   {"call": "session/new", "params": {…}, "as": "1"}   a request
//   {"notify": "session/cancel", "params": {…}}
//   {"choose": "allow", "of": "card-1"}                 answers a request for permission
//   {"raw": "text"}                                     a line of any kind
//
// Everything that happens is a JSON line on standard output:
//
//   {"as": "1", "result": {…}} or {"as": "1", "error": {"name", "code", "message"}}
//   {"update": {…}, "session": "…"}
//   {"permission": {…}, "of": "card-1"} and {"withdrawn": "card-1"}
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

const tell = (line) => process.stdout.write(JSON.stringify(line) + '\n');
const [command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
child.on('exit', (code) => tell({ exited: code }));

let cards = 0;
const open = new Map();

const connection = acp
  .client({ name: 'test' })
  .onNotification(acp.methods.client.session.update, ({ params }) =>
    tell({ update: params.update, session: params.sessionId }))
  .onRequest(acp.methods.client.session.requestPermission, ({ params, signal }) =>
    new Promise((resolve) => {
      const of = `card-${++cards}`;
      open.set(of, (optionId) => resolve({ outcome: { outcome: 'selected', optionId } }));
      signal?.addEventListener('abort', () => {
        tell({ withdrawn: of });
        resolve({ outcome: { outcome: 'cancelled' } });
      });
      tell({ permission: params, of });
    }))
  .connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)));

for await (const line of createInterface({ input: process.stdin })) {
  const c = JSON.parse(line);
  if (c.call) {
    connection.agent.request(c.call, c.params).then(
      (result) => tell({ as: c.as, result }),
      (error) => tell({ as: c.as, error: { name: error.constructor.name, code: error.code, message: error.message } }));
  } else if (c.notify) {
    await connection.agent.notify(c.notify, c.params);
  } else if (c.choose) {
    open.get(c.of)(c.choose);
  } else if (c.raw) {
    child.stdin.write(c.raw + '\n');
  }
}
await new Promise((written) => setImmediate(written)); // wait until the last request is written
child.stdin.end();
