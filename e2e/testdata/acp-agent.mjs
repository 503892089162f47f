// An agent of the Agent Client Protocol, written with the official SDK. The text of
// a prompt says what it does:
//
//   say …        says it in three pieces
//   think …      thinks it and then says "done"
//   ask NAME     asks for permission to use a tool, and says what was chosen
//   read PATH    says what is in a file, or the error
//   write PATH TEXT
//   run COMMAND  runs it in a terminal and says its output and exit code
//   kill         runs "sleep 1000", kills it and says how it ended
//   plan         says a plan with two entries
//   usage        says how much of its context it uses
//   half         says one half, and the other half after it is cancelled
//   wait         waits until it is cancelled
//   deaf         waits, even when it is cancelled
//   die          ends the process
//   garbage      writes lines that are not messages
//   fail         answers with an error
//   env NAME     says the value of a variable
//   count        says how many prompts this process has had
import { Readable, Writable } from 'node:stream';
import * as acp from '@agentclientprotocol/sdk';

let prompts = 0;
let sessions = 0;
const cancelled = new Map();

const app = acp
  .agent({ name: 'scripted' })
  .onRequest(acp.methods.agent.initialize, () => ({
    protocolVersion: acp.PROTOCOL_VERSION,
    agentCapabilities: { loadSession: false },
  }))
  .onRequest(acp.methods.agent.session.new, ({ params }) => {
    const sessionId = `scripted-${++sessions}`;
    cancelled.set(sessionId, { cwd: params.cwd });
    return { sessionId };
  })
  .onNotification(acp.methods.agent.session.cancel, ({ params }) => cancelled.get(params.sessionId)?.stop?.())
  .onRequest(acp.methods.agent.session.prompt, async ({ params, client }) => {
    const { sessionId } = params;
    const session = cancelled.get(sessionId);
    prompts++;
    const update = (update) => client.notify(acp.methods.client.session.update, { sessionId, update });
    const say = (text) => update({ sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } });
    const [verb, ...words] = params.prompt.at(-1).text.split(' ');
    const rest = words.join(' ');
    const path = (name) => (name.startsWith('/') ? name : `${session.cwd}/${name}`);
    const end = (stopReason = 'end_turn') => ({ stopReason });
    try {
      switch (verb) {
        case 'say':
          for (const word of rest.split(/(?<= )/)) await say(word);
          return end();
        case 'think':
          await update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: rest } });
          await say('done');
          return end();
        case 'ask': {
          const toolCallId = 'call-1';
          const call = { toolCallId, title: `Use ${rest}`, kind: 'edit', rawInput: { name: rest } };
          await update({ sessionUpdate: 'tool_call', status: 'pending', ...call });
          const { outcome } = await client.request(acp.methods.client.session.requestPermission, {
            sessionId,
            toolCall: call,
            options: [
              { optionId: 'yes', name: 'Allow', kind: 'allow_once' },
              { optionId: 'ever', name: 'Always allow', kind: 'allow_always' },
              { optionId: 'no', name: 'Reject', kind: 'reject_once' },
            ],
          });
          const chosen = outcome.outcome === 'selected' ? outcome.optionId : outcome.outcome;
          const done = chosen === 'yes' ? 'completed' : 'failed';
          await update({
            sessionUpdate: 'tool_call_update',
            toolCallId,
            status: done,
            content: [{ type: 'content', content: { type: 'text', text: `used ${rest}` } }],
          });
          await say(`chosen: ${chosen}`);
          return end(outcome.outcome === 'cancelled' ? 'cancelled' : 'end_turn');
        }
        case 'read': {
          const { content } = await client.request(acp.methods.client.fs.readTextFile, { sessionId, path: path(rest) });
          await say(`it holds: ${content}`);
          return end();
        }
        case 'write':
          await client.request(acp.methods.client.fs.writeTextFile, {
            sessionId,
            path: path(words[0]),
            content: words.slice(1).join(' '),
          });
          await say('written');
          return end();
        case 'run':
        case 'kill': {
          const command = verb === 'run' ? rest : 'sleep 1000';
          const terminal = await client.createTerminal({ sessionId, command });
          if (verb === 'kill') await terminal.kill();
          const { exitCode, signal } = await terminal.waitForExit();
          const { output } = await terminal.currentOutput();
          await terminal.release();
          await say(`${exitCode ?? signal}: ${output}`);
          return end();
        }
        case 'plan':
          await update({
            sessionUpdate: 'plan',
            entries: [
              { content: 'look', priority: 'high', status: 'completed' },
              { content: 'leap', priority: 'low', status: 'in_progress' },
            ],
          });
          return end();
        case 'usage':
          await update({ sessionUpdate: 'usage_update', used: 1200, size: 8000, cost: { amount: 0.25, currency: 'USD' } });
          await say('counted');
          return end();
        case 'half':
          await say('one half ');
          await new Promise((stop) => (session.stop = stop));
          await say('and the other');
          return end();
        case 'wait':
          await say('waiting');
          await new Promise((stop) => (session.stop = stop));
          return end('cancelled');
        case 'deaf':
          await say('waiting');
          await new Promise(() => setInterval(() => {}, 1000));
          return end();
        case 'die':
          await say('farewell');
          console.error('the end of me');
          process.exit(3);
          break;
        case 'garbage':
          for (let i = 0; i < 20; i++) process.stdout.write('this is no message\n');
          await new Promise((stop) => (session.stop = stop));
          return end();
        case 'fail':
          throw new acp.RequestError(-32050, 'it is raining');
        case 'env':
          await say(`${rest} is ${process.env[rest] ?? 'not set'}`);
          return end();
        case 'count':
          await say(`prompt ${prompts} with ${params.prompt.length} blocks`);
          return end();
        default:
          await say(`no idea: ${params.prompt.map((b) => b.text).join('|')}`);
          return end();
      }
    } catch (error) {
      if (verb === 'fail') throw error;
      await say(`refused: ${error.message}`);
      return end();
    }
  });

app.connect(acp.ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)));
